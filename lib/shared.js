'use strict'

// One tracer a thread, shared by every copy of the package: two copies must not hook twice. The key is no
// name that anybody could trip over, and changes with the contract.

const { createTracer } = require('./tracer')

const KEY = Symbol.for('longstack.tracer.1')

/** @typedef {{ readonly tracer: import('./tracer').Tracer, readonly trace: import('./api').Trace }} Shared */

/** @returns {Shared} */
function find () {
  const home = /** @type {{ [KEY]?: Shared }} */ (/** @type {unknown} */ (globalThis))
  if (home[KEY] === undefined) {
    const tracer = createTracer()
    /** @type {import('./api').Trace | undefined} */
    let trace
    const value = {
      tracer,
      // Made by the first require('longstack'); most programs under longstack/register never do.
      get trace () {
        trace ??= require('./api').createApi(tracer)
        return trace
      }
    }
    Object.defineProperty(home, KEY, { value, enumerable: false, configurable: true })
  }
  return /** @type {Shared} */ (home[KEY])
}

module.exports = find()
