'use strict'

// Reads a run log block by block, and returns the spans that have ended since. Memory is bounded.

const {
  BEGIN, CALLED, CAME, CLIENT, DISCARDED, END, ERROR, OUTSIDE, POLL, RESUME, RUN, SENT, SERVER,
  SETTLED_BY_ANSWER, TIME, WORDS
} = require('../../lib/core/run-log-words')
const { MIN_SHARE } = require('../../lib/encoding/span-figures')
const { Walk } = require('./critical-path')
const { Turns } = require('./delays')
const { NONE, Recording } = require('./entries')
const { Marks } = require('./kept')
const { isAsking, queriesOf } = require('./queries')
const { Traffic } = require('./query-writes')
const { Spans } = require('./requests')
const { runsOf } = require('./runs')
const { Timeline, findArrival, isSameIteration } = require('./timeline')

const BYTES = WORDS * 4 // per entry
const CHUNK = 1 << 10 // entries read at once
const HINDSIGHT = 100 // ms after a span's end in which the owner of its writes may become known
const AFTER = 1000 // ms after a response in which the activity of its request is recorded
const MAX_CALLS = 16 // per request then
const RETRY = 10 // ms
const MAX_GAPS = 64 // gaps whose times are kept separately
const MIN_SIZE = 1 << 14 // entries kept at once
const MAX_SIZE = 3 << 16
const MAX_KEPT = 2 / 3 // share of these that may stay if there is no more room
const MAX_OPEN = 1 << 14 // spans

/**
 * @typedef {import('./requests').Request} Request
 * @typedef {import('./after-response').After} After
 *
 * @typedef {object} Block consecutive entries of one thread
 * @property {number} first number of the first entry
 * @property {Uint8Array} entries
 * @property {boolean} [isLast] the thread logs no more
 * @property {number} [until] ms of the clock: earlier runs have ended by then, unless a later entry
 *   continues them; so spans that have ended are reported
 * @property {boolean} [isAll] also those whose queries may still find their owner
 *
 * @typedef {object} EndedSpan runs and entries in it are numbers, 0 for none
 * @property {Request} request
 * @property {import('./critical-path').Path} path
 * @property {import('./delays').Delayer[]} delays
 * @property {import('./queries').Query[]} queries
 * @property {ReturnType<typeof figuresOf>} figures
 * @property {import('./runs').Run[]} runs its callbacks, without those of inner spans
 */

const arrival = { after: 0, by: 0 }

class SpanReader {
  /** @type {EndedSpan[]} */
  #ended = []
  /** spans whose last callback is not over @type {Request[]} */
  #ending = []
  /** ended spans with unanswered queries @type {Request[]} */
  #asking = []
  #retryAt = -Infinity
  /** answered requests whose later activity is not reported yet @type {Request[]} */
  #answered = []

  #maxSize
  #minShare
  /** number of the next entry @type {number | undefined} */
  #next

  /**
   * @param {number} [maxSize] maximum number of entries kept at once
   * @param {number} [minShare] of a span's duration, from which on a delayer is reported
   */
  constructor (maxSize = MAX_SIZE, minShare = MIN_SHARE) {
    this.#maxSize = maxSize
    this.#minShare = minShare
    this.recording = new Recording(Math.min(MIN_SIZE, maxSize))
    this.timeline = new Timeline(this.recording)
    this.spans = new Spans(this.recording)
    this.traffic = new Traffic(this.recording, this.spans)
    this.walk = new Walk(this)
    this.turns = new Turns(this)
    this.spans.onEnclosed = (span, request, since) => this.turns.rename(span, request, since)
    /** called for each reported span: for a deeply nested one, reporting takes a millisecond */
    this.onTold = () => {}
    /**
     * called with each callback of the event loop: its chain, when its operation began at the latest, and
     * when it was due at the earliest
     * @type {((chain: number, start: number, due: number) => void) | undefined}
     */
    this.onCalled = undefined
    /** called with code outside of requests @type {((chain: number, ms: number) => void) | undefined} */
    this.onBackground = undefined
    /** called with activity of requests after responses @type {((after: After) => void) | undefined} */
    this.onAfter = undefined
  }

