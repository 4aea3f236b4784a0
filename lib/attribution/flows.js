'use strict'

// Flows: two contexts belong to one flow if they are equal or one is an ancestor of the other. Also the
// rejections with one error: who rejected a promise with it, and which promises it passed from there. `await`
// and `then` pass a rejection on from promise to promise. An error that is kept, such as that of a closed
// pool, is used again for later rejections.
//
// A queue starts the job of one caller in the callback in which the job of another ended, and rejects the
// promise that it gave to the caller. The promises that an error passed tell the two apart: the caller's
// promise was made in the caller's flow, and rejected in the other one.

const { contextOf, OWN_WORK, root } = require('../core/context')
const { idOf } = require('../core/record-ids')
const requestRecords = require('../core/request-records')

const MAX_ANCESTORS = 256 // the records of a loop include all of its iterations
const MAX_PROMISES = 32 // that are kept per error
const MAX_STEPS = 32 // from a step up to one that received the error
const MAX_PATH = 16 // promises in a complete path of an error

/** @type {typeof import('../core/request-of').requestOf | undefined} */
let requestOfStep

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {{ ref: number, chain: number, span: number }} RecordedStep 0 if unknown
 * @typedef {{ context: Context }} Rejection a promise was rejected with an error that came from no other
 *   promise
 *
 * @typedef {object} Passage a promise that was rejected with the error
 * @property {RecordedStep} promise
 * @property {number} asyncId of the promise, 0 if unknown
 * @property {Context} by the step that rejected it
 * @property {Rejection} rejection of the first promise with the error
 * @property {Passage | undefined} from the promise that passed the error to that step
 * @property {number} length of the path of promises
 *
 * @typedef {object} Delivery how an error reached its reader
 * @property {Passage} passage the last promise
 * @property {Context} [step] of the reader, or an ancestor, that awaited that promise
 *
 * @typedef {object} Waiter
 * @property {Context} context of the awaited promise
 * @property {Context} caller that waits
 * @property {Context} [task] start of the failed job, if a queue may have started it: its ancestors may be of
 *   another caller
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
 * Finds a context or its nearest ancestor.
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
 * Compares contexts; if a record is gone, only the chains are known.
 * @param {Context} first
 * @param {Context} second
 */
function isSame (first, second) {
  if (first === second) return true
  return first.ref !== 0 && second.ref !== 0 ? first.ref === second.ref : first.chain === second.chain
}

/** @param {RecordedStep} step @returns {Context | undefined} undefined if unknown, or longstack's own work */
function contextOfStep ({ chain, ref, span }) {
  const context = contextOf(chain, ref, span)
  return context === OWN_WORK ? undefined : context
}

/** @param {Context | undefined} context @returns {number} reference of its request, 0 if none is known */
function requestOf (context) {
  if (context === undefined || context.ref === 0 || requestRecords.all() === undefined) return 0
  requestOfStep ??= require('../core/request-of').requestOf // loaded with the first request
  return requestOfStep(context.ref)
}

class Rejections {
  /** @type {Passage[]} */
  #passages = []
  /** @type {Passage} */
  #last

  /** @param {Context} context @param {RecordedStep} promise */
  constructor (context, promise) {
    /** @type {Rejection} */
    this.first = { context }
    this.#last = this.#add(context, promise, undefined, this.first)
  }

