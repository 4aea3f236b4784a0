'use strict'

// One span while it is open: what it is called, and how long its code ran. Pure data; it holds no object of the program
// but its own attributes, and lets all that go when it has been written.
//
// Records know a span by its number. What a span began may go on when it has ended: from then on that belongs to the
// innermost span around it that is open.

const identities = require('./identities')
const { putLog, takeLog } = require('./critical-path')

const MAX_RUNS = 64 // runs remembered of one span, the longest
const GAP = 0.01 // ms between two parts of one run
const POOL = 64 // lists of runs, kept for the spans to come
const LEAST = 0.02 // ms of a run that is remembered

/**
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of the clock
 */

/** The longest runs of one span, in lists that serve one span after another. */
class RunNotes {
  constructor () {
    this.count = 0
    /** ms of the clock @type {number[]} */
    this.starts = []
    /** ms @type {number[]} */
    this.lengths = []
    /** @type {string[]} */
    this.types = []
  }

  /** @param {number} start @param {number} ms @param {string} type */
  add (start, ms, type) {
    const { starts, lengths } = this
    const last = this.count - 1
    if (last >= 0 && start - starts[last] - lengths[last] < GAP) {
      lengths[last] += ms
    } else {
      if (this.count === MAX_RUNS && !this.removeShortest(ms)) return
      starts[this.count] = start
      lengths[this.count] = ms
      this.types[this.count++] = type
    }
  }

  /** @param {number} ms @returns {boolean} false: none is shorter */
  removeShortest (ms) {
    const { lengths } = this
    let shortest = 0
    for (let i = 1; i < MAX_RUNS; i++) if (lengths[i] < lengths[shortest]) shortest = i
    if (lengths[shortest] >= ms) return false
    for (const list of [this.starts, lengths, this.types]) list.splice(shortest, 1)
    this.count--
    return true
  }
}

/** @type {RunNotes[]} */
const notesPool = []

/** @param {RunNotes} notes that no span needs */
function releaseNotes (notes) {
  notes.count = 0
  if (notesPool.length < POOL) notesPool.push(notes)
}

class Span {
  /**
   * @param {object} given
   * @param {string} given.name
   * @param {SpanKind} given.kind
   * @param {string | undefined} given.traceId 32 hex digits, where it is another's
   * @param {string | undefined} given.parentSpanId
   * @param {boolean} given.sampled
   * @param {Span | undefined} given.parent of this process
   * @param {number} given.start ms of the clock
   * @param {number} given.origin ms since 1970
   * @param {import('./loop-time').LoopTime} given.loop
   */
  constructor ({ name, kind, traceId, parentSpanId, sampled, parent, start, origin, loop }) {
    /** its number in this thread @type {number} */
    this.seq = identities.next()
    /** among those that are open, and is written once it has ended */
    this.isCounted = true
    this.name = name
    this.kind = kind
    /** @type {string | undefined} */
    this.trace = traceId
    /** @type {string | undefined} */
    this.id = undefined
    this.parentSpanId = parentSpanId
    this.sampled = sampled
    /** @type {Span | undefined} */
    this.parent = parent
    this.start = start
    this.end = 0
    /** ms since 1970 at which the clock was 0, the same for a whole tree: the wall clock may be set meanwhile */
    this.origin = origin
    /** @type {Record<string, unknown>} */
    this.attributes = {}
    /**
     * JSON of the first attributes of `headed`, where it is prepared, see http.js
     * @type {Uint8Array | undefined}
     */
    this.head = undefined
    /** @type {Record<string, unknown> | undefined} */
    this.headed = undefined
    /** @type {Status} */
    this.status = UNSET
    /** @type {SpanEvent[] | undefined} */
    this.events = undefined
    /** number of the chain of the place that made it */
    this.chain = 0
    /** the span of OpenTelemetry's that was active when it began @type {string | undefined} */
    this.outerId = undefined
    /** told by hand @type {{ error: unknown } | undefined} */
    this.failure = undefined
    /** the last error that a promise was rejected with inside @type {WeakRef<object> | undefined} */
    this.rejection = undefined

    /** ms of its own runs and those of its descendants */
    this.run = 0
    /** its longest runs @type {RunNotes | undefined} */
    this.notes = undefined
    this.busyAtStart = loop.busy
    this.idleAtStart = loop.idle
    /** ms of short runs since a time, in ms, for the log of LoopTime */
    this.crumbs = 0
    this.crumbsFrom = 0
    /** ms in which the loop ran the code of others, once it has ended */
    this.delayed = 0
    /** ms in which the loop waited, likewise */
    this.waited = 0

    /** the runs of the request that it is part of @type {import('./critical-path').PathLog} */
    this.log = parent === undefined ? takeLog() : parent.log
    /** spans that use its log, where it is the outermost one */
    this.users = 1
    /** the outermost one @type {Span} */
    this.outermost = parent === undefined ? this : parent.outermost
    if (parent !== undefined) this.outermost.users++
    /** the run of the log in which it began */
    this.firstRun = Math.max(1, parent === undefined ? 0 : this.log.count)
    /** that in which it ended, 0: in none of its own */
    this.lastRun = 0
    /** runs of the log by then */
    this.runsThen = 0
    /** what the loop ran when it ended */
    this.ending = NO_ENDING
    /** its waits in words, once it has ended @type {import('./wait-sites').PathWait[] | undefined} */
    this.path = undefined
    identities.add(this, traceId)
  }

