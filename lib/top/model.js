'use strict'

// Merges the figures of several threads and processes: counts and histograms are added, for delays the worst
// is named. Memory is bounded, however long the command runs.

const { getOrAdd, groupBy } = require('../group-by')
const { addCounts, newCounts, quantiles } = require('./buckets')

const MAX_BLOCKERS = 100 // places
const GROWTH_MS = 60_000
const STEP_MS = 1000 // between two counts that are kept
const LENGTH = 60 // intervals per level
const MERGED = 10 // intervals of a level that become one of the next
const MAX_ROUTES = [300, 100, 50] // per interval, by level; the rest is added up
const OTHER = '(other)'

/**
 * @typedef {import('./sampler').TopFigures} TopFigures
 * @typedef {import('./sampler').TopFacts} TopFacts
 * @typedef {import('./buckets').RouteCounts} RouteCounts
 * @typedef {RouteCounts | import('./buckets').PackedCounts} Added
 * @typedef {{ key: string, facts: TopFacts, figures: TopFigures | undefined, silentMs: number }} Answer of a
 *   thread; figures: undefined if it has not responded; silentMs: how long it has not, 0 if it has
 *
 * @typedef {{ time: number, counts: Map<string, number>, isPart: boolean }} Snapshot open handles of a
 *   thread, by group; isPart: groups of few are missing
 *
 * @typedef {object} RouteRow
 * @property {string} name
 * @property {number} count
 * @property {number} perSecond
 * @property {number} errors
 * @property {number} lost
 * @property {number} meanMs NaN if nothing was finished, as are the following
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} maxMs
 *
 * @typedef {object} WaitRow
 * @property {string} site
 * @property {string} label
 * @property {boolean} isOfRequest
 * @property {number} count mean number of waits there
 * @property {Place} place
 *
 * @typedef {object} HandleRow
 * @property {string} noun
 * @property {string} site
 * @property {number} count
 * @property {number | undefined} perMinute growth; undefined if not known yet
 * @property {Place} place
 *
 * @typedef {object} BlockerRow since the command started
 * @property {string} site
 * @property {number} count
 * @property {number} ms
 * @property {number} worstMs
 * @property {number} lastUnixMs
 * @property {string} stack of the worst
 *
 * @typedef {object} ThreadRow
 * @property {string} key
 * @property {number} pid
 * @property {number} threadId
 * @property {string} name
 * @property {number | undefined} cpuShare of this thread; 1 is a core
 * @property {number | undefined} processShare
 * @property {number} loopShare
 * @property {number} delayMs p99
 * @property {number} maxDelayMs
 * @property {number | undefined} rss bytes, of the process
 * @property {number} heap bytes
 * @property {number} perSecond requests
 * @property {number} silentMs since its last response, 0 if it is not late
 * @property {import('./sampler').Stuck | undefined} stuck
 *
 * @typedef {{ key: string, chain: number }} Place a chain, and the key of the thread to query for it
 *
 * @typedef {object} Frame the data of a screen
 * @property {number} unixMs
 * @property {number} ms observed so far
 * @property {number} windowMs time that the figures of routes cover
 * @property {RouteRow} total
 * @property {RouteRow[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest
 * @property {WaitRow[] | undefined} waits undefined if unknown
 * @property {string[] | undefined} boxes files that all this is read from; undefined if threads were queried
 * @property {HandleRow[]} handles
 * @property {number} handleCount NaN if unknown
 * @property {BlockerRow[] | undefined} blockers undefined if unknown
 * @property {number | undefined} blockedMs from which callbacks are reported; undefined if they are not
 * @property {ThreadRow[]} threads
 * @property {import('./sampler').WaitsFor | undefined} waitsFor cycles and convoys of waits; undefined if
 *   unknown
 */

class Interval {
  ms = 0 // its length
  /** @type {Map<string, RouteCounts>} */
  routes = new Map()

