'use strict'

// The timeline of a recording: every moment belongs to a slice of a run, or to the waiting event loop.
// A slice lasts until the next one begins or the loop polls. Times never go back here, whatever entries say.

const {
  ARRIVED, BEGIN, CALLED, CAME, CONNECTION, ONE_SHOT, PARSER, POLL, POLLED, RESUME, RUN, TIMER
} = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')

// Within these gaps no entry gives an arrival time: the middle between two polls is as close.
const MAX_GAP = 4 // ms
const MAX_TIMER_GAP = 1 // ms
const MIN_SLEEP = 0.5 // ms in a poll; its events arrived when it ended

/** @typedef {import('./entries').Recording} Recording */

/**
 * Earliest and latest arrival of the event that a callback waited for: from then on it was late.
 * @typedef {{ after: number, by: number }} Arrival ms
 */

/** Finds the slices of new entries. */
class Timeline {
  /** @param {Recording} recording */
  constructor (recording) {
    this.recording = recording
    this.now = 0
    /** total ms of slices */
    this.busy = 0
    /** the slice that has not ended */
    this.open = NONE
    /** the newest slice */
    this.slice = NONE
    /** the run that the event loop called */
    this.head = NONE
    this.poll = NONE
  }

  /** @param {number} i entry */
  add (i) {
    const { recording, recording: { at, kind } } = this
    if (i === 0) this.now = recording.time[0]
    recording.run[i] = recording.head[i] = recording.poll[i] = NONE
    switch (kind[i]) {
      case RUN: this.#enter(i); break
      case RESUME: this.#begin(i, recording.registered[i]); break
      case POLL: this.#poll(i); break
      case ARRIVED: case CAME: this.#note(i, kind[i] === CAME ? recording.came : recording.arrived); break
      case BEGIN: this.#turn(i)
    }
    at[i] = this.now
    recording.busy[i] = this.busy
    recording.slice[i] = this.slice
    recording.placed = i + 1
  }

  /** Ends the open slice, and advances to a time. @param {number} time */
  close (time) {
    if (time > this.now) this.now = time
    const { open, recording } = this
    if (open === NONE) return
    this.open = NONE
    recording.end[open] = this.now
    this.busy += this.now - recording.at[open]
  }

  /** Advances to a time. Only longstack's own work may go on after it. @param {number} time */
  goOn (time) {
    const { open, recording } = this
    if (open === NONE || recording.run[open] !== NONE) return this.close(time)
    if (time > this.now) this.now = time
  }

  /** Whether the event loop called a run: the callback before it is over. @param {number} i */
  isHead (i) {
    const { a, flags } = this.recording
    return this.head === NONE || ((flags[i] & CALLED) !== 0 && a[i] === 0)
  }

  /** Notes that entries are lost. */
  interrupt () {
    this.close(this.now)
    this.head = this.poll = NONE
  }

  /** Updates indexes of entries that moved. @param {Int32Array} moved */
  move (moved) {
    for (const name of /** @type {const} */ (['open', 'slice', 'head', 'poll'])) {
      if (this[name] !== NONE) this[name] = moved[this[name]]
    }
  }

  /** @param {number} i run */
  #enter (i) {
    const { head, poll } = this.recording
    if (this.isHead(i)) this.head = i
    head[i] = this.head
    poll[i] = this.poll
    this.#begin(i, i)
  }

  /** @param {number} i slice @param {number} run NONE for longstack's own work, which has no owner */
  #begin (i, run) {
    const { recording } = this
    this.close(recording.time[i])
    this.open = this.slice = i
    recording.run[i] = run
    if (run === NONE) recording.outer[i] = 0
    else recording.last[run] = i
    recording.end[i] = this.now
  }

  /** @param {number} i poll */
  #poll (i) {
    const { poll, time, x } = this.recording
    this.close(Math.min(time[i], time[i] - x[i]))
    if (time[i] > this.now) this.now = time[i]
    poll[i] = this.poll
    this.poll = i
    this.head = NONE
  }

  /** @param {number} i entry about a run @param {Int32Array} column */
  #note (i, column) {
    const run = this.recording.registered[i]
    if (run !== NONE) column[run] = i
  }

  /** Links the run after a callback brought a request to that callback. @param {number} i begin */
  #turn (i) {
    const { b, head, registered, settled } = this.recording
    const [before, run] = [registered[i], settled[i]]
    if (before !== NONE && run !== NONE && b[before] === b[run]) this.head = head[run] = head[before]
  }
}

/**
 * Returns the last entry before a time, or NONE.
 * @param {Recording} recording
 * @param {number} time
 * @param {number} hint an entry that is not earlier
 */
function entryBefore ({ at }, time, hint) {
  let high = hint
  let step = 1
  // It is usually near.
  while (high >= 0 && at[high] >= time) {
    high -= step
    step *= 2
  }
  if (step <= 2) return Math.max(NONE, high)
  let low = Math.max(NONE, high)
  high += step / 2 - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if (at[middle] < time) low = middle
    else high = middle - 1
  }
  return low
}

/**
 * Returns the total ms of runs up to a time.
 * @param {Recording} recording
 * @param {number} time
 * @param {number} hint an entry that is not earlier than the last one before
 */
function busyUntil (recording, time, hint) {
  const { at, busy, end, slice } = recording
  const i = entryBefore(recording, time, hint)
  if (i === NONE) return busy[0]
  const last = slice[i]
  return last === NONE ? busy[i] : busy[last] + Math.min(time, end[last]) - at[last]
}

/**
 * Whether the event loop did not poll between two runs: there was no wait.
 * @param {Recording} recording
 * @param {number} run
 * @param {number} other
 */
function isSameIteration ({ head, poll }, run, other) {
  if (run === NONE || other === NONE) return false
  return head[run] === head[other] || poll[run] === poll[other]
}

/**
 * Finds the arrival time of the event that a callback waited for.
 * @param {Recording} recording
 * @param {number} run that the event loop called, NONE if unknown
 * @param {Arrival} arrival receives the result
 */
function findArrival ({ a, arrived, at, flags, poll, time, x }, run, arrival) {
  if (run === NONE) {
    arrival.after = -Infinity
    arrival.by = Infinity
    return
  }
  const begin = at[run]
  const last = poll[run]
  const isTimer = (flags[run] & TIMER) !== 0
  if ((flags[run] & CALLED) === 0) {
    arrival.after = arrival.by = begin
  } else if (isTimer && (flags[run] & ONE_SHOT) !== 0) {
    arrival.after = arrival.by = -Infinity // with its cause
  } else if (arrived[run] !== NONE) {
    const by = Math.min(time[arrived[run]], begin)
    arrival.by = by
    arrival.after = a[arrived[run]] === POLLED ? by - Math.max(0, x[arrived[run]]) : by
  } else if (last === NONE) {
    arrival.after = arrival.by = begin
  } else {
    const polled = Math.min(time[last], begin)
    const slept = Math.max(0, x[last])
    const before = poll[last] === NONE ? polled - slept : Math.min(time[poll[last]], polled)
    if (begin - slept - before < (isTimer ? MAX_TIMER_GAP : MAX_GAP)) {
      const middle = slept >= MIN_SLEEP ? polled : Math.min(polled, (before + polled - slept) / 2)
      arrival.after = arrival.by = middle
    } else {
      const isPolled = (flags[run] & (CONNECTION | PARSER)) !== 0
      arrival.after = slept >= MIN_SLEEP ? polled : before
      arrival.by = isPolled ? polled : begin
    }
  }
}

module.exports = { Timeline, busyUntil, entryBefore, findArrival, isSameIteration }
