'use strict'

// One span while it is open. Pure data; it holds no object of the program but its own attributes, and
// releases all that when it has been written.
//
// Records know a span by its number. What a span began may go on when it has ended: from then on that belongs
// to the innermost span around it that is open.

const { attributesOf } = require('../encoding/packed-spans')
const identities = require('./identities')
const { finish: finishStep } = require('../core/records')

const { TRACE_DIGITS } = identities

/**
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {import('../encoding/span-form').Status} Status
 * @typedef {import('../encoding/span-form').SpanEvent} SpanEvent
 * @typedef {import('./http-attributes').Described} Described
 * @typedef {import('./http-attributes').Peer} Peer
 *
 * @typedef {(span: Span, subject: any) => (() => void) | undefined} Look returns what ends the span, once
 *   the subject is over
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
   * @param {string | undefined} span.path
   * @param {Peer | undefined} span.peer
   * @param {Record<string, unknown> | undefined} span.attributes beside those
   * @param {Record<string, unknown> | undefined} span.shared
   */
  constructor ({
    name, kind, traceId, parentSpanId, sampled, parent, start, origin, path, peer, attributes, shared
  }) {
    /** its number in this thread @type {number} */
    this.seq = identities.nextNumber()
    /** it is one of the open spans that are counted, and is written once it has ended */
    this.isCounted = true
    /** it is being ended */
    this.isEnding = false
    /** an output takes it */
    this.isWanted = true
    this.name = name
    this.kind = kind
    /** both ids as one text, once they are wanted @type {string | undefined} */
    this.idText = undefined
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
    // The attributes that most requests have are fields, which can be packed (packed-spans.js). Once somebody
    // asks for the object, or a span has other attributes, it is made.
    /** @type {string | undefined} */
    this.path = path
    /** @type {Peer | undefined} */
    this.peer = peer
    /** microseconds for which it lay there before it was read, and at most */
    this.queued = 0
    this.queuedMax = 0
    /** of the response, 0: none is known */
    this.statusCode = 0
    /** @type {string | undefined} */
    this.route = undefined
    /** all of them @type {Record<string, unknown> | undefined} */
    this.object = attributes
    /** those that many spans have, see http-attributes.js @type {Record<string, unknown> | undefined} */
    this.shared = shared
    /** the route that a framework reported by itself @type {string | undefined} */
    this.reportedRoute = undefined
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
    /** returns what ends the span, if that is over @type {Look} */
    this.look = noLook
    /** the last sweep found that over */
    this.isOver = false
    /** ms of the clock at the last sweep that did not */
    this.aliveAt = 0
    /** the last error that a promise was rejected with inside @type {WeakRef<object> | undefined} */
    this.rejection = undefined

    /** the name by which the recording knows it while it is open @type {string | undefined} */
    this.toldName = undefined
    /** the outermost one @type {Span} */
    this.outermost = parent === undefined ? this : parent.outermost
    identities.add(this, traceId)
  }

  /** Both ids as one text, which has to be made before its place among the identities is taken. */
  get ids () {
    this.idText ??= identities.idsOf(this.seq)
    return this.idText
  }

  /** Writes both ids. @param {Int32Array} words @param {Buffer} bytes the same @param {number} index */
  copyIds (words, bytes, index) {
    if (this.idText === undefined) identities.copyIds(this.seq, words, index)
    else bytes.write(this.idText, 4 * index, 'hex')
  }

  /** 32 hex digits */
  get traceId () { return this.ids.slice(0, TRACE_DIGITS) }

  /** 16 hex digits */
  get spanId () { return this.ids.slice(TRACE_DIGITS) }

  get ended () { return this.end !== 0 }

  /** how long it took, in ms */
  get ms () { return this.end - this.start }

  get failed () { return this.status.code === 'ERROR' }

  /** Those of its own. @returns {Record<string, unknown>} */
  get attributes () {
    this.object ??= attributesOf(this)
    return this.object
  }

  set attributes (attributes) { this.object = attributes }

  /**
   * Notes what is known of it by now.
   * @param {Described} described
   */
  describe ({ name, path, peer, attributes, shared }) {
    this.name = name
    this.shared = shared
    if (this.object === undefined && attributes === undefined) {
      this.path = path ?? this.path
      this.peer = peer ?? this.peer
    } else {
      Object.assign(this.attributes, attributesOf({ path, peer }), attributes)
    }
  }

  /** @param {number} status of the response */
  setStatusCode (status) {
    this.statusCode = status
    if (this.object !== undefined) this.object['http.response.status_code'] = status
  }

  /** @param {string} route */
  setRoute (route) {
    this.route = route
    if (this.object !== undefined) this.object['http.route'] = route
  }

  /** Sets what it can end by. @param {object} subject @param {Look} [look] */
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

  /** Ends it. @param {number} time ms of the clock */
  finish (time) {
    this.end = Math.max(time, this.start)
    identities.end(this, this.openParent?.seq ?? 0)
    if (this.stepId !== 0) finishStep(this.stepId)
    this.parent = undefined
    this.heldSubject = this.weakSubject = undefined
    this.look = noLook
  }

  /** Releases all but its identity, once it has been written. */
  release () {
    this.object = this.path = this.route = undefined
    this.events = this.failure = this.rejection = undefined
  }
}

const noLook = () => undefined
/** @type {Status} */
const UNSET = { code: 'UNSET' }

module.exports = { Span }
