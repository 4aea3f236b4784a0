'use strict'

// A connection pool, queue or lock as the bottleneck: requests wait for their turn.

const { isCrowded } = require('./crowding')
const { isOfLimiter } = require('../frames')
const { Sums, getOrCreate, peakOf, sum } = require('../lists')
const { endOf } = require('../route-names')
const { widen } = require('./facts')

const MIN_TURNS = 20 // requests that waited for one
const MIN_SHARE = 0.15 // share of the undelayed time of these routes
const MIN_PART = 0.25 // share of their requests
// Work of requests that had their turn at once, but not of those that waited, was done for these as well.
const MIN_WORK_PART = 0.5 // relative frequency
const MIN_WORK_MS = 0.1 // share of the turn; less is not work
const CONNECTS = /^(?:TCP|PIPE)$/ // end of a wait for a new connection
const MIN_STEADY_PART = 0.6 // share of the time with waiters; below it, the number varies or is unknown
const MIN_QUERIES = 0.5 // per request
const HTTP_CALL = /^https?\.(?:get|request)$/ // label of a call that waits for a socket of its http.Agent
const MAX_UNKNOWN = 0.05 // relative to the requests with a known turn
const MIN_SETTLERS = 0.8 // share of the turns; a request that gives one has needed one, too
const MIN_JOBS = 0.5 // share of the queries
const MIN_HELD = 0.5 // share of the time that a request holds its turn
const NO_PLACE = { ms: 0, at: undefined, label: undefined }

/**
 * @typedef {import('./facts').RouteFacts} RouteFacts
 * @typedef {import('./facts').PlaceFacts} PlaceFacts
 * @typedef {import('./index').RouteEvidence} RouteEvidence
 *
 * @typedef {object} Turns turns of one pool
 * @property {RouteEvidence[]} routes
 * @property {string | undefined} peer
 * @property {number} ms
 * @property {number} spans
 * @property {number} lines
 * @property {{ ms: number, at: string | undefined, label: string | undefined }} worst
 * @property {boolean} isGiven by another request, which settled the awaited promise
 * @property {boolean} isOfJobs a queue sends what requests wait for, in code of others
 */

/**
 * Reports requests that spend a part of their time waiting for others to release a connection or place,
 * and then do the same work. Ignores requests that share a response or wait for an event.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: a fan-out waits for itself
 * @returns {import('./index').Fault[]}
 */
function pool ({ routes, calls: { peers } }, faults) {
  /** @type {Map<string, Turns>} */
  const pools = new Map()
  const users = usersOf(routes)
  const atOnce = new Set(faults.map(({ rule, route }) => rule === 'fanOut' ? route : undefined))
  for (const route of routes) if (!atOnce.has(route.name)) addTurns(pools, route, users)
  return [...pools.values()].flatMap((turns) => {
    const totalMs = sum(turns.routes, ({ facts }) => facts.totalMs)
    const undelayedMs = sum(turns.routes, ({ facts }) => facts.undelayedMs)
    const requests = sum(turns.routes, ({ facts }) => facts.count)
    const share = turns.ms / totalMs
    if (turns.lines < MIN_TURNS || turns.spans < requests * MIN_PART) return []
    if (!(turns.ms >= undelayedMs * MIN_SHARE)) return []
    return [faultOf(turns, share, requests, peers)]
  })
}

