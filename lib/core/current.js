'use strict'

// The current step and the steps it interrupts, as numbers that core/events.js enters and leaves. They live
// in typed arrays of more than 64 bytes. V8 keeps those outside of its heap (typed_array_max_size_in_heap
// in src/flags), so compiled code knows their address.

const LEVEL = 5 // words saved per level
const LEVELS = 1024

const words = {
  // Words of `current`.
  CURRENT_CHAIN: 0, // number of its chain
  CURRENT_CAUSE: 1, // reference of its record
  CURRENT_SPAN: 2, // number of its span
  ROOT_ENTRY: 3, // the main script's run in the run log, 0: none
  CURRENT_REF: 4, // reference of the last resource or promise entered
  DEPTH: 5, // nesting depth; 0 until a hook has entered a step
  LAST_LEFT: 6, // reference of the last step left
  CURRENT_ENTRY: 7, // number of this run in the run log, 0: none, or not logged
  ATTENTION: 8, // extra work when a step begins: the bits below
  PRESENT_ERA: 9, // ERA of records made now, shifted to its place in their flags

  // Bits of ATTENTION.
  WATCHED: 2, // callback durations are watched
  ORPHANED: 4, // a handle was made while nothing executed: the next step to run is its cause
  RETURNS: 8, // while runs are logged: callback returns are logged
  SETTLING: 16, // terminable code runs: see core/settled-hook.js
  LOGGED: 64, // runs are logged, see run-log.js
  MISSING: 32 // terminable code ran since the last callback: some settlements may be unknown
}
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_REF, CURRENT_SPAN, DEPTH,
  LAST_LEFT
} = words

const current = new Int32Array(32)
/** saved words of the levels below: chain, cause, span, ref, entry */
const saved = new Int32Array(LEVEL * LEVELS)

/** Sets the current step. @param {number} chain @param {number} cause @param {number} span */
function setCurrent (chain, cause, span) {
  current[CURRENT_CHAIN] = chain
  current[CURRENT_CAUSE] = cause
  current[CURRENT_SPAN] = span
}

/** Saves the current step; `pop` restores it. @param {number} ref of the step entered */
function push (ref) {
  // Deeper than the stack allows, so the upper levels were never left
  if (current[DEPTH] === LEVELS) current[DEPTH] = 0
  const level = current[DEPTH] * LEVEL
  saved[level] = current[CURRENT_CHAIN]
  saved[level + 1] = current[CURRENT_CAUSE]
  saved[level + 2] = current[CURRENT_SPAN]
  saved[level + 3] = current[CURRENT_REF]
  saved[level + 4] = current[CURRENT_ENTRY]
  current[DEPTH]++
  current[CURRENT_REF] = ref
}

/** @returns {number} index in `saved` of the current step's caller; -1: the event loop */
const callerLevel = () => current[DEPTH] < 2 ? -1 : (current[DEPTH] - 1) * LEVEL
/** @returns {number} the caller's run in the run log, 0: none */
const callerEntry = () => callerLevel() < 0 ? 0 : saved[callerLevel() + 4]

function pop () {
  current[LAST_LEFT] = current[CURRENT_CAUSE]
  current[DEPTH]--
  const level = current[DEPTH] * LEVEL
  current[CURRENT_CHAIN] = saved[level]
  current[CURRENT_CAUSE] = saved[level + 1]
  current[CURRENT_SPAN] = saved[level + 2]
  current[CURRENT_REF] = saved[level + 3]
  current[CURRENT_ENTRY] = saved[level + 4]
}

/**
 * Drops the levels above an entered step, which were never left.
 * @param {number} ref
 * @returns {boolean} whether the step is entered
 */
function unwind (ref) {
  for (let level = current[DEPTH] - 1; level > 0; level--) {
    if (saved[level * LEVEL + 3] !== ref) continue
    current[DEPTH] = level
    current[CURRENT_REF] = ref
    return true
  }
  return false
}

/** Returns the current step and the nesting depth, for `restore`. */
const save = () => current.slice(0, ATTENTION)

/** Restores the current step and drops the levels above it. @param {Int32Array} step saved by `save` */
function restore (step) {
  current.set(step)
}

/** Leaves all levels. */
function leaveAll () {
  current[DEPTH] = 0
  current[CURRENT_REF] = 0
  current[CURRENT_ENTRY] = 0
}

module.exports = {
  ...words,
  current,
  setCurrent,
  push,
  callerEntry,
  pop,
  unwind,
  save,
  restore,
  leaveAll
}
