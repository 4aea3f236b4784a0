'use strict'

// Requests and their inner spans, and the slices that belong to each.

const { CLIENT } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')

const MAX_QUEUED = 64 // per request
/** @type {Request[]} */
const NO_CALLS = []
const MAX_SPANS = 1 << 12 // ended spans that stay known, since their code may run on

/**
 * @typedef {import('./entries').Recording} Recording
 *
 * @typedef {object} Request a request, or a span inside one
 * @property {number} number
 * @property {number} kind SERVER, CLIENT or INNER
 * @property {number} parent number of the enclosing span, 0 if none
 * @property {number} outermost number of the request that it is part of, which may not be recorded
 * @property {number} begin ms
 * @property {number} end
 * @property {number} firstRun index, NONE if it began before the recording
 * @property {number} lastRun the run in which it ended, NONE if that is not recorded
 * @property {number} endEntry index of the entry of its end, or the number of entries
 * @property {number} unread ms that it sat in the socket buffer before Node read it
 * @property {number} chain of the place that made it
 * @property {number} status UNSET, OK or ERROR
 * @property {boolean} isOpen it has no end in the recording
 * @property {boolean} isCut it began before the recording
 * @property {Request | undefined} around enclosing span
 * @property {boolean} isAround it has spans inside
 * @property {Request} top its outermost span
 * @property {number} slice newest slice of an outermost span
 * @property {number} asked its newest write or query
 * @property {number} dropped ms of its dropped runs
 * @property {number} droppedUntil end of the last of these, ms
 * @property {Request[]} calls HTTP calls that continue after its response
 * @property {Request[]} queued HTTP calls that began when another request released a connection
 * @property {boolean} isTold
 */

class Spans {
  /** @param {Recording} recording */
  constructor (recording) {
    this.recording = recording
    /** spans with entries in the recording, in order of start @type {Map<number, Request>} */
    this.byNumber = new Map()
    /** reported spans without entries @type {Map<number, Request>} */
    this.old = new Map()
    /** highest number of a span that is no longer known */
    this.forgotten = 0
    /** the span that was looked up last @type {Request | undefined} */
    this.recent = undefined
    /**
     * called when the runs of a span since a time become part of a request
     * @type {(span: number, request: number, since: number) => void}
     */
    this.onEnclosed = () => {}
  }

  /**
   * Returns a span, which may have begun before the recording.
   * @param {number} number not 0
   * @returns {Request}
   */
  get (number) {
    const { recent } = this
    if (recent !== undefined && recent.number === number) return recent
    let span = this.byNumber.get(number)
    if (span === undefined) {
      span = this.old.get(number) ?? this.#cut(number)
      this.byNumber.set(number, span)
    }
    return (this.recent = span)
  }

