'use strict'

// Responses that a program function awaits one after another, although one wait could have been enough.

const { functionOf, parseFrame } = require('../frames')
const { getOrCreate, sum } = require('../lists')
const { framesOf } = require('../sites')

const MIN_REQUESTS = 10
// Two in a row usually depend on each other (a session, then its user).
const MIN_STEPS = 3
const MIN_LOST = 0.3 // share of the route's undelayed time
const MIN_LOOP = 5 // queries of one place per request: a loop, whatever else takes the time
const MIN_LOST_OF_SITES = 0.4 // for several sites, which depend on each other more often than a loop's steps
const MIN_RATIO = 2.5 // all waits / the longest
// Share of the waits. Rows of a stream are requested once and cannot come at once. If the loop was busy when
// a response came, there was no wait, and no query is counted.
const MIN_SENT = 0.7
const MAX_BESIDE = 0.25 // callbacks off the path per wait; above it, queries are already in flight at once
const MIN_PART = 0.5 // share of the requests
const TIE = 0.02
const MIN_COUNTED = 0.95 // share of the waits
const MIN_IN_FLIGHT = 0.05 // share of a request's time with queries in flight; below it, a loop does no harm
const MIN_WAITED = 0.01 // share of the route's time
const NO_WAITS = { ms: 0, count: 0, spans: 0, longest: 0 }

/**
 * @typedef {import('./facts').PlaceFacts} PlaceFacts
 *
 * @typedef {object} Position place in a function at which it awaits
 * @property {string} frame
 * @property {number} depth of the frame: 0 for the innermost
 * @property {number} ms
 * @property {number} count
 * @property {number} spans
 * @property {number} longest ms of one wait, at the site that waits longest
 *
 * @typedef {object} Sequence
 * @property {Position[]} positions of one function, in order
 * @property {number} steps per request
 * @property {number} ms
 * @property {number} lostMs all waits but the longest of each request
 */

/**
 * Reports requests that wait for three or more responses of peers one after another, each to a query of their
 * own, in a loop or at sites of one named function.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: retries, and queries sent at once
 * @returns {import('./index').Fault[]}
 */
function sequence ({ routes }, faults) {
  const callersOf = sharing(routes)
  const others = faults.filter(({ rule }) => rule === 'retries' || rule === 'fanOut')
  const told = new Set(others.map(({ route }) => route))
  return routes.flatMap(({ name, facts, asked }) => {
    if (facts.lines < MIN_REQUESTS || told.has(name)) return []
    const candidates = sequencesOf(facts).filter((found) => isCertain(found, facts.undelayedMs))
    const loop = loopOf(facts, callersOf, asked)
    const best = choose(candidates, callersOf) ?? loop
    if (best === undefined) return []
    const { positions, ms, lostMs } = best
    const counted = countOf(best, asked)
    const inFlightMs = asked.means()?.ms ?? 0
    const isRepeated = loop !== undefined && inFlightMs >= facts.totalMs / facts.count * MIN_IN_FLIGHT
    const share = lostMs / facts.totalMs
    // If the loop was busy when responses came, there was no wait
    const waitsMs = share < MIN_WAITED ? inFlightMs : ms / facts.count
    const loopSteps = loop && (countOf(loop, asked) ?? loop.steps)
    return [{
      rule: 'sequence',
      route: name,
      at: positions[0].frame,
      lostMs,
      share,
      figures: {
        steps: counted ?? best.steps,
        queries: counted && asked.means()?.count,
        requestMs: waitsMs,
        savedMs: lostMs / facts.count,
        places: positions.length
      },
      details: {
        loop: loop && { steps: loopSteps, frame: loop.positions[0].frame },
        isRepeated,
        frames: positions.map(({ frame }) => frame)
      }
    }]
  })
}

/** @param {Sequence} sequence @param {number} totalMs of the route, without delays */
function isCertain ({ positions, steps, ms, lostMs }, totalMs) {
  const minShare = positions.length === 1 ? MIN_LOST : MIN_LOST_OF_SITES
  return steps >= MIN_STEPS - 0.05 && lostMs >= totalMs * minShare && ms >= MIN_RATIO * (ms - lostMs)
}

/**
 * Returns how many serial queries each request sends there. The number is exact, while waits miss queries
 * that were answered while the loop was busy.
 * @param {Sequence} sequence
 * @param {import('../asked').AskedSums} asked
 * @returns {number | undefined} undefined if too few of the waits are for queries
 */
function countOf ({ positions, steps }, asked) {
  const count = asked.serialAt(positions.map(({ frame }) => frame))
  return count >= steps * MIN_COUNTED ? count : undefined
}