  /** 32 hex digits @returns {string} */
  get traceId () {
    this.trace ??= identities.traceIdOf(this.seq)
    return this.trace
  }

  /** 16 hex digits @returns {string} */
  get spanId () {
    this.id ??= identities.spanIdOf(this.seq)
    return this.id
  }

  /** Those that it was given are not known for much longer. */
  keepIds () {
    this.trace = this.traceId
    this.id = this.spanId
  }

  /** @param {import('./loop-time').LoopTime} loop whose present run is its first */
  begin (loop) {
    this.start = loop.since
    this.busyAtStart = loop.busy
    this.idleAtStart = loop.idle
  }

  get ended () { return this.end !== 0 }

  /** The innermost one around it that is open, or it itself. @returns {Span | undefined} */
  get live () {
    return this.end === 0 ? this : identities.spanAt(this.seq)
  }

  /** The innermost one around it that is open. @returns {Span | undefined} */
  get above () {
    const { parent } = this
    if (parent === undefined || parent.end === 0) return parent
    this.parent = parent.live
    return this.parent
  }

  /**
   * It ran.
   * @param {number} start ms
   * @param {number} ms
   * @param {import('./loop-time').LoopTime} loop
   */
  ran (start, ms, loop) {
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.above) one.run += ms
    if (ms >= LEAST && !this.ended) this.note(start, ms, loop.type)
  }

  /** @param {number} start @param {number} ms @param {string} type */
  note (start, ms, type) {
    this.notes ??= notesPool.pop() ?? new RunNotes()
    this.notes.add(start, ms, type)
  }

  /**
   * Its longest runs: start in ms of the clock, length in ms, type.
   * @returns {Array<[number, number, string]>}
   */
  get runs () {
    const { notes } = this
    if (notes === undefined) return []
    const { count, starts, lengths, types } = notes
    return Array.from({ length: count }, (_, i) => [starts[i], lengths[i], types[i]])
  }

  /** @returns {import('./critical-path').Wait[]} once it has ended: where the time went in which the loop waited, newest first */
  pathWaits () {
    return this.log.waits(this.firstRun, this.lastRun, this.runsThen, this.ending, this.idleAtStart)
  }

  /**
   * It is over; its figures stand.
   * @param {number} time ms
   * @param {import('./loop-time').LoopTime} loop
   * @param {number} run in which it ends, 0: none of its own
   */
  finish (time, loop, run) {
    this.end = Math.max(time, this.start)
    this.waited = Math.max(0, loop.idle - this.idleAtStart)
    this.delayed = loop.busy - this.busyAtStart - this.run
    this.lastRun = run
    this.runsThen = this.log.count
    this.ending = { idle: loop.idle, callback: loop.callbackRef, callbackChain: loop.callbackChain }
    identities.end(this, this.above?.seq ?? 0)
    this.parent = undefined
  }

  /** It has been written: who it was is all that anybody still asks. */
  forget () {
    this.attributes = {}
    this.head = this.headed = undefined
    this.events = this.failure = this.rejection = this.path = undefined
    if (this.notes !== undefined) releaseNotes(this.notes)
    this.notes = undefined
    if (--this.outermost.users === 0) putLog(this.outermost.log)
  }
}

/** @type {Status} */
const UNSET = { code: 'UNSET' }
const NO_ENDING = { idle: 0, callback: 0, callbackChain: 0 }

module.exports = { RunNotes, Span }
