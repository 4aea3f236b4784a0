'use strict'

// The entries of the registry by asyncId, and when to remove those whose resource is gone.
//
// They are swept by time and by count. By time an entry is looked at ever less often: a look keeps its
// resource until the job ends (see stacks/realms.js). A FinalizationRegistry would report sooner which are
// gone, but V8 cleans up one registry a task (src/heap/finalization-registry-cleanup-task.cc), so that the
// program's own would be late by an iteration of the event loop.

const { isResourceOf } = require('./entry')

const MAX_GONE = 64
const MIN_SWEEP_SIZE = 256
const SWEEP_MS = 1000 // between two sweeps, where resources are opened or go
const MAX_SWEEP_MS = 32_000 // between two sweeps where they remove nothing

/** @typedef {import('./entry').Entry} Entry */

class Entries {
  /** oldest first @type {Map<number, Entry>} */
  #entries = new Map()
  #sweepSize = MIN_SWEEP_SIZE
  /** ms of the clock */
  #nextSweep = Infinity
  #sweepPause = SWEEP_MS

  get size () { return this.#entries.size }

  values () { return this.#entries.values() }

  /** @param {number} asyncId @returns {Entry | undefined} */
  get (asyncId) { return this.#entries.get(asyncId) }

  /** @param {number} asyncId */
  delete (asyncId) { this.#entries.delete(asyncId) }

  /** @param {Entry} entry */
  add (entry) {
    const { context } = entry
    if (context.type === 'HTTP2STREAM') entry.session = this.#entries.get(context.triggerAsyncId)
    if (entry.session !== undefined) entry.session.activeAt = context.time
    this.#entries.set(context.asyncId, entry)
    this.#sweepPause = SWEEP_MS
    this.#nextSweep = Math.min(this.#nextSweep, context.time + SWEEP_MS)
  }

  get isFull () { return this.#entries.size >= this.#sweepSize }

  /** Sweeps if it is time to; later again if that removes nothing. @param {number} time ms of the clock */
  sweepByTime (time) {
    if (time < this.#nextSweep) return
    const before = this.#entries.size
    this.sweep(time)
    const hasRemoved = this.#entries.size < before
    this.#sweepPause = hasRemoved ? SWEEP_MS : Math.min(2 * this.#sweepPause, MAX_SWEEP_MS)
    this.#nextSweep = this.#entries.size === 0 ? Infinity : time + this.#sweepPause
  }

  /**
   * Removes entries whose resource is gone, but for the newest that a query may still ask for.
   * @param {number} [time] ms of the clock: only of those that are to be looked at by then
   */
  sweep (time = Infinity) {
    /** @type {number[]} */
    const gone = []
    for (const [asyncId, entry] of this.#entries) {
      if (entry.sweepAt > time) continue
      const resource = entry.resource.deref()
      if (resource !== undefined && isResourceOf(resource, entry.context)) {
        if (time !== Infinity) entry.sweepAt = Math.ceil(time + Math.max(SWEEP_MS, time - entry.context.time))
        continue
      }
      const hasOwner = entry.context.type !== 'SIGNALWRAP' // of which the program holds no object
      if (!hasOwner || entry.isOwnerKnown || resource !== undefined) this.#entries.delete(asyncId)
      else gone.push(asyncId)
    }
    for (const asyncId of gone.slice(0, Math.max(0, gone.length - MAX_GONE))) this.#entries.delete(asyncId)
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, this.#entries.size * 2)
  }
}

module.exports = { Entries }
