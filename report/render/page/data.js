'use strict'

// Creates the page's data from a model: drops what the page does not show, then thins step by step until it
// fits. The page lists what is missing.

const { runsOf } = require('../../aggregate/changes')
const { prune } = require('../../aggregate/path-tree')
const { thinned } = require('../../aggregate/summary')
const { experimentTexts } = require('../experiments')
const { counted, grouped } = require('../format')
const { pack } = require('./client/pack')

/**
 * @typedef {import('../../aggregate/model').Model} Model
 * @typedef {import('../../aggregate/digest').Digest} Digest
 * @typedef {import('../../aggregate/routes').Route} Route
 * @typedef {import('../../aggregate/path-tree').PathNode} Node
 *
 * @typedef {Omit<Route, 'density'> & { times?: import('../../aggregate/time-axis').RouteSeries }} PageRoute
 *
 * @typedef {Pick<Model, 'files' | 'span' | 'notes' | 'verdict' | 'convoys' | 'blockers' | 'failures' |
 *   'series'> & { label: string, routes: PageRoute[], tree?: Node, slowTree?: Node }} PageRun
 *
 * @typedef {object} PageTrace
 * @property {string} id
 * @property {string} name
 * @property {number} startUnixMs
 * @property {number} ms
 * @property {Digest[]} spans by start
 * @property {number} more spans left out of the page
 *
 * @typedef {object} PageData
 * @property {string} title
 * @property {PageRun[]} runs one, or two to compare
 * @property {Pick<import('../../aggregate/changes').Changes, 'sites' | 'blockers'>} changes
 * @property {Digest[]} slowest
 * @property {Digest[]} open
 * @property {import('../../aggregate/verdict/death').OpenHandles[]} handles
 * @property {ReturnType<typeof experimentTexts>} experiments
 * @property {PageTrace[]} traces slowest first
 * @property {string[]} thinned sentences about what is left out of the page
 */

/** Limit for the embedded data; styles and the page's code are added to it. */
const MAX_BYTES = 4_100_000
const MAX_TABLE_BYTES = 2_400_000 // part of MAX_BYTES for tables, so that many routes leave room for traces

/** sums: numbers along time, per kind of table. */
const TABLE_LIMITS = {
  routes: 300, rows: 200, sites: 50, points: 128, outliers: 200, nodes: 5000, sums: 70_000
}
const TRACE_LIMITS = { traces: 100, spans: 1000, chars: 9000 }
const MIN_LIMIT = 8
/** Lower bounds for limits that are halved less often. @type {Record<string, number>} */
const MIN_LIMITS = { points: 64, nodes: 300, sums: 50_000 }
const STEPS = 6
const DETAILED_ROUTES = 30 // shown with all of their sites
const TIMED_SITES = 12 // per route
const ROW_WAITS = 3
const LABEL_CHARS = 60

/**
 * Thins tables and traces independently, each as far as needed.
 * @param {Model} model
 * @param {string} title
 * @returns {{ data: PageData, json: string }}
 */
function fit (model, title) {
  const limitsOf = (/** @type {number} */ tables, /** @type {number} */ traces) =>
    ({ ...halved(TABLE_LIMITS, tables), ...halved(TRACE_LIMITS, traces) })
  const tables = firstFitting((step) =>
    dataOf({ ...model, traces: {} }, title, new Thinner(limitsOf(step, STEPS))), MAX_TABLE_BYTES)
  return firstFitting((step) => dataOf(model, title, new Thinner(limitsOf(tables.step, step))), MAX_BYTES)
}

/** @param {(step: number) => PageData} create @param {number} maxBytes */
function firstFitting (create, maxBytes) {
  for (let step = 0; ; step++) {
    const data = create(step)
    const json = pack(data)
    if (step === STEPS || Buffer.byteLength(json) <= maxBytes) return { data, json, step }
  }
}

