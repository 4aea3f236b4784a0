'use strict'

// One span while it is open: what it is called, and how long its code ran. Pure data; it holds no object of the program
// but its own attributes, and lets all that go when it has been written.
//
// Records know a span by its number. What a span began may go on when it has ended: from then on that belongs to the
// innermost span around it that is open.

const { putLog, takeLog } = require('./path')

const MAX_RUNS = 64 // runs remembered of one span, the longest
const LEAST = 0.02 // ms of a run that is remembered
const MAX_LINE = 63 // ancestors known
const MAX_ENDED = 2_048 // spans remembered once they have ended
/** @type {number[]} */
const NONE = []

/**
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of performance.now()
 *
 * @typedef {object} Others how much a span delayed another one, while that asks; see LoopTime
 * @property {Span | undefined} span that did
 * @property {number} asked the number of the one that asks
 * @property {number} ms
 * @property {number} start of the longest run
 * @property {number} longest
 */

/** @param {Span | undefined} span @returns {Others} */
const sumOf = (span) => ({ span, asked: 0, ms: 0, start: 0, longest: 0 })

let last = 0
/** spans that are open, by number @type {Map<number, Span>} */
const openSpans = new Map()
/**
 * @typedef {object} Ended what is still asked of a span that has ended
 * @property {string} name
 * @property {string} traceId
 * @property {string} spanId
 * @property {boolean} sampled
 * @property {string | undefined} outerId
 * @property {number} around number of the span that it was in
 */

/** by number, oldest first @type {Map<number, Ended>} */
let endedSpans = new Map()

/** @param {number} number @returns {Span | Ended | undefined} */
function identityAt (number) {
  return openSpans.get(number) ?? endedSpans.get(number)
}

/** @param {number} number @returns {Span | undefined} the span, or where it has ended the innermost open one around it */
function spanAt (number) {
  let at = number
  let span = openSpans.get(at)
  for (let i = 0; span === undefined && i < MAX_LINE; i++) {
    at = endedSpans.get(at)?.around ?? 0
    if (at === 0) return undefined
    span = openSpans.get(at)
  }
  return span
}

class Span {
  /**
   * @param {object} given
   * @param {string} given.name
   * @param {SpanKind} given.kind
   * @param {string} given.traceId 32 hex digits
   * @param {string} given.spanId 16 hex digits
   * @param {string | undefined} given.parentSpanId
   * @param {boolean} given.sampled
   * @param {Span | undefined} given.parent of this process
   * @param {number} given.start ms of performance.now()
   * @param {number} given.origin ms since 1970
   * @param {import('./loop-time').LoopTime} given.loop
   */
  constructor ({ name, kind, traceId, spanId, parentSpanId, sampled, parent, start, origin, loop }) {
    last = last % 0x7fffffff + 1
    /** its number in this thread @type {number} */
    this.seq = last
    this.name = name
    this.kind = kind
    this.traceId = traceId
    this.spanId = spanId
    this.parentSpanId = parentSpanId
    this.sampled = sampled
    /** @type {Span | undefined} */
    this.parent = parent
    /** the numbers of those that it is in, outermost first: they may be over before it is @type {number[]} */
    this.line = parent === undefined ? NONE : [...parent.line.slice(-MAX_LINE), parent.seq]
    this.start = start
    this.end = 0
    /** ms since 1970 at which performance.now() was 0, the same for a whole tree: the wall clock may be set meanwhile */
    this.origin = origin
    /** @type {Record<string, unknown>} */
    this.attributes = {}
    /** @type {Status} */
    this.status = { code: 'UNSET' }
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
    /** longest runs: start in ms of performance.now(), length in ms, type @type {Array<[number, number, string]>} */
    this.runs = NONE_RUNS
    this.busyAtStart = loop.busy
    this.idleAtStart = loop.idle
    /** ms of short runs since a time, in ms, for the log of LoopTime */
    this.crumbs = 0
    this.crumbsFrom = 0
    /** @type {Others | undefined} */
    this.delays = undefined
    /** ms in which the loop ran the code of others, once it has ended */
    this.delayed = 0
    /** ms in which the loop waited, likewise */
    this.waited = 0

    /** the runs of the request that it is part of @type {import('./path').PathLog} */
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
    /** what the loop ran when it ended */
    this.ending = NO_ENDING
    /** its waits in words, once it has ended @type {import('./sites').PathWait[] | undefined} */
    this.path = undefined
    openSpans.set(this.seq, this)
  }

  /** @param {import('./loop-time').LoopTime} loop whose present run is its first */
  begin (loop) {
    this.start = loop.since
    this.busyAtStart = loop.busy
    this.idleAtStart = loop.idle
  }

  get sum () {
    this.delays ??= sumOf(this)
    return this.delays
  }

  get ended () { return this.end !== 0 }

  /** The innermost one around it that is open, or it itself. @returns {Span | undefined} */
  get live () {
    return this.end === 0 ? this : spanAt(this.seq)
  }

  /** The innermost one around it that is open. @returns {Span | undefined} */
  get above () {
    const { parent } = this
    if (parent === undefined || parent.end === 0) return parent
    this.parent = parent.live
    return this.parent
  }

  /** Is it this one, or one inside of it? @param {Span} other */
  within (other) {
    return this === other || this.line.includes(other.seq)
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
    if (this.runs === NONE_RUNS) this.runs = []
    const { runs } = this
    const before = runs[runs.length - 1]
    if (before !== undefined && start - before[0] - before[1] < 0.01) {
      before[1] += ms
    } else if (runs.length < MAX_RUNS) {
      runs.push([start, ms, type])
    } else {
      let least = 0
      for (let i = 1; i < MAX_RUNS; i++) if (runs[i][1] < runs[least][1]) least = i
      if (runs[least][1] >= ms) return
      runs.splice(least, 1)
      runs.push([start, ms, type])
    }
  }

  /** The place that made it. @param {{ chain: number }} context */
  made ({ chain }) {
    this.chain = chain
  }

  /** @returns {import('./path').Wait[]} once it has ended: where the time went in which the loop waited, newest first */
  pathWaits () {
    return this.log.waits(this.firstRun, this.lastRun, this.ending, this.idleAtStart)
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
    this.ending = { idle: loop.idle, callback: loop.callbackRef, callbackChain: loop.callbackChain }
    openSpans.delete(this.seq)
    const { seq, name, traceId, spanId, sampled, outerId } = this
    if (endedSpans.size >= MAX_ENDED) endedSpans = new Map([...endedSpans].slice(MAX_ENDED / 2))
    endedSpans.set(seq, { name, traceId, spanId, sampled, outerId, around: this.above?.seq ?? 0 })
    this.parent = undefined
  }

  /** It has been written: who it was is all that anybody still asks. */
  forget () {
    openSpans.delete(this.seq)
    this.attributes = {}
    this.events = this.failure = this.rejection = this.path = undefined
    this.runs = NONE_RUNS
    if (--this.outermost.users === 0) putLog(this.outermost.log)
  }
}

/** @type {Array<[number, number, string]>} */
const NONE_RUNS = []
const NO_ENDING = { idle: 0, callback: 0, callbackChain: 0 }

module.exports = { Span, identityAt, spanAt, sumOf }
