'use strict'

// Timers and files that were just made. V8 takes a WeakRef for a strong reference until the next mark-sweep:
// one for each timer and file would promote them, with their contexts, to the old generation. Most are over
// soon, so they wait in a list until SETTLE_MS have passed, and only what is still open then gets an entry.

const { contextOfId } = require('./context')
const { isClosed } = require('../node-objects')
const { isRefreshed, isResourceOf } = require('./entry')

const SETTLE_MS = 32
const CAPACITY = 1024

/** @typedef {import('./context').Context} Context */

class BriefResources {
  /** @type {any[]} */
  #resources = Array(CAPACITY).fill(undefined)
  #ids = new Float64Array(CAPACITY)
  /** ms of the clock */
  #times = new Float64Array(CAPACITY)
  /** @type {string[]} */
  #types = Array(CAPACITY).fill('')
  #count = 0
  /** ms of the clock */
  #settleAt = Infinity
  #admit

  /** @param {(context: Context, resource: object) => void} admit called for what is still open */
  constructor (admit) {
    this.#admit = admit
  }

  get isEmpty () { return this.#count === 0 }

  /**
   * Adds a resource that was just made. The hot path.
   * @param {number} asyncId
   * @param {string} type
   * @param {number} time ms of the clock
   * @param {object} resource that is still being made: it must not be asked anything
   */
  add (asyncId, type, time, resource) {
    if (this.#count === CAPACITY || time >= this.#settleAt) this.settle(time)
    if (this.#count === 0) this.#settleAt = time + SETTLE_MS
    const index = this.#count++
    this.#resources[index] = resource
    this.#types[index] = type
    this.#times[index] = time
    this.#ids[index] = asyncId
  }

  /** @param {number} time ms of the clock @returns {boolean} whether some have waited for long enough */
  isDue (time) { return time >= this.#settleAt }

  /**
   * Drops what is over, and admits what has waited for long enough.
   * @param {number} time ms of the clock; Infinity: all have
   */
  settle (time) {
    let kept = 0
    for (let i = 0; i < this.#count; i++) {
      const resource = this.#resources[i]
      const type = this.#types[i]
      if (isClosed(type, resource) || isRefreshed(type, resource, this.#ids[i])) continue
      if (time - this.#times[i] >= SETTLE_MS) {
        this.#admitAt(i)
        continue
      }
      this.#resources[kept] = resource
      this.#types[kept] = type
      this.#times[kept] = this.#times[i]
      this.#ids[kept++] = this.#ids[i]
    }
    for (let i = kept; i < this.#count; i++) this.#resources[i] = undefined
    this.#count = kept
    // All at once: to settle each in its time would look at most of them again and again.
    this.#settleAt = kept > 0 ? time + SETTLE_MS : Infinity
    if (kept > CAPACITY / 2) this.settle(Infinity) // there is no room for the next ones
  }

  /** @param {number} index */
  #admitAt (index) {
    const context = contextOfId(this.#ids[index])
    const resource = this.#resources[index]
    if (context === undefined || !context.kind.brief || !isResourceOf(resource, context)) return
    this.#admit(context, resource)
  }
}

module.exports = { BriefResources }
