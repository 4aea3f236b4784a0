'use strict'

// The public object, shared by every copy of the package in one thread: two copies must not hook twice. The key
// is no name that anybody could trip over, and changes with the contract.

const KEY = Symbol.for('longstack.tracer.1')

/** @typedef {ReturnType<typeof import('./lib/tracer').createTracer>} Shared */
/** @type {{ [KEY]?: Shared }} */
const home = /** @type {any} */ (globalThis)

if (home[KEY] === undefined) {
  const { createTracer } = require('./lib/tracer')
  Object.defineProperty(home, KEY, { value: createTracer(), enumerable: false, configurable: true })
}

const { trace } = /** @type {Shared} */ (home[KEY])

// For import { enable } from 'longstack': names that a parser finds.
exports.enable = trace.enable
exports.disable = trace.disable
exports.current = trace.current
exports.chain = trace.chain
exports.stack = trace.stack
exports.why = trace.why
exports.handles = trace.handles
exports.stats = trace.stats
exports.hook = trace.hook
exports.onError = trace.onError
exports.on = trace.on
exports.bind = trace.bind

module.exports = trace
