'use strict'

// A thread that collects garbage, or that waits for a CPU: all its callbacks and requests are slow.

const { amount, isRecord, list } = require('../../read/values')
const { sum } = require('../lists')

const MAX_THREADS = 1000
const MIN_COLLECTED = 0.2 // of the time
const MIN_BUSY = 0.3 // of the time
const MAX_CPU = 0.6 // of the time that the event loop is busy; synchronous calls wait, too

/**
 * @typedef {object} ThreadVitals
 * @property {number} pid
 * @property {number | undefined} thread undefined: the main one
 * @property {number} cpuShare of the time
 * @property {number} busyShare
 * @property {number} collectedShare 0 if unknown
 * @property {number} used bytes
 * @property {number} limit bytes
 */

class VitalsFacts {
  /** @type {ThreadVitals[]} */
  threads = []

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes, record: { resource } }) {
    const [own] = list(attributes['longstack.vitals'], 1).filter(isRecord)
    const ms = amount(own?.ms) ?? 0
    if (own === undefined || ms === 0 || this.threads.length === MAX_THREADS) return
    this.threads.push({
      pid: amount(resource?.['process.pid']) ?? 0,
      thread: amount(resource?.['longstack.thread']),
      cpuShare: (amount(own.cpuMs) ?? 0) / ms,
      busyShare: amount(own.busyShare) ?? 0,
      collectedShare: (amount(own.collectedMs) ?? 0) / ms,
      used: amount(own.used) ?? 0,
      limit: amount(own.limit) ?? 0
    })
  }

  /** Least part of its busy time that a main thread had a CPU; at most 1. */
  get cpuPart () {
    return Math.min(1, ...this.starved.map(({ cpuShare, busyShare }) => cpuShare / busyShare))
  }

  /** Main threads that were busy for much longer than they had a CPU. */
  get starved () {
    return this.threads.filter(({ thread, cpuShare, busyShare }) =>
      thread === undefined && busyShare >= MIN_BUSY && cpuShare < busyShare * MAX_CPU)
  }
}

/**
 * Reports threads that spend a part of the time in garbage collection.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function collects ({ vitals, totalMs }) {
  const high = vitals.threads.filter(({ collectedShare }) => collectedShare >= MIN_COLLECTED)
  return high.map(({ pid, thread, collectedShare: share, used, limit }) =>
    ({ rule: 'collects', lostMs: totalMs * share, share, figures: { pid, thread, used, limit } }))
}

/**
 * Reports main threads that were busy for much longer than they had a CPU.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function starved ({ routes, vitals }) {
  const slowedMs = sum(routes, ({ facts: { runMs, totalMs, undelayedMs, queuedMs } }) =>
    runMs + totalMs - undelayedMs + queuedMs)
  return vitals.starved.map(({ pid, cpuShare, busyShare }) => {
    const share = 1 - cpuShare / busyShare
    return { rule: 'starved', lostMs: slowedMs * share, share, figures: { pid, cpuShare, busyShare } }
  })
}

module.exports = { VitalsFacts, collects, starved }