/**
 * @param {Map<string, Turns>} pools
 * @param {RouteEvidence} route
 * @param {Map<string, Set<string>>} users routes that wait for a turn, by site
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
  const shared = sharedWork(facts, ms / facts.requests[1], new Set(sites.map(({ place }) => place.at)))
  const lostMs = ms - shared * facts.requests[1]
  if (!(lostMs > 0)) return
  const worst = sites.reduce((worst, site) => site.turnMs > worst.turnMs ? site : worst)
  const peer = peerOf(facts)
  const key = peer ?? String(worst.place.at)
  const turns = getOrCreate(pools, key, () =>
    ({ routes: [], peer, ms: 0, spans: 0, lines: 0, worst: NO_PLACE, isGiven: false, isOfJobs: false }))
  turns.routes.push(route)
  turns.ms += lostMs
  turns.spans += Math.max(...sites.map(({ turnSpans }) => turnSpans))
  turns.lines += Math.max(...sites.map(({ turnLines }) => turnLines))
  const { turnMs, place: { at: frame, label } } = worst
  if (turnMs > turns.worst.ms) turns.worst = { ms: turnMs, at: frame, label }
  if (worst.settler !== undefined) turns.isGiven = true
  const { jobs, sent } = worst.allWork
  if (sent > 0 && jobs >= sent * MIN_JOBS) turns.isOfJobs = true
}

/**
 * Whether a wait for another request was one for a connection: the request used one afterwards.
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
      if (turnMs > 0) getOrCreate(users, String(frame), () => new Set()).add(name)
    }
  }
  return users
}

/**
 * Returns the work that requests with a turn did not do: another request did it for both, or ran it
 * (p-queue). It is then a part of the wait, as are the delays and runs of the other request.
 * @param {RouteFacts} facts
 * @param {number} turnMs mean
 * @param {Set<string | undefined>} turnsAt frames that wait for it: rare waits there are turns, too, given by
 *   requests from before the recording
 * @returns {number} ms
 */
function sharedWork (facts, turnMs, turnsAt) {
  const [without, waiting] = facts.requests
  if (without === 0) return 0
  const shared = sum(facts.places, ({ peer, place: { at: frame, until }, work: [work, own] }) => {
    const isRare = until === undefined || (work.sent === 0 && work.spans < waiting * MAX_UNKNOWN)
    if (isRare && turnsAt.has(frame)) return 0
    // A few of them open the connections, which is not work for others
    if (work.sent === 0 && peer === undefined && CONNECTS.test(String(until))) return 0
    const isShared = own.spans / waiting < work.spans / without * MIN_WORK_PART
    const ms = work.spans === 0 ? 0 : (work.ms + work.delayed) / work.spans
    return isShared && ms >= turnMs * MIN_WORK_MS ? ms : 0
  })
  return shared === 0 ? 0 : shared + facts.runMs / facts.count
}

/** Returns the peer that requests query when they have their turn. @param {RouteFacts} facts */
function peerOf (facts) {
  const asked = facts.places.filter(({ peer, work: [, work] }) => peer !== undefined && work.sent > 0)
  return asked.sort((a, b) => b.work[1].ms - a.work[1].ms)[0]?.peer
}

/**
 * @param {Turns} turns
 * @param {number} share
 * @param {number} requests
 * @param {Set<string>} httpPeers
 * @returns {import('./index').Fault}
 */
function faultOf ({ routes, peer, ms, worst, isGiven, isOfJobs }, share, requests, httpPeers) {
  const atATime = routes.some(({ facts }) => facts.isSampled)
    ? undefined
    : concurrencyOf(routes.flatMap(({ facts }) => facts.intervals))
  const connections = peer === undefined ? undefined : connectionsOf(routes, peer)
  // A lock or the program's own limit: there were free connections
  const isLimit = connections !== undefined && atATime !== undefined && atATime < connections
  const queries = peer === undefined ? undefined : queriesOf(routes, peer, ms)
  // HTTP clients open connections on demand: if a request lets another one go on there, it is in a lock or
  // queue of the program. So is a single place, and a peer without known queries.
  const isHttp = peer !== undefined && httpPeers.has(peer)
  const isUnasked = queries !== undefined && queries.queries < MIN_QUERIES
  const isOfQueue = isOfJobs || isOfLimiter(String(worst.at))
  const isOwn = isUnasked || isOfQueue || (isGiven && (atATime === 1 || isHttp))
  const isQueue = peer === undefined || isLimit || isOwn
  return {
    rule: 'pool',
    route: routes.length === 1 ? routes[0].name : undefined,
    at: worst.at,
    lostMs: ms,
    share,
    figures: {
      turnMs: ms / requests,
      ...(isQueue ? { atATime, ...holdOf(routes, atATime) } : { peer, connections, ...queries })
    },
    details: {
      isQueue,
      isAgent: isOwn && HTTP_CALL.test(String(worst.label)),
      routes: routes.length,
      peer,
      isCrowded: peer !== undefined && isCrowded(routes, peer)
    }
  }
}

