'use strict'

// One tracer a thread, shared by every copy of the package: two copies must not hook twice. The key is no name
// that anybody could trip over, and changes with the contract.

const { createApi } = require('./api')
const { createTracer } = require('./tracer')

const KEY = Symbol.for('longstack.tracer.1')

/** @typedef {{ tracer: import('./tracer').Tracer, trace: import('./api').Trace }} Shared */

/** @returns {Shared} */
function find () {
  const home = /** @type {{ [KEY]?: Shared }} */ (/** @type {unknown} */ (globalThis))
  if (home[KEY] === undefined) {
    const tracer = createTracer()
    const value = { tracer, trace: createApi(tracer) }
    Object.defineProperty(home, KEY, { value, enumerable: false, configurable: true })
  }
  return /** @type {Shared} */ (home[KEY])
}

module.exports = find()
