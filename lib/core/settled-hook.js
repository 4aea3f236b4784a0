'use strict'

// Installs the hook for settled promises: one of settlements.js, or another while terminable code runs.
//
// V8 calls the hook of a rejected promise from C++. If V8 terminates JavaScript in that hook, it ends the
// process or forgets the termination (NativeContext::RunPromiseHook in src/objects/contexts.cc). Only V8's
// C++ functions do not check for termination. So while terminable code runs, the hook is one of those,
// Reflect.set: it keeps the last settled promise, which is noted when the next promise is made, or when a
// step begins or ends. Other settlements in between are lost.

const { ATTENTION, DEPTH, MISSING, SETTLING, current } = require('./current')
const registry = require('./registry')
const capture = require('../stacks/capture')

const last = { promise: /** @type {object | undefined} */ (undefined) }
const keepLast = /** @type {(promise: object) => void} */ (Reflect.set.bind(undefined, last, 'promise'))
/** notes a promise; undefined: tracing is off @type {((promise: object) => void) | undefined} */
let settle
/** terminable code runs */
let isTerminable = false
/** @type {Function | undefined} */
let uninstall

function install () {
  uninstall?.()
  uninstall = undefined
  if (settle === undefined) return
  const { promiseHooks } = require('node:v8')
  uninstall = promiseHooks.onSettled(isTerminable ? keepLast : settle)
  if (isTerminable) current[ATTENTION] |= SETTLING | MISSING
}

/** @param {((promise: object) => void) | undefined} hook notes a promise; undefined: tracing is off */
function setSettled (hook) {
  if (hook === undefined) last.promise = undefined
  settle = hook
  install()
}

/** Notes the last settled promise, in the current step. */
function readLast () {
  const { promise } = last
  last.promise = undefined
  if (promise !== undefined) settle?.(promise)
}

/**
 * Notes the last settled promise before a step is entered. If none was entered before, drops it: Node no
 * longer knows what executed.
 */
function readBeforeStep () {
  if (current[DEPTH] === 0) last.promise = undefined
  else readLast()
}

/**
 * Begins terminable code.
 * @returns {boolean} false: already in such code, or tracing is off
 */
function startTerminable () {
  if (isTerminable || settle === undefined) return false
  isTerminable = true
  install()
  return true
}

/** Ends terminable code while its step is still the current one. @param {boolean} isOutermost */
function endTerminable (isOutermost) {
  readLast()
  if (isOutermost) stopTerminable()
}

/** Ends terminable code after its step was left. */
function stopTerminable () {
  if (!isTerminable) return
  isTerminable = false
  registry.missSettled(capture.clock[0])
  current[ATTENTION] &= ~SETTLING
  last.promise = undefined
  install()
}

/**
 * Ends terminable code if no run of vm has done so.
 * @type {import('./guard').MomentaryState}
 */
const terminableState = {
  save: () => true,
  restore (saved) { if (saved === undefined) stopTerminable() }
}

module.exports = { endTerminable, readBeforeStep, readLast, setSettled, startTerminable, terminableState }
