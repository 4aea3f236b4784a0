'use strict'

// One asynchronous step: what async_hooks said of it, and the context it came from. Contexts form a tree that
// is linked from child to parent only; they never point at a resource, so they keep no object of the program
// alive. The place of a context is a stamp on its resource (see stamp.js): it lives as long as that resource
// or a descendant needs it, without a map and without a destroy hook.
//
// Who may touch the fields: hooks/ create contexts and note runs; stacks/ fill `stack` and the time; fold.js relinks
// `parent`. All other rooms read. One context is made for every promise: what few of them need is in `extra`.

const { kindOf } = require('./kinds')
const { stamp } = require('./stamp')

const TICKS = 4 // a ms

const DONE = 1
const AWAITED = 2
const BRED = 4
const REGISTERED = 8
const PENDS = 16
const SHIFT = 5 // flags
const LINK = 1 << SHIFT // what depth is counted in

/**
 * @typedef {object} Extra
 * @property {string} [detail]
 * @property {import('../stacks/chain').Origin} [origin]
 * @property {object} [view]
 * @property {number} [since] ms of performance.now() at which it was made or ran last; this and the following while hooks of users listen
 * @property {number[]} [begun] when its present runs began
 * @property {number} [waitMs]
 * @property {number} [runMs]
 */

class Context {
  /**
   * @param {number} asyncId
   * @param {number} triggerAsyncId
   * @param {import('./kinds').Kind} kind with the type: Node's provider name or that of an AsyncResource
   * @param {Context | undefined} parent the context in which it was created, else that of its trigger
   * @param {number} time of creation, in ms of performance.now()
   */
  constructor (asyncId, triggerAsyncId, kind, parent, time) {
    this.asyncId = asyncId
    this.triggerAsyncId = triggerAsyncId
    this.kind = kind
    this.parent = parent
    /** when it was made, in TICKS a ms: a small integer takes no object of its own */
    this.ticks = Math.floor(time * TICKS)
    /** how many links lead to the oldest context still held, in LINKs, and flags: a field less for every promise @type {number} */
    this.bits = parent === undefined ? 0 : (parent.bits & -LINK) + LINK
    /** the span that it is part of @type {import('../spans/span').Span | undefined} */
    this.span = parent === undefined ? undefined : parent.span
    /** turns of a loop that this context stands for */
    this.repeats = 1
    /** what the capture engine keeps: nothing, a stack not yet formatted, or a Stack @type {any} */
    this.stack = undefined
    /**
     * Who resolved or rejected this promise, where that is another context. Only a context without children has one: what
     * descends from it would keep its settler, and that one's, and so the whole history.
     * @type {Context | undefined}
     */
    this.settler = undefined
    /** a number: nothing but that detail @type {Extra | number | undefined} */
    this.extra = undefined
  }

  get type () { return this.kind.type }

  /** Of creation, in ms of performance.now(). */
  get time () { return this.ticks / TICKS }
  set time (time) { this.ticks = Math.floor(time * TICKS) }

  /** How many links lead to the oldest context still held. */
  get depth () { return this.bits >> SHIFT }
  set depth (depth) { this.bits = (depth << SHIFT) | (this.bits & (LINK - 1)) }

  /** It will not run again, and only its descendants still need it. */
  get done () { return (this.bits & DONE) !== 0 }
  set done (is) { this.bits = is ? this.bits | DONE : this.bits & ~DONE }

  /** A promise that an await made: it has another promise as its trigger. */
  get awaited () { return (this.bits & AWAITED) !== 0 }
  set awaited (is) { this.bits = is ? this.bits | AWAITED : this.bits & ~AWAITED }

  /** It has children. */
  get bred () { return (this.bits & BRED) !== 0 }
  set bred (is) { this.bits = is ? this.bits | BRED : this.bits & ~BRED }

  /** There is an entry for it in the register of what is open. */
  get registered () { return (this.bits & REGISTERED) !== 0 }
  set registered (is) { this.bits = is ? this.bits | REGISTERED : this.bits & ~REGISTERED }

  /** Its span waits for it, and is to be told when it has run. */
  get pends () { return (this.bits & PENDS) !== 0 }
  set pends (is) { this.bits = is ? this.bits | PENDS : this.bits & ~PENDS }

  /** What a label needs to know beyond the stack: an address, a delay. @returns {string | undefined} */
  get detail () { return typeof this.extra === 'number' ? String(this.extra) : this.extra?.detail }
  set detail (detail) { this.more().detail = detail }

  /** @returns {import('../stacks/chain').Origin} */
  get origin () { return typeof this.extra === 'object' ? this.extra.origin ?? 'registered' : 'registered' }
  set origin (origin) { this.more().origin = origin }

  /** ms from its making, or from its last run, to this run, where users listened. */
  get waitMs () { return typeof this.extra === 'object' ? this.extra.waitMs : undefined }

  /** ms of its last run, likewise. */
  get runMs () { return typeof this.extra === 'object' ? this.extra.runMs : undefined }

  /** What users see of it, once they asked. @returns {object | undefined} */
  get view () { return typeof this.extra === 'object' ? this.extra.view : undefined }
  set view (view) { this.more().view = view }

  /**
   * The same step, as part of a span: a connection's requests all come on one resource.
   * @param {import('../spans/span').Span | undefined} span
   * @param {number} time ms, where it begins anew
   */
  twin (span, time) {
    const twin = new Context(this.asyncId, this.triggerAsyncId, this.kind, this.parent, time)
    twin.bits = this.bits
    twin.stack = this.stack
    twin.extra = typeof this.extra === 'object' ? { ...this.extra, view: undefined } : this.extra
    twin.span = span
    return twin
  }

  /** @returns {Extra} */
  more () {
    if (typeof this.extra !== 'object') this.extra = this.extra === undefined ? {} : { detail: String(this.extra) }
    return this.extra
  }
}

/** Stands for everything that longstack or a hook callback does: never traced, nor what comes of it. */
const muted = new Context(0, 0, kindOf('longstack', false), undefined, 0)

/** @param {object} promise @returns {Context | undefined} who resolved or rejected it, where that is known */
function settlerOf (promise) {
  return stamp.read(promise)?.settler
}

/** @param {Context} context @param {Context} ancestor @returns {boolean} */
function descends (context, ancestor) {
  for (let one = context.parent; one !== undefined; one = one.parent) if (one === ancestor) return true
  return false
}

module.exports = { Context, descends, stamp, settlerOf, muted }
