'use strict'

// Figures of each route: durations, and means of their breakdown into run, waited and delayed.

const { amount } = require('../read/span-line')
const { CriticalPaths, TIMED_FIGURES, pathOf } = require('./critical-paths')
const { delayersOf } = require('./digest')
const { Numbers } = require('./numbers')
const { PathTree } = require('./path-tree')
const { Places, listSites } = require('./sites')
const { Budget, SlowestRequests } = require('./slowest-requests')
const { Samples } = require('./sample')
const { splitOf } = require('./split')
const { RouteTimes, createSeries } = require('./series')
const { TimesBudget } = require('./times')
const { boxOf, densityOf, logDensityOf, summarize } = require('./summary')
const { RouteFacts } = require('./verdict/facts')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('./time-axis').TimeAxis} TimeAxis
 * @typedef {object} Shared by all routes
 * @property {Places} places
 * @property {Samples} samples
 * @property {Budget} budget
 * @property {TimesBudget | undefined} timesBudget
 * @property {TimeAxis} axis
 *
 * @typedef {object} Route a kind and name of spans; figures are of those that ended, in ms
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} count lines
 * @property {number} weighted spans that they stand for; more than `count` if lines were sampled
 * @property {number | undefined} rate of these per second, over the time of the whole report
 * @property {number} errors failed spans, weighted
 * @property {number} open not ended when they were written; in none of the other figures
 * @property {import('./summary').Summary | undefined} summary undefined if all are open
 * @property {import('./summary').Box | undefined} box
 * @property {import('./summary').Density | undefined} density undefined for less than two
 * @property {{ x: number[], y: number[] } | undefined} logDensity of the logarithms: x in ms, y per decade
 * @property {import('./digest').Split | undefined} split means; undefined if no line has it
 * @property {number} totalMs sum of the durations, weighted
 * @property {import('./sites').Site[]} sites where its requests waited, worst first, at most 50
 * @property {import('./sites').OtherSites | undefined} otherSites waits that are not in `sites`
 */

const MAX_ROUTES = 2000
const OTHERS = '(other names)'
const DETAILED_ROUTES = 60 // whose curve has all points
const [MAX_POINTS, MIN_POINTS] = [256, 64]
const ranks = ['SERVER', 'CONSUMER', 'INTERNAL', 'CLIENT', 'PRODUCER']

class RouteSums {
  durations = new Numbers()
  weighted = 0
  errors = 0
  open = 0
  splits = 0
  parts = { run: 0, waited: 0, delayed: 0 }
  /** @type {Map<string, number>} */
  wait = new Map()
  totalMs = 0
  outermost = 0 // with a breakdown
  facts = new RouteFacts() // of the outermost, for the verdict

  /**
   * @param {string} name
   * @param {import('../read/span-line').Kind} kind
   * @param {Shared} shared
   */
  constructor (name, kind, { places, samples, budget, axis, timesBudget }) {
    this.name = name
    this.kind = kind
    this.places = places
    this.innerPaths = new CriticalPaths(samples)
    this.outermostPaths = new CriticalPaths(samples, timesBudget)
    this.slowest = new SlowestRequests(budget, places)
    this.times = new RouteTimes(axis)
  }

  /** @param {Span} span */
  add (span) {
    const { ms, weight, failed, attributes } = span
    this.durations.add(ms, weight)
    this.weighted += weight
    this.totalMs += ms * weight
    if (failed) this.errors += weight
    const split = amount(attributes['longstack.run_ms']) === undefined ? undefined : splitOf(attributes)
    const isRequest = isOutermost(span)
    const bucket = isRequest ? this.times.add(span, split) : this.times.skip()
    if (split === undefined) return
    this.#addSplit(split, weight)
    const path = pathOf(span, split, this.places)
    if (!isRequest) return this.innerPaths.add(path, weight, span.traceId)
    this.outermost += weight
    this.outermostPaths.add(path, weight, span.traceId, bucket)
    this.facts.add(span, split, path.waits)
    this.facts.addDelays(delayersOf(attributes), weight)
    if (this.slowest.accepts(ms, weight)) this.slowest.add(ms, weight, span.traceId, path)
  }

  /** @param {import('./digest').Split} split @param {number} weight */
  #addSplit (split, weight) {
    this.splits += weight
    this.parts.run += split.run * weight
    this.parts.waited += split.waited * weight
    this.parts.delayed += split.delayed * weight
    for (const name in split.wait) this.wait.set(name, (this.wait.get(name) ?? 0) + split.wait[name] * weight)
  }

  /**
   * @param {number | undefined} seconds
   * @param {number} points of the curve
   * @param {import('./time-axis').Axis | undefined} axis
   * @returns {Route}
   */
  route (seconds, points, axis) {
    const { name, kind, weighted, errors, open, totalMs } = this
    const { size: count } = this.durations
    const rate = seconds === undefined ? undefined : weighted / seconds
    const sample = count === 0 ? undefined : this.durations.sorted()
    return {
      name,
      kind,
      count,
      weighted,
      rate,
      errors,
      open,
      totalMs,
      ...listSites([...this.outermostPaths.list(), ...this.innerPaths.list()], totalMs, axis),
      split: this.#means(),
      summary: sample && summarize(sample),
      box: sample && boxOf(sample),
      density: sample && densityOf(sample, points),
      logDensity: sample && logDensityOf(sample, points)
    }
  }

  #means () {
    const { splits, parts } = this
    if (splits === 0) return undefined
    const wait = [...this.wait].map(([name, sum]) => [name, sum / splits])
    return {
      run: parts.run / splits,
      waited: parts.waited / splits,
      delayed: parts.delayed / splits,
      wait: /** @type {Record<string, number>} */ (Object.fromEntries(wait))
    }
  }
}

