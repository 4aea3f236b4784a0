'use strict'

// Definite problems, found by named rules. A rule that is not sure returns nothing. Each documents what it
// reports and the reasons for its limits. The simple rules are here, and the sentence and advice of each
// finding.

const { after } = require('./after')
const { fanOut, retries } = require('./calls')
const { MIN_LONG_MS } = require('./facts')
const { failing } = require('./failing')
const { loop } = require('./loop')
const { pool } = require('./pool')
const { sequence } = require('./sequence')
const { OUTSIDE } = require('../blockers')
const { groupsOf, sum } = require('../lists')
const { Replay } = require('../replay')
const { whatIf } = require('../what-if')
const { formatDuration, shortFrame } = require('../../../lib/text')

const MIN_SHARE_OF_ALL = 0.01 // share of the time of all requests
const UNTIMED = new Set(['interval', 'after', 'failing']) // these do not slow down requests
const MAX_FINDINGS = 20
const MAX_NAME_CHARS = 100

/**
 * @typedef {object} Fault finding of a rule
 * @property {'blocker' | 'pool' | 'sequence' | 'dependency' | 'interval' | 'delayer' | 'loop' | 'retries' |
 *   'fanOut' | 'after' | 'failing'} rule
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
 * @property {import('./after').AfterFacts} after
 * @property {Set<string>} peers called over HTTP
 */

/**
 * @param {import('../model').Model} model complete except for the verdict
 * @param {Evidence['routes']} routes
 * @param {Pick<Evidence, 'intervals' | 'after' | 'peers'>} others
 * @param {import('../recording').Recordings} recordings
 * @returns {Finding[]} worst first; empty if there is no definite problem
 */
function verdictOf (model, routes, others, recordings) {
  const totalMs = sum(routes, ({ facts }) => facts.totalMs)
  const evidence = { model, routes, totalMs, ...others }
  /** @type {Fault[]} */
  const faults = []
  const rules = [
    blocker, retries, fanOut, pool, sequence, dependency, delayer, loop, interval, after, failing
  ]
  for (const rule of rules) {
    faults.push(...rule(evidence, faults))
  }
  const certain = faults
    .filter(({ rule, lostMs }) => UNTIMED.has(rule) || lostMs >= totalMs * MIN_SHARE_OF_ALL)
    .sort((a, b) => b.lostMs - a.lostMs)
    .slice(0, MAX_FINDINGS)
  const recorded = certain.length === 0 ? undefined : recordings.list()
  const replay = recorded && new Replay(recorded)
  return certain.map((fault) => findingOf(fault, replay && whatIf(fault, replay)))
}

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
 * belong to the rule `pool`, many short waits to `sequence`.
 * @param {Evidence} evidence
 * @returns {Fault[]}
 */
