'use strict'

// What was seen of an error before anybody read its stack: attribution's only witnesses besides the error's frames.

const { contextOf, OWN_WORK, root } = require('../context/context')
const { createTag } = require('../context/tag')
const { own } = require('../objects')

const { isNativeError, isProxy } = require('node:util').types
const RELATED = 16 // members of an AggregateError that are looked at
const VALUES = 64 // rejections with what is no object, in an iteration of the event loop

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {object} Escape an error that nobody caught
 * @property {Context} context in which it was thrown, or that rejected its promise
 * @property {boolean} isRejection the context is that of the rejection
 */

/** What is known of one error. */
class ObservedError {
  constructor () {
    /** in whose run it was made @type {Context | undefined} */
    this.maker = undefined
    /** by Node's native code, before that run: then it has no frames that ran */
    this.isNative = false
    /** who rejected with it first @type {Context | undefined} */
    this.rejecter = undefined
    /** the promise that was rejected with it first: reference, chain and span; 0: unknown */
    this.promise = this.promiseChain = this.promiseSpan = 0
    /** the promise that was rejected with it last: what nobody handles */
    this.lastPromise = 0
    /** @type {Escape | undefined} */
    this.escape = undefined
    /** who handed it to nextTick, where Node did @type {Context | undefined} */
    this.handedOverBy = undefined
    /** the story that was told of it @type {import('../stacks/chain').PrintedHop[] | undefined} */
    this.hops = undefined
  }

  /** Where the promise was made: who waits for it. @returns {Context | undefined} */
  get awaiter () {
    const context = this.promise === 0 ? undefined : contextOf(this.promiseChain, this.promise, this.promiseSpan)
    return context === OWN_WORK ? undefined : context
  }
}

/**
 * @param {object} deps
 * @param {ReturnType<typeof import('./maker').createMakerLookup>} deps.maker in whose run it was made, as the allocation clock tells
 */
function createObservedErrors ({ maker }) {
  /** On the error itself, unseen: a WeakMap costs a read of `.stack` 2 µs more (bench/errors.js). @type {ReturnType<typeof createTag<ObservedError>>} */
  const seen = createTag()

  /** @param {object} error */
  function observe (error) {
    let sighting = seen.read(error)
    if (sighting === undefined) seen.write(error, sighting = new ObservedError())
    const made = sighting.maker === undefined ? maker(error) : undefined
    if (made !== undefined) {
      sighting.maker = made.context
      sighting.isNative = made.isNative
    }
    return sighting
  }

  /** An error goes round: the clock is asked for what it carries as well, for as long as it knows. @param {object} error */
  function sightRelated (error) {
    if (!isNativeError(error)) return // nor a proxy, whose traps are the program's
    const cause = own(error, 'cause')
    if (typeof cause === 'object' && cause !== null) observe(cause)
    const members = own(error, 'errors')
    if (!Array.isArray(members) || isProxy(members)) return
    for (let i = 0; i < Math.min(members.length, RELATED); i++) {
      const member = own(members, i)
      if (typeof member === 'object' && member !== null) observe(member)
    }
  }

  /** rejections with what is no object, of this iteration @type {Array<{ reason: unknown, context: Context }>} */
  let values = []

  return {
    /** Looks at an error now, while the clock still may tell. */
    observe,

    /** @param {object} error @returns {ObservedError | undefined} */
    get: (error) => seen.read(error),

    /** The promise that was rejected with an error, where it is known by a number. @param {unknown} error @returns {number} 0: it is not */
    promiseOf: (error) => typeof error === 'object' && error !== null ? seen.read(error)?.lastPromise ?? 0 : 0,

    /** @param {object} error @returns {Context | undefined} */
    rejecterOf: (error) => seen.read(error)?.rejecter,

    /**
     * The first rejection counts: others hand it on.
     * @param {object} error
     * @param {Context} context
     * @param {{ ref: number, chain: number, span: number }} promise
     */
    noteRejection (error, context, { ref, chain, span }) {
      const sighting = observe(error)
      if (ref !== 0) sighting.lastPromise = ref
      if (sighting.rejecter !== undefined) return
      sightRelated(error)
      sighting.rejecter = context
      sighting.promise = ref
      sighting.promiseChain = chain
      sighting.promiseSpan = span
    },

    /**
     * A value has no identity by which it is known again, but Node reports it in the same iteration.
     * @param {unknown} reason
     * @param {Context} context
     * @param {{ ref: number, chain: number, span: number }} promise
     */
    noteRejectedValue (reason, context, { ref, chain, span }) {
      if (typeof reason === 'function') return // its text is the program's to make
      const made = ref === 0 ? undefined : contextOf(chain, ref, span)
      if (values.length <= VALUES) values.push({ reason, context: made?.parent === context || context === root ? made ?? context : context })
    },

    /**
     * Who rejected with a value for which Node made an error, since nobody handled it (lib/internal/process/promises.js).
     * @param {any} error
     * @returns {Context | undefined} undefined where it may have been another one
     */
    rejecterOfValue (error) {
      if (values.length === 0 || values.length > VALUES || typeof error !== 'object' || error === null) return undefined
      if (own(error, 'code') !== 'ERR_UNHANDLED_REJECTION') return undefined
      const message = String(own(error, 'message'))
      const alike = values.filter(({ reason }) => message.endsWith(`"${String(reason)}".`))
      return alike.length === 1 ? alike[0].context : undefined
    },

    /** The event loop came round. */
    startIteration () {
      if (values.length > 0) values = []
    },

    /** The first sighting counts. @param {unknown} error @param {Escape} escape */
    noteEscape (error, escape) {
      if (typeof error !== 'object' || error === null) return
      observe(error).escape ??= escape
      sightRelated(error)
    },

    /** @param {object} error @param {Context} context */
    noteHandOver (error, context) {
      observe(error).handedOverBy ??= context
    }
  }
}

module.exports = { createObservedErrors }
