'use strict'

// Definite problems, found by named rules. A rule that is not sure returns nothing. Each documents what it
// reports and the reasons for its limits. The simple rules are here.

const { after } = require('./after')
const { background } = require('./background')
const { fanOut, retries } = require('./calls')
const { death } = require('./death')
const { MIN_LONG_MS } = require('./facts')
const { failing } = require('./failing')
const { grows } = require('./grows')
const { hangs } = require('./hangs')
const { collects, filling, starved } = require('./load')
const { loop } = require('./loop')
const { lookups, opening } = require('./opening')
const { pool } = require('./pool')
const { sentences, whatIfSentence } = require('./sentences')
const { sequence } = require('./sequence')
const { sharedBy } = require('./shared')
const { stampede } = require('./stampede')
const { threads } = require('./threads')
const { unanswered } = require('./unanswered')
const { waiting } = require('./waiting')
const { workers } = require('./workers')
const { OUTSIDE } = require('../blockers')
const { groupsOf, sum } = require('../lists')
const { Replay } = require('../replay')
const { whatIf } = require('../what-if')

const MIN_SHARE_OF_ALL = 0.01 // share of the time of all requests
/** Rules whose findings come first. @type {string[]} */
const FIRST = ['death', 'stuck', 'filling', 'deadlock']
/** Rules whose findings do not slow down requests, or by an unknown time. */
const UNTIMED = new Set([
  ...FIRST, 'interval', 'grows', 'after', 'failing', 'stampede', 'unanswered', 'convoy', 'hangs'
])
const MAX_FINDINGS = 20

/**
 * @typedef {object} Fault finding of a rule
 * @property {'death' | 'stuck' | 'filling' | 'blocker' | 'pool' | 'sequence' | 'dependency' | 'interval' |
 *   'delayer' | 'loop' | 'retries' | 'fanOut' | 'threads' | 'lookups' | 'opening' | 'workers' | 'stampede' |
 *   'background' | 'collects' | 'starved' | 'unanswered' | 'deadlock' | 'convoy' | 'hangs' | 'after' |
 *   'failing' | 'grows'} rule
 * @property {string} [route]
 * @property {string} [at]
 * @property {number} lostMs request time that it explains
 * @property {number} share of the request time of that route or of all routes, from 0 to 1
 * @property {Record<string, number | string | undefined>} figures
 * @property {Record<string, unknown>} [details] further data for its sentence
 *
 * @typedef {Omit<Fault, 'details' | 'figures'>
 *   & { figures: Record<string, number | string>, sentence: string, advice: string,
 *   whatIf?: import('../what-if').WhatIf & { sentence: string } }} Finding
 * @typedef {import('./facts').RouteFacts} RouteFacts
 *
 * @typedef {{ name: string, facts: RouteFacts, asked: import('../asked').AskedSums }} RouteEvidence
 *
 * @typedef {object} Evidence
 * @property {import('../model').Model} model
 * @property {RouteEvidence[]} routes of requests
 * @property {number} totalMs of all requests
 * @property {import('./facts').IntervalFacts} intervals
 * @property {import('./grows').GrowthFacts} growth
 * @property {import('./after').AfterFacts} after
 * @property {import('./threads').TaskFacts} tasks of libuv's thread pool
 * @property {import('./load').LoadFacts} load of threads
 * @property {import('./death').DeathFacts} death processes that died
 * @property {import('./waiting').WaitFacts} waits which requests wait for each other
 * @property {import('./background').BackgroundFacts} background code outside of requests
 * @property {import('../calls').Calls} calls over HTTP
 */

/**
 * @param {import('../model').Model} model complete except for the verdict
 * @param {Evidence['routes']} routes
 * @param {Omit<Evidence, 'model' | 'routes' | 'totalMs'>} others
 * @param {import('../recording').Recordings} recordings
 * @returns {Finding[]} worst first; empty if there is no definite problem
 */
function verdictOf (model, routes, others, recordings) {
  const totalMs = sum(routes, ({ facts }) => facts.totalMs)
  const evidence = { model, routes, totalMs, ...others }
  /** @type {Fault[]} */
  const faults = []
  /** @type {Array<(evidence: Evidence, faults: Fault[]) => Fault[]>} */
  const rules = [
    death, collects, filling, starved, blocker, retries, fanOut, pool, lookups, opening, threads, workers,
    stampede, sequence, dependency, delayer, loop, background, interval, grows, after, failing, waiting,
    hangs, unanswered
  ]
  for (const rule of rules) {
    faults.push(...rule(evidence, faults))
  }
  const certain = faults
    .filter(({ rule, lostMs, details }) =>
      UNTIMED.has(rule) || details?.isRepeated === true || lostMs >= totalMs * MIN_SHARE_OF_ALL)
    .sort((a, b) => rankOf(b) - rankOf(a) || b.lostMs - a.lostMs)
    .slice(0, MAX_FINDINGS)
  // A process that waits for a CPU runs for longer than it would another time
  const isReplayed = certain.length > 0 && evidence.load.starved.length === 0
  const recorded = isReplayed ? recordings.list() : undefined
  const replay = recorded && new Replay(recorded)
  return certain.map((fault) => findingOf(fault, replay && whatIf(fault, replay)))
}

