'use strict'

// The step that runs now, and the steps that it interrupts: numbers, for core/events.js to enter and leave.
// They lie in typed arrays of more than 64 bytes, which V8 keeps outside of its heap
// (typed_array_max_size_in_heap in src/flags), so that compiled code knows their address.

const LEVEL = 5 // words saved a level
const LEVELS = 1024

const words = {
  // Words of `current`.
  CURRENT_CHAIN: 0, // number of its chain
  CURRENT_CAUSE: 1, // reference of its record
  CURRENT_SPAN: 2, // number of its span
  ROOT_ENTRY: 3, // number of the main script's run in the run log, likewise
  CURRENT_REF: 4, // reference of the resource or promise that was entered last
  DEPTH: 5, // how many are entered; 0: no hook has said what runs
  LAST_LEFT: 6, // reference of the step that was left last
  CURRENT_ENTRY: 7, // number of this run in the run log, 0: none, or it is not logged
  ATTENTION: 8, // what else is done when a step begins: the bits below
  PRESENT_ERA: 9, // the ERA of records that are made now, in its place among their flags

  // Bits of ATTENTION.
  WATCHED: 2, // the length of callbacks is watched
  ORPHANED: 4, // a handle was made while nothing executed: what runs next is its cause
  RETURNS: 8, // while runs are logged: when callbacks return is noted
  SETTLING: 16, // code runs that may be terminated: see core/settlements.js
  LOGGED: 64, // runs are logged, see run-log.js
  MISSING: 32 // such code ran since the event loop called last: not all that was settled is known
}
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_REF, CURRENT_SPAN, DEPTH,
  LAST_LEFT
} = words

const current = new Int32Array(32)
/** what the levels below were: chain, cause, span, ref, entry */
const saved = new Int32Array(LEVEL * LEVELS)

/** Sets the current step. @param {number} chain @param {number} cause @param {number} span */
function setCurrent (chain, cause, span) {
  current[CURRENT_CHAIN] = chain
  current[CURRENT_CAUSE] = cause
  current[CURRENT_SPAN] = span
}

/** Saves the current step, which `pop` puts back. @param {number} ref of what is entered */
function push (ref) {
  // More than the stack has room for: what is on top was never left
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

/** @returns {number} index in `saved` of the step that called the current one; -1: the event loop did */
const callerLevel = () => current[DEPTH] < 2 ? -1 : (current[DEPTH] - 1) * LEVEL
/** @returns {number} the run of that step in the run log, 0: none */
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
 * Drops the levels above an entered one, which were never left.
 * @param {number} ref
 * @returns {boolean} it is entered
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

/** Returns the current step and how many are entered, for `restore`. */
const save = () => current.slice(0, ATTENTION)

/** Puts back the current step, and drops the levels above it. @param {Int32Array} step that was saved */
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