function dependency ({ routes }) {
  return routes.flatMap(({ name, facts, asked: queries }) => {
    const asked = facts.places.filter(({ peer, allWork: { sent, count } }) =>
      peer !== undefined && sent >= count / 2)
    return groupsOf(asked, ({ peer }) => String(peer)).flatMap((sites) => {
      const [{ peer }] = sites
      const ms = sum(sites, ({ allWork }) => allWork.ms)
      const count = sum(sites, ({ allWork }) => allWork.count)
      const share = ms / facts.totalMs
      // A wait may include several queries, and the wait for a free connection
      const answerMs = queries.answerMsOf(String(peer)) ?? ms / count
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

/** @param {number} share from 0 to 1 */
const percent = (share) => `${Math.round(share * 100)} %`

/** Formats a duration, with a decimal below 10 ms. @param {number} ms */
const time = (ms) => ms < 9.95 ? `${ms.toFixed(1)} ms` : formatDuration(ms)

/** @param {number} count @param {string} noun @param {string} [nouns] */
const counted = (count, noun, nouns = `${noun}s`) => `${count} ${count === 1 ? noun : nouns}`

/** @param {string} name of a route or function, from a file */
const short = (name) => name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name

/** Formats a frame as function, file and line. @param {string} frame */
const place = (frame) => short(shortFrame(frame))

/** Formats a mean count, as an integer if it is close to one. @param {number} mean */
function meanText (mean) {
  const rounded = Math.round(mean)
  return Math.abs(mean - rounded) < 0.05 || mean >= 20 ? String(rounded) : mean.toFixed(1)
}

/** Sentence and advice by rule. @type {Record<Fault['rule'], (fault: any) => [string, string]>} */
const sentences = {
  blocker ({ at: frame, share, figures, details: { owner } }) {
    const { times, totalMs, worstMs, delayedMs, delayedRequests } = figures
    const others = delayedRequests > 0 ? `; it delayed others by ${time(delayedMs)}` : ''
    return [
      `${place(frame)}${owner === undefined ? '' : ` in ${short(owner)}`} blocked the event loop ` +
        `${counted(times, 'time')} (${time(totalMs)} total, ${time(worstMs)} max): ${percent(share)} of ` +
        `all request time${others}.`,
      'split it into slices, or move it to a worker thread'
    ]
  },
  delayer: ({ route, share, figures: { runMs, othersRunMs } }) => [
    `${short(route)} runs ${time(runMs)} per request, other routes ${time(othersRunMs)}; it delays them ` +
      `for ${percent(share)} of their time.`,
    'record with --blocked 20 to find the function; split it into slices, or move it to a worker thread'
  ],
  dependency: ({ route, share, figures: { peer, answerMs } }) => [
    `${short(route)} spends ${percent(share)} of its time waiting for ${short(peer)}, which responds in ` +
      `${time(answerMs)}.`,
    'check that service, cache its responses, or drop the call'
  ],
  loop ({ route, share, figures: { unreadMs, runMs, runShare, victim, victimMs, victimUnreadMs } }) {
    const forClients = victim === undefined
      ? ''
      : ` ${short(victim)} takes ${time(victimMs)} here and ${time(victimMs + victimUnreadMs)} for clients.`
    return [
      `Requests lay unread for ${time(unreadMs)} on average, ${percent(share)} of their latency, while the ` +
        `event loop ran ${short(route)} (${time(runMs)} per request, ${percent(runShare)} of all run ` +
        `time).${forClients}`,
      'record with --blocked 20 to find the function; split it into slices, or move it to a worker thread'
    ]
  },
  retries: ({ route, share, figures: { call, callsPerRequest, most, failedShare } }) => [
    `${short(route)} repeats ${short(call)} until it succeeds: ${meanText(callsPerRequest)} calls per ` +
      `request, up to ${most}; ${percent(failedShare)} of them fail, which takes ${percent(share)} of its ` +
      'time.',
    'find out why these calls fail; back off between retries, and limit them'
  ],
  fanOut ({ route, at: frame, share, figures: { queries, unsentMs, answerMs, atOnce, peer } }) {
    const site = frame === undefined ? '' : ` at ${place(frame)}`
    const limit = `${atOnce} at a time are in flight${peer === undefined ? '' : ` to ${short(peer)}`}`
    return [
      `${short(route)} issues ${meanText(queries)} queries at once${site}, but only ${limit}: each waits ` +
        `${time(unsentMs)} to be sent and ${time(answerMs)} for its response, ${percent(share)} of its time.`,
      'combine them into one query, or limit how many run at once'
    ]
  },
  interval ({ route, at: frame, figures: { open, requests }, details: { label } }) {
    const site = frame === undefined ? '' : `, set at ${place(frame)}`
    return [
      `${short(route)} leaves ${label === undefined ? 'an interval' : short(label)} behind with each ` +
        `request${site}: ${open} are open after ${counted(requests, 'request')}.`,
      'clear it when the response closes'
    ]
  },
  failing: ({ route, figures: { path, failed, others } }) => [
    `All ${counted(failed, 'request')} of ${short(route)} that fail are ${short(path)}; ` +
      `${counted(others, 'request')} of other paths succeed.`,
    'reproduce this request, and check what is special about it'
  ],
  after ({ route, at: frame, figures, details: { caller, count } }) {
    const { requests, calls, asked, failed, lateMs } = figures
    const each = meanText(asked / requests)
    const [one, several] = calls > 0 ? ['call', 'calls'] : ['query', 'queries']
    const failures = failed > 0 ? `; ${failed} of ${counted(asked, one, several)} fail` : ''
    return [
      `${short(route)} continues after its response in ${requests} of ${counted(count, 'request')}: ` +
        `${each} ${each === '1' ? one : several} at ${place(frame)}` +
        `${caller === undefined ? '' : ` ← ${place(caller)}`}, for ${time(lateMs)}${failures}.`,
      'await it before sending the response, or handle its errors: no client sees them'
    ]
  },
  pool ({ route, at: frame, share, figures, details: { isQueue, routes } }) {
    const { peer, connections, queries, waitShare, atATime } = figures
    const sizes = []
    if (atATime !== undefined) sizes.push(`up to ${atATime} at a time`)
    if (connections !== undefined) sizes.push(counted(connections, 'connection'))
    if (!isQueue) {
      const noun = meanText(queries) === '1' ? 'query' : 'queries'
      sizes.push(`${routes > 1 ? 'up to ' : ''}${meanText(queries)} ${noun} per request`,
        `${percent(waitShare)} of the wait for ${short(peer)} is for a free connection`)
    }
    const isAlone = route !== undefined
    return [
      `${isAlone ? `${short(route)} waits` : `${routes} routes wait`} for ` +
        `${atATime === 1 ? 'a lock' : 'a turn'}${frame === undefined ? '' : ` at ${place(frame)}`} ` +
        `${percent(share)} of ${isAlone ? 'its' : 'their'} time` +
        `${sizes.length === 0 ? '' : ': '}${sizes.join(', ')}.`,
      isQueue
        ? 'raise the limit, or hold the lock or slot for a shorter time'
        : 'use more connections if the peer can take them, or fewer queries per request'
    ]
  },
  sequence ({ route, at: frame, share, figures, details: { loop } }) {
    const { steps, queries, requestMs, places } = figures
    const sites = `at ${places === 1 ? '' : `${places} places of `}${place(frame)}`
    const repeated = loop === undefined
      ? ''
      : `: ${Math.round(loop.steps)} × ${short(loop.frame.replace(/ \(.*$/, ''))} in each request`
    const part = queries - steps < 0.5 ? '' : `${meanText(steps)} of them `
    const answers = queries === undefined
      ? `waits for ${Math.round(steps)} responses `
      : `sends ${meanText(queries)} queries per request, ${part}`
    return [
      `${short(route)} ${answers}one after another ${sites}${repeated}, for ` +
        `${time(requestMs)} per request; if they are independent, running them at once would save ` +
        `${percent(share)} of its time.`,
      'use Promise.all, or combine them into one query'
    ]
  }
}

const FIGURE_NAMES = { median: 'the median', p99: 'p99' }
const MAX_PREDICTIONS = 2

/** @param {Fault} fault @param {import('../what-if').WhatIf} gain */
function whatIfSentence ({ at: frame, route, details }, { change, places, predictions }) {
  const changes = {
    offThread: () => frame === undefined
      ? `Without long callbacks of ${short(String(route))} on the main thread,`
      : `Without ${short(frame.replace(/ \(.*$/, ''))} on the main thread,`,
    places: () => `With ${places} connections to ${short(String(details?.peer))}, responding as fast,`,
    atOnce: () => 'If responses stay as fast with all of them at once,'
  }
  const falls = predictions.slice(0, MAX_PREDICTIONS).map(({ figure, route, beforeMs, afterMs, unread }) => {
    const name = `${FIGURE_NAMES[figure]} of ${short(route)}`
    return `${name} falls from ${time(beforeMs)} to ${time(afterMs)}${unread ? ' for clients' : ''}`
  })
  return `${changes[change]()} ${falls.join(', ')}.`
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
