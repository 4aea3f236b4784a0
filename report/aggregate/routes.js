'use strict'

// Figures of each route: durations, and means of their breakdown into run, waited and delayed.

const { amount } = require('../read/values')
const { CriticalPaths, SlowestRequests, TIMED, pathOf } = require('./critical-paths')
const { AskedSums } = require('./asked')
const { splitOf } = require('./digest')
const { BoundedMap, Sums, getOrCreate } = require('./lists')
const { Numbers, Samples } = require('./numbers')
const { PathTree } = require('./path-tree')
const { Places, listSites } = require('./sites')
const { boxOf, densityOf, logDensityOf, summarize } = require('./summary')
const { SUMS, Times, createSeries, timesBudget } = require('./time-axis')
const { RouteFacts } = require('./verdict/facts')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {import('./time-axis').TimeAxis} TimeAxis
 * @typedef {object} Shared by all routes
 * @property {Places} places
 * @property {Samples} samples
 * @property {{ kept: number }} budget of the slowest requests
 * @property {ReturnType<typeof timesBudget> | undefined} createTimes
 * @property {TimeAxis} axis
 *
 * @typedef {object} Route a kind and name of spans; figures are of those that ended, in ms
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} count lines
 * @property {number} weighted spans that the lines stand for; more than `count` if lines were sampled
 * @property {number | undefined} rate of these per second, over the time of the whole report
 * @property {number} errors failed spans, weighted
 * @property {number} open spans still open when they were written; not in the other figures
 * @property {import('./summary').Summary | undefined} summary undefined if all are open
 * @property {import('./summary').Box | undefined} box
 * @property {import('./summary').Density | undefined} density undefined for fewer than two
 * @property {{ x: number[], y: number[] } | undefined} logDensity of the logarithms: x in ms, y per decade
 * @property {import('./digest').Split | undefined} split means; undefined if no line has it
 * @property {import('./asked').AskedFigures | undefined} asked means; undefined if there are no queries
 * @property {number} totalMs sum of the durations, weighted
 * @property {number} unreadMs mean time before Node read the requests, which is in no duration
 * @property {import('./sites').Site[]} sites where its requests waited, worst first, at most 50
 * @property {import('./sites').OtherSites | undefined} otherSites waits that are not in `sites`
 */

const MAX_ROUTES = 2000
const OTHERS = '(other names)'
const DETAILED_ROUTES = 60 // routes whose curve has all points
const [MAX_POINTS, MIN_POINTS] = [256, 64]
const ranks = ['SERVER', 'CONSUMER', 'INTERNAL', 'CLIENT', 'PRODUCER']

class RouteSums {
  durations = new Numbers()
  /** starts of the same spans; NaN if it is not a request @type {number[]} */
  starts = []
  requests = 0
  errors = 0
  open = 0
  parts = { run: 0, waited: 0, delayed: 0 }
  /** @type {Sums<string>} */
  wait = new Sums()
  asked = new AskedSums() // queries of spans with a breakdown
  queuedMs = 0
  facts = new RouteFacts() // outermost spans with a breakdown, for the verdict

  /**
   * @param {string} name
   * @param {import('../read/span-line').Kind} kind
   * @param {Shared} shared
   */
  constructor (name, kind, { places, samples, budget, axis, createTimes }) {
    this.name = name
    this.kind = kind
    this.places = places
    this.innerPaths = new CriticalPaths(places, samples)
    this.outermostPaths = new CriticalPaths(places, samples, createTimes)
    this.slowest = new SlowestRequests(budget, places)
    this.axis = axis
    this.times = new Times(axis, SUMS)
  }

  get totalMs () { return this.durations.sum }

  /** @param {Span} span @param {import('./calls').Tries[]} tries */
  add (span, tries) {
    const { ms, startMs, weight, failed, attributes, traceId } = span
    this.durations.add(ms, weight)
    if (failed) this.errors += weight
    this.queuedMs += (amount(attributes['longstack.queued_ms']) ?? 0) * weight
    const split = splitOf(attributes)
    const isRequest = isOutermost(span)
    const bucket = isRequest ? this.axis.bucketOf(startMs) : 0
    this.starts.push(isRequest ? startMs : NaN)
    if (isRequest) {
      this.requests++
      this.times.add(bucket, failed ? weight : 0)
    }
    if (split === undefined) return
    this.#addSplit(split, weight)
    this.asked.add(attributes, weight)
    const { waits, path } = pathOf(span, split, this.places)
    if (!isRequest) return this.innerPaths.add(path, weight, traceId)
    this.times.add(bucket, 0, weight, split.run * weight, split.waited * weight, split.delayed * weight)
    this.outermostPaths.add(path, weight, traceId, bucket)
    // How long an upgraded connection stays open is no latency.
    if (attributes['longstack.end'] !== 'upgraded') this.facts.add(span, split, waits, tries)
    this.slowest.add(ms, weight, traceId, path)
  }

