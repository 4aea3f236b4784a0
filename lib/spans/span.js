'use strict'

// One span while it is open: its name, and how long its code ran. Pure data; it holds no object of the
// program but its own attributes, and releases all that when it has been written.
//
// Records know a span by its number. What a span began may go on when it has ended: from then on that belongs
// to the innermost span around it that is open.

const identities = require('./identities')
const { PathLog, putLog, takeLog } = require('./critical-path')
const { finish: finishStep } = require('../core/records')
const { putLongestRuns, takeLongestRuns } = require('./recent-runs')

const MIN_RUN = 0.02 // ms of a run that is remembered

/**
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {import('../encoding/span-form').Status} Status
 * @typedef {import('../encoding/span-form').SpanEvent} SpanEvent
 */

class Span {
  /**
   * @param {object} span
   * @param {string} span.name
   * @param {SpanKind} span.kind
   * @param {string | undefined} span.traceId 32 hex digits, where another process named it
   * @param {string | undefined} span.parentSpanId
   * @param {boolean} span.sampled
   * @param {Span | undefined} span.parent of this process
   * @param {number} span.start ms of the clock
   * @param {number} span.origin ms since 1970
   * @param {import('./loop-time').LoopTime | undefined} span.loop undefined: no account is kept
   */
  constructor ({ name, kind, traceId, parentSpanId, sampled, parent, start, origin, loop }) {
    /** its number in this thread @type {number} */
    this.seq = identities.nextNumber()
    /** it is one of the open spans that are counted, and is written once it has ended */
    this.isCounted = true
    /** it is being ended */
    this.isEnding = false
    this.name = name
    this.kind = kind
    /** the ids as text, where they are @type {string | undefined} */
    this.traceIdText = traceId
    /** @type {string | undefined} */
    this.spanIdText = undefined
    this.parentSpanId = parentSpanId
    this.sampled = sampled
    /** @type {Span | undefined} */
    this.parent = parent
    this.start = start
    this.end = 0
    /**
     * ms since 1970 at which the clock was 0, the same for a whole tree: the wall clock may be set meanwhile
     */
    this.origin = origin
    /** @type {Record<string, unknown>} */
    this.attributes = {}
    /** those that many spans have, see http-attributes.js @type {Record<string, unknown> | undefined} */
    this.shared = undefined
    /** @type {Status} */
    this.status = UNSET
    /** @type {SpanEvent[] | undefined} */
    this.events = undefined
    /** number of the chain of the place that made it */
    this.chain = 0
    /** asyncId of the step that runs in it, where it has one of its own */
    this.stepId = 0
    /** OpenTelemetry's span that was active when it began @type {string | undefined} */
    this.otelSpanId = undefined
    /** set by the program's `fail` @type {{ error: unknown } | undefined} */
    this.failure = undefined
    /**
     * what it can end by: Node's object, or of a span of the program's own what settles it
     * @type {object | undefined}
     */
    this.heldSubject = undefined
    /** the same, from the first sweep on @type {WeakRef<object> | undefined} */
    this.weakSubject = undefined
    /** returns what ends the span, if that is over @type {import('../requests/listener').Look} */
    this.look = noLook
    /** the last sweep found that over */
    this.isOver = false
    /** ms of the clock at the last sweep that did not */
    this.aliveAt = 0
    /** the last error that a promise was rejected with inside @type {WeakRef<object> | undefined} */
    this.rejection = undefined

    /** ms of its own runs and those of its descendants */
    this.run = 0
    /** @type {import('./recent-runs').LongestRuns | undefined} */
    this.longestRuns = undefined
    /** what it asked on connections, the first ones @type {import('./questions').Question[] | undefined} */
    this.asked = undefined
    this.askedCount = 0
    /** ms of the others */
    this.askedMoreMs = 0
    this.busyAtStart = loop === undefined ? 0 : loop.busy
    this.idleAtStart = loop === undefined ? 0 : loop.idle
    /** ms of short runs since a time, in ms, for LoopTime */
    this.shortRuns = 0
    this.shortRunsSince = 0

    /**
     * the runs of the request that it is part of; while runs are only recorded, none
     * @type {import('./critical-path').PathLog}
     */
    this.log = loop === undefined ? noLog : parent === undefined ? takeLog() : parent.log
    if (this.log !== noLog) this.log.users++
    /** the name by which the recording knows it while it is open @type {string | undefined} */
    this.toldName = undefined
    /**
     * its name and id, where they are remembered beyond its end
     * @type {{ name: string, spanId: string } | undefined}
     */
    this.signature = undefined
    /** the outermost one @type {Span} */
    this.outermost = parent === undefined ? this : parent.outermost
    /** there are, or were, spans inside of it */
    this.hasInner = false
    for (let outer = parent; outer !== undefined; outer = outer.parent) outer.hasInner = true
    /** ms that the outermost one had run when this one began @type {number} */
    this.ownAtStart = this.outermost.run
    /** the run of the log in which it began */
    this.firstRun = Math.max(1, this.log.count)
    /** that in which it ended, 0: in none of its own */
    this.lastRun = 0
    /** runs of the log when it ended */
    this.runCount = 0
    /** what the loop ran when it ended */
    this.endState = NO_END_STATE
    identities.add(this, traceId)
  }

