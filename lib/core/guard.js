'use strict'

// Momentary state of a call: the flag of longstack's own work, and state that other modules add with
// `guard.add`. While `inOwnWork` is set, no hook records anything, and new resources are marked as
// longstack's own (see OWN_WORK in context.js). So no action of a hook callback comes back as an event.
//
// `finally` restores such state, but V8 does not run it when it terminates execution: a `vm` timeout, Ctrl-C
// with `breakOnSigint`, the inspector's Runtime.terminateExecution (Isolate::UnwindAndFindHandler in
// src/execution/isolate.cc: JavaScript cannot catch that). So nothing may depend on `finally` alone. All
// state is saved before terminable code runs and restored after it (core/terminable-runs.js), and each
// iteration of the event loop begins with none of it set.
//
// Data that later calls read is written whole between two points at which V8 may terminate: entries of
// JavaScript functions, ends of loop bodies, and regular expressions.

/**
 * @typedef {object} MomentaryState state that a call sets and restores
 * @property {() => any} save
 * @property {(saved: any) => void} restore restores saved state; undefined: nothing was set
 */

/** @type {MomentaryState[]} */
const states = []

const guard = {
  inOwnWork: false,

  /**
   * The program runs inside a hook, or on top of code that an interrupt found, which may be a hook. Not reset
   * with each iteration, whose start may be noticed inside such a call.
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
   * Runs a function as longstack's own work unless such work runs already. Drops exceptions: the stack may be
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

  /** Sets `mayBeInHook` during a call. @param {() => void} work */
  callInHook (work) {
    const wasInHook = guard.mayBeInHook
    guard.mayBeInHook = true
    try {
      work()
    } finally {
      guard.mayBeInHook = wasInHook
    }
  },

  /** Adds another module's state to be saved and restored. @param {MomentaryState} state */
  add (state) {
    states.push(state)
  },

  /** Saves all state before terminable code runs. @returns {unknown[]} */
  save () {
    const saved = [guard.inOwnWork, guard.mayBeInHook]
    for (let i = 0; i < states.length; i++) saved.push(states[i].save())
    return saved
  },

  /** Restores all state after terminable code has ended. @param {unknown[]} saved */
  restore (saved) {
    guard.inOwnWork = saved[0] === true
    guard.mayBeInHook = saved[1] === true
    for (let i = 0; i < states.length; i++) states[i].restore(saved[i + 2])
  },

  /** Resets all state: an iteration of the event loop begins, however the last one ended. */
  reset () {
    guard.inOwnWork = false
    for (let i = 0; i < states.length; i++) states[i].restore(undefined)
  }
}

module.exports = guard