  /** @param {import('./digest').Split} split @param {number} weight */
  #addSplit ({ run, waited, delayed, wait }, weight) {
    const { parts } = this
    parts.run += run * weight
    parts.waited += waited * weight
    parts.delayed += delayed * weight
    for (const name in wait) this.wait.add(name, wait[name] * weight)
  }

  /**
   * @param {number | undefined} seconds
   * @param {number} points of the curve
   * @param {import('./time-axis').Axis | undefined} axis
   * @returns {Route}
   */
  route (seconds, points, axis) {
    const { name, kind, errors, open, totalMs } = this
    const { size: count, weight: weighted } = this.durations
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
      unreadMs: weighted > 0 ? this.queuedMs / weighted : 0,
      ...listSites([...this.outermostPaths.list(), ...this.innerPaths.list()], totalMs, axis),
      split: this.#means(),
      asked: this.asked.means(),
      summary: sample && summarize(sample),
      box: sample && boxOf(sample),
      density: sample && densityOf(sample, points),
      logDensity: sample && logDensityOf(sample, points)
    }
  }

  #means () {
    const { parts, asked: { weight } } = this
    if (weight === 0) return undefined
    const mean = (/** @type {number} */ sum) => sum / weight
    /** @type {Record<string, number>} */
    const wait = Object.fromEntries([...this.wait].map(([name, sum]) => [name, mean(sum)]))
    return { run: mean(parts.run), waited: mean(parts.waited), delayed: mean(parts.delayed), wait }
  }
}

class Routes {
  /** @type {BoundedMap<string, RouteSums>} */
  #routes = new BoundedMap(MAX_ROUTES)
  #shared

  /** @param {TimeAxis} axis @param {boolean} isTimed whether sites have sums over time */
  constructor (axis, isTimed) {
    const createTimes = isTimed ? timesBudget(axis, TIMED) : undefined
    this.#shared = { places: new Places(), samples: new Samples(), budget: { kept: 0 }, createTimes, axis }
  }

  /** @param {Span} span @returns {RouteSums} */
  #find (span) {
    const { kind } = span
    const sumsOf = (/** @type {string} */ name) => new RouteSums(name, kind, this.#shared)
    const name = labelOf(span)
    return this.#routes.find(`${kind} ${name}`, () => sumsOf(name)) ??
      getOrCreate(this.#routes, `${kind} ${OTHERS}`, () => sumsOf(OTHERS))
  }

  /** @param {Span} span that ended @param {import('./calls').Tries[]} tries */
  add (span, tries) {
    this.#find(span).add(span, tries)
  }

  /** @param {Span} span that is open */
  addOpen (span) {
    const sums = this.#find(span)
    sums.open++
    sums.facts.unanswered.add(span, [])
  }

  /**
   * @param {number | undefined} seconds of the report
   * @returns {Route[]} servers first, then by total time
   */
  list (seconds) {
    const axis = this.#shared.axis.axis()
    const sorted = [...this.#routes.values()].sort(inOrder)
    return sorted.map((sums, i) => sums.route(seconds, i < DETAILED_ROUTES ? MAX_POINTS : MIN_POINTS, axis))
  }

  /** Applies the final names of requests. @param {import('./route-names').Renames} renames */
  rename ({ nameOf, untilOf }) {
    this.#shared.places.rename(untilOf)
    for (const [key, sums] of this.#routes) {
      sums.facts.rename(nameOf)
      const target = this.#routes.get(`${sums.kind} ${nameOf(sums.name)}`)
      if (sums.durations.size > 0 || target === undefined || target === sums) continue
      target.open += sums.open
      this.#routes.delete(key)
    }
  }

  /** Returns the routes with facts for the verdict: those of servers, if there are any. */
  facts () {
    const requests = [...this.#routes.values()].filter(({ facts }) => facts.lines > 0)
    const servers = requests.filter(({ kind }) => kind === 'SERVER')
    return servers.length > 0 ? servers : requests.filter(({ kind }) => kind !== 'CLIENT')
  }

  /** @param {import('./time-axis').Times} blocked ms */
  series (blocked) {
    return createSeries([...this.#routes.values()], blocked, this.#shared.axis)
  }

  /**
   * Returns the trees of all requests, and of the slowest 1 % of each route.
   * @returns {{ tree: import('./path-tree').PathNode, slowTree: import('./path-tree').PathNode,
   *   isSlowExact: boolean }}
   */
  trees () {
    const [tree, slowTree] = [new PathTree(this.#shared.axis.axis()), new PathTree()]
    let isSlowExact = true
    for (const { name, facts, outermostPaths, slowest } of this.#routes.values()) {
      if (facts.count === 0) continue
      tree.add(name, facts.count, outermostPaths.list())
      const { paths, weight, isExact } = slowest.list()
      slowTree.add(name, weight, paths.list())
      isSlowExact &&= isExact
    }
    return { tree: tree.build(), slowTree: slowTree.build(), isSlowExact }
  }

  /** Returns which figures are incomplete; `others` counts spans whose name came too late. */
  limited () {
    const { places, samples } = this.#shared
    return { others: this.#routes.omitted, omittedPlaces: places.omitted, isSampled: samples.isPartial }
  }
}

/** @param {RouteSums} a @param {RouteSums} b */
function inOrder (a, b) {
  const byKind = ranks.indexOf(a.kind) - ranks.indexOf(b.kind)
  return byKind || b.totalMs - a.totalMs || b.durations.weight - a.durations.weight ||
    (a.name < b.name ? -1 : 1)
}

/**
 * Returns whether a span has no enclosing span in its process. Run sites are recorded only for these.
 * @param {Span} span
 */
function isOutermost ({ kind, parentSpanId, attributes }) {
  if (kind === 'SERVER' || parentSpanId === undefined) return true
  return Array.isArray(attributes['longstack.ran'])
}

/** Adds the server to the name of a client span that is only the method. @param {Span} span */
function labelOf ({ name, kind, attributes }) {
  const address = attributes['server.address']
  if (kind !== 'CLIENT' || name.includes(' ') || typeof address !== 'string') return name
  const port = amount(attributes['server.port'])
  return `${name} ${address.slice(0, 255)}${port === undefined ? '' : `:${port}`}`
}

module.exports = { MAX_ROUTES, Routes, isOutermost, labelOf }
