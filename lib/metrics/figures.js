'use strict'

// Metrics of this thread for dashboards, for trace.metrics() and `longstack metrics`. `longstack top` counts
// and names them. Measurements over time start with the first query and state their start: counters run since
// that query, event-loop delays since the same reader's previous query, so that readers do not consume each
// other's values.

const { performance } = require('node:perf_hooks')
const timers = require('node:timers') // programs replace the global ones
const guard = require('../core/guard')
const { on } = require('../core/on')
const { groupBy } = require('../group-by')
const { drain } = require('../handles/list')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { spanResource } = require('../spans/outputs')
const { startOf } = require('../top/buckets')
const { LoopDelay } = require('../top/loop-delay')
const { ServedFigures } = require('../top/served')
const { SiteFigures } = require('../handles/site-figures')

const SWEEP_MS = 250
const LEASE_MS = 15 * 60_000 // without a query on a socket; the program has no lease
const MAX_SITES = 50 // series per metric; the rest is summed up
const OTHER = '(other)'
/** seconds, from OpenTelemetry's semantic conventions for http.server.request.duration */
const BOUNDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

/**
 * @typedef {'program' | 'socket'} Reader
 *
 * @typedef {object} Metrics
 * @property {boolean} enabled whether tracing is on; if not, there are no metrics
 * @property {number} sinceUnixMs start of counters and histograms: the first query to this thread
 * @property {number} unixMs time of the response
 * @property {Record<string, unknown>} resource service, process and thread, named as in spans
 * @property {Record<string, Metric>} metrics by name, from OpenTelemetry's semantic conventions if they have
 *   one
 *
 * @typedef {object} Metric
 * @property {'counter' | 'updowncounter' | 'gauge' | 'histogram'} type OpenTelemetry's type: counters
 *   and histograms count since `sinceUnixMs`, the others are current values
 * @property {string} unit UCUM: `s`, `ms`, `1`, `{request}`
 * @property {string} description
 * @property {MetricPoint[]} points
 *
 * @typedef {object} MetricPoint
 * @property {Record<string, string>} attributes
 * @property {number} [value] undefined for a histogram
 * @property {MetricHistogram} [histogram]
 *
 * @typedef {object} MetricHistogram
 * @property {number} count
 * @property {number} sum
 * @property {readonly number[]} bounds inclusive upper bounds
 * @property {number[]} counts per bucket; the last one counts values above all bounds
 *
 * @typedef {import('../top/served').RouteFigures} RouteFigures
 * @typedef {ReturnType<ServedFigures['list']>[number]} Route
 */

/**
 * Definitions of the metrics, without points.
 * @type {Record<string, Omit<Metric, 'points'>>}
 */
const definitions = {
  'nodejs.eventloop.delay.mean': delayed('mean'),
  'nodejs.eventloop.delay.max': delayed('maximum'),
  'nodejs.eventloop.delay.p50': delayed('50th percentile'),
  'nodejs.eventloop.delay.p90': delayed('90th percentile'),
  'nodejs.eventloop.delay.p99': delayed('99th percentile'),
  'nodejs.eventloop.time': define('counter', 's',
    'Cumulative duration of time the event loop has been in each state.'),
  'http.server.request.duration': define('histogram', 's',
    'Duration of HTTP server requests, from the head of the request to the last byte of the response.'),
  'http.server.active_requests': define('updowncounter', '{request}',
    'Number of active HTTP server requests.'),
  'longstack.http.server.failures': define('counter', '{request}',
    'HTTP server requests that were answered with a status of 500 or above (5xx), or whose connection was ' +
    'closed before the end of the response (closed).'),
  'longstack.handles': define('updowncounter', '{handle}',
    'Open handles by the place where they were opened.'),
  'longstack.waits': define('updowncounter', '{wait}',
    'Awaits that are not settled, by the place where they hang.')
}

/** @param {Metric['type']} type @param {string} unit @param {string} description */
function define (type, unit, description) {
  return { type, unit, description }
}

/** @param {string} name of an event-loop delay figure */
function delayed (name) {
  return define('gauge', 's', `Event loop ${name} delay, since it was read last.`)
}

class Figures {
  sinceUnixMs = Date.now()
  #loop = performance.eventLoopUtilization()
  #served = new ServedFigures()
  #sites = new SiteFigures(0)
  /** @type {Map<Reader, LoopDelay>} */
  #delays = new Map()
  /** whether the requests in flight at the start are counted */
  #isComplete = false
  #unsubscribe = channels.subscribe(this.#served.subscriptions)
  #timer = timers.setInterval(() => guard.run(this.#sweep), SWEEP_MS).unref()
  #leaseMs = LEASE_MS
  #askedAt = performance.now()

  #sweep = () => {
    if (performance.now() - this.#askedAt > this.#leaseMs) return stop()
    this.#served.sweep()
  }

