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

/**
 * @typedef {object} Extra
 * @property {string} [detail]
 * @property {import('../stacks/chain').Origin} [origin]
 * @property {object} [view]
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
    /** how many links lead to the oldest context still held @type {number} */
    this.depth = parent === undefined ? 0 : parent.depth + 1
    /** turns of a loop that this context stands for */
    this.repeats = 1
    /** what the capture engine keeps: nothing, a stack not yet formatted, or a Stack @type {any} */
    this.stack = undefined
    this.flags = 0
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

  /** It will not run again, and only its descendants still need it. */
  get done () { return (this.flags & DONE) !== 0 }
  set done (is) { this.flags = is ? this.flags | DONE : this.flags & ~DONE }

  /** A promise that an await made: it has another promise as its trigger. */
  get awaited () { return (this.flags & AWAITED) !== 0 }
  set awaited (is) { this.flags = is ? this.flags | AWAITED : this.flags & ~AWAITED }

  /** It has children. */
  get bred () { return (this.flags & BRED) !== 0 }
  set bred (is) { this.flags = is ? this.flags | BRED : this.flags & ~BRED }

  /** There is an entry for it in the register of what is open. */
  get registered () { return (this.flags & REGISTERED) !== 0 }
  set registered (is) { this.flags = is ? this.flags | REGISTERED : this.flags & ~REGISTERED }

  /** What a label needs to know beyond the stack: an address, a delay. @returns {string | undefined} */
  get detail () { return typeof this.extra === 'number' ? String(this.extra) : this.extra?.detail }
  set detail (detail) { this.more().detail = detail }

  /** @returns {import('../stacks/chain').Origin} */
  get origin () { return typeof this.extra === 'object' ? this.extra.origin ?? 'registered' : 'registered' }
  set origin (origin) { this.more().origin = origin }

  /** What users see of it, once they asked. @returns {object | undefined} */
  get view () { return typeof this.extra === 'object' ? this.extra.view : undefined }
  set view (view) { this.more().view = view }

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
