'use strict'

// The event loop as the bottleneck: requests are unread or delayed while one route runs.

const { sum } = require('../lists')

const MIN_REQUESTS = 10
const MIN_SHARE = 0.2 // share of the time that clients wait
const MIN_LOST_MS = 5 // mean; nobody notices less
const MIN_OF_RUNS = 0.5 // share of all run time; below it, no single route is at fault
// Share of the recorded time. If the loop ran for less than this, requests may be unread because the process
// got no CPU.
const MIN_BUSY = 0.7
// Per request of that route: many short ones are load, not a fault, unless those of others are far shorter
const [MIN_RUN_MS, MIN_UNEQUAL_MS, MIN_RATIO] = [5, 2, 5]
const MIN_RUN_PER_QUERY_MS = 2 // of a loop of queries; below it, their number is the fault
const MIN_RUN_PART = 0.6 // share of its undelayed time; a route that waits lets others run

/**
 * Reports the route that ran for most of the time, if clients wait for a large part of the time until Node
 * reads their requests, or until that route lets them run. Ignores a route that an earlier rule reports as
 * blocking.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules
 * @returns {import('./index').Fault[]}
 */
function loop ({ model, routes, totalMs, load }, faults) {
  const queuedMs = sum(routes, ({ facts }) => facts.queuedMs)
  const requests = sum(routes, ({ facts }) => facts.count)
  const runMs = sum(routes, ({ facts }) => facts.runMs)
  if (requests < MIN_REQUESTS) return []
  const busiest = routes.reduce((most, route) => route.facts.runMs > most.facts.runMs ? route : most)
  const { name, facts } = busiest
  const lostMs = queuedMs + sum(routes, ({ facts }) => facts.delayedBy.get(name))
  const share = lostMs / (totalMs + queuedMs)
  if (!(share >= MIN_SHARE) || lostMs < requests * MIN_LOST_MS) return []
  const ofLoop = faults.filter(({ rule }) => rule === 'blocker' || rule === 'delayer')
  const cpuMs = facts.runMs * load.cpuPart // all callbacks are long while the process waits for a CPU
  const isOfQueries = faults.some(({ rule, route, figures: { steps }, details }) => rule === 'sequence' &&
    route === name && details?.isRepeated && cpuMs < facts.count * Number(steps) * MIN_RUN_PER_QUERY_MS)
  const isTold = isOfQueries || ofLoop.some(({ route }) => route === name)
  const { fromUnixMs = 0, toUnixMs = 0 } = model.span ?? {}
  const isBusy = runMs >= (toUnixMs - fromUnixMs) * MIN_BUSY && facts.runMs >= runMs * MIN_OF_RUNS
  const othersRunMs = (runMs - facts.runMs) / (requests - facts.count) // NaN without others
  const isUnequal = facts.runMs >= facts.count * othersRunMs * MIN_RATIO
  const isLong = cpuMs >= facts.count * (isUnequal ? MIN_UNEQUAL_MS : MIN_RUN_MS) &&
    facts.runMs >= facts.undelayedMs * MIN_RUN_PART
  if (isTold || !isBusy || !isLong) return []
  const worst = routes.filter((route) => route !== busiest && route.facts.count >= MIN_REQUESTS)
    .sort((a, b) => unreadOf(b) - unreadOf(a))[0]
  return [{
    rule: 'loop',
    route: name,
    lostMs,
    share,
    figures: {
      delayMs: lostMs / requests,
      runMs: facts.runMs / facts.count,
      runShare: facts.runMs / runMs,
      victim: worst?.name,
      victimMs: worst && worst.facts.totalMs / worst.facts.count,
      victimUnreadMs: worst && unreadOf(worst)
    }
  }]
}

/** @param {import('./index').RouteEvidence} route @returns {number} mean, in ms */
const unreadOf = ({ facts }) => facts.queuedMs / facts.count

module.exports = { loop }