  get total () {
    const total = newCounts()
    for (const route of this.routes.values()) addCounts(total, route)
    return total
  }

  /** Adds the figures of a route. @param {string} name @param {Added} figures */
  add (name, figures) {
    addCounts(getOrAdd(this.routes, name, newCounts), figures)
  }

  /** Adds an adjacent interval. @param {Interval} other */
  merge (other) {
    this.ms += other.ms
    for (const [name, route] of other.routes) this.add(name, route)
  }

  /** Merges the least used routes. @param {number} max routes that remain */
  limit (max) {
    if (this.routes.size <= max) return
    const routes = [...this.routes].sort(([, a], [, b]) => b.count + b.lost - a.count - a.lost)
    this.routes = new Map(routes.slice(0, max - 1))
    for (const [, route] of routes.slice(max - 1)) this.add(OTHER, route)
  }
}

/**
 * Served requests by interval, for an hour in constant memory: intervals that are older than a minute are
 * merged by tens, those older than ten minutes by tens again, with fewer routes each.
 */
class History {
  /** newest last @type {Interval[][]} */
  #levels = MAX_ROUTES.map(() => [])

  /** @param {Interval} interval @param {number} [level] */
  add (interval, level = 0) {
    interval.limit(MAX_ROUTES[level])
    const intervals = this.#levels[level]
    intervals.push(interval)
    if (intervals.length < LENGTH + MERGED) return
    const merged = new Interval()
    for (const old of intervals.splice(0, MERGED)) merged.merge(old)
    if (level + 1 < MAX_ROUTES.length) this.add(merged, level + 1)
  }

  /** Returns all intervals, newest first; old ones are longer. @returns {Interval[]} */
  list () {
    return this.#levels.flatMap((intervals) => intervals.toReversed())
  }

  /**
   * Returns figures over time, for a curve.
   * @param {number} ms of a step, at least
   * @param {number} count of steps
   * @returns {Interval[]} oldest first; fewer if less is known
   */
  steps (ms, count) {
    /** @type {Interval[]} */
    const steps = []
    for (const interval of this.list()) {
      if (steps.length === 0 || steps[0].ms >= ms - 1) {
        if (steps.length === count) return steps
        steps.unshift(new Interval())
      }
      steps[0].merge(interval)
    }
    if (steps.length > 1 && steps[0].ms < ms - 1) steps.shift() // it is incomplete
    return steps
  }

  /** Returns the newest intervals as one. @param {number} ms their length, at least */
  sum (ms) {
    return this.steps(ms, 1)[0] ?? new Interval()
  }
}

class Model {
  history = new History()
  /** open handles of each thread in the last minute, oldest first @type {Map<string, Snapshot[]>} */
  #snapshots = new Map()
  /** @type {Map<string, BlockerRow>} */
  #blockers = new Map()
  #observedMs = 0
  /** @type {Answer[]} */
  #answers = []
  #unixMs = Date.now()

