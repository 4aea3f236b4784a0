'use strict'

// What users see of a context: read-only, with the words and frames of its hop, and never a way to its insides.

/**
 * @typedef {import('./context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

const { inspect } = require('node:util')

/** @typedef {NonNullable<ReturnType<ReturnType<typeof createViews>['view']>>} ContextView one asynchronous step */

/**
 * @param {object} deps
 * @param {(context: Context) => import('../stacks/chain').Hop} deps.describe
 */
function createViews ({ describe }) {
  /** One asynchronous step, as hooks and handlers get it. */
  class ContextView {
    #context

    /** @param {Context} context */
    constructor (context) {
      this.#context = context
    }

    /** Node's id of the resource. @returns {number} */
    get asyncId () { return this.#context.asyncId }
    /** Node's id of the resource that caused it. @returns {number} */
    get triggerAsyncId () { return this.#context.triggerAsyncId }
    /** Node's provider name, or the type of an AsyncResource. @returns {string} */
    get type () { return this.#context.type }
    /** The words a person would use. @returns {string} */
    get label () { return describe(this.#context).label }
    /** How the step is known. @returns {import('../stacks/chain').Origin} */
    get origin () { return this.#context.origin }
    /** Turns of a loop that it stands for. @returns {number} */
    get repeats () { return this.#context.repeats }
    /** Milliseconds since it was made. @returns {number} */
    get ageMs () { return describe(this.#context).ageMs }
    /** Where it was made, innermost first. @returns {import('../stacks/chain').HopFrame[]} */
    get frames () { return describe(this.#context).frames }
    /** The context it came from. @returns {ContextView | undefined} */
    get parent () { return view(this.#context.parent) }

    toJSON () {
      const { asyncId, triggerAsyncId, type, label, origin, repeats, ageMs } = this
      return { asyncId, triggerAsyncId, type, label, origin, repeats, ageMs, parent: this.parent?.asyncId }
    }

    [inspect.custom] () {
      return { ...this.toJSON() }
    }

    /** @param {any} object @returns {Context | undefined} the context behind a view */
    static unwrap (object) {
      return #context in object ? object.#context : undefined
    }
  }

  /** @param {Context | undefined} context @returns {ContextView | undefined} */
  function view (context) {
    if (context === undefined) return undefined
    context.view ??= new ContextView(context)
    return /** @type {ContextView} */ (context.view)
  }

  return { view, unwrap: ContextView.unwrap }
}

module.exports = { createViews }
