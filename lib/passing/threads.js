'use strict'

// The chain of a worker begins in its parent thread, the chain of a process in its parent process.
//
// Data that a worker inherits through setEnvironmentData is invisible to programs (no API lists the keys) and
// is copied when the worker is created. The parent's chain is put there as plain data just before, and
// becomes the worker's root. It is removed as soon as the worker has its copy, since it belongs to that
// worker only. A worker without longstack does not remove it, and its own workers inherit it in turn; so the
// data names its thread.
//
// A process gets the chain through an environment variable (passing/child-processes.js), which is removed
// before the program's first line.

const { originMs, now } = require('../core/clock')
const { on } = require('../core/on')
const { source } = require('../core/source')

/**
 * @typedef {object} Passed
 * @property {number} threadId of the worker that it is for
 * @property {number} at time of passing, ms of the system's monotonic clock
 * @property {import('../stacks/chain').PrintedHop[]} hops
 * @property {number} from number of the parent thread
 * @property {SharedArrayBuffer | undefined} memory shared by all threads, see passing/message-table.js
 */

const KEY = 'longstack.chain'
const VARIABLE = '_LONGSTACK_CHAIN'
const TEXT_START = '{"longstack":1,' // start of the text that encodeChain in stacks/passed-chain.js returns
/** environment data has a chain: for a worker being created, or the one that this thread inherited */
let isPassed = !isMainThread()
/** chain that this thread inherited; null: not read yet @type {Passed | null | undefined} */
let inherited = isPassed ? null : undefined
if (isPassed) source.startsWithHops = true
/** chain that this process inherited */
const inheritedText = isPassed ? undefined : takeVariable()

/**
 * Returns whether this is the main thread, without loading node:worker_threads there, which takes
 * milliseconds. In a worker, Node disables functions that affect the whole process
 * (lib/internal/bootstrap/switches/does_not_own_process_state.js).
 */
function isMainThread () {
  return /** @type {any} */ (process.abort)?.disabled !== true || require('node:worker_threads').isMainThread
}

/**
 * Removes the variable that this process was started with: neither the program nor its children see it. A
 * variable of the same name that longstack did not set is left alone.
 * @returns {string | undefined}
 */
function takeVariable () {
  const text = process.env[VARIABLE]
  if (text === undefined || !text.startsWith(TEXT_START)) return undefined
  delete process.env[VARIABLE]
  source.startsWithHops = true
  return text
}

/**
 * Puts the chain of the parent thread or process before the chains of this one.
 * @param {import('../core/context').Context & { carried?: any }} root the first context of this thread
 */
function carryChain (root) {
  const passed = inheritedChain() ??
    (inheritedText === undefined ? undefined : require('../stacks/passed-chain').decodeChain(inheritedText))
  if (passed === undefined) return
  const ms = Math.max(0, originMs - passed.at) // below 0 if the clocks of two processes differ: unknown
  root.carried = passed.hops.map((hop) => ({ ...hop, ageMs: hop.ageMs + ms }))
}

/** Returns the data that the parent thread has passed. @returns {Passed | undefined} */
function inheritedChain () {
  takeBackChain()
  return isForThisThread(inherited) ? inherited : undefined
}

/**
 * Passes a chain to the worker that is being created.
 * @param {{ threadId?: number }} handle its number is set after this call
 * @param {import('../stacks/chain').PrintedHop[]} hops that led here
 * @param {SharedArrayBuffer | undefined} memory
 */
function passChain (handle, hops, memory) {
  const { setEnvironmentData, threadId: from } = require('node:worker_threads')
  const passed = {
    from,
    memory,
    get threadId () { return handle.threadId }, // read when the worker's copy is made
    at: originMs + now(),
    hops: hops.map((hop) => hop.pid === undefined ? { ...hop, origin: 'worker' } : hop)
  }
  setEnvironmentData(KEY, /** @type {any} */ (passed))
  isPassed = true
}

/** @param {any} passed @returns {passed is Passed} */
function isForThisThread (passed) {
  return Array.isArray(passed?.hops) && passed.threadId === require('node:worker_threads').threadId
}

/** Removes the data for a worker, once the worker is created or tracing has stopped. */
function takeBackChain () {
  if (!isPassed) return
  isPassed = false
  const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
  if (inherited === null) inherited = /** @type {any} */ (getEnvironmentData(KEY))
  setEnvironmentData(KEY, undefined) // otherwise workers of this thread inherit it
}

on('iteration', takeBackChain)
on('changed', takeBackChain)
on('stopped', takeBackChain)

module.exports = { VARIABLE, carryChain, inheritedChain, isMainThread, passChain }