/** @param {Fault} fault */
const rankOf = ({ rule }) => FIRST.includes(rule) ? 1 : 0

const MIN_REQUESTS = 10

const BLOCKER = {
  MIN_TIMES: 5, // once or twice may be startup, garbage collection or another process
  MIN_WORST_MS: 20, // at 60 frames per second nobody notices less
  MIN_SHARE: 0.05, // share of the time of all requests
  // Share of its route's requests. A thread that sometimes waits for a CPU blocks in any function, rarely.
  MIN_PART: 0.3
}

/**
 * Reports known functions that blocked the loop repeatedly, for a part of the time of all requests. Ignores
 * unknown functions.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function blocker ({ model, routes, totalMs: allMs, load }) {
  const minMs = load.starved.length > 0 ? BLOCKER.MIN_WORST_MS / load.cpuPart : 0 // mean
  return model.blockers.flatMap(({ name, at: frame, count, totalMs, worstMs, delayedMs, delayedSpans }) => {
    if (frame === undefined || count < BLOCKER.MIN_TIMES || worstMs < BLOCKER.MIN_WORST_MS) return []
    if (totalMs < count * minMs) return [] // it was waiting for a CPU
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
  MIN_SHARE: 0.1, // share of the time of the others
  // Share of long runs that its own requests reach and the others do not. A single long run, such as the
  // first one that loads a module, is no fault.
  MIN_LONG_PART: 0.5,
  // A busy machine makes the callbacks of all routes long, so those of this one have to be longer.
  MIN_RATIO: 8
}

/**
 * Reports a route that runs for far longer than the others and accounts for a part of their time, if no
 * blocking function is known.
 * @param {Evidence} evidence
 * @param {Fault[]} faults of earlier rules, which handle known functions
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
  MIN_SHARE: 0.6, // share of the route's time
  // Most services wait for a database. People notice a response that takes longer than this (J. Nielsen,
  // Usability Engineering, 1993), and a busy CPU does not stretch the usual 10 ms to it.
  MIN_ANSWER_MS: 100
}

/**
 * Reports routes that spend most of their time in long waits for one peer. Waits for a free connection to it
 * belong to the rule `pool`, for a new one to `opening`, many short waits to `sequence`.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function dependency ({ routes }) {
  return routes.flatMap(({ name, facts, asked: queries }) => {
    const asked = facts.places.filter(({ peer, allWork: { sent, count } }) =>
      peer !== undefined && sent >= count / 2)
    return groupsOf(asked, ({ peer }) => String(peer)).flatMap((sites) => {
      const [{ peer }] = sites
      const ms = sum(sites, ({ allWork }) => allWork.ms - allWork.opening)
      const count = sum(sites, ({ allWork }) => allWork.count)
      const share = ms / facts.totalMs
      // A wait may include several queries, and the wait for a free connection
      const answerMs = queries.answerMsOf(String(peer)) ?? ms / count
      if (facts.lines < MIN_REQUESTS || count < facts.count / 2) return []
      if (!(share >= DEPENDENCY.MIN_SHARE && answerMs >= DEPENDENCY.MIN_ANSWER_MS)) return []
      const { place } = sites.reduce((worst, site) => site.allWork.ms > worst.allWork.ms ? site : worst)
      const figures = { peer, answerMs, requestMs: ms / facts.count, ...sharedBy(routes, String(peer)) }
      const rule = /** @type {const} */ ('dependency')
      return [{ rule, route: name, at: place.at, lostMs: ms, share, figures }]
    })
  })
}

const INTERVAL = {
  MIN_INTERVALS: 10,
  // Share of the route's requests. Intervals that are cleared later are open for the latest requests only.
  MIN_PART: 0.8,
  MIN_AGE_MS: 5000 // age of the oldest; background work after a response is usually over by then
}

/**
 * Reports routes where nearly every request left an interval, including early ones, and their number grows.
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

/**
 * @param {Fault} fault
 * @param {import('../what-if').WhatIf | undefined} gain
 * @returns {Finding}
 */
function findingOf (fault, gain) {
  const { details, figures, ...facts } = fault
  const [sentence, advice] = sentences[fault.rule](fault)
  const rounded = Object.entries(figures).filter(([, figure]) => figure !== undefined)
    .map(([name, figure]) => [name, typeof figure === 'number' ? Math.round(figure * 1000) / 1000 : figure])
  const finding = { ...facts, sentence, advice, figures: Object.fromEntries(rounded) }
  if (gain === undefined) return finding
  return { ...finding, whatIf: { sentence: whatIfSentence(fault, gain), ...gain } }
}

module.exports = { verdictOf }