/**
 * Returns what requests mostly wait for while they have their turn.
 * @param {RouteEvidence[]} routes
 * @param {number | undefined} atATime if it is known, they have their turn until they end
 */
function holdOf (routes, atATime) {
  /** @type {Sums<import('../sites').Place>} */
  const held = new Sums()
  for (const { facts } of routes) for (const [place, ms] of facts.held) held.add(place, ms)
  const [longest] = [...held].sort((a, b) => b[1] - a[1])
  if (longest === undefined || atATime === undefined) return undefined
  const [place, ms] = longest
  const heldShare = ms / sum(routes, ({ facts }) => facts.heldMs)
  if (place.at === undefined || !(heldShare >= MIN_HELD)) return undefined
  return { heldShare, heldAt: place.at, heldFor: endOf(place.until).peer }
}

/** @param {RouteEvidence[]} routes @param {string} peer @param {number} ms of turns */
function queriesOf (routes, peer, ms) {
  const figures = routes.map(({ facts, asked }) => {
    const sites = facts.places.filter((site) => site.peer === peer)
    const sent = asked.countOf(peer) || sum(sites, ({ allWork }) => allWork.sent) / facts.count
    return { sent, ms: sum(sites, ({ allWork }) => allWork.ms) }
  })
  return {
    queries: Math.max(...figures.map(({ sent }) => sent)),
    waitShare: ms / (ms + sum(figures, (route) => route.ms))
  }
}

/**
 * Returns the maximum number of connections open at once in one process.
 * @param {RouteEvidence[]} routes
 * @param {string} peer
 * @returns {number | undefined}
 */
function connectionsOf (routes, peer) {
  /** start and end, by connection, by process @type {Map<string, Map<string, [number, number]>>} */
  const processes = new Map()
  for (const { facts } of routes) {
    for (const [connection, [first, last]] of facts.connections.get(peer) ?? []) {
      const uses = getOrCreate(processes, connection.split(' ')[0], () => new Map())
      widen(getOrCreate(uses, connection, () => [first, last]), [first, last])
    }
  }
  const peaks = [...processes.values()].map((uses) => peakOf(uses.values()).count)
  return peaks.length === 0 ? undefined : Math.max(...peaks)
}

/**
 * Returns how many ran at a time while others waited for their turn.
 * @param {number[][]} intervals of requests: start, ms of the turn, end
 * @returns {number | undefined} undefined if no number held for most of that time
 */
function concurrencyOf (intervals) {
  /** @type {Array<[time: number, running: number, waiting: number]>} */
  const changes = intervals.flatMap(([start, turn, end]) => [
    [start, 0, 1],
    [start + turn, 1, -1],
    [end, -1, 0]
  ])
  changes.sort((a, b) => a[0] - b[0])
  /** @type {Sums<number>} */
  const times = new Sums()
  let [running, waiting, sum] = [0, 0, 0]
  changes.forEach(([time, more, waiters], i) => {
    running += more
    waiting += waiters
    const ms = i + 1 < changes.length ? changes[i + 1][0] - time : 0
    if (waiting <= 0) return
    sum += ms
    times.add(running, ms)
  })
  for (const [count, ms] of times) if (count > 0 && ms >= sum * MIN_STEADY_PART) return count
  return undefined
}

module.exports = { pool }
