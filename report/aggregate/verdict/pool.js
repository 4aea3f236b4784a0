'use strict'

// A pool of connections, a queue or a lock that is the limit: requests wait for their turn.

const { counted, mean, percent, place, rounded, short } = require('./words')

const MIN_TURNS = 20 // requests that waited for one
const MIN_SHARE = 0.15 // of the time of these routes in which nobody delays them
const MIN_PART = 0.25 // of their requests
// What requests that had their turn at once do, and those that waited do not, was done for these as well.
const MIN_WORK_PART = 0.5 // of the frequency
const MIN_WORK_MS = 0.1 // of the turn: less is no work
const CONNECTS = /^(?:TCP|PIPE)$/ // what a wait for a connection ends with
const MIN_STEADY_PART = 0.6 // of the time in which some waited: else the number changes, or is not known
const MIN_SETTLERS = 0.8 // of the turns: who gives one has needed one, too

/**
 * @typedef {import('./facts').RouteFacts} RouteFacts
 * @typedef {import('./facts').PlaceFacts} PlaceFacts
 * @typedef {{ name: string, facts: RouteFacts }} RouteEvidence
 *
 * @typedef {object} Turns of one pool
 * @property {RouteEvidence[]} routes
 * @property {string | undefined} peer
 * @property {number} ms
 * @property {number} spans
 * @property {number} lines
 * @property {{ ms: number, at: string | undefined }} worst
 */

/**
 * Speaks where a part of requests' time is waits for others to be done with a connection or a place, and they
 * do the same work afterwards; is silent where they share an answer or wait for an event.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Finding[]}
 */
function pool ({ routes }) {
  /** @type {Map<string, Turns>} */
  const pools = new Map()
  const users = usersOf(routes)
  for (const route of routes) addTurns(pools, route, users)
  return [...pools.values()].flatMap((turns) => {
    const totalMs = sum(turns.routes, ({ facts }) => facts.totalMs)
    const undelayedMs = sum(turns.routes, ({ facts }) => facts.undelayedMs)
    const requests = sum(turns.routes, ({ facts }) => facts.count)
    const share = turns.ms / totalMs
    if (turns.lines < MIN_TURNS || turns.spans < requests * MIN_PART) return []
    if (!(turns.ms >= undelayedMs * MIN_SHARE)) return []
    return [findingOf(turns, share, requests)]
  })
}

/**
 * @param {Map<string, Turns>} pools
 * @param {RouteEvidence} route
 * @param {Map<string, Set<string>>} users by site, the routes that wait for a turn there
 */
function addTurns (pools, route, users) {
  const { facts } = route
  const sites = facts.places.filter((site) => site.turnMs > 0 && isTurn(site, facts))
  const ms = sum(sites, ({ turnMs }) => turnMs)
  const released = sites.filter(({ settler, place: { at: frame } }) => {
    return settler === undefined || users.get(String(frame))?.has(settler)
  })
  if (ms === 0 || sum(released, ({ turnMs }) => turnMs) < ms * MIN_SETTLERS) return
  const ownMs = sum(facts.places, ({ work: [, own] }) => own.ms)
  if (facts.requests[0] === 0 && ownMs < ms * MIN_WORK_MS) return
  const lostMs = ms - sharedWork(facts, ms / facts.requests[1]) * facts.requests[1]
  if (!(lostMs > 0)) return
  const worst = sites.reduce((worst, site) => site.turnMs > worst.turnMs ? site : worst)
  const peer = peerOf(facts)
  const key = peer ?? String(worst.place.at)
  const noTurns = { routes: [], peer, ms: 0, spans: 0, lines: 0, worst: { ms: 0, at: undefined } }
  const turns = pools.get(key) ?? noTurns
  pools.set(key, turns)
  turns.routes.push(route)
  turns.ms += lostMs
  turns.spans += Math.max(...sites.map(({ turnSpans }) => turnSpans))
  turns.lines += Math.max(...sites.map(({ turnLines }) => turnLines))
  if (worst.turnMs > turns.worst.ms) turns.worst = { ms: worst.turnMs, at: worst.place.at }
}

