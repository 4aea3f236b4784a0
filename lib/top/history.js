'use strict'

// What was served, by interval, for an hour in constant memory: intervals of a minute ago and older are
// merged by tens, those of ten minutes ago and older by tens again, with fewer routes each. And how what is
// open grew in the last minute.

const { addPacked } = require('../buckets')

const LEVELS = 3
const LENGTH = 60 // of a level, in its intervals
const MERGED = 10 // intervals of a level that become one of the next
const MAX_ROUTES = [300, 100, 50] // of an interval, by level; the rest is added up
const OTHER = '(other)'
const GROWTH_MS = 60_000
const STEP_MS = 1000 // between two counts that are kept
const MAX_GROUPS = 1000

/**
 * @typedef {object} RouteCounts
 * @property {number} count
 * @property {number} errors
 * @property {number} lost
 * @property {number} sumUs
 * @property {number} maxUs
 * @property {Map<number, number>} buckets
 *
 * @typedef {object} Interval
 * @property {number} ms its length
 * @property {RouteCounts} total
 * @property {Map<string, RouteCounts>} routes
 */

/** @returns {RouteCounts} */
function newCounts () {
  return { count: 0, errors: 0, lost: 0, sumUs: 0, maxUs: 0, buckets: new Map() }
}

/** @returns {Interval} */
function newInterval () {
  return { ms: 0, total: newCounts(), routes: new Map() }
}

/**
 * @param {RouteCounts} counts
 * @param {Omit<RouteCounts, 'buckets'>} added
 * @param {readonly number[] | Map<number, number>} buckets packed, or by bucket
 */
function addCounts (counts, added, buckets) {
  counts.count += added.count
  counts.errors += added.errors
  counts.lost += added.lost
  counts.sumUs += added.sumUs
  counts.maxUs = Math.max(counts.maxUs, added.maxUs)
  addPacked(counts.buckets, buckets instanceof Map ? [...buckets].flat() : buckets)
}

/**
 * Adds the figures of a route to an interval.
 * @param {Interval} interval
 * @param {string} name
 * @param {Omit<RouteCounts, 'buckets'>} figures
 * @param {readonly number[] | Map<number, number>} buckets
 */
function addRoute ({ routes }, name, figures, buckets) {
  const counts = routes.get(name) ?? newCounts()
  routes.set(name, counts)
  addCounts(counts, figures, buckets)
}

/** Adds an interval to another, next to it. @param {Interval} sum @param {Interval} added */
function addInterval (sum, added) {
  sum.ms += added.ms
  addCounts(sum.total, added.total, added.total.buckets)
  for (const [name, route] of added.routes) addRoute(sum, name, route, route.buckets)
}

/** Adds up the least used routes of an interval. @param {Interval} interval @param {number} max */
function limitRoutes (interval, max) {
  if (interval.routes.size <= max) return
  const routes = [...interval.routes].sort(([, a], [, b]) => b.count + b.lost - a.count - a.lost)
  const others = routes.slice(max - 1)
  interval.routes = new Map(routes.slice(0, max - 1))
  for (const [, route] of others) addRoute(interval, OTHER, route, route.buckets)
}

class History {
  /** newest last @type {Interval[][]} */
  #levels = Array.from({ length: LEVELS }, () => [])

  /** @param {Interval} interval */
  add (interval) {
    this.#append(interval, 0)
  }

  /** @param {Interval} interval @param {number} level */
  #append (interval, level) {
    limitRoutes(interval, MAX_ROUTES[level])
    const intervals = this.#levels[level]
    intervals.push(interval)
    if (intervals.length < LENGTH + MERGED) return
    const merged = newInterval()
    for (const old of intervals.splice(0, MERGED)) addInterval(merged, old)
    if (level + 1 < LEVELS) this.#append(merged, level + 1)
  }

  /** Returns all intervals, newest first; those of long ago are longer. @returns {Interval[]} */
  list () {
    return this.#levels.flatMap((intervals) => intervals.toReversed())
  }

  /**
   * Returns the newest intervals as one.
   * @param {number} ms their length, at least
   */
  sum (ms) {
    const sum = newInterval()
    for (const interval of this.list()) {
      if (sum.ms >= ms - 1) break
      addInterval(sum, interval)
    }
    return sum
  }

  /**
   * Returns figures along time, for a curve.
   * @param {number} ms of a step
   * @param {number} count of steps
   * @returns {Interval[]} oldest first; fewer where less is known
   */
  steps (ms, count) {
    /** @type {Interval[]} */
    const steps = []
    let step = newInterval()
    for (const interval of this.list()) {
      addInterval(step, interval)
      if (step.ms < ms - 1) continue
      steps.push(step)
      if (steps.length === count) break
      step = newInterval()
    }
    if (steps.length === 0 && step.ms > 0) steps.push(step)
    return steps.reverse()
  }
}

/** By how much the number of open handles of a thread grows, by what they are and where they were opened. */
class Growth {
  /** counts of the last minute, oldest first @type {Map<string, Array<{ time: number, count: number }>>} */
  #counts = new Map()
  #lastTime = NaN

  /**
   * Notes what is open in the thread, all of it.
   * @param {Map<string, number>} counts by group
   * @param {number} time ms
   */
  add (counts, time) {
    for (const key of this.#counts.keys()) if (!counts.has(key)) this.#counts.delete(key)
    for (const [key, count] of counts) this.#note(key, count, time)
    this.#lastTime = time
  }

  /** @param {string} key @param {number} count @param {number} time */
  #note (key, count, time) {
    const list = this.#counts.get(key)
    if (list === undefined) {
      if (this.#counts.size >= MAX_GROUPS) return
      const start = Number.isNaN(this.#lastTime) ? [] : [{ time: this.#lastTime, count: 0 }]
      this.#counts.set(key, [...start, { time, count }])
      return
    }
    const last = list[list.length - 1]
    if (list.length > 1 && time - list[list.length - 2].time < STEP_MS) Object.assign(last, { time, count })
    else list.push({ time, count })
    while (list.length > 2 && time - list[1].time >= GROWTH_MS) list.shift()
  }

  /** Returns by how many a group grew in a minute. @param {string} key @returns {number | undefined} */
  perMinute (key) {
    const list = this.#counts.get(key)
    if (list === undefined) return undefined
    const [first] = list
    const last = list[list.length - 1]
    const ms = last.time - first.time
    return ms < STEP_MS ? undefined : (last.count - first.count) / ms * 60_000
  }
}

module.exports = { Growth, History, OTHER, addCounts, addInterval, addRoute, newCounts, newInterval }
