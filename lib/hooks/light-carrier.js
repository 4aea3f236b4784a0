'use strict'

// Light mode: no hook reports promises, so an AsyncLocalStorage carries the step across await.

const { AsyncLocalStorage } = require('node:async_hooks')
const { NO_CHAIN, OWN_WORK_CHAIN, ROOT_CHAIN } = require('../context/records')
const { CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, current } = require('../context/current')

/** A step as it is carried. */
class Carried {
  /** @param {number} chain @param {number} cause @param {number} span @param {number} run */
  constructor (chain, cause, span, run) {
    this.chain = chain
    this.cause = cause
    this.span = span
    this.run = run
  }
}

/** @typedef {ReturnType<typeof createCarrier>} Carrier */

function createCarrier () {
  /** @type {AsyncLocalStorage<Carried> | undefined} */
  let storage

  const carrier = {
    isOn: false,

    start () {
      storage = new AsyncLocalStorage()
      carrier.isOn = true
    },

    /** Carries the main script: what carries nothing later on is from before. */
    enterRoot () {
      if (current[CURRENT_CHAIN] === NO_CHAIN) current[CURRENT_CHAIN] = ROOT_CHAIN
      carrier.enter()
    },

    stop () {
      storage?.disable()
      storage = undefined
      carrier.isOn = false
    },

    /** Carries the current step from here on. */
    enter () {
      if (storage === undefined) return
      const chain = current[CURRENT_CHAIN]
      const cause = current[CURRENT_CAUSE]
      storage.enterWith(new Carried(chain, cause, current[CURRENT_SPAN], current[CURRENT_RUN]))
    },

    /** @returns {Carried | undefined} */
    read: () => storage?.getStore(),

    /** Carries again what was carried before. @param {Carried | undefined} carried */
    restore (carried) {
      if (storage === undefined || storage.getStore() === carried) return
      storage.enterWith(/** @type {any} */ (carried))
    },

    /**
     * Runs a function with a step of a span, whose run begins in it.
     * @template T
     * @param {number} chain @param {number} cause @param {number} span @param {() => T} fn
     * @returns {T}
     */
    run (chain, cause, span, fn) {
      if (storage === undefined) return fn()
      const carried = new Carried(chain, cause, span, 0)
      return storage.run(carried, () => {
        carried.run = current[CURRENT_RUN]
        return fn()
      })
    },

    /** Runs longstack's own work, which is no part of the program. @param {() => void} work */
    runUntraced (work) {
      if (storage === undefined) return work()
      return storage.run(new Carried(OWN_WORK_CHAIN, 0, 0, 0), work)
    }
  }
  return carrier
}

module.exports = { createCarrier }
