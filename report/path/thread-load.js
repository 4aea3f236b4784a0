'use strict'

// The load of a thread over its recording, in one record at the end: its event loop, CPU time, garbage
// collection and heap. Normal figures are left out.

const { factsRecord } = require('./facts-record')

const MIN_MS = 500 // shorter says little about the event loop
const MIN_VITALS_MS = 1000 // likewise, about the rest
const MIN_WORKER_BUSY = 0.5
const MIN_COLLECTED = 0.1 // of the time
const MIN_KEPT = 0.9 // of what the heap kept: with less, it has recovered
const MAX_CPU = 0.7 // of the time that the event loop is busy
const MIN_WAITED = 0.2 // of the time

/**
 * @typedef {object} LoopLoad of an event loop
 * @property {number} begin of the recording, ms of the clock
 * @property {number} end
 * @property {number} busy ms in callbacks that had ended by then
 * @property {boolean} isRunning a callback had not ended: the thread was killed in it, or it waits in it for
 *   messages (Atomics.wait), so its load is unknown
 *
 * @typedef {object} Vitals
 * @property {number} at ms of the clock
 * @property {number} cpuUs
 * @property {number | null} collectedUs modulo 2^32
 * @property {number} used bytes of the heap
 * @property {number} limit
 * @property {number | null} waitedUs wait for a CPU
 */

class ThreadLoad {
  /** @type {Vitals | undefined} */
  #first
  /** @type {Vitals | undefined} */
  #last
  #most = 0 // bytes
  /** what the heap kept, as last known @type {Record<string, unknown>} */
  #growth = {}

  /** @param {unknown} vitals of a text */
  add (vitals) {
    if (!Array.isArray(vitals)) return
    const [at, cpuUs, collectedUs, used, limit, waitedUs] = vitals
    if (![at, cpuUs, used, limit].every(Number.isFinite)) return
    const known = (/** @type {unknown} */ us) => Number.isFinite(us) ? Number(us) : null
    this.#last = { at, cpuUs, collectedUs: known(collectedUs), used, limit, waitedUs: known(waitedUs) }
    this.#first ??= this.#last
    this.#most = Math.max(this.#most, used)
  }

  /** The last vitals. */
  get vitals () { return this.#last }

  /** @param {Record<string, unknown>} text of lib/record/heap-growth.js */
  addGrowth ({ sampled, used, growth }) { this.#growth = { sampled, kept: used, growth } }

  /**
   * @param {LoopLoad} loop
   * @param {import('./source-texts').SourceTexts} texts
   * @returns {object | undefined} undefined if everything is normal or unknown
   */
  record ({ begin, end, busy, isRunning }, texts) {
    const isWorker = texts.resource['longstack.thread'] !== undefined
    const isKnown = end - begin >= MIN_MS
    const busyShare = isKnown ? busy / (end - begin) : undefined
    const isBusyWorker = isWorker && (busyShare === undefined ? isRunning : busyShare >= MIN_WORKER_BUSY)
    const vitals = this.#shares()
    // They end before a callback that was still running
    if ((isRunning || texts.death !== undefined) && vitals !== undefined) vitals.cpuShare = undefined
    const { collectedShare = 0, cpuShare = 1, waitedShare = 0 } = vitals ?? {}
    const isNormal = collectedShare < MIN_COLLECTED && waitedShare < MIN_WAITED &&
      cpuShare >= Number(busyShare ?? 0) * MAX_CPU
    const isShort = Number(this.#last?.used) >= Number(this.#growth.kept) * MIN_KEPT
    if (isNormal && !isBusyWorker && !isShort) return undefined
    const load = { busyShare, ...vitals, ...isShort && this.#growth }
    return factsRecord('thread load', { 'longstack.load': [load] }, end, texts)
  }

  /**
   * Shares of the time; undefined if it is too short.
   * @returns {Record<'cpuShare' | 'collectedShare' | 'waitedShare', number | undefined>
   *   & { used: number, limit: number } | undefined}
   */
  #shares () {
    const [first, last] = [this.#first, this.#last]
    if (first === undefined || last === undefined || last.at - first.at < MIN_VITALS_MS) return undefined
    const us = (last.at - first.at) * 1000
    const isKnown = first.collectedUs !== null && last.collectedUs !== null
    const collectedUs = (Number(last.collectedUs) - Number(first.collectedUs)) >>> 0
    return {
      cpuShare: (last.cpuUs - first.cpuUs) / us,
      collectedShare: isKnown ? collectedUs / us : undefined,
      waitedShare: first.waitedUs === null || last.waitedUs === null
        ? undefined
        : (last.waitedUs - first.waitedUs) / us,
      used: this.#most,
      limit: last.limit
    }
  }
}

module.exports = { ThreadLoad }
