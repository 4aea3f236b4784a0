'use strict'

// Installs the hook for promises that are settled: a function of settlements.js, or while code runs that may
// be terminated another one.
//
// V8 calls the hook of a promise that is rejected from C++, and where it terminates JavaScript in there it
// ends the process, or forgets that the code is to end (NativeContext::RunPromiseHook in
// src/objects/contexts.cc). Only functions that V8 has in C++ do not look whether they are to end. So while
// code runs that may be terminated, the hook is one of those, Reflect.set: it keeps the promise that was
// settled last, which is noted when the next one is made, and when a step begins or ends. What was settled in
// between is not known to be.

const { ATTENTION, DEPTH, MISSING, SETTLING, current } = require('./current')
const registry = require('./registry')
const capture = require('../stacks/capture')

const last = { promise: /** @type {object | undefined} */ (undefined) }
const keepLast = /** @type {(promise: object) => void} */ (Reflect.set.bind(undefined, last, 'promise'))
/** notes a promise; undefined: tracing is off @type {((promise: object) => void) | undefined} */
let settle
/** code runs that may be terminated */
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

/** Notes the promise that was settled last, in the current step. */
function readLast () {
  const { promise } = last
  last.promise = undefined
  if (promise !== undefined) settle?.(promise)
}

/**
 * The same when a step is about to be entered. Where none was, Node does not say any more what executed.
 */
function readBeforeStep () {
  if (current[DEPTH] === 0) last.promise = undefined
  else readLast()
}

/**
 * Code begins to run that may be terminated.
 * @returns {boolean} false: in such code, or tracing is off
 */
function startTerminable () {
  if (isTerminable || settle === undefined) return false
  isTerminable = true
  install()
  return true
}

/** Such code has ended; its step is still the current one. @param {boolean} isOutermost */
function endTerminable (isOutermost) {
  readLast()
  if (isOutermost) stopTerminable()
}

/** Such code has ended; its step is not the current one any more. */
function stopTerminable () {
  if (!isTerminable) return
  isTerminable = false
  registry.missSettled(capture.clock[0])
  current[ATTENTION] &= ~SETTLING
  last.promise = undefined
  install()
}

/**
 * Ends such code where no run of vm has.
 * @type {import('./guard').MomentaryState}
 */
const terminableState = {
  save: () => true,
  restore (saved) { if (saved === undefined) stopTerminable() }
}

module.exports = { endTerminable, readBeforeStep, readLast, setSettled, startTerminable, terminableState }
