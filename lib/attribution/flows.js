'use strict'

// Whether two contexts are of one flow: one is the other, or an ancestor of it. And the rejections with one
// error: who rejected a promise with it, and which promises it came through from
// there. `await` and `then` pass a rejection on from promise to promise; an error that is kept, such as that
// of a closed pool, is rejected with again by others.

const { contextOf, OWN_WORK } = require('../core/context')
const { idOf } = require('../core/record-ids')

const MAX_ANCESTORS = 256 // the records of a loop lead through all of its turns
const MAX_PROMISES = 32 // that an error is known to have come through
const MAX_STEPS = 32 // from a step up to one that was given the error

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {{ ref: number, chain: number, span: number }} RecordedStep 0: unknown
 * @typedef {{ context: Context, promise: RecordedStep }} Rejection somebody rejected a promise with an error
 *   that no promise had brought
 */

/** @param {Context | undefined} first @param {Context} second */
function isOneFlow (first, second) {
  return first !== undefined && (descends(first, second) || descends(second, first))
}

/**
 * Whether a context is another or descends from it.
 * @param {Context | undefined} first
 * @param {Context} other
 */
function descends (first, other) {
  return findStep(first, (step) => isSame(step, other), MAX_ANCESTORS) !== undefined
}

/**
 * Finds a context, or the nearest one that led to it.
 * @param {Context | undefined} context
 * @param {(step: Context) => boolean} matches
 * @param {number} maxSteps
 * @returns {Context | undefined}
 */
function findStep (context, matches, maxSteps) {
  let step = context
  for (let count = 0; step !== undefined && count < maxSteps; count++) {
    if (matches(step)) return step
    step = step.parent
  }
  return undefined
}

/**
 * Compares chains where a record is gone: nothing else is known of such a step.
 * @param {Context} first
 * @param {Context} second
 */
function isSame (first, second) {
  if (first === second) return true
  return first.ref !== 0 && second.ref !== 0 ? first.ref === second.ref : first.chain === second.chain
}

/** @param {RecordedStep} step @returns {Context | undefined} undefined: unknown, or longstack's own work */
function contextOfStep ({ chain, ref, span }) {
  const context = contextOf(chain, ref, span)
  return context === OWN_WORK ? undefined : context
}

class Rejections {
  /** @type {Array<{ asyncId: number, rejection: Rejection }>} asyncId of a promise; 0: unknown */
  #promises = []

  /** @param {Context} context @param {RecordedStep} promise */
  constructor (context, promise) {
    /** @type {Rejection} */
    this.first = this.last = { context, promise }
    this.#add(promise, this.first)
  }

  /** @param {Context} context @param {RecordedStep} promise */
  note (context, promise) {
    // What a promise of a subclass waits for is not known: taken for what was rejected last.
    const isPassedOn = context.kind.promise && !context.awaited
    this.last = this.#find(context) ?? (isPassedOn ? this.last : { context, promise })
    this.#add(promise, this.last)
  }

  /**
   * Returns the rejection of which a context is a consequence, else the last one.
   * @param {Context | undefined} context
   */
  concerning (context) {
    return context === undefined || this.first === this.last ? this.last : this.#find(context) ?? this.last
  }

  /** @param {RecordedStep} promise @param {Rejection} rejection */
  #add ({ ref }, rejection) {
    if (this.#promises.length === MAX_PROMISES) this.#promises.shift()
    this.#promises.push({ asyncId: ref === 0 ? 0 : idOf(ref), rejection })
  }

  /** Returns the newest rejection that a step, or one that led to it, was given. @param {Context} context */
  #find (context) {
    let step = /** @type {Context | undefined} */ (context)
    for (let count = 0; step !== undefined && count < MAX_STEPS; count++) {
      for (let i = this.#promises.length - 1; i >= 0; i--) {
        const { asyncId, rejection } = this.#promises[i]
        const isGiven = step.awaited && step.triggerAsyncId === asyncId
        if (asyncId === 0 ? isSame(step, rejection.context) : isGiven) return rejection
      }
      step = step.parent
    }
    // What awaits a promise that the filter leaves out goes on in the step that began to.
    return this.#promises.find(({ asyncId, rejection }) => {
      return asyncId === 0 && descends(rejection.context, context)
    })?.rejection
  }
}

module.exports = { Rejections, contextOfStep, findStep, isOneFlow, isSame }