  /** @returns {Rejection} */
  get last () { return this.#last.rejection }

  /** @param {Context} context @param {RecordedStep} promise */
  note (context, promise) {
    // A promise of a subclass waits for an unknown promise: assume the one that was rejected last.
    const isPassedOn = context.kind.promise && !context.awaited
    const from = this.#find(context)?.passage ?? (isPassedOn ? this.#last : undefined)
    this.#last = this.#add(context, promise, from, from?.rejection ?? { context })
  }

  /**
   * Returns how the error reached a reader; if that is unknown, its last rejection.
   * @param {Context | undefined} reader
   * @returns {Delivery}
   */
  deliveryTo (reader) {
    return (reader && this.#find(reader)) ?? { passage: this.#last }
  }

  /**
   * Returns how the error was passed on after its first rejection, before it was rejected anew.
   * @returns {Delivery | undefined} undefined if no longer known
   */
  firstDelivery () {
    const passage = this.#passages.findLast(({ rejection }) => rejection === this.first)
    return passage && { passage }
  }

  /**
   * @param {Context} by
   * @param {RecordedStep} promise
   * @param {Passage | undefined} from
   * @param {Rejection} rejection
   * @returns {Passage}
   */
  #add (by, promise, from, rejection) {
    const before = from !== undefined && from.length === MAX_PATH ? from.from : from
    const asyncId = promise.ref === 0 ? 0 : idOf(promise.ref)
    const passage = { promise, asyncId, by, rejection, from: before, length: (before?.length ?? 0) + 1 }
    if (this.#passages.length === MAX_PROMISES) this.#passages.shift()
    this.#passages.push(passage)
    return passage
  }

  /**
   * Finds the newest promise that passed the error to a step or to one of its ancestors.
   * @param {Context} context
   * @returns {Delivery | undefined}
   */
  #find (context) {
    let step = /** @type {Context | undefined} */ (context)
    for (let count = 0; step !== undefined && count < MAX_STEPS; count++) {
      for (let i = this.#passages.length - 1; i >= 0; i--) {
        const passage = this.#passages[i]
        const { asyncId, rejection } = passage
        const isGiven = step.awaited && step.triggerAsyncId === asyncId
        if (asyncId === 0 ? isSame(step, rejection.context) : isGiven) return { passage, step }
      }
      step = step.parent
    }
    // Code that awaits a promise that the filter leaves out continues in the step that began to await.
    const passage = this.#passages.find(({ asyncId, rejection }) => {
      return asyncId === 0 && descends(rejection.context, context)
    })
    return passage && { passage }
  }
}

/**
 * Finds the awaiter among the makers of the error's promises: the first that passes a test and does not
 * descend from the makers before it.
 * @param {Delivery} delivery
 * @param {(caller: Context) => boolean} isOther
 * @returns {Waiter | undefined}
 */
function findWaiter ({ passage: last, step }, isOther) {
  const path = pathTo(last)
  /** @type {Context[]} */
  const others = []
  const isNew = (/** @type {Context} */ caller) => {
    return isOther(caller) && !others.some((other) => descends(caller, other))
  }
  for (const passage of path) {
    const context = contextOfStep(passage.promise)
    const caller = context?.parent
    if (context === undefined || caller === undefined || caller === root) continue
    if (isNew(caller)) {
      const before = isPassedOver(passage, caller) ? passage.from : undefined
      return { context, caller, task: before && contextOfStep(before.promise)?.parent }
    }
    others.push(caller)
  }
  const caller = step?.awaited ? step.parent : undefined
  return step && caller && isNew(caller) ? { context: step, caller } : undefined
}

/**
 * Returns the first promise in the path of an error that the program made.
 * @param {Delivery} delivery
 * @returns {Context | undefined}
 */
function findPlace ({ passage }) {
  const contexts = pathTo(passage).map(({ promise }) => contextOfStep(promise))
  return contexts.find((context) => context?.stack?.program === true)
}

/** @param {Passage} last @returns {Passage[]} the path of an error, the first promise first */
function pathTo (last) {
  /** @type {Passage[]} */
  const path = []
  for (let each = /** @type {Passage | undefined} */ (last); each !== undefined; each = each.from) {
    path.unshift(each)
  }
  return path
}

/**
 * Whether a promise was rejected by code of another flow than its caller's, such as a queue. Resolving a
 * promise with another one that fails later counts as well: V8 awaits that one in the promise's own step.
 * @param {Passage} passage
 * @param {Context} caller that made the promise
 */
function isPassedOver ({ by, promise }, caller) {
  const awaiting = by.awaited ? by.parent : by
  return awaiting === undefined || awaiting.ref === promise.ref || !isOneFlow(awaiting, caller)
}

module.exports = {
  Rejections, contextOfStep, descends, findPlace, findStep, findWaiter, isOneFlow, isSame, requestOf
}
