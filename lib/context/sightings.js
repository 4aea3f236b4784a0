'use strict'

// Where an error was seen before anybody read its stack: attribution's only witnesses besides the error's frames.

/**
 * @typedef {import('./context').Context} Context
 * @typedef {object} Escape an error that nobody caught
 * @property {Context} context in which it failed, or that rejected its promise
 * @property {Context | undefined} left the context that was left last; thrown inside runInAsyncScope, an error has left that scope
 * @property {boolean} settled the context is that of the rejection
 */

function createSightings () {
  /** @type {WeakMap<object, Escape>} */
  const escaped = new WeakMap()
  /** errors that Node's core handed to nextTick @type {WeakMap<object, Context>} */
  const passed = new WeakMap()
  /** reasons of rejected promises @type {WeakMap<object, Context>} */
  const rejected = new WeakMap()

  /** references of the promises that were rejected with them @type {WeakMap<object, number>} */
  const promises = new WeakMap()

  return {
    /** The promise that was rejected with an error, where it is known by a number. @param {unknown} error @returns {number} 0: it is not */
    promiseOf: (error) => typeof error === 'object' && error !== null ? promises.get(error) ?? 0 : 0,

    /** @param {object} error */
    escape: (error) => escaped.get(error),

    /** @param {object} error */
    pass: (error) => passed.get(error),

    /** @param {object} error */
    rejection: (error) => rejected.get(error),

    /** The first rejection counts: others hand it on. @param {object} error @param {Context} context @param {number} ref of the promise */
    rejects (error, context, ref) {
      if (ref !== 0) promises.set(error, ref) // the last one is what nobody handles
      if (!rejected.has(error)) rejected.set(error, context)
    },

    /** The first sighting counts. @param {unknown} error @param {Escape} escape */
    escapes (error, escape) {
      if (typeof error === 'object' && error !== null && !escaped.has(error)) escaped.set(error, escape)
    },

    /** @param {object} error @param {Context} context */
    passes (error, context) {
      if (!passed.has(error)) passed.set(error, context)
    }
  }
}

module.exports = { createSightings }