  /** @param {Block} block */
  push ({ first, entries, until, isAll = false, isLast = false }) {
    const count = Math.floor(entries.length / BYTES)
    const isAligned = entries.byteOffset % 8 === 0
    const bytes = isAligned ? entries : new Uint8Array(entries)
    const words = new Int32Array(bytes.buffer, bytes.byteOffset, count * WORDS)
    const floats = new Float64Array(bytes.buffer, bytes.byteOffset, count * WORDS / 2)
    if (count > 0 && this.#next !== undefined && this.#next !== (first | 0)) this.#interrupt(words, floats)
    if (count > 0) this.#next = (first + count) | 0
    for (let place = 0; place < count;) {
      const room = this.#makeRoom()
      const until = Math.min(count, place + Math.min(room, CHUNK))
      const before = this.recording.count
      this.recording.add(words, floats, place, until, (first + place) | 0)
      for (let i = before; i < this.recording.count; i++) this.#add(i)
      place = until
    }
    if (until !== undefined && this.isWaiting) {
      this.timeline.goOn(until)
      this.#tellEnded()
      if (isAll) for (const span of this.#asking.splice(0)) this.#tell(span)
    }
    if (isLast) this.end()
  }

  /** @returns {number} ended spans that are not returned yet */
  get waiting () {
    return this.#ending.length + this.#asking.length + this.#ended.length
  }

  /** Whether ended spans are not reported yet. */
  get isWaiting () {
    return this.#ending.length > 0 || this.#asking.length > 0
  }

  /**
   * Ends the log: spans that have not ended are reported as open.
   * @param {number} [now] ms of the clock: until then, at least
   */
  end (now = -Infinity) {
    const { recording, spans, timeline } = this
    timeline.close(recording.newest)
    this.#tellEnded()
    for (const span of this.#asking.splice(0)) this.#tell(span)
    for (const span of spans.byNumber.values()) if (span.isOpen && !span.isCut) this.#tellOpen(span, now)
    this.#tellAfter(Infinity)
  }

  /** How busy the event loop was so far. @returns {import('./thread-load').LoopLoad} */
  get load () {
    const { recording: { begin }, timeline: { busy, now, open } } = this
    return { begin, end: now, busy, isRunning: open !== NONE }
  }

  /** Returns the references of connections that were written to after a time. @param {number} time ms */
  writtenSince (time) {
    const { recording, traffic: { connections } } = this
    return [...connections.keys()].filter((ref) => {
      const write = connections.get(ref)?.write ?? NONE
      return write !== NONE && recording.time[write] > time
    })
  }

  /** Returns the spans that have ended since the last call, with hindsight. */
  ended () {
    const ended = this.#ended
    this.#ended = []
    return ended
  }

  /** @param {number} i entry */
  #add (i) {
    const { recording, recording: { kind }, spans, timeline, traffic } = this
    if (kind[i] === RUN && this.#ending.length > 0 && timeline.isHead(i)) {
      timeline.close(recording.time[i])
      this.#tellEnded()
    }
    const before = timeline.open
    timeline.add(i)
    const hasEnded = before !== NONE && before !== timeline.open
    if (hasEnded && this.onBackground !== undefined) this.#tellSlice(before)
    switch (kind[i]) {
      case RUN: {
        spans.addSlice(i)
        if ((recording.flags[i] & (CALLED | OUTSIDE)) === CALLED) this.#tellCalled(i)
        break
      }
      case RESUME: if (recording.run[i] !== NONE) spans.addSlice(i); break
      case POLL: if (this.isWaiting) this.#tellEnded(); break
      case BEGIN: spans.begin(i); break
      case END: {
        const span = spans.end(i)
        if (span === undefined) break
        this.#ending.push(span)
        traffic.endIn(span.lastRun, span.outermost)
        break
      }
      case SENT: traffic.send(i); break
      case CAME: traffic.receive(i); break
      case SETTLED_BY_ANSWER: traffic.settle(i)
    }
  }

  /** @param {number} i slice that has ended */
  #tellSlice (i) {
    const { at, chain, end, outer, run } = this.recording
    if (outer[i] === 0 && run[i] !== NONE) this.onBackground?.(chain[run[i]], end[i] - at[i])
  }

  /** @param {number} i the run of a callback */
  #tellCalled (i) {
    const { recording, recording: { chain, end, last, registered } } = this
    const maker = registered[i]
    if (this.onCalled === undefined || maker === NONE) return
    findArrival(recording, i, arrival)
    const begun = end[last[maker]]
    this.onCalled(chain[i], begun, Math.max(begun, arrival.after))
  }

