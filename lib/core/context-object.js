'use strict'

// One asynchronous step as an object. A context never points at a resource, so it keeps no object of the
// program alive.

const records = require('./records')
const { findRecordOf } = require('./record-ids')
const { kindOf } = require('./kinds')
const requestNames = require('./request-names')
const { source } = require('./source')

const { SPAN, DETAIL, FLAGS, LIVE, ROOT_CHAIN, OWN_WORK_CHAIN, FIRST_CHAIN } = records

/**
 * @typedef {import('./kinds').Kind} Kind
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../stacks/chain').Origin} Origin
 *
 * @typedef {object} Extra what few contexts have
 * @property {string} [detail]
 * @property {string} [request]
 * @property {number} [requestRef] of a stream of HTTP/2: reference of its request
 * @property {Origin} [origin]
 * @property {object} [view]
 * @property {number} [since] ms of the clock when it was made or ran last; this and the following while hooks
 *   of users listen
 * @property {number[]} [startTimes] when its present callbacks began
 * @property {number} [waitMs]
 * @property {number} [runMs]
 */

class Context {
  /**
   * @param {number} asyncId of Node's, or longstack's own of a promise to which Node gave none, see
   *   PROMISE_IDS
   * @param {number} triggerAsyncId
   * @param {Kind} kind
   * @param {Context | undefined | null} parent the context in which it was made, else that of its trigger;
   *   null: it is read when it is needed
   * @param {number} time ms of the clock when it was made
   */
  constructor (asyncId, triggerAsyncId, kind, parent, time) {
    this.asyncId = asyncId
    this.triggerAsyncId = triggerAsyncId
    this.kind = kind
    this.time = time
    /** of its record, 0: it has none @type {number} */
    this.ref = 0
    /** @type {number} */
    this.chain = 0
    /** repetitions of a loop that this context stands for */
    this.repeats = 1
    /** its chain was folded: `repeats` and `parent` are final */
    this.folded = false
    /** null: not read yet @type {Context | undefined | null} */
    this.readParent = parent
    /** null: not read yet @type {import('../stacks/frames').Stack | undefined | null} */
    this.readStack = null
    /** number of its span where it has no record */
    this.spanNumber = 0
    /** @type {Extra | undefined} */
    this.extra = undefined
  }

  get type () { return this.kind.type }

  /** @returns {Context | undefined} */
  get parent () {
    if (this.readParent === null) this.readParent = source.parentOf(this)
    return this.readParent
  }

  set parent (parent) { this.readParent = parent }

  /** @returns {import('../stacks/frames').Stack | undefined} where it was made */
  get stack () {
    if (this.readStack === null) {
      this.readStack = this.chain < FIRST_CHAIN ? undefined : source.chainAt(this.chain)?.stack
    }
    return this.readStack
  }

  set stack (stack) { this.readStack = stack }

  /** @returns {Span | undefined} */
  get span () {
    const number = this.readWord(SPAN) || this.spanNumber
    return number === 0 ? undefined : source.spanAt(number)
  }

  /**
   * @returns {Span | import('../spans/identities').Ended | undefined} who its span is, also when that has
   *   ended
   */
  get spanIdentity () {
    const number = this.readWord(SPAN) || this.spanNumber
    return number === 0 ? undefined : source.identityAt(number)
  }

  set span (span) {
    this.spanNumber = span === undefined ? 0 : span.seq
    const record = findRecordOf(this)
    if (record !== undefined) record.words[record.offset + SPAN] = this.spanNumber
  }

  /** @param {number} word of its record @returns {number} 0 where that is gone */
  readWord (word) {
    const record = findRecordOf(this)
    return record === undefined ? 0 : record.words[record.offset + word]
  }

  /** @returns {boolean} it will not run again */
  get done () { return this.ref !== 0 && (this.readWord(FLAGS) & LIVE) === 0 }

  /** @returns {boolean} a promise that an await or a then made: it has another promise as its trigger */
  get awaited () { return this.kind.awaited }

  /** @returns {string | undefined} what a label has in brackets: an address, a delay */
  get detail () {
    if (this.extra?.detail !== undefined) return this.extra.detail
    // Of a trace.span, whose number its record has; a program may give a resource of its own the same type
    if (this.kind.type === 'Span') return source.identityAt(this.readWord(DETAIL))?.name
    if (!this.kind.timer) return undefined
    const record = findRecordOf(this)
    const delay = record === undefined ? records.delayOf(this.chain) : record.words[record.offset + DETAIL]
    return delay === undefined ? undefined : String(delay)
  }

  set detail (detail) { this.ensureExtra().detail = detail }

  /**
   * @returns {string | undefined} of a request that a server got: `GET /config`, with the route once it is
   *   known
   */
  get request () {
    if (!records.isRequest(this.ref)) return this.extra?.request
    return source.routeOf(this.ref) ?? requestNames.textAt(this.readWord(DETAIL))
  }

  set request (request) { this.ensureExtra().request = request }

  /** @returns {Origin} */
  get origin () { return this.extra?.origin ?? 'registered' }
  set origin (origin) { this.ensureExtra().origin = origin }

  /** ms from when it was made, or ran last, to its present or last callback, where users listened. */
  get waitMs () { return this.extra?.waitMs }

  /** ms of its last callback, likewise. */
  get runMs () { return this.extra?.runMs }

  /** What users see of it, once they asked. @returns {object | undefined} */
  get view () { return this.extra?.view }
  set view (view) { this.ensureExtra().view = view }

  /** @returns {Extra} */
  ensureExtra () {
    this.extra ??= {}
    return this.extra
  }
}

/** Stands for everything that longstack or a hook callback does: never traced, nor what comes of it. */
const OWN_WORK = new Context(0, 0, kindOf('longstack', false), undefined, 0)
OWN_WORK.chain = OWN_WORK_CHAIN

/** The start of the process. */
const root = new Context(1, 0, kindOf('process', false), undefined, 0)
root.chain = ROOT_CHAIN
root.origin = 'process'

module.exports = { Context, OWN_WORK, root }
