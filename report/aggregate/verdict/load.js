'use strict'

// Threads that collect garbage, or that wait for a CPU: all their callbacks and requests are slow.

const { MIN_FILLED, heldOf, holderOfHeap } = require('./memory')
const { amount, isRecord, list } = require('../../read/values')
const { sum } = require('../lists')

const MAX_THREADS = 1000
const MIN_COLLECTED = 0.2 // of the time
const MIN_BUSY = 0.3 // of the time
const MAX_CPU = 0.6 // of the time that the event loop is busy; synchronous calls wait, too
const MIN_WAITED = 0.25 // of the time

/**
 * @typedef {object} ThreadShares shares of the time, undefined if unknown
 * @property {number} pid 0 if unknown
 * @property {number | undefined} thread undefined: the main one
 * @property {number | undefined} busyShare
 * @property {number | undefined} cpuShare
 * @property {number | undefined} collectedShare
 * @property {number | undefined} waitedShare for a CPU
 * @property {number | undefined} used bytes of the heap
 * @property {number | undefined} limit
 * @property {number} kept bytes of the heap after its last full collection, 0 if memory is not short
 * @property {import('./memory').Held} held what the heap kept since it is
 */

/** Threads with an unusual load, and busy workers. */
class LoadFacts {
  /** @type {ThreadShares[]} */
  threads = []

  /** @param {import('../../read/span-line').Span} record */
  add (record) {
    const [load] = list(record.attributes['longstack.load'], 1).filter(isRecord)
    if (load === undefined || this.threads.length === MAX_THREADS) return
    this.threads.push({
      pid: pidOf(record),
      thread: amount(record.record.resource?.['longstack.thread']),
      busyShare: amount(load.busyShare),
      cpuShare: amount(load.cpuShare),
      collectedShare: amount(load.collectedShare),
      waitedShare: amount(load.waitedShare),
      used: amount(load.used),
      limit: amount(load.limit),
      kept: amount(load.kept) ?? 0,
      held: heldOf(load)
    })
  }

  /** Adds a worker that is too busy to say how much. @param {{ pid: number, thread: number }} worker */
  addBusy ({ pid, thread }) {
    const shares = { busyShare: undefined, cpuShare: undefined, collectedShare: undefined }
    const others = { waitedShare: undefined, used: undefined, limit: undefined, kept: 0, held: heldOf({}) }
    if (this.threads.length < MAX_THREADS) this.threads.push({ pid, thread, ...shares, ...others })
  }

  /** Least part of the time for which a main thread needed a CPU that it had one. */
  get cpuPart () { return Math.min(1, ...this.starved.map(({ part }) => part)) }

  /** Main threads that waited for a CPU, or were busy for much longer than they had one. */
  get starved () {
    return this.threads.flatMap(({ pid, thread, cpuShare: known, busyShare = 0, waitedShare = 0 }) => {
      const cpuShare = known ?? 1
      const isIdle = busyShare < MIN_BUSY || cpuShare >= busyShare * MAX_CPU
      if (thread !== undefined || (isIdle && waitedShare < MIN_WAITED)) return []
      const part = Math.min(isIdle ? 1 : cpuShare / busyShare, cpuShare / (cpuShare + waitedShare))
      const wait = waitedShare < MIN_WAITED ? undefined : waitedShare
      return [{ pid, part, cpuShare: known, busyShare, waitedShare: wait }]
    })
  }
}

/** @param {import('../../read/span-line').Span} span @returns {number} 0 if unknown */
const pidOf = ({ record: { resource } }) => amount(resource?.['process.pid']) ?? 0

/**
 * Reports threads that spend a part of the time in garbage collection.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function collects ({ load, totalMs, model }) {
  return load.threads.flatMap(({ pid, thread, collectedShare: share = 0, used, limit, held }) => {
    if (share < MIN_COLLECTED) return []
    const figures = { pid, thread, used, limit, ...holderOfHeap(held, model) }
    return [{ rule: 'collects', lostMs: totalMs * share, share, figures }]
  })
}

/**
 * Reports threads whose heap is filling, unless they died of it or are slow from garbage collection already.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules
 * @returns {import('./index').Fault[]}
 */
function filling ({ load, model }, faults) {
  const isTold = (/** @type {number} */ pid, /** @type {number | undefined} */ thread) =>
    faults.some(({ rule, figures }) => figures.pid === pid &&
      (rule === 'death' || (rule === 'collects' && figures.thread === thread)))
  return load.threads.flatMap(({ pid, thread, kept, limit, held }) => {
    if (isTold(pid, thread) || limit === undefined || kept < limit * MIN_FILLED) return []
    const figures = { pid, thread, cause: 'heap', used: kept, limit, ...holderOfHeap(held, model) }
    return [{ rule: 'filling', lostMs: 0, share: 0, figures, details: { kind: 'heap' } }]
  })
}

/**
 * Reports main threads that waited for a CPU, or were busy for much longer than they had one.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function starved ({ routes, load }) {
  const slowedMs = sum(routes, ({ facts: { runMs, totalMs, undelayedMs, queuedMs } }) =>
    runMs + totalMs - undelayedMs + queuedMs)
  return load.starved.map(({ part, ...figures }) =>
    ({ rule: 'starved', lostMs: slowedMs * (1 - part), share: 1 - part, figures }))
}

module.exports = { LoadFacts, collects, filling, pidOf, starved }
