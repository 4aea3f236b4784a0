'use strict'

// One asynchronous step: what async_hooks said of it, and the context it came from. Contexts form a tree that
// is linked from child to parent only; they never point at a resource, so they keep no object of the program
// alive. The place of a context is a stamp on its resource (see stamp.js): it lives as long as that resource
// or a descendant needs it, without a map and without a destroy hook.
//
// Who may touch the fields: hooks/ create contexts and note runs; stacks/ fill `stack`; fold.js relinks
// `parent`. All other rooms read.

const { createStamp } = require('./stamp')

class Context {
  /**
   * @param {number} asyncId
   * @param {number} triggerAsyncId
   * @param {string} type Node's provider name or the type of an AsyncResource
   * @param {Context | undefined} parent the context in which it was created, else that of its trigger
   * @param {number} time of creation, in ms of performance.now()
   */
  constructor (asyncId, triggerAsyncId, type, parent, time) {
    this.asyncId = asyncId
    this.triggerAsyncId = triggerAsyncId
    this.type = type
    this.parent = parent
    this.time = time
    /** how many links lead to the oldest context still held @type {number} */
    this.depth = parent === undefined ? 0 : parent.depth + 1
    /** turns of a loop that this context stands for */
    this.repeats = 1
    /** what the capture engine keeps: nothing, a stack not yet formatted, or a Stack @type {any} */
    this.stack = undefined
    /** it will not run again, and only its descendants still need it */
    this.done = false
    /** a promise that an await made: it has another promise as its trigger */
    this.awaited = false
    /** what a label needs to know beyond the stack: an address, a delay @type {string | undefined} */
    this.detail = undefined
    /** @type {import('../stacks/chain').Origin} */
    this.origin = 'registered'
    /** what users see of it, once they asked @type {object | undefined} */
    this.view = undefined
  }
}

/** @type {ReturnType<typeof createStamp<Context>>} the context of a resource */
const stamp = createStamp()

/** @type {ReturnType<typeof createStamp<Context>>} the context that resolved or rejected a promise */
const settler = createStamp()

/** Stands for everything that longstack or a hook callback does: never traced, nor what comes of it. */
const muted = new Context(0, 0, 'longstack', undefined, 0)

/** @param {Context} context @param {Context} ancestor @returns {boolean} */
function descends (context, ancestor) {
  for (let one = context.parent; one !== undefined; one = one.parent) if (one === ancestor) return true
  return false
}

module.exports = { Context, descends, stamp, settler, muted }