/**
 * Returns the queries that each request repeats at one place, by number rather than time.
 * @param {import('./facts').RouteFacts} facts
 * @param {(frame: string) => number} callersOf
 * @param {import('../asked').AskedSums} asked
 * @returns {Sequence | undefined} the one with the most steps
 */
function loopOf (facts, callersOf, asked) {
  const loops = facts.places.filter(({ peer }) => peer !== undefined).flatMap((site) => {
    const { ms, count, spans } = site.allWork
    const frames = framesOf(site.place)
    if (frames.length === 0) return []
    // Skips helpers, which are called from elsewhere as well
    const depth = Math.max(0, frames.findIndex((frame) => callersOf(frame) === 1))
    const counted = asked.serialAt([frames[depth]]) // exact: if the loop is busy, waits miss some
    const isMostly = spans >= facts.count * MIN_PART && isAsked(site)
    const steps = Math.max(counted, isMostly ? count / facts.count : 0)
    if (steps < MIN_LOOP || count === 0) return []
    const longest = ms / Math.max(count, facts.count)
    const position = { frame: frames[depth], depth, ms, count, spans, longest }
    return [{ positions: [position], steps, ms, lostMs: ms - longest * facts.count }]
  })
  return loops.sort((a, b) => b.steps - a.steps)[0]
}

/** Whether the waits at a place were for responses to queries of the request. @param {PlaceFacts} site */
function isAsked ({ peer, allWork: { count, sent, beside } }) {
  return peer !== undefined && sent >= count * MIN_SENT && beside <= count * MAX_BESIDE
}

/** @param {import('./facts').RouteFacts} facts @returns {Sequence[]} one for each function */
function sequencesOf (facts) {
  /** @type {Map<string, Map<string, Position>>} */
  const functions = new Map()
  for (const site of facts.places) {
    if (!isAsked(site)) continue
    const work = site.allWork
    const seen = new Set()
    framesOf(site.place).forEach((frame, depth) => {
      const key = nameOf(frame)
      if (seen.has(key)) return
      seen.add(key)
      const positions = getOrCreate(functions, key, () => new Map())
      const position = getOrCreate(positions, frame, () => ({ ...NO_WAITS, frame, depth }))
      position.depth = Math.max(position.depth, depth)
      position.ms += work.ms
      position.count += work.count
      position.spans += work.spans
      position.longest = Math.max(position.longest, work.ms / Math.max(facts.count, work.count))
    })
  }
  return [...functions.values()].map((positions) => sequenceOf([...positions.values()], facts.count))
}

/** @param {Position[]} all of a function @param {number} requests @returns {Sequence} */
function sequenceOf (all, requests) {
  const positions = all.filter(({ spans }) => spans >= requests * MIN_PART)
    .sort((a, b) => lineOf(a) - lineOf(b))
  const ms = sum(positions, (position) => position.ms)
  const steps = sum(positions, ({ count }) => count) / requests
  const longest = Math.max(0, ...positions.map((position) => position.longest))
  return { positions, steps, ms, lostMs: ms - longest * requests }
}

/**
 * Chooses the awaiting function: if several explain the same, the one with the most places, then the
 * innermost one that is not a helper, which is called from elsewhere as well.
 * @param {Sequence[]} sequences
 * @param {(frame: string) => number} callersOf
 * @returns {Sequence | undefined}
 */
function choose (sequences, callersOf) {
  const max = Math.max(...sequences.map(({ lostMs }) => lostMs))
  const isShared = (/** @type {Sequence} */ { positions }) => callersOf(positions[0].frame) > 1 ? 1 : 0
  return sequences.filter(({ lostMs }) => lostMs >= max * (1 - TIE)).sort((a, b) => {
    return b.positions.length - a.positions.length || isShared(a) - isShared(b) ||
      a.positions[0].depth - b.positions[0].depth
  })[0]
}

/**
 * Returns a function that counts the places from which a frame was called.
 * @param {import('./index').Evidence['routes']} routes
 * @returns {(frame: string) => number}
 */
function sharing (routes) {
  /** @type {Map<string, Set<string>>} */
  const callers = new Map()
  for (const { name, facts } of routes) {
    for (const site of facts.places) {
      const frames = framesOf(site.place)
      frames.forEach((frame, i) => {
        getOrCreate(callers, frame, () => new Set()).add(frames[i + 1] ?? name)
      })
    }
  }
  return (frame) => callers.get(frame)?.size ?? 0
}

/** @param {Position} position */
function lineOf ({ frame }) {
  return Number(parseFrame(frame)?.line ?? 0)
}

/** Names the function of a frame; an anonymous one is identified by its place. @param {string} frame */
function nameOf (frame) {
  return frame.startsWith('<anonymous>') ? frame : functionOf(frame)
}

module.exports = { sequence }
