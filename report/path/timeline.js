'use strict'

// The timeline of a recording: every moment belongs to a slice of a run, or to the event loop, which waits.
// A slice lasts until the next one begins or the loop polls. Times never go back here, whatever entries say.

const {
  ARRIVED, BEGIN, CALLED, CAME, CONNECTION, ONE_SHOT, PARSER, POLL, POLLED, RESUME, RUN, TIMER
} = require('../../lib/core/run-log-words')

const NONE = -1
// Within these no entry says when something arrived: the middle between two polls is as near.
const MAX_GAP = 4 // ms
const MAX_TIMER_GAP = 1 // ms
const MIN_SLEEP = 0.5 // ms in a poll: what it brought came when it ended
const WITH_ITS_CAUSE = -Infinity

/**
 * @typedef {object} Slices in order
 * @property {number} count
 * @property {Float64Array} start
 * @property {Float64Array} end
 * @property {Int32Array} run
 * @property {Int32Array} owner number of the span, 0: none
 * @property {Float64Array} busy ms of all slices before
 *
 * @typedef {object} Timeline
 * @property {Slices} slices
 * @property {number} begin ms
 * @property {number} end
 * @property {Int32Array} slicesBefore how many slices began before an entry
 * @property {Int32Array} sliceOf the first slice of a run
 * @property {Float64Array} endOf when the last slice of a run ended
 * @property {Int32Array} headOf the run that the event loop called, by each run of the same callback
 * @property {Int32Array} ownerOf number of the span that a run is part of at its end
 * @property {Int32Array} cameIn entry of the data that a callback brought, NONE: it brought none
 * @property {Int32Array} arrivedIn entry that says when a callback was due, NONE: there is none
 * @property {Int32Array} pollOf entry of the last poll before a callback
 * @property {Int32Array} pollBefore entry of the poll before that one
 */

/** @param {import('./entries').Columns} columns @returns {Timeline} */
function timelineOf ({ a, b, count, flags, kind, registered, request, settled, time, x }) {
  const ints = (/** @type {number} */ value) => new Int32Array(count).fill(value)
  const [sliceOf, headOf, cameIn] = [ints(NONE), ints(NONE), ints(NONE)]
  const [arrivedIn, pollOf, pollBefore] = [ints(NONE), ints(NONE), ints(NONE)]
  const ownerOf = ints(0)
  const slicesBefore = new Int32Array(count + 1)
  const endOf = new Float64Array(count)
  const start = new Float64Array(count)
  const end = new Float64Array(count)
  const run = new Int32Array(count)
  const owner = new Int32Array(count)
  let slices = 0
  let now = count === 0 ? 0 : time[0]
  let latest = now
  let isOpen = false // a slice is
  let [head, poll, lastPoll] = [NONE, NONE, NONE]

  /** @param {number} at */
  function close (at) {
    if (at > now) now = at
    if (!isOpen) return
    isOpen = false
    end[slices - 1] = now
    endOf[run[slices - 1]] = now
  }

  /** @param {number} at @param {number} index of the run @param {number} span */
  function open (at, index, span) {
    close(at)
    isOpen = true
    start[slices] = now
    run[slices] = index
    owner[slices] = span
    if (sliceOf[index] === NONE) sliceOf[index] = slices
    ownerOf[index] = span
    slices++
  }

  for (let i = 0; i < count; i++) {
    if (time[i] > latest) latest = time[i]
    slicesBefore[i] = slices
    switch (kind[i]) {
      case RUN: {
        if (head === NONE || ((flags[i] & CALLED) !== 0 && a[i] === 0)) head = i
        headOf[i] = head
        pollOf[i] = poll
        pollBefore[i] = lastPoll
        open(time[i], i, request[i])
        break
      }
      case RESUME:
        if (registered[i] !== NONE) open(time[i], registered[i], request[i])
        break
      case POLL:
        close(Math.min(time[i], time[i] - x[i]))
        if (time[i] > now) now = time[i]
        lastPoll = poll
        poll = i
        head = NONE
        break
      case ARRIVED:
        if (registered[i] !== NONE) arrivedIn[registered[i]] = i
        break
      case CAME:
        if (registered[i] !== NONE) cameIn[registered[i]] = i
        break
      case BEGIN:
        // The rest of a callback that brought a request is a run of its own.
        if (settled[i] !== NONE && registered[i] !== NONE && b[settled[i]] === b[registered[i]]) {
          head = headOf[settled[i]] = headOf[registered[i]]
        }
    }
  }
  close(latest)
  slicesBefore[count] = slices
  const busy = new Float64Array(slices + 1)
  for (let i = 0; i < slices; i++) busy[i + 1] = busy[i] + end[i] - start[i]
  return {
    slices: { count: slices, start, end, run, owner, busy },
    begin: slices === 0 ? now : Math.min(start[0], now),
    end: now,
    slicesBefore,
    sliceOf,
    endOf,
    headOf,
    ownerOf,
    cameIn,
    arrivedIn,
    pollOf,
    pollBefore
  }
}

/**
 * Returns the ms for which runs were executed before a time.
 * @param {Slices} slices
 * @param {number} time
 */
function busyUntil ({ start, end, busy, count }, time) {
  const i = countBelow(start, time, count) - 1
  return i < 0 ? 0 : busy[i] + Math.min(time, end[i]) - start[i]
}

/**
 * Returns how many of the first elements of a sorted array are below a value.
 * @param {ArrayLike<number>} sorted
 * @param {number} value
 * @param {number} [count]
 */
function countBelow (sorted, value, count = sorted.length) {
  let low = 0
  let high = count
  while (low < high) {
    const middle = (low + high) >>> 1
    if (sorted[middle] < value) low = middle + 1
    else high = middle
  }
  return low
}

/**
 * Returns between which times had come what a callback waited for: from then on it was late.
 * @param {import('./entries').Recording} recording
 * @param {number} run the event loop called it
 * @returns {{ after: number, by: number }}
 */
function arrivalOf ({ a, flags, time, timeline, x }, run) {
  const { arrivedIn, pollBefore, pollOf, sliceOf, slices } = timeline
  const begin = slices.start[sliceOf[run]]
  const isTimer = (flags[run] & TIMER) !== 0
  if ((flags[run] & CALLED) === 0) return { after: begin, by: begin }
  if (isTimer && (flags[run] & ONE_SHOT) !== 0) return { after: WITH_ITS_CAUSE, by: WITH_ITS_CAUSE }
  const arrived = arrivedIn[run]
  if (arrived !== NONE) {
    const by = Math.min(time[arrived], begin)
    return { after: a[arrived] === POLLED ? by - Math.max(0, x[arrived]) : by, by }
  }
  const poll = pollOf[run]
  if (poll === NONE) return { after: begin, by: begin }
  const polled = Math.min(time[poll], begin)
  const slept = Math.max(0, x[poll])
  const before = pollBefore[run] === NONE ? polled - slept : Math.min(time[pollBefore[run]], polled)
  if (begin - slept - before < (isTimer ? MAX_TIMER_GAP : MAX_GAP)) {
    const at = slept >= MIN_SLEEP ? polled : Math.min(polled, (before + polled - slept) / 2)
    return { after: at, by: at }
  }
  const isPolled = (flags[run] & (CONNECTION | PARSER)) !== 0
  return { after: slept >= MIN_SLEEP ? polled : before, by: isPolled ? polled : begin }
}

module.exports = { NONE, arrivalOf, busyUntil, countBelow, timelineOf }