  /**
   * Adds the responses of an interval.
   * @param {Answer[]} answers of all threads
   * @param {number} unixMs
   */
  add (answers, unixMs) {
    const interval = new Interval()
    for (const { figures } of answers) {
      if (figures === undefined) continue
      interval.ms = Math.max(interval.ms, figures.ms)
      for (const route of figures.routes) interval.add(route.name, route)
      for (const blocker of figures.blockers) this.#addBlocker(blocker, unixMs)
    }
    this.#unixMs = unixMs
    this.#observedMs += interval.ms
    if (interval.ms > 0) this.history.add(interval)
    // A silent thread keeps its last figures, except for routes and blockers
    const previous = new Map(this.#answers.map(({ key, figures }) => [key, figures]))
    this.#answers = answers.map((answer) => {
      const last = previous.get(answer.key)
      return { ...answer, figures: answer.figures ?? (last && { ...last, routes: [], blockers: [] }) }
    })
    this.#snapshots = new Map(this.#answers.map((answer) => [answer.key, this.#noteOpen(answer)]))
  }

  /** Notes the open handles of a thread. @param {Answer} answer @returns {Snapshot[]} */
  #noteOpen (answer) {
    const { key, facts, figures } = answer
    // The handles that were open when its figures started are known as well
    const start = snapshotOf(facts.handles, this.#observedMs - (figures?.ms ?? 0))
    const snapshots = this.#snapshots.get(key) ?? (figures === undefined ? [] : [start])
    const { handles } = figures ?? facts
    if (Number.isNaN(handles.count)) return snapshots
    const last = snapshotOf(handles, this.#observedMs)
    const { time } = last
    if (snapshots.length > 1 && time - snapshots[snapshots.length - 2].time < STEP_MS) snapshots.pop()
    snapshots.push(last)
    while (snapshots.length > 2 && time - snapshots[1].time >= GROWTH_MS) snapshots.shift()
    return snapshots
  }

  /** Returns the growth of a group of handles per minute. @param {HandleRow} row */
  #growthOf (row) {
    const key = keyOf(row)
    /** @type {number | undefined} */
    let growth
    for (const snapshots of this.#snapshots.values()) {
      const born = snapshots.findIndex(({ counts }) => counts.has(key))
      const first = snapshots[snapshots[born - 1]?.isPart === false ? born - 1 : Math.max(0, born)]
      const last = snapshots[snapshots.length - 1]
      const ms = last.time - first.time
      if (born === -1 || ms < STEP_MS) continue
      growth = (growth ?? 0) + ((last.counts.get(key) ?? 0) - (first.counts.get(key) ?? 0)) / ms * 60_000
    }
    return growth
  }

  /** @param {import('./sampler').BlockerFigures} blocker @param {number} unixMs */
  #addBlocker ({ site, count, ms, worstMs, stack }, unixMs) {
    const row = this.#blockers.get(site) ?? { site, count: 0, ms: 0, worstMs: 0, lastUnixMs: 0, stack }
    this.#blockers.delete(site) // the most recent one comes last
    this.#blockers.set(site, row)
    row.count += count
    row.ms += ms
    row.lastUnixMs = unixMs
    if (worstMs >= row.worstMs) Object.assign(row, { worstMs, stack })
    const [oldest] = this.#blockers.keys()
    if (this.#blockers.size > MAX_BLOCKERS) this.#blockers.delete(oldest)
  }

  /** Whether no thread has reported figures yet. */
  get isEmpty () { return this.#observedMs === 0 }

  /** @param {number} windowMs time that the figures of routes should cover @returns {Frame} */
  frame (windowMs) {
    const sum = this.history.sum(windowMs)
    const answers = this.#answers
    const oldest = answers.map(({ figures }) => figures?.oldest).filter((request) => request !== undefined)
    const isOfBox = answers.some(({ facts }) => facts.box !== undefined)
    const blockedMs = answers.map(({ facts }) => facts.blockedMs).filter((ms) => ms !== undefined)
    return {
      unixMs: this.#unixMs,
      ms: this.#observedMs,
      windowMs: sum.ms,
      total: routeRow('total', sum.total, sum.ms),
      routes: [...sum.routes].map(([name, counts]) => routeRow(name, counts, sum.ms)),
      inFlight: answers.reduce((count, { figures }) => count + (figures?.inFlight ?? 0), 0),
      oldest: oldest.sort((a, b) => b.ms - a.ms)[0],
      waits: waitRows(answers),
      boxes: isOfBox ? [...new Set(answers.map(({ facts }) => String(facts.box)))] : undefined,
      handles: merge(answers, ({ facts, figures }) => openGroups(figures ?? facts))
        .map((row) => ({ ...row, perMinute: this.#growthOf(row) })),
      handleCount: answers.reduce((count, { facts, figures }) => count + (figures ?? facts).handles.count, 0),
      blockers: isOfBox ? undefined : [...this.#blockers.values()],
      blockedMs: blockedMs.length === 0 ? undefined : Math.min(...blockedMs),
      threads: answers.map(threadRow),
      waitsFor: isOfBox ? undefined : waitsForOf(answers)
    }
  }
}

/**
 * @param {import('../handles/site-figures').OpenFigures} handles
 * @param {number} time ms
 * @returns {Snapshot}
 */
function snapshotOf ({ agoMs = 0, count: all, groups }, time) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const group of groups) counts.set(keyOf(group), (counts.get(keyOf(group)) ?? 0) + group.count)
  const isPart = groups.reduce((sum, { count }) => sum + count, 0) < all
  return { time: time - agoMs, counts, isPart }
}

/** @param {Pick<TopFacts, 'handles'>} figures */
const openGroups = ({ handles: { groups } }) => groups.map(({ keeping, ...group }) => group)

/** @param {string} name @param {RouteCounts} counts @param {number} ms @returns {RouteRow} */
function routeRow (name, { count, errors, lost, sumUs, maxUs, buckets }, ms) {
  const maxMs = count === 0 ? NaN : maxUs / 1000
  const [p50Ms, p99Ms] = quantiles(buckets, [0.5, 0.99]).map((us) => Math.min(us / 1000, maxMs))
  const perSecond = ms === 0 ? 0 : count / ms * 1000
  return { name, count, perSecond, errors, lost, meanMs: sumUs / count / 1000, p50Ms, p99Ms, maxMs }
}

/** @param {Answer[]} answers @returns {WaitRow[] | undefined} */
function waitRows (answers) {
  const sampled = answers.filter(({ figures }) => figures?.waits !== undefined)
  return sampled.length === 0 ? undefined : merge(sampled, ({ figures }) => figures?.waits ?? [])
}

/**
 * Adds up the counts of equal groups in several threads.
 * @param {Answer[]} answers
 * @param {(answer: Answer) => Array<{ chain: number, count: number }>} groupsOf
 * @returns {any[]} rows, with the place of the first one
 */
function merge (answers, groupsOf) {
  const all = answers.flatMap((answer) => groupsOf(answer).map(({ count, chain, ...group }) =>
    ({ group, count, place: { key: answer.key, chain } })))
  return groupBy(all, ({ group }) => JSON.stringify(group)).map((same) => {
    const [{ group, place }] = same
    return { ...group, count: same.reduce((sum, { count }) => sum + count, 0), place }
  })
}

/** @param {Answer[]} answers */
const waitsForOf = (answers) => ({
  cycles: answers.flatMap(({ figures }) => figures?.waitsFor.cycles ?? []),
  convoys: answers.flatMap(({ figures }) => figures?.waitsFor.convoys ?? [])
})

/** @param {{ noun: string, site: string }} row */
const keyOf = ({ noun, site }) => `${noun} ${site}`

/** @param {Answer} answer @returns {ThreadRow} */
function threadRow ({ key, facts: { pid, threadId, name, stuck }, figures, silentMs }) {
  const { ms = 0, thread, routes = [] } = figures ?? {}
  const share = (/** @type {number | undefined} */ part) =>
    part === undefined || ms === 0 ? undefined : part / ms
  return {
    key,
    pid,
    threadId,
    name,
    cpuShare: share(thread?.cpuMs),
    processShare: share(thread?.process?.cpuMs),
    loopShare: thread?.loop.share ?? NaN,
    delayMs: thread?.loop.p99Ms ?? NaN,
    maxDelayMs: thread?.loop.maxMs ?? NaN,
    rss: thread?.process?.rss,
    heap: thread?.heap.used ?? NaN,
    perSecond: (share(routes.reduce((sum, { count }) => sum + count, 0)) ?? 0) * 1000,
    silentMs,
    stuck
  }
}

module.exports = { History, Interval, Model }