  /** 32 hex digits @returns {string} */
  get traceId () {
    this.traceIdText ??= identities.traceIdOf(this.seq)
    return this.traceIdText
  }

  /** 16 hex digits @returns {string} */
  get spanId () {
    this.spanIdText ??= identities.spanIdOf(this.seq)
    return this.spanIdText
  }

  /** Makes its ids texts, before its place among the identities is taken. */
  keepIds () {
    this.traceIdText = this.traceId
    this.spanIdText = this.spanId
  }

  /** Lets it begin with the present callback. @param {import('./loop-time').LoopTime} loop */
  startNow (loop) {
    this.start = loop.since
    this.busyAtStart = loop.busy
    this.idleAtStart = loop.idle
    this.ownAtStart = this.outermost.run
  }

  get ended () { return this.end !== 0 }

  /** Whether its runs and waits are known here, not only in the recording. */
  get isTimed () { return this.log !== noLog }

  /**
   * Notes what is known of it by now.
   * @param {import('./http-attributes').Described} described
   */
  describe ({ name, attributes, shared }) {
    this.name = name
    Object.assign(this.attributes, attributes)
    this.shared = shared
  }

  /** Sets what it can end by. @param {object} subject @param {import('../requests/listener').Look} [look] */
  endsBy (subject, look = noLook) {
    this.heldSubject = subject
    this.weakSubject = undefined
    this.look = look
  }

  /** What it can end by, undefined where that is collected. @returns {object | undefined} */
  get subject () {
    return this.heldSubject ?? this.weakSubject?.deref()
  }

  /** Holds what it can end by weakly from now on: each WeakRef costs, and most spans end before. */
  weaken () {
    if (this.heldSubject === undefined) return
    this.weakSubject = new WeakRef(this.heldSubject)
    this.heldSubject = undefined
  }

  /** The span itself, or where it has ended the innermost open one around it. @returns {Span | undefined} */
  get innermostOpen () {
    return this.end === 0 ? this : identities.spanAt(this.seq)
  }

  /** The innermost open span around it. @returns {Span | undefined} */
  get openParent () {
    const { parent } = this
    if (parent === undefined || parent.end === 0) return parent
    this.parent = parent.innermostOpen
    return this.parent
  }

  /**
   * Adds a run to the span and those around it.
   * @param {number} start ms
   * @param {number} ms
   * @param {import('./loop-time').LoopTime} loop
   */
  addRun (start, ms, loop) {
    let span = /** @type {Span | undefined} */ (this)
    for (; span !== undefined; span = span.openParent) span.run += ms
    if (ms < MIN_RUN || this.ended) return
    this.longestRuns ??= takeLongestRuns()
    this.longestRuns.add(start, ms, loop.type)
  }

  /**
   * Ends it: its figures stand.
   * @param {number} time ms
   * @param {import('./loop-time').LoopTime} loop
   * @param {number} run in which it ends, 0: none of its own
   */
  finish (time, loop, run) {
    this.end = Math.max(time, this.start)
    if (this.isTimed) this.noteEnd(loop, run)
    identities.end(this, this.openParent?.seq ?? 0)
    if (this.stepId !== 0) finishStep(this.stepId)
    this.parent = undefined
    this.heldSubject = this.weakSubject = undefined
    this.look = noLook
  }

  /**
   * Notes what the event loop has run by its end.
   * @param {import('./loop-time').LoopTime} loop
   * @param {number} run in which it ends, 0: none of its own
   */
  noteEnd (loop, run) {
    this.lastRun = run
    this.runCount = this.log.count
    const own = this.outermost.run
    const { idle, busy, callbackId, callbackChain } = loop
    const { cameBy, cameAfter } = loop.arrivals
    const others = busy - own
    this.endState = { idle, others, own, callback: callbackId, callbackChain, cameBy, cameAfter }
  }

  /** Releases all but its identity, once it has been written. */
  release () {
    this.attributes = {}
    this.events = this.failure = this.rejection = undefined
    if (this.longestRuns !== undefined) putLongestRuns(this.longestRuns)
    this.longestRuns = undefined
    this.asked = undefined
    const { log } = this
    if (!this.isTimed) return
    this.log = noLog // which the next request writes to
    this.outermost = this
    if (--log.users === 0) putLog(log)
  }
}

const noLook = () => undefined
const noLog = new PathLog()
/** @type {Status} */
const UNSET = { code: 'UNSET' }
const NO_END_STATE = { idle: 0, others: 0, own: 0, callback: 0, callbackChain: 0, cameBy: 0, cameAfter: 0 }

module.exports = { Span }
