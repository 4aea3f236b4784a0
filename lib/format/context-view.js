'use strict'

// Public view of a context: read-only, with the label and frames of its hop, and no access to its internals.

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 */

const { inspect } = require('node:util')
const { now, queriedAt } = require('../core/clock')
const guard = require('../core/guard')
const { describe: describeContext, hops } = require('../stacks/chain')
const { formatHops } = require('./hops')
const { inspectPrinted } = require('./inspect')

/**
 * One asynchronous step, read-only.
 * @typedef {object} ContextView
 * @property {number} asyncId Node's id of the resource
 * @property {number} triggerAsyncId Node's id of the resource that caused it
 * @property {string} type Node's provider name, or the type of an AsyncResource
 * @property {string} label common name of the step
 * @property {import('../stacks/chain').Origin} origin how the step is known
 * @property {number} repeats loop iterations that it represents
 * @property {number} ageMs milliseconds since its creation; NaN if no longer known
 * @property {number | undefined} waitMs milliseconds from its creation, or from the end of its previous run,
 *   to the start of its current or last run; only known while `trace.hook` callbacks are registered
 * @property {number | undefined} runMs milliseconds of its last finished run; only known then, too
 * @property {import('../stacks/chain').HopFrame[]} frames stack of its creation, innermost first
 * @property {ContextView | undefined} parent the context it came from
 */

class View {
  #context

  /** @param {Context} context */
  constructor (context) {
    this.#context = context
  }

  get asyncId () { return this.#context.asyncId }
  get triggerAsyncId () { return this.#context.triggerAsyncId }
  get type () { return this.#context.type }
  get label () { return describe(this.#context).label }
  get origin () { return this.#context.origin }
  get repeats () { return this.#context.repeats }
  get ageMs () { return Math.max(0, now() - this.#context.time) }
  get waitMs () { return this.#context.waitMs }
  get runMs () { return this.#context.runMs }
  get frames () { return describe(this.#context).frames.map((frame) => ({ ...frame })) }
  get parent () { return view(this.#context.parent) }

  toJSON () {
    const { asyncId, triggerAsyncId, type, label, origin, repeats, ageMs } = this
    return { asyncId, triggerAsyncId, type, label, origin, repeats, ageMs, parent: this.parent?.asyncId }
  }

  toString () { return contextText(this.#context) }

  /** @param {number | null} depth @param {any} options */
  [inspect.custom] (depth, options) {
    return inspectContext(this.#context, depth, options)
  }

  /** @param {any} object @returns {Context | undefined} the context behind a view */
  static unwrap (object) {
    return #context in object ? object.#context : undefined
  }
}

/** @param {Context | undefined} context @returns {ContextView | undefined} */
function view (context) {
  if (context === undefined) return undefined
  context.view ??= new View(context)
  return /** @type {ContextView} */ (context.view)
}

/** Returns the label and frames of a context. @param {Context} context */
const describe = (context) => guard.run(() => describeContext(context))

/** @param {Context} context @returns {string} its hops */
function contextText (context) {
  const later = now() - queriedAt() // printing, not a query of the program
  const printed = guard.run(() => hops(context)).map((hop) => ({ ...hop, ageMs: hop.ageMs + later }))
  return printed.length === 0 ? `[${describe(context).label}]` : formatHops(printed)
}

/**
 * Returns the output of util.inspect.
 * @param {Context} context
 * @param {number | null} depth
 * @param {import('./inspect').InspectOptions} options
 */
function inspectContext (context, depth, options) {
  return inspectPrinted({ text: contextText(context), title: describe(context).label }, depth, options)
}

const { unwrap } = View

module.exports = { unwrap, view }