  /** Reports spans whose callback is over, unless they have unanswered queries. */
  #tellEnded () {
    const { recording, timeline: { now } } = this
    for (const span of this.#ending) {
      span.end = Math.max(span.begin, Math.min(span.end, now))
      if (isAsking(recording, span)) this.#asking.push(span)
      else this.#tell(span)
    }
    this.#ending.length = 0
    if (this.#asking.length === 0 || now < this.#retryAt) return
    this.#retryAt = now + RETRY
    this.#asking = this.#asking.filter((span) => {
      const isEarly = now - span.end < HINDSIGHT && isAsking(recording, span)
      if (!isEarly) this.#tell(span)
      return isEarly
    })
  }

  /**
   * Notes that entries are lost: nothing is known about the time in which they were written.
   * @param {Int32Array} words of the entries after them
   * @param {Float64Array} floats
   */
  #interrupt (words, floats) {
    const { recording, timeline } = this
    timeline.interrupt()
    this.#tellEnded()
    this.traffic.interrupt()
    recording.dense = recording.count
    let until = timeline.now
    for (let word = 0; word < words.length && until === timeline.now; word += WORDS) {
      const isTimed = (words[word] & 0xff) === RUN || (words[word] & 0xff) === POLL
      if (isTimed) until = Math.max(until, floats[(word >> 1) + TIME])
    }
    if (recording.gaps.length === MAX_GAPS) {
      const [{ from }, { until }] = recording.gaps.splice(0, 2)
      recording.gaps.unshift({ from, until })
    }
    recording.gaps.push({ from: timeline.now, until })
  }

  /** @param {Request} span @param {number} [now] ms of the clock */
  #tellOpen (span, now = -Infinity) {
    span.end = Math.max(span.begin, this.timeline.now, now)
    span.endEntry = this.recording.placed
    this.#tell(span)
  }

  /** @param {Request} request */
  #tell (request) {
    request.isTold = true
    if (request.status === DISCARDED) return
    const path = this.walk.along(request)
    this.turns.update()
    const figures = figuresOf(request, path)
    const min = figures.duration / 1000 * this.#minShare
    const delays = this.turns.delaysOf(request, path.waits, min)
    const queries = queriesOf(this, request)
    const runs = runsOf(this.recording, request)
    this.#ended.push({ request, path, delays, queries, figures, runs })
    this.onTold()
    if (this.onAfter !== undefined) this.#noteEnd(request)
  }

  /**
   * Notes that a request was answered, or that a call of an answered request ended. The response to the call
   * may have been read by then, unless the call began in the last iteration of the event loop.
   * @param {Request} span
   */
  #noteEnd (span) {
    const { begin, end, firstRun, kind, top } = span
    if (top === span && kind === SERVER && !span.isOpen && span.status !== ERROR) this.#answered.push(span)
    if (top !== span && kind === CLIENT && top.kind === SERVER && !top.isOpen && end > top.end) {
      const isLate = begin >= top.end || isSameIteration(this.recording, firstRun, top.lastRun)
      if (isLate && top.calls.length < MAX_CALLS) top.calls = [...top.calls, span]
    }
    this.#tellAfter(this.timeline.now - AFTER)
  }

  /** Reports the activity of requests after their responses. @param {number} until ms, of the responses */
  #tellAfter (until) {
    const later = this.#answered.findIndex(({ end }) => end > until)
    for (const request of this.#answered.splice(0, later === -1 ? Infinity : later)) {
      const { calls, end: begin } = request
      const since = { ...request, begin, end: this.timeline.now, endEntry: this.recording.placed }
      const queries = queriesOf(this, since).filter(({ unanswered }) => !unanswered)
      if (queries.length > 0 || calls.length > 0) this.onAfter?.({ request, queries, calls })
    }
  }

  /** @returns {number} number of entries for which there is room */
  #makeRoom () {
    const { recording } = this
    const { size } = recording
    if (recording.count < size) return size - recording.count
    if (size < this.#maxSize) {
      if (!this.#drop(size / 3, Infinity)) recording.grow(Math.min(this.#maxSize, size * 2))
    } else if (!this.#drop(size * MAX_KEPT, Infinity)) {
      let limit = size / 4 / (1 + this.spans.byNumber.size)
      while (!this.#drop(size * MAX_KEPT, limit)) limit = limit < 1 ? NONE : limit / 2
    }
    return recording.size - recording.count
  }

  /**
   * Drops older entries that are not needed.
   * @param {number} most that may be left
   * @param {number} limit per span, of older slices and of writes and queries; NONE drops all
   * @returns {boolean} whether entries were dropped
   */
  #drop (most, limit) {
    const { recording, recording: { at, count, size }, spans, timeline, traffic, turns } = this
    turns.update()
    this.#tellAfter(Infinity)
    const from = count - (size >> 3)
    const untold = this.#tellOldest()
    const marks = new Marks(this, from)
    const kept = limit === NONE ? 0 : marks.mark(untold, limit)
    if (kept + count - from > most) return false
    if (limit === NONE) marks.markPresent()
    if (limit < Infinity) marks.cut(untold, Math.max(0, limit))
    for (const span of spans.byNumber.values()) {
      // Without a begin, it is unknown whether a span is only code that runs on.
      if (!span.isTold && (limit === NONE || (span.isCut && span.isOpen))) span.droppedUntil = at[from]
    }
    const moved = recording.keep(marks.entries, from)
    timeline.move(moved)
    turns.move()
    spans.move(moved)
    traffic.move(moved)
    return true
  }

  /** Returns the spans to report, in order of start; if there are too many, reports the oldest as open. */
  #tellOldest () {
    const all = [...this.spans.byNumber.values()].filter(({ isCut, isOpen, isTold }) => {
      return !isTold && !(isCut && isOpen)
    })
    const open = all.length > MAX_OPEN ? all.filter(({ isOpen }) => isOpen) : []
    for (const span of open.slice(0, Math.max(0, all.length - MAX_OPEN))) this.#tellOpen(span)
    return open.length === 0 ? all : all.filter(({ isTold }) => !isTold)
  }
}

/** @param {number} ms */
const us = (ms) => Math.round(ms * 1000)

/**
 * Returns figures in whole microseconds: run, waited and delayed add up to the duration.
 * @param {Request} request
 * @param {import('./critical-path').Path} path
 */
function figuresOf (request, { beside, own, unknown, waits }) {
  const duration = us(request.end - request.begin)
  const run = Math.min(duration, us(own))
  const rest = duration - run
  let [certain, most] = [0, 0]
  for (const { delayed, delayedMax } of waits) {
    certain += delayed
    most += delayedMax
  }
  const delayed = Math.min(rest, us(certain))
  return {
    duration,
    run,
    delayed,
    // More than `delayed` if an arrival time is unknown.
    delayedMax: Math.max(delayed, Math.min(rest, us(most + unknown))),
    waited: rest - delayed,
    beside: Math.min(run, us(beside)), // part of its run time that is off its path
    unread: us(request.unread),
    unknown: Math.min(rest, us(unknown)) // entries are lost: it may have run, waited, or been delayed
  }
}

module.exports = { SpanReader }
