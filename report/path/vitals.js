'use strict'

// CPU time, garbage collection and heap of a thread over its recording, in one record at the end.

const { factsRecord } = require('./facts-record')

const MIN_MS = 1000 // shorter says little
// Other figures are normal.
const MIN_COLLECTED = 0.1 // of the time
const MAX_CPU = 0.7 // of the time that the event loop is busy

/**
 * @typedef {object} Vitals
 * @property {number} at ms of the clock
 * @property {number} cpuUs
 * @property {number | null} collectedUs modulo 2^32
 * @property {number} used bytes of the heap
 * @property {number} limit
 */

class VitalsHistory {
  /** @type {Vitals | undefined} */
  #first
  /** @type {Vitals | undefined} */
  #last
  #most = 0 // bytes

  /** @param {unknown} values of a text */
  add (values) {
    if (!Array.isArray(values)) return
    const [at, cpuUs, collectedUs, used, limit] = values
    if (![at, cpuUs, used, limit].every(Number.isFinite)) return
    this.#last = { at, cpuUs, collectedUs: Number.isFinite(collectedUs) ? collectedUs : null, used, limit }
    this.#first ??= this.#last
    this.#most = Math.max(this.#most, used)
  }

  /**
   * @param {import('./worker-load').Load} load
   * @param {import('./source-texts').SourceTexts} texts
   * @returns {object | undefined} undefined if they are normal, or the time is too short
   */
  record ({ begin, end, busy }, texts) {
    const [first, last] = [this.#first, this.#last]
    if (first === undefined || last === undefined || last.at - first.at < MIN_MS) return undefined
    const isKnown = first.collectedUs !== null && last.collectedUs !== null
    const collectedUs = (Number(last.collectedUs) - Number(first.collectedUs)) >>> 0
    const ms = last.at - first.at
    const cpuMs = (last.cpuUs - first.cpuUs) / 1000
    const busyShare = busy / (end - begin)
    const collectedMs = isKnown ? collectedUs / 1000 : undefined
    if (Number(collectedMs ?? 0) < ms * MIN_COLLECTED && cpuMs >= ms * busyShare * MAX_CPU) return undefined
    const facts = { ms, cpuMs, busyShare, collectedMs, used: this.#most, limit: last.limit }
    return factsRecord('vitals', { 'longstack.vitals': [facts] }, end, texts)
  }
}

module.exports = { VitalsHistory }
