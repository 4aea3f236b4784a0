'use strict'

// Rules of the verdict that need one look at the facts.

const { OUTSIDE } = require('../blockers')
const { sum } = require('../lists')
const { MIN_LONG_MS } = require('./facts')

/**
 * @typedef {import('./facts').RouteFacts} RouteFacts
 * @typedef {import('./index').Evidence} Evidence
 * @typedef {import('./index').Fault} Fault
 */

const MIN_REQUESTS = 10

const BLOCKER = {
  MIN_TIMES: 5, // what happens once or twice may be a start, a collection, or another process
  MIN_WORST_MS: 20, // at 60 frames a second nobody notices less
  MIN_SHARE: 0.05, // of the time of all requests
  // Of the requests of its route: a thread that waits for a CPU now and then blocks in any function, rarely.
  MIN_PART: 0.3
}

/**
 * Speaks where a known function blocked the loop again and again, for a part of the time of all requests; is
 * silent where the function is not known.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function blocker ({ model, routes, totalMs: allMs }) {
  return model.blockers.flatMap(({ name, at: frame, count, totalMs, worstMs, delayedMs, delayedSpans }) => {
    if (frame === undefined || count < BLOCKER.MIN_TIMES || worstMs < BLOCKER.MIN_WORST_MS) return []
    const route = routes.find((other) => other.name === name)
    const requests = route?.facts.count ?? (name === OUTSIDE ? 0 : sum(routes, ({ facts }) => facts.count))
    const lostMs = delayedMs + (route === undefined ? 0 : totalMs)
    const share = Math.min(1, lostMs / allMs)
    if (count < requests * BLOCKER.MIN_PART || !(share >= BLOCKER.MIN_SHARE)) return []
    return [{
      rule: 'blocker',
      route: route?.name,
      at: frame,
      lostMs,
      share,
      figures: { times: count, totalMs, worstMs, delayedMs, delayedRequests: Math.round(delayedSpans) },
      details: { owner: name === OUTSIDE ? undefined : name }
    }]
  })
}

const DELAYER = {
  MIN_SHARE: 0.1, // of the time of the others
  // Of its requests, not of the others': what runs long once, such as the first that loads a module, is no
  // fault.
  MIN_LONG_PART: 0.5,
  // A machine that is busy makes the callbacks of all routes long, those of this one have to be longer.
  MIN_RATIO: 8
}

/**
 * Speaks where one route runs for far longer than the others, a part of their time is that, and no function
 * is known to block.
 * @param {Evidence} evidence
 * @param {Fault[]} faults of the rules before: what has a function is theirs
 * @returns {Fault[]}
 */
function delayer ({ routes }, faults) {
  const blocking = new Set(faults.filter(({ rule }) => rule === 'blocker').map(({ route }) => route))
  return routes.flatMap(({ name, facts }) => {
    if (blocking.has(name) || facts.lines < MIN_REQUESTS) return []
    const others = routes.filter((other) => other.name !== name).map((other) => other.facts)
    const ofOthers = (/** @type {(facts: RouteFacts) => number} */ figure) => sum(others, figure)
    const count = ofOthers((other) => other.count)
    const lostMs = ofOthers((other) => other.delayedBy.get(name) ?? 0)
    const share = lostMs / ofOthers((other) => other.totalMs)
    const runMs = facts.runMs / facts.count
    const othersRunMs = ofOthers((other) => other.runMs) / count
    if (count < MIN_REQUESTS || !(share >= DELAYER.MIN_SHARE)) return []
    if (runMs < MIN_LONG_MS || runMs < DELAYER.MIN_RATIO * othersRunMs) return []
    if (facts.longRuns < facts.count * DELAYER.MIN_LONG_PART) return []
    if (ofOthers((other) => other.longRuns) > count * DELAYER.MIN_LONG_PART) return []
    const figures = { runMs, othersRunMs, delayedMs: lostMs }
    return [{ rule: 'delayer', route: name, lostMs, share, figures }]
  })
}

const DEPENDENCY = {
  MIN_SHARE: 0.6, // of the time of the route
  // To wait for a database is what most services do. People notice an answer that takes longer than this
  // (J. Nielsen, Usability Engineering, 1993), and no CPU that is busy makes it of a usual 10 ms.
  MIN_ANSWER_MS: 100
}

/**
 * Speaks where most of a route's time is waits for one peer, each of them long; waits for a free connection
 * to it are those of a pool, many short ones a sequence.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function dependency ({ routes }) {
  return routes.flatMap(({ name, facts }) => {
    const asked = facts.places.filter(({ peer, allWork: { sent, count } }) =>
      peer !== undefined && sent >= count / 2)
    const peers = [...new Set(asked.map(({ peer }) => String(peer)))]
    return peers.flatMap((peer) => {
      const sites = asked.filter((site) => site.peer === peer)
      const ms = sum(sites, ({ allWork }) => allWork.ms)
      const count = sum(sites, ({ allWork }) => allWork.count)
      const [share, answerMs] = [ms / facts.totalMs, ms / count]
      if (facts.lines < MIN_REQUESTS || count < facts.count / 2) return []
      if (!(share >= DEPENDENCY.MIN_SHARE && answerMs >= DEPENDENCY.MIN_ANSWER_MS)) return []
      const { place } = sites.reduce((worst, site) => site.allWork.ms > worst.allWork.ms ? site : worst)
      const figures = { peer, answerMs, requestMs: ms / facts.count }
      const rule = /** @type {const} */ ('dependency')
      return [{ rule, route: name, at: place.at, lostMs: ms, share, figures }]
    })
  })
}

const INTERVAL = {
  MIN_INTERVALS: 10,
  // Of the requests of the route: what a request sets and clears later on is open after the latest ones only.
  MIN_PART: 0.8,
  MIN_AGE_MS: 5000 // of the oldest: work that is done in the background after an answer is mostly over
}

/**
 * Speaks where nearly each request of a route left an interval, also the early ones, and they grow in number.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function interval ({ routes, intervals }) {
  return intervals.list().flatMap(({ at: frame, label, count, oldestMs, name }) => {
    const requests = routes.find((route) => route.name === name)?.facts.count ?? 0
    if (requests === 0 || count < INTERVAL.MIN_INTERVALS || oldestMs < INTERVAL.MIN_AGE_MS) return []
    if (count < requests * INTERVAL.MIN_PART) return []
    const figures = { open: count, requests: Math.round(requests), oldestMs }
    return [{ rule: 'interval', route: name, at: frame, lostMs: 0, share: 0, figures, details: { label } }]
  })
}

module.exports = { blocker, delayer, dependency, interval }