  /**
   * Returns the metrics. Yields between pieces of work.
   * @param {Reader} reader
   * @returns {Generator<undefined, Record<string, Metric>>}
   */
  * read (reader) {
    this.#askedAt = performance.now()
    if (reader !== 'socket') this.#leaseMs = Infinity
    if (!this.#isComplete) yield * this.#served.adoptOpen()
    this.#isComplete = true
    yield * this.#sites.countHandles()
    const handles = handlePoints(this.#sites.open)
    yield * this.#sites.sample()
    const waits = waitPoints(this.#sites)
    const routes = this.#served.list()
    const points = {
      ...this.#readDelay(reader),
      'nodejs.eventloop.time': this.#readLoop(),
      'http.server.request.duration': routes.map(durationPoint),
      'http.server.active_requests': [{ attributes: {}, value: this.#served.inFlight }],
      'longstack.http.server.failures': routes.flatMap(failurePoints),
      'longstack.handles': handles,
      ...(waits && { 'longstack.waits': waits })
    }
    return Object.fromEntries(Object.entries(points).map(([name, points]) =>
      [name, { ...definitions[name], points }]))
  }

  /** @returns {MetricPoint[]} */
  #readLoop () {
    const { active, idle } = performance.eventLoopUtilization(this.#loop)
    return Object.entries({ active, idle }).map(([state, ms]) =>
      ({ attributes: { 'nodejs.eventloop.state': state }, value: ms / 1000 }))
  }

  /** @param {Reader} reader @returns {Record<string, MetricPoint[]>} empty if nothing was measured yet */
  #readDelay (reader) {
    const delay = this.#delays.get(reader)
    if (delay === undefined) this.#delays.set(reader, new LoopDelay())
    const { count, ...delays } = delay?.read() ?? { count: 0 }
    if (count === 0) return {}
    return Object.fromEntries(Object.entries(delays).map(([name, ms]) =>
      [`nodejs.eventloop.delay.${name.slice(0, -'Ms'.length)}`, [{ attributes: {}, value: ms / 1000 }]]))
  }

  stop () {
    timers.clearInterval(this.#timer)
    this.#unsubscribe()
    for (const delay of this.#delays.values()) delay.stop()
  }
}

/** @param {import('../handles/site-figures').OpenFigures} open @returns {MetricPoint[]} */
function handlePoints ({ count, groups }) {
  const named = groups.map(({ site, noun, count }) =>
    ({ attributes: { opener: site || '(unknown)', type: noun }, value: count }))
  return largest(named, count, { opener: OTHER, type: OTHER })
}

/** @param {SiteFigures} sites @returns {MetricPoint[] | undefined} undefined if unknown */
function waitPoints (sites) {
  const named = sites.readWaits()?.map(({ site, count }) =>
    ({ attributes: { site: site || '(unknown)' }, value: count }))
  return named && largest(named, sites.waiting, { site: OTHER })
}

/**
 * Returns the largest points, with equal ones summed up, and one for the rest.
 * @param {Array<{ attributes: Record<string, string>, value: number }>} points
 * @param {number} total of all points, listed or not
 * @param {Record<string, string>} other attributes of the rest
 * @returns {MetricPoint[]}
 */
function largest (points, total, other) {
  const distinct = groupBy(points, ({ attributes }) => JSON.stringify(attributes)).map((equal) =>
    ({ ...equal[0], value: equal.reduce((sum, { value }) => sum + value, 0) }))
  const listed = distinct.sort((a, b) => b.value - a.value).slice(0, MAX_SITES)
  const rest = total - listed.reduce((sum, { value }) => sum + value, 0)
  return rest > 0 ? [...listed, { attributes: other, value: rest }] : listed
}

/** @param {Route} route @returns {Record<string, string>} */
function attributesOf ({ name, isReported }) {
  const end = name.indexOf(' ')
  if (end === -1) return { 'http.request.method': '_OTHER', 'http.route': OTHER }
  // A path with `*` for its variable parts is no route by the conventions
  const key = isReported ? 'http.route' : 'url.template'
  return { 'http.request.method': name.slice(0, end), [key]: name.slice(end + 1) }
}

/** @param {Route} route @returns {MetricPoint} */
function durationPoint (route) {
  const { count, sumUs, buckets } = route.counts
  const counts = new Array(BOUNDS.length + 1).fill(0)
  for (const [bucket, added] of buckets) {
    const seconds = (startOf(bucket) + startOf(bucket + 1)) / 2e6
    const index = BOUNDS.findIndex((bound) => seconds <= bound)
    counts[index === -1 ? BOUNDS.length : index] += added
  }
  return { attributes: attributesOf(route), histogram: { count, sum: sumUs / 1e6, bounds: BOUNDS, counts } }
}

/** @param {Route} route @returns {MetricPoint[]} */
function failurePoints (route) {
  const attributes = attributesOf(route)
  const { errors, lost } = route.counts
  return [
    { attributes: { ...attributes, 'error.type': '5xx' }, value: errors },
    { attributes: { ...attributes, 'error.type': 'closed' }, value: lost }
  ]
}

/** figures of this thread, since its first query @type {Figures | undefined} */
let figures

/** Stops measuring. */
function stop () {
  figures?.stop()
  figures = undefined
}

on('stopped', stop)

/**
 * Returns the metrics of this thread. Yields between pieces of work.
 * @param {Reader} reader
 * @returns {Generator<undefined, Metrics>}
 */
function * slices (reader) {
  const present = settings.enabled ? figures ??= new Figures() : undefined
  const metrics = present === undefined ? {} : yield * present.read(reader)
  const unixMs = Date.now()
  return {
    enabled: settings.enabled,
    sinceUnixMs: present?.sinceUnixMs ?? unixMs,
    unixMs,
    resource: { ...spanResource() },
    metrics
  }
}

/** Returns the metrics of this thread at once, for the program. */
const readMetrics = () => drain(slices('program'))

module.exports = { readMetrics, slices }
