'use strict'

// The chain of a worker begins in the thread that made it, that of a process in the process that spawned it.
//
// What a worker inherits by setEnvironmentData is invisible to programs (no API lists the keys) and is copied
// when the worker is made: the maker's chain is put there as plain data just before, and becomes the worker's
// root. It is taken back as soon as the worker has its copy: the chain is of no other worker. A worker
// without longstack takes nothing back, and workers that it makes inherit it in their turn: so the data names
// the thread that it is for.
//
// A process gets it by an environment variable (passing/child-processes.js), which is taken out before the
// program's first line.

const { originMs, now } = require('../core/clock')
const { on } = require('../core/on')
const { source } = require('../core/source')

/**
 * @typedef {object} Passed
 * @property {number} threadId of the worker that it is for
 * @property {number} at when it was passed, ms of the system's monotonic clock
 * @property {import('../stacks/chain').PrintedHop[]} hops
 * @property {number} from number of the thread that made it
 * @property {SharedArrayBuffer | undefined} memory that all threads share, see passing/message-table.js
 */

const KEY = 'longstack.chain'
const VARIABLE = '_LONGSTACK_CHAIN'
const TEXT_START = '{"longstack":1,' // of what encodeChain in stacks/passed-chain.js returns
/** a chain is there: of a worker that is being made, or the one that this thread inherited */
let isPassed = !isMainThread()
/** what this thread inherited; null: not read yet @type {Passed | null | undefined} */
let inherited = isPassed ? null : undefined
if (isPassed) source.startsWithHops = true
/** what this process inherited */
const inheritedText = isPassed ? undefined : takeVariable()

/**
 * Returns whether this is the main thread, without loading node:worker_threads there, which takes
 * milliseconds: in a worker Node disables what concerns the whole process
 * (lib/internal/bootstrap/switches/does_not_own_process_state.js).
 */
function isMainThread () {
  return /** @type {any} */ (process.abort)?.disabled !== true || require('node:worker_threads').isMainThread
}

/**
 * Takes the variable that this process was started with: neither the program nor its children see it. One of
 * the same name that longstack did not set is left alone.
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
 * Has the chain of what made this thread or process come before its own.
 * @param {import('../core/context').Context & { carried?: any }} root the first context of this thread
 */
function carryChain (root) {
  const passed = inheritedChain() ??
    (inheritedText === undefined ? undefined : require('../stacks/passed-chain').decodeChain(inheritedText))
  if (passed === undefined) return
  const ms = Math.max(0, originMs - passed.at) // not known where the clocks of two processes differ: below 0
  root.carried = passed.hops.map((hop) => ({ ...hop, ageMs: hop.ageMs + ms }))
}

/** Returns what the thread that made this one has passed. @returns {Passed | undefined} */
function inheritedChain () {
  takeBackChain()
  return isForThisThread(inherited) ? inherited : undefined
}

/**
 * A worker is being made in the running context.
 * @param {{ threadId?: number }} handle which gets its number after this call
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

/** Takes back what was put there for a worker: it is made, or nothing is traced any more. */
function takeBackChain () {
  if (!isPassed) return
  isPassed = false
  const { getEnvironmentData, setEnvironmentData } = require('node:worker_threads')
  if (inherited === null) inherited = /** @type {any} */ (getEnvironmentData(KEY))
  setEnvironmentData(KEY, undefined) // else workers of this one inherit it
}

on('iteration', takeBackChain)
on('changed', takeBackChain)
on('stopped', takeBackChain)

module.exports = { VARIABLE, carryChain, inheritedChain, isMainThread, passChain }