  /** Creates a span whose start is unknown. @param {number} number */
  #cut (number) {
    const isOpen = number > this.forgotten
    /** @type {Request} */
    const span = {
      number,
      kind: 0,
      parent: 0,
      outermost: number,
      begin: this.recording.begin,
      end: isOpen ? Infinity : -Infinity,
      firstRun: NONE,
      lastRun: NONE,
      endEntry: NONE,
      unread: 0,
      chain: 0,
      status: 0,
      isOpen,
      isCut: true,
      around: undefined,
      isAround: false,
      top: /** @type {any} */ (undefined),
      slice: NONE,
      asked: NONE,
      dropped: 0,
      droppedUntil: 0,
      calls: NO_CALLS,
      queued: NO_CALLS,
      isTold: !isOpen
    }
    span.top = span
    return span
  }

  /** @param {number} number @returns {Request | undefined} */
  find (number) {
    return this.byNumber.get(number) ?? this.old.get(number)
  }

  /** Adds a slice to those of its request. @param {number} i */
  addSlice (i) {
    const { outer, previous, request } = this.recording
    if (request[i] === 0) {
      outer[i] = 0
      return
    }
    const { top } = this.get(request[i])
    outer[i] = top.number
    previous[i] = top.slice
    top.slice = i
  }

  /** @param {number} i entry of a begin */
  begin (i) {
    const { a, b, chain, registered, request, settled, time, x } = this.recording
    if (request[i] === 0) return
    const span = this.get(request[i]) // its first run may have come before
    if (!span.isCut || !span.isOpen) return
    span.isCut = false
    span.kind = a[i]
    span.begin = time[i]
    span.firstRun = settled[i] === NONE ? registered[i] : settled[i]
    span.unread = Math.max(0, x[i])
    span.chain = chain[i]
    if (b[i] !== 0 && b[i] !== request[i]) this.#enclose(span, this.get(b[i]))
    const { firstRun, kind, top } = span
    if (kind !== CLIENT || firstRun === NONE || top.queued.length === MAX_QUEUED) return
    const maker = this.outermostOf(request[firstRun])
    if (maker !== 0 && maker !== top.number) top.queued = [...top.queued, span]
  }

  /** @param {number} i entry of an end @returns {Request | undefined} the span, unless it had ended */
  end (i) {
    const { registered, request, time, a } = this.recording
    const span = request[i] === 0 ? undefined : this.get(request[i])
    if (span === undefined || !span.isOpen || span.isTold) return
    span.isOpen = false
    span.end = Math.max(span.begin, time[i])
    span.lastRun = registered[i]
    span.endEntry = i
    span.status = a[i]
    return span
  }

  /** @param {number} number of a span @returns {number} of its outermost one */
  outermostOf (number) {
    return number === 0 ? 0 : this.find(number)?.outermost ?? number
  }

  /** Whether a span is another one, or inside it. @param {number} number @param {number} outer */
  isInside (number, outer) {
    let span = number === 0 ? undefined : this.find(number)
    while (span !== undefined && span.number > outer) span = span.around // inner spans began later
    return span?.number === outer
  }

  /** Whether a span had ended by a time. @param {number} number @param {number} time */
  isOver (number, time) {
    if (number === 0) return true
    const span = this.find(number)
    return span === undefined ? number <= this.forgotten : !span.isOpen && span.end <= time
  }

  /** Updates indexes of entries that moved. @param {Int32Array} moved */
  move (moved) {
    for (const [number, span] of this.byNumber) {
      span.firstRun = moved[span.firstRun] ?? NONE
      span.lastRun = moved[span.lastRun] ?? NONE
      span.endEntry = moved[span.endEntry] ?? NONE
      span.slice = moved[span.slice] ?? NONE
      span.asked = moved[span.asked] ?? NONE
      if (!span.isTold || span.slice !== NONE) continue
      this.byNumber.delete(number)
      this.old.delete(number) // it becomes the newest
      this.old.set(number, span)
    }
    this.recent = undefined
    for (const [number, span] of this.old) {
      if (this.old.size <= MAX_SPANS) break
      span.around = undefined // else inner spans retain all enclosing ones
      this.old.delete(number)
      this.forgotten = Math.max(this.forgotten, number)
    }
  }

  /** Puts a span and its slices into another one. @param {Request} span @param {Request} around */
  #enclose (span, around) {
    if (span.isAround) return // invalid
    const { at, outer, previous } = this.recording
    const { top } = around
    around.isAround = true
    span.around = around
    span.top = top
    span.parent = around.number
    span.outermost = top.number
    let newer = NONE
    let first = Infinity
    let other = top.slice
    for (let i = span.slice; i !== NONE;) {
      if (other > i) {
        newer = other
        other = previous[other]
        continue
      }
      const next = previous[i]
      first = at[i]
      outer[i] = top.number
      previous[i] = other
      if (newer === NONE) top.slice = i
      else previous[newer] = i
      newer = i
      i = next
    }
    span.slice = NONE
    this.onEnclosed(span.number, top.number, first)
  }
}

module.exports = { Spans }