/**
 * Whether a wait for what another request did was one for a connection: the request used one afterwards.
 * @param {PlaceFacts} site
 * @param {RouteFacts} facts
 */
function isTurn (site, facts) {
  if (site.settler !== undefined) return true
  const asked = facts.places.filter(({ peer, work: [, work] }) => peer === site.peer && work.sent > 0)
  return sum(asked, ({ work: [, work] }) => work.spans) >= site.turnSpans * 0.9
}

/** @param {import('./index').Evidence['routes']} routes @returns {Map<string, Set<string>>} */
function usersOf (routes) {
  const users = new Map()
  for (const { name, facts } of routes) {
    for (const { place: { at: frame }, turnMs } of facts.places) {
      if (turnMs > 0) users.set(String(frame), (users.get(String(frame)) ?? new Set()).add(name))
    }
  }
  return users
}

/**
 * Returns the work that a request did not do that waited for a turn: another one did it for both, or ran it
 * (p-queue), and then it is part of the wait, as is what delayed the other one, and what that ran.
 * @param {RouteFacts} facts
 * @param {number} turnMs mean
 * @returns {number} ms
 */
function sharedWork (facts, turnMs) {
  const [without, waiting] = facts.requests
  if (without === 0) return 0
  const shared = sum(facts.places, ({ peer, place: { until }, work: [work, own] }) => {
    // A few of them open the connections, which is no work for others
    if (work.sent === 0 && peer === undefined && CONNECTS.test(String(until))) return 0
    const isShared = own.spans / waiting < work.spans / without * MIN_WORK_PART
    const ms = work.spans === 0 ? 0 : (work.ms + work.delayed) / work.spans
    return isShared && ms >= turnMs * MIN_WORK_MS ? ms : 0
  })
  return shared === 0 ? 0 : shared + facts.runMs / facts.count
}

/** Returns the peer that requests ask when they have their turn. @param {RouteFacts} facts */
function peerOf (facts) {
  const asked = facts.places.filter(({ peer, work: [, work] }) => peer !== undefined && work.sent > 0)
  return asked.sort((a, b) => b.work[1].ms - a.work[1].ms)[0]?.peer
}

/** @param {Turns} turns @param {number} share @param {number} requests */
function findingOf ({ routes, peer, ms, worst }, share, requests) {
  const isAlone = routes.length === 1
  const subject = isAlone ? `${short(routes[0].name)} waits` : `${routes.length} routes wait`
  const site = worst.at === undefined ? '' : ` at ${place(worst.at)}`
  const atOnce = concurrencyOfTurns(routes)
  const connections = peer === undefined ? undefined : connectionsOf(routes, peer)
  // A lock, or a limit of the program's own: connections would have been free
  const isLimit = connections !== undefined && atOnce !== undefined && atOnce < connections
  const isQueue = peer === undefined || isLimit
  const { details, figures } = isQueue ? ofQueue(atOnce) : ofConnections(routes, peer, ms, connections)
  const turn = isQueue && atOnce === 1 ? 'a lock' : 'a turn'
  const tail = details.length === 0 ? '' : `: ${details.join(', ')}`
  return {
    rule: /** @type {const} */ ('pool'),
    ...(isAlone ? { route: routes[0].name } : {}),
    ...(worst.at === undefined ? {} : { at: worst.at }),
    lostMs: ms,
    share,
    sentence: `${subject} for ${turn}${site} ${percent(share)} of ${isAlone ? 'its' : 'their'} time${tail}.`,
    advice: isQueue
      ? 'let more run at a time, or let each hold its place for a shorter time'
      : 'use more connections if the other side can take them, or fewer queries a request',
    figures: { turnMs: rounded(ms / requests), ...figures }
  }
}

/** Returns how many requests ran at a time while others waited. @param {RouteEvidence[]} routes */
function concurrencyOfTurns (routes) {
  if (routes.some(({ facts }) => facts.isSampled)) return undefined
  return concurrencyOf(routes.flatMap(({ facts }) => facts.intervals))
}

