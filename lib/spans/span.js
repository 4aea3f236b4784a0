'use strict'

// One open span. Pure data: it holds no object of the program except its attributes, and releases these once
// it is written.
//
// Records refer to a span by its number. Work that a span began may outlive it; it then belongs to the
// innermost open span around it.

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
 * @typedef {(span: Span, subject: any) => (() => void) | undefined} Look returns a function that
 *   ends the span once its subject is over, else undefined
 */

class Span {
  /**
   * @param {object} span
   * @param {string} span.name
   * @param {SpanKind} span.kind
   * @param {string | undefined} span.traceId 32 hex digits, if another process set it
   * @param {string | undefined} span.parentSpanId
   * @param {boolean} span.sampled
   * @param {Span | undefined} span.parent parent span in this process
   * @param {number} span.start ms of the clock
   * @param {number} span.origin ms since 1970
   * @param {string | undefined} span.path
   * @param {Peer | undefined} span.peer
   * @param {Record<string, unknown> | undefined} span.attributes other attributes
   * @param {Record<string, unknown> | undefined} span.shared
   */
  constructor ({
    name, kind, traceId, parentSpanId, sampled, parent, start, origin, path, peer, attributes, shared
  }) {
    /** number in this thread @type {number} */
    this.seq = identities.nextNumber()
    /** it is within the limit of open spans, and is written when it ends */
    this.isCounted = true
    /** its end is in progress */
    this.isEnding = false
    /** an output takes it */
    this.isWanted = true
    this.name = name
    this.kind = kind
    /** both ids as one string, made on first use @type {string | undefined} */
    this.idText = undefined
    this.parentSpanId = parentSpanId
    this.sampled = sampled
    /** @type {Span | undefined} */
    this.parent = parent
    this.start = start
    this.end = 0
    /**
     * ms since 1970 at which the clock was 0; the same for a whole tree, since the wall clock may jump
     */
    this.origin = origin
    // Attributes of most requests are fields, which can be packed (packed-spans.js). The object is made on
    // first access, or if the span has other attributes.
    /** @type {string | undefined} */
    this.path = path
    /** @type {Peer | undefined} */
    this.peer = peer
    /** microseconds it waited before Node read it, and the upper bound */
    this.queued = 0
    this.queuedMax = 0
    /** status of the response, 0 if unknown */
    this.statusCode = 0
    /** @type {string | undefined} */
    this.route = undefined
    /** all attributes @type {Record<string, unknown> | undefined} */
    this.object = attributes
    /** attributes common to many spans, see http-attributes.js @type {Record<string, unknown> | undefined} */
    this.shared = shared
    /** route reported by a framework @type {string | undefined} */
    this.reportedRoute = undefined
    /** @type {Status} */
    this.status = UNSET
    /** @type {SpanEvent[] | undefined} */
    this.events = undefined
    /** number of the chain that created it */
    this.chain = 0
    /** asyncId of its own step, 0 if it has none */
    this.stepId = 0
    /** OpenTelemetry's span that was active when it began @type {string | undefined} */
    this.otelSpanId = undefined
    /** set by the program's `fail` @type {{ error: unknown } | undefined} */
    this.failure = undefined
    /**
     * object that ends the span: Node's object, or for the program's own spans the one that settles it
     * @type {object | undefined}
     */
    this.heldSubject = undefined
    /** the same, held weakly from the first sweep on @type {WeakRef<object> | undefined} */
    this.weakSubject = undefined
    /** returns a function that ends the span if its subject has ended @type {Look} */
    this.look = noLook
    /** the previous sweep saw its subject finished */
    this.isOver = false
    /** ms of the clock at the last sweep that saw it alive */
    this.aliveAt = 0
    /** last promise rejected inside @type {import('./rejections').Rejection | undefined} */
    this.rejection = undefined

    /** name written to the recording while the span is open @type {string | undefined} */
    this.toldName = undefined
    /** outermost span of its tree in this process @type {Span} */
    this.outermost = parent === undefined ? this : parent.outermost
    identities.add(this, traceId)
  }

  /** Both ids as one string. Must be made before another span takes its slot in identities.js. */
  get ids () {
    this.idText ??= identities.idsOf(this.seq)
    return this.idText
  }

  /** Writes both ids. @param {Int32Array} words @param {Buffer} bytes same memory @param {number} index */
  copyIds (words, bytes, index) {
    if (this.idText === undefined) identities.copyIds(this.seq, words, index)
    else bytes.write(this.idText, 4 * index, 'hex')
  }

  /** 32 hex digits */
  get traceId () { return this.ids.slice(0, TRACE_DIGITS) }

  /** 16 hex digits */
  get spanId () { return this.ids.slice(TRACE_DIGITS) }

  get ended () { return this.end !== 0 }

  /** duration in ms */
  get ms () { return this.end - this.start }

  /** Status if the program ends now: an error in an open span makes it fail. @returns {Status} */
  get openStatus () {
    const error = this.events?.[0]
    if (error === undefined || this.status.code !== 'UNSET') return this.status
    return { code: 'ERROR', message: String(error.attributes['exception.message']) }
  }

  get failed () { return this.status.code === 'ERROR' }

  /** Attributes, without the shared ones. @returns {Record<string, unknown>} */
  get attributes () {
    this.object ??= attributesOf(this)
    return this.object
  }

  set attributes (attributes) { this.object = attributes }

  /**
   * Updates name and attributes.
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

  /** Sets the object that ends the span. @param {object} subject @param {Look} [look] */
  endsBy (subject, look = noLook) {
    this.heldSubject = subject
    this.weakSubject = undefined
    this.look = look
  }

  /** Object that ends the span, undefined once collected. @returns {object | undefined} */
  get subject () {
    return this.heldSubject ?? this.weakSubject?.deref()
  }

  /** Holds the subject weakly from now on. A WeakRef is costly, and most spans end before this. */
  weaken () {
    if (this.heldSubject === undefined) return
    this.weakSubject = new WeakRef(this.heldSubject)
    this.heldSubject = undefined
  }

  /** The span itself, or the innermost open span around it if it has ended. @returns {Span | undefined} */
  get innermostOpen () {
    return this.end === 0 ? this : identities.spanAt(this.seq)
  }

  /** Innermost open span around it. @returns {Span | undefined} */
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

  /** Releases everything but its identity, once it is written. */
  release () {
    this.object = this.path = this.route = undefined
    this.events = this.failure = this.rejection = undefined
  }
}

const noLook = () => undefined
/** @type {Status} */
const UNSET = { code: 'UNSET' }

module.exports = { Span }
