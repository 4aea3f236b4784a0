'use strict'

// The event loop as the bottleneck because of code outside of any request: jobs, pollers, loops of callbacks.

const { amount, isRecord, list } = require('../../read/values')
const { BoundedMap, sum } = require('../lists')
const { siteTextsOf } = require('../sites')

const MAX_GROUPS = 10 // per record
const MAX_PLACES = 1000
const MIN_REQUESTS = 10
const MIN_SHARE = 0.2 // share of the time that clients wait
const MIN_MS = 1 // delay per request
const MIN_PART = 0.5 // share of the code outside of requests; below it, no single place is at fault
const MIN_BUSY = 0.2 // share of the recorded time

class BackgroundFacts {
  /** by place @type {BoundedMap<string, { at: string, ms: number, count: number, maxMs: number }>} */
  places = new BoundedMap(MAX_PLACES)
  /** of all places */
  ranMs = 0
  recordedMs = 0

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes, record: { resource } }) {
    if (resource?.['longstack.thread'] !== undefined) return // a worker's own work delays no other thread
    const groups = list(attributes['longstack.background'], MAX_GROUPS).filter(isRecord)
    this.ranMs += amount(groups[0]?.ranMs) ?? 0
    this.recordedMs += amount(groups[0]?.recordedMs) ?? 0
    for (const group of groups) {
      const { at: frame } = siteTextsOf(group)
      if (frame === undefined) continue
      const sums = this.places.find(frame, () => ({ at: frame, ms: 0, count: 0, maxMs: 0 }))
      if (sums === undefined) continue
      sums.ms += amount(group.ms) ?? 0
      sums.count += amount(group.count) ?? 0
      sums.maxMs = Math.max(sums.maxMs, amount(group.maxMs) ?? 0)
    }
  }
}

/**
 * Reports a place outside of requests whose callbacks keep the event loop busy, if requests are delayed by
 * code outside of requests for a part of their time.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules
 * @returns {import('./index').Fault[]}
 */
function background ({ routes, background: { places, ranMs, recordedMs }, load }, faults) {
  const requests = sum(routes, ({ facts }) => facts.count)
  const [worst] = [...places.values()].sort((a, b) => b.ms - a.ms)
  if (worst === undefined || worst.ms < ranMs * MIN_PART) return []
  // All callbacks are long while the process waits for a CPU.
  if (worst.ms * load.cpuPart < recordedMs * MIN_BUSY) return []
  const isTold = faults.some(({ rule, route }) => rule === 'blocker' && route === undefined)
  if (requests < MIN_REQUESTS || isTold) return []
  const latencyMs = sum(routes, ({ facts }) => facts.totalMs + facts.queuedMs)
  const lostMs = sum(routes, ({ facts }) =>
    facts.totalMs + facts.queuedMs - facts.undelayedMs - sum([...facts.delayedBy.values()], Number))
  const share = lostMs / latencyMs
  if (!(share >= MIN_SHARE) || lostMs < requests * MIN_MS) return []
  const { at: frame, ms, count, maxMs } = worst
  const figures = { delayMs: lostMs / requests, busyShare: ms / recordedMs, meanMs: ms / count, maxMs }
  return [{ rule: 'background', at: frame, lostMs, share, figures }]
}

module.exports = { BackgroundFacts, background }
