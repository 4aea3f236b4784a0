'use strict'

// Requests, and the spans inside of them: which runs belong to which.

const { BEGIN, DISCARDED, END } = require('../../lib/core/run-log-words')
const { NONE, countBelow } = require('./timeline')

/**
 * @typedef {object} Request a request, or a span inside of one
 * @property {number} number
 * @property {number} kind SERVER, CLIENT or INNER
 * @property {number} parent number of the span around it, 0: none
 * @property {number} outermost number of the request that it is part of, which may not be recorded
 * @property {number} begin ms
 * @property {number} end
 * @property {number} firstRun index, NONE: it began before the recording
 * @property {number} lastRun the run in which it ended, NONE: no recorded run
 * @property {number} endEntry index of the entry of its end, or how many entries there are
 * @property {number} unread ms that it lay there before it was read
 * @property {number} chain of the place that made it
 * @property {number} status UNSET, OK or ERROR
 * @property {boolean} isOpen it has no end in the recording
 * @property {boolean} isCut its begin is older than the recording
 *
 * @typedef {object} Spans
 * @property {Map<number, Request>} byNumber in order of begin
 * @property {Map<number, Int32Array>} slices of each outermost span and all spans inside of it, in order
 */

/**
 * @param {import('./entries').Columns} columns
 * @param {import('./timeline').Timeline} timeline
 * @returns {Spans}
 */
function spansOf (columns, timeline) {
  const { a, chain, count, kind, registered, request, settled, time, x } = columns
  /** @type {Map<number, Request>} */
  const byNumber = new Map()
  /** @param {number} number */
  function known (number) {
    let span = byNumber.get(number)
    if (span === undefined) byNumber.set(number, span = cutRequest(number, timeline))
    return span
  }
  for (let i = 0; i < count; i++) {
    const number = request[i]
    if (number === 0) continue
    if (kind[i] === BEGIN && !byNumber.has(number)) {
      const parent = columns.b[i] === 0 || columns.b[i] === number ? undefined : known(columns.b[i])
      byNumber.set(number, {
        number,
        kind: a[i],
        parent: parent?.number ?? 0,
        outermost: parent?.outermost ?? number,
        begin: time[i],
        end: Math.max(time[i], timeline.end),
        firstRun: settled[i] === NONE ? registered[i] : settled[i],
        lastRun: NONE,
        endEntry: count,
        unread: Math.max(0, x[i]),
        chain: chain[i],
        status: 0,
        isOpen: true,
        isCut: false
      })
    } else if (kind[i] === END) {
      const span = known(number)
      if (!span.isOpen) continue
      span.isOpen = false
      span.end = Math.max(span.begin, Math.min(time[i], timeline.end))
      span.lastRun = registered[i]
      span.endEntry = i
      span.status = a[i]
    }
  }
  return { byNumber, slices: slicesByRequest(byNumber, timeline.slices) }
}

/**
 * Returns a request that began before the recording.
 * @param {number} number
 * @param {import('./timeline').Timeline} timeline
 * @returns {Request}
 */
const cutRequest = (number, { begin, end, slicesBefore }) => ({
  number,
  kind: 0,
  parent: 0,
  outermost: number,
  begin,
  end,
  firstRun: NONE,
  lastRun: NONE,
  endEntry: slicesBefore.length - 1,
  unread: 0,
  chain: 0,
  status: 0,
  isOpen: true,
  isCut: true
})

/**
 * @param {Map<number, Request>} byNumber
 * @param {import('./timeline').Slices} slices
 * @returns {Map<number, Int32Array>}
 */
function slicesByRequest (byNumber, { count, owner }) {
  /** @type {Map<number, number>} */
  const counts = new Map()
  const outermost = new Int32Array(count)
  for (let i = 0; i < count; i++) {
    if (owner[i] === 0) continue
    const number = outermost[i] = byNumber.get(owner[i])?.outermost ?? owner[i]
    counts.set(number, (counts.get(number) ?? 0) + 1)
  }
  /** @type {Map<number, Int32Array>} */
  const lists = new Map()
  for (const [number, size] of counts) lists.set(number, new Int32Array(size))
  const filled = new Map(counts)
  for (let i = count - 1; i >= 0; i--) {
    const number = outermost[i]
    if (number === 0) continue
    const place = /** @type {number} */ (filled.get(number)) - 1
    filled.set(number, place)
    const list = /** @type {Int32Array} */ (lists.get(number))
    list[place] = i
  }
  return lists
}

/**
 * Returns all requests and spans of a recording, in order of begin.
 * @param {import('./entries').Recording} recording
 */
function requestsOf ({ spans }) {
  return [...spans.byNumber.values()].filter(({ status }) => status !== DISCARDED)
}

/** @param {import('./entries').Recording} recording @param {number} number of a span @returns {number} */
const outermostOf = ({ spans }, number) => spans.byNumber.get(number)?.outermost ?? number

/**
 * Whether a span is another one, or inside of it.
 * @param {import('./entries').Recording} recording
 * @param {number} number
 * @param {number} outer
 */
function isInside ({ spans }, number, outer) {
  let present = number
  // A parent begins before its spans, so this ends.
  while (present !== outer && present !== 0) present = spans.byNumber.get(present)?.parent ?? 0
  return present === outer
}

/** How long some slices were executed. */
class SliceTime {
  /** @param {Int32Array} list of slices, in order @param {import('./timeline').Slices} slices */
  constructor (list, slices) {
    this.list = list
    this.slices = slices
    this.starts = Float64Array.from(list, (i) => slices.start[i])
    /** ms before each of them */
    this.before = new Float64Array(list.length + 1)
    for (let place = 0; place < list.length; place++) {
      const i = list[place]
      this.before[place + 1] = this.before[place] + slices.end[i] - slices.start[i]
    }
  }

  /** Returns the ms by a time. @param {number} time */
  until (time) {
    const place = countBelow(this.starts, time) - 1
    if (place < 0) return 0
    const i = this.list[place]
    return this.before[place] + Math.min(time, this.slices.end[i]) - this.slices.start[i]
  }

  /** @param {number} from @param {number} to @returns {number} ms */
  between (from, to) {
    return from < to ? this.until(to) - this.until(from) : 0
  }
}

/** @param {import('./entries').Recording} recording @param {Request} request */
function ownTime (recording, { number, outermost }) {
  const { spans, timeline: { slices } } = recording
  const all = spans.slices.get(outermost) ?? NO_SLICES
  const list = number === outermost ? all : all.filter((i) => isInside(recording, slices.owner[i], number))
  return new SliceTime(list, slices)
}

const NO_SLICES = new Int32Array(0)

module.exports = { isInside, outermostOf, ownTime, requestsOf, spansOf }
