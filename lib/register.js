'use strict'

// node -r longstack/register app.js: tracing is on from the first line, options come from the environment.

require('../index.js')

const shared = /** @type {any} */ (globalThis)[Symbol.for('longstack.tracer.1')]
shared.register()