/** @param {TimeAxis} axis @param {boolean} isTimed whether sites have sums along time */
function createRoutes (axis, isTimed) {
  /** @type {Map<string, RouteSums>} */
  const routes = new Map()
  const shared = {
    places: new Places(),
    samples: new Samples(),
    budget: new Budget(),
    timesBudget: isTimed ? new TimesBudget(axis, TIMED_FIGURES) : undefined,
    axis
  }
  let others = 0

  /** @param {Span} span */
  function find (span) {
    const name = labelOf(span)
    return routes.get(`${span.kind} ${name}`) ?? create(name, span.kind)
  }

  /** @param {string} name @param {import('../read/span-line').Kind} kind @returns {RouteSums} */
  function create (name, kind) {
    const isFull = routes.size >= MAX_ROUTES
    if (isFull) others++
    const key = `${kind} ${isFull ? OTHERS : name}`
    const sums = routes.get(key) ?? new RouteSums(isFull ? OTHERS : name, kind, shared)
    routes.set(key, sums)
    return sums
  }

  return {

    /** @param {Span} span that ended */
    add: (span) => find(span).add(span),

    /** @param {Span} span that is open */
    addOpen (span) {
      find(span).open++
    },

    /**
     * @param {number | undefined} seconds of the report
     * @returns {Route[]} servers first, then by their total time
     */
    list (seconds) {
      const sorted = [...routes.values()].sort(inOrder)
      const bounds = axis.axis()
      const pointsOf = (/** @type {number} */ rank) => rank < DETAILED_ROUTES ? MAX_POINTS : MIN_POINTS
      return sorted.map((sums, rank) => sums.route(seconds, pointsOf(rank), bounds))
    },

    /** Applies the final names of requests. @param {import('./renames').Renames} renames */
    rename ({ nameOf, untilOf }) {
      shared.places.rename(untilOf)
      for (const [key, sums] of routes) {
        sums.facts.rename(nameOf)
        const target = routes.get(`${sums.kind} ${nameOf(sums.name)}`)
        if (sums.durations.size > 0 || target === undefined || target === sums) continue
        target.open += sums.open
        routes.delete(key)
      }
    },

    /** Returns what the verdict needs of requests: of those of servers, if there are any. */
    facts () {
      const requests = [...routes.values()].filter(({ facts }) => facts.lines > 0)
      const servers = requests.filter(({ kind }) => kind === 'SERVER')
      return servers.length > 0 ? servers : requests.filter(({ kind }) => kind !== 'CLIENT')
    },

    /** Must be called before `list`. @param {import('./time-axis').BucketSums} blocked ms */
    series: (blocked) => createSeries([...routes.values()], blocked, axis),

    /** @returns {import('./path-tree').PathNode} */
    tree () {
      const tree = new PathTree(axis.axis())
      for (const { name, outermost, outermostPaths } of routes.values()) {
        if (outermost > 0) tree.add(name, outermost, outermostPaths.list())
      }
      return tree.build()
    },

    /**
     * Returns the tree of the slowest 1 % of each route.
     * @returns {{ tree: import('./path-tree').PathNode, isExact: boolean }}
     */
    slowTree () {
      const tree = new PathTree()
      let allExact = true
      for (const { name, outermost, slowest } of routes.values()) {
        if (outermost === 0) continue
        const { paths, weight, isExact } = slowest.list()
        tree.add(name, weight, paths.list())
        allExact &&= isExact
      }
      return { tree: tree.build(), isExact: allExact }
    },

    /** Returns which figures are not of all that was read. */
    limited: () => ({ omittedPlaces: shared.places.omitted, isSampled: shared.samples.isPartial }),

    /** Returns the number of spans whose name came after MAX_ROUTES others. */
    others: () => others
  }
}

/** @param {RouteSums} a @param {RouteSums} b */
function inOrder (a, b) {
  const byKind = ranks.indexOf(a.kind) - ranks.indexOf(b.kind)
  return byKind || b.totalMs - a.totalMs || b.weighted - a.weighted || (a.name < b.name ? -1 : 1)
}

/**
 * Returns whether no other span of the process is around it. Where it ran is recorded only for these.
 * @param {Span} span
 */
function isOutermost ({ kind, parentSpanId, attributes }) {
  if (kind === 'SERVER' || parentSpanId === undefined) return true
  return Array.isArray(attributes['longstack.ran'])
}

/** Adds the server to the name of a client's span, which is only the method. @param {Span} span */
function labelOf ({ name, kind, attributes }) {
  const address = attributes['server.address']
  if (kind !== 'CLIENT' || name.includes(' ') || typeof address !== 'string') return name
  const port = amount(attributes['server.port'])
  return `${name} ${address.slice(0, 255)}${port === undefined ? '' : `:${port}`}`
}

module.exports = { MAX_ROUTES, createRoutes, isOutermost, labelOf }
