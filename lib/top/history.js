'use strict'

// What was served, by interval, for an hour in constant memory: intervals of a minute ago and older are
// merged by tens, those of ten minutes ago and older by tens again, with fewer routes each.

const { addCounts, newCounts } = require('./buckets')

const LENGTH = 60 // of a level, in its intervals
const MERGED = 10 // intervals of a level that become one of the next
const MAX_ROUTES = [300, 100, 50] // of an interval, by level; the rest is added up
const OTHER = '(other)'

/**
 * @typedef {import('./buckets').RouteCounts} RouteCounts
 * @typedef {RouteCounts | import('./buckets').PackedCounts} Added
 */

class Interval {
  ms = 0 // its length
  total = newCounts()
  /** @type {Map<string, RouteCounts>} */
  routes = new Map()

  /** Adds the figures of a route. @param {string} name @param {Added} figures */
  add (name, figures) {
    addCounts(this.total, figures)
    this.#addRoute(name, figures)
  }

  /** @param {string} name @param {Added} figures */
  #addRoute (name, figures) {
    const counts = this.routes.get(name) ?? newCounts()
    this.routes.set(name, counts)
    addCounts(counts, figures)
  }

  /** Adds an interval that is next to this one. @param {Interval} other */
  merge (other) {
    this.ms += other.ms
    for (const [name, route] of other.routes) this.add(name, route)
  }

  /** Adds up the least used routes. @param {number} max that are left */
  limit (max) {
    if (this.routes.size <= max) return
    const routes = [...this.routes].sort(([, a], [, b]) => b.count + b.lost - a.count - a.lost)
    this.routes = new Map(routes.slice(0, max - 1))
    for (const [, route] of routes.slice(max - 1)) this.#addRoute(OTHER, route)
  }
}

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

  /** Returns all intervals, newest first; those of long ago are longer. @returns {Interval[]} */
  list () {
    return this.#levels.flatMap((intervals) => intervals.toReversed())
  }

  /**
   * Returns figures along time, for a curve.
   * @param {number} ms of a step, at least
   * @param {number} count of steps
   * @returns {Interval[]} oldest first; fewer where less is known
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
    if (steps.length > 1 && steps[0].ms < ms - 1) steps.shift() // it is not whole
    return steps
  }

  /** Returns the newest intervals as one. @param {number} ms their length, at least */
  sum (ms) {
    return this.steps(ms, 1)[0] ?? new Interval()
  }
}

module.exports = { History, Interval }