/**
 * @typedef {{ details: string[], figures: Record<string, number | string> }} Size
 *
 * @param {number | undefined} atOnce
 * @returns {Size}
 */
function ofQueue (atOnce) {
  return atOnce === undefined
    ? { details: [], figures: {} }
    : { details: [`at most ${atOnce} at a time`], figures: { atATime: atOnce } }
}

/**
 * @param {RouteEvidence[]} routes
 * @param {string} peer
 * @param {number} ms of turns
 * @param {number | undefined} connections at once
 * @returns {Size}
 */
function ofConnections (routes, peer, ms, connections) {
  const sites = routes.flatMap(({ facts }) => facts.places.filter((site) => site.peer === peer))
  const queries = Math.max(...routes.map(({ facts }) => {
    return sum(facts.places.filter((site) => site.peer === peer), ({ allWork }) => allWork.sent) / facts.count
  }))
  const waitShare = ms / (ms + sum(sites, ({ allWork }) => allWork.ms))
  const noun = mean(queries) === '1' ? 'query' : 'queries'
  return {
    details: [
      ...(connections === undefined ? [] : [counted(connections, 'connection')]),
      `${routes.length > 1 ? 'up to ' : ''}${mean(queries)} ${noun} a request`,
      `${percent(waitShare)} of the wait for ${short(peer)} is for a free one`
    ],
    figures: {
      peer,
      ...(connections === undefined ? {} : { connections }),
      queries: rounded(queries),
      waitShare: rounded(waitShare)
    }
  }
}

/**
 * Returns how many connections were open at once, in the process with most.
 * @param {RouteEvidence[]} routes
 * @param {string} peer
 * @returns {number | undefined}
 */
function connectionsOf (routes, peer) {
  /** @type {Map<number, Map<number, [number, number]>>} */
  const processes = new Map()
  for (const { facts } of routes) {
    for (const [pid, uses] of facts.connections.get(peer) ?? []) {
      const joined = processes.get(pid) ?? new Map()
      processes.set(pid, joined)
      for (const [id, [first, last]] of uses) {
        const [start, end] = joined.get(id) ?? [first, last]
        joined.set(id, [Math.min(first, start), Math.max(last, end)])
      }
    }
  }
  return processes.size === 0 ? undefined : Math.max(...[...processes.values()].map(peakOf))
}

/** Returns how many overlap. @param {Map<number, [number, number]>} uses start and end, by connection */
function peakOf (uses) {
  const changes = [...uses.values()].flatMap(([start, end]) => [[start, 1], [end, -1]])
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  let [open, peak] = [0, 0]
  for (const [, change] of changes) peak = Math.max(peak, open += change)
  return peak
}

/** @template T @param {T[]} list @param {(item: T) => number} figure */
function sum (list, figure) {
  return list.reduce((total, item) => total + figure(item), 0)
}

/**
 * Returns how many ran at a time while others waited for their turn.
 * @param {number[][]} intervals of requests: start, ms of the turn, end
 * @returns {number | undefined} undefined if it was not the same for most of that time
 */
function concurrencyOf (intervals) {
  /** @type {Array<[time: number, running: number, waiting: number]>} */
  const changes = intervals.flatMap(([start, turn, end]) => [
    [start, 0, 1],
    [start + turn, 1, -1],
    [end, -1, 0]
  ])
  changes.sort((a, b) => a[0] - b[0])
  /** @type {Map<number, number>} */
  const times = new Map()
  let [running, waiting, sum] = [0, 0, 0]
  changes.forEach(([time, more, waiters], i) => {
    running += more
    waiting += waiters
    const ms = i + 1 < changes.length ? changes[i + 1][0] - time : 0
    if (waiting <= 0) return
    sum += ms
    times.set(running, (times.get(running) ?? 0) + ms)
  })
  for (const [count, ms] of times) if (count > 0 && ms >= sum * MIN_STEADY_PART) return count
  return undefined
}

module.exports = { pool }
