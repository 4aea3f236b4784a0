'use strict'

// State that holds for the moment of a call: the flag of longstack's own work, and what other files add with
// `guard.add`. While `inOwnWork` is set, no hook records anything; what is created then is marked as
// longstack's own (see OWN_WORK in context.js), so nothing that a hook callback does can come back as an
// event.
//
// `finally` puts such state back, but V8 does not run it where it terminates execution: a `vm` timeout,
// Ctrl-C with `breakOnSigint`, the inspector's Runtime.terminateExecution (Isolate::UnwindAndFindHandler in
// src/execution/isolate.cc: JavaScript cannot catch that). So nothing may depend on `finally` alone: all
// state is saved before code runs that may be terminated, and restored after it (core/terminable-runs.js),
// and an iteration of the event loop begins with none of it set.
//
// Data that later calls read is written whole between two places where V8 may terminate: the entries of
// functions written in JavaScript, the ends of loops' bodies, and regular expressions.

/**
 * @typedef {object} MomentaryState state that a call sets and puts back
 * @property {() => any} save
 * @property {(saved: any) => void} restore puts back what is set since; undefined: nothing was set
 */

/** @type {MomentaryState[]} */
const states = []

const guard = {
  inOwnWork: false,

  /**
   * The program is called inside of a hook, or on top of whatever an interrupt found, which may be one. Not
   * reset with an iteration, the beginning of which may be noticed there.
   */
  mayBeInHook: false,

  /**
   * Runs a function as longstack's own work. Never nests a second guard, always releases: a RangeError from a
   * full stack can surface anywhere.
   * @template T
   * @param {() => T} work
   * @returns {T}
   */
  run (work) {
    if (guard.inOwnWork) return work()
    guard.inOwnWork = true
    try {
      return work()
    } finally {
      guard.inOwnWork = false
    }
  },

  /**
   * Runs a function as longstack's own work where none runs yet, and drops what it throws: the stack may be
   * full.
   * @template T
   * @param {() => T} work
   * @returns {T | undefined}
   */
  runQuietly (work) {
    if (guard.inOwnWork) return undefined
    try {
      return guard.run(work)
    } catch {
      return undefined
    }
  },

  /** Sets `mayBeInHook` for the time of a call. @param {() => void} work */
  callInHook (work) {
    const wasInHook = guard.mayBeInHook
    guard.mayBeInHook = true
    try {
      work()
    } finally {
      guard.mayBeInHook = wasInHook
    }
  },

  /** Has the state of another file saved and restored. @param {MomentaryState} state */
  add (state) {
    states.push(state)
  },

  /** Saves all state, before code runs that may be terminated. @returns {unknown[]} */
  save () {
    const saved = [guard.inOwnWork, guard.mayBeInHook]
    for (let i = 0; i < states.length; i++) saved.push(states[i].save())
    return saved
  },

  /** Restores all state, after such code has ended. @param {unknown[]} saved */
  restore (saved) {
    guard.inOwnWork = saved[0] === true
    guard.mayBeInHook = saved[1] === true
    for (let i = 0; i < states.length; i++) states[i].restore(saved[i + 2])
  },

  /** Puts all state back: an iteration of the event loop begins, whatever became of the one before. */
  reset () {
    guard.inOwnWork = false
    for (let i = 0; i < states.length; i++) states[i].restore(undefined)
  }
}

module.exports = guard