/** @template {Record<string, number>} L @param {L} limits @param {number} step @returns {L} */
function halved (limits, step) {
  const entries = Object.entries(limits).map(([name, max]) =>
    [name, Math.max(MIN_LIMITS[name] ?? MIN_LIMIT, max >> step)])
  return /** @type {L} */ (Object.fromEntries(entries))
}

/** One attempt, with its limits and a list of what is missing. */
class Thinner {
  #notes = new Set()
  #cutStacks = new Set()
  /** @type {Record<string, number>} */
  #sums = {}

  /** @param {typeof TABLE_LIMITS & typeof TRACE_LIMITS} limits */
  constructor (limits) {
    this.limits = limits
  }

  get notes () {
    const { size } = this.#cutStacks
    const cut = `${counted(size, 'stack')} truncated to ${grouped(this.limits.chars)} characters.`
    return size === 0 ? [...this.#notes] : [...this.#notes, cut]
  }

  /** @template T @param {T[]} list @param {string} noun @param {number} [max] @returns {T[]} */
  first (list, noun, max = this.limits.rows) {
    if (list.length > max) {
      this.#notes.add(`Only the first ${grouped(max)} of ${grouped(list.length)} ${noun} are shown.`)
    }
    return list.slice(0, max)
  }

  /**
   * Returns sums along time if there is room for them.
   * @param {string} kind
   * @param {number[] | undefined} numbers
   */
  sums (kind, numbers) {
    if (numbers === undefined) return undefined
    const length = (this.#sums[kind] ?? 0) + numbers.length
    if (length > this.limits.sums) return undefined
    this.#sums[kind] = length
    return numbers
  }

  /** @template {{ stack?: string }} T @param {T} row @returns {T} with a bounded stack */
  shortened (row) {
    const { stack } = row
    if (stack === undefined || stack.length <= this.limits.chars) return row
    this.#cutStacks.add(stack)
    return { ...row, stack: `${stack.slice(0, this.limits.chars)} …` }
  }

  /** @param {Node | undefined} root @param {string} kind @returns {Node | undefined} */
  tree (root, kind) {
    if (root === undefined || root.children.length === 0) return undefined
    const tree = prune(root, this.limits.nodes)
    if (tree !== root) {
      this.#notes.add('The smallest frames of the flame graph are merged; the sums count all.')
    }
    /** @param {Node} node @returns {any} */
    const compact = ({ children, byBucket, ...node }) => children.length > 0
      ? { ...node, children: children.map(compact) }
      : { ...node, byBucket: this.sums(kind, byBucket) }
    return compact(tree)
  }
}

/** @param {Model} model @param {string} title @param {Thinner} thinner @returns {PageData} */
function dataOf (model, title, thinner) {
  const models = runsOf(model)
  const labels = labelsOf(models)
  const { sites = [], blockers = [] } = model.changes ?? {}
  const { rows } = thinner.limits
  return {
    title,
    runs: models.map((run, i) => runOf(run, labels[i], thinner)),
    changes: { sites: sites.slice(0, rows), blockers: blockers.slice(0, rows) },
    slowest: thinner.first(model.slowest, 'slowest requests').map((row) => rowOf(row, thinner)),
    open: thinner.first(model.open, 'open requests').map((row) => rowOf(row, thinner)),
    handles: thinner.first(model.handles ?? [], 'open handles'),
    experiments: model.experiments === undefined ? [] : experimentTexts(model.experiments),
    traces: tracesOf(model, thinner),
    thinned: thinner.notes
  }
}

/** @param {Model} model @param {string} label @param {Thinner} thinner @returns {PageRun} */
function runOf (model, label, thinner) {
  const { files, span, notes, verdict, convoys, series } = model
  const { limits } = thinner
  const timesOf = (/** @type {Route} */ { name, kind }) =>
    series?.routes.find((route) => route.name === name && route.kind === kind)
  const blockers = model.blockers.filter((blocker) => blocker.at !== undefined || blocker.open)
  return {
    label,
    files: thinner.first(files, 'files'),
    span,
    notes,
    verdict,
    convoys,
    routes: thinner.first(model.routes, 'routes', limits.routes).map((route, rank) =>
      routeOf(route, timesOf(route), rank, thinner)),
    blockers: thinner.first(blockers, 'blockers').map((row) =>
      ({ ...thinner.shortened(row), byBucket: thinner.sums('blockers', row.byBucket) })),
    failures: thinner.first(model.failures, 'kinds of failures').map((row) =>
      ({ ...thinner.shortened(row), byBucket: thinner.sums('failures', row.byBucket) })),
    series: series && { ...series, routes: [] },
    tree: thinner.tree(model.tree, 'tree'),
    slowTree: thinner.tree(model.slowTree, 'slowTree')
  }
}

/**
 * @param {Route} route
 * @param {PageRoute['times']} times
 * @param {number} rank
 * @param {Thinner} thinner
 * @returns {PageRoute}
 */
function routeOf ({ density, ...route }, times, rank, thinner) {
  const { limits } = thinner
  const { box, logDensity } = route
  const sites = route.sites.slice(0, rank < DETAILED_ROUTES ? limits.sites : Math.ceil(limits.sites / 5))
  const spread = (/** @type {number[]} */ list) => thinned(list, limits.points)
  return {
    ...route,
    box: box && { ...box, outliers: thinned(box.outliers, limits.outliers) },
    logDensity: logDensity && { x: spread(logDensity.x), y: spread(logDensity.y) },
    sites: sites.map((site, i) =>
      ({ ...site, byBucket: i < TIMED_SITES ? thinner.sums('sites', site.byBucket) : undefined })),
    times: times && { ...times, histogram: thinner.sums('histograms', times.histogram) }
  }
}

/**
 * Returns the parts of a request that its row shows.
 * @param {Digest} request
 * @param {Thinner} thinner
 * @returns {any}
 */
function rowOf (request, thinner) {
  const { name, traceId, spanId, ms, startUnixMs, status, split, waits, delayedBy, pending, stack } = request
  const row = { name, traceId, spanId, ms, startUnixMs, status, split, pending, stack }
  return thinner.shortened({ ...row, waits: waits.slice(0, ROW_WAITS), delayedBy: delayedBy.slice(0, 1) })
}

/** @param {Model} model @param {Thinner} thinner @returns {PageTrace[]} */
function tracesOf ({ traces, slowest }, thinner) {
  const rankOf = (/** @type {string} */ id) => {
    const rank = slowest.findIndex(({ traceId }) => traceId === id)
    return rank === -1 ? slowest.length : rank
  }
  const entries = Object.entries(traces).filter(([, spans]) => spans.length > 0)
  entries.sort(([a], [b]) => rankOf(a) - rankOf(b))
  return thinner.first(entries, 'traces', thinner.limits.traces).map(([id, digests]) => {
    digests.sort((a, b) => a.startUnixMs - b.startUnixMs || b.ms - a.ms)
    const { startUnixMs } = digests[0]
    const end = Math.max(...digests.map((span) => span.startUnixMs + span.ms))
    const spans = digests.slice(0, thinner.limits.spans).map((span) =>
      ({ ...thinner.shortened(span), events: span.events.map((event) => thinner.shortened(event)) }))
    const ids = new Set(spans.map(({ spanId }) => spanId))
    const root = spans.find(({ parentSpanId }) => !ids.has(String(parentSpanId))) ?? spans[0]
    const more = digests.length - spans.length
    return { id, name: root.name, startUnixMs, ms: end - startUnixMs, spans, more }
  })
}

/** Labels runs by their files if the names are short and different. @param {Model[]} models */
function labelsOf (models) {
  const baseName = (/** @type {string} */ file) => file.replace(/^.*[/\\]/, '')
  const names = models.map((model) => model.files.map((file) => baseName(file.name)).join(', '))
  const areClear = names[0] !== names[1] && names.every((name) => name !== '' && name.length <= LABEL_CHARS)
  return names.length === 1 || areClear ? names : ['first run', 'second run']
}

module.exports = { fit }
