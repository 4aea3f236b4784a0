'use strict'

// node -r longstack/register app.js: tracing is on from the first line, options come from the environment.
// A wrong option is reported in one line, by the main thread, and the program still runs.

const { shared, options, warnings } = require('./start')

const { tracer } = shared
const { printFromMainThread, isUnsafeVersion } = warnings

if (!tracer.enabled()) {
  if (isUnsafeVersion(process.versions.node)) {
    printFromMainThread(`on Node ${process.version} a caught stack overflow is fatal while async hooks are ` +
      'on (CVE-2025-59466); update Node.')
  }
  tracer.apply(options.environmentOptions())
}
