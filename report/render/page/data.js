'use strict'

// Makes the data of the page from a model: times in ms from the start of a trace, each stack once, long texts
// cut. A model that is too large is thinned step by step until it fits, and the page lists what is missing. A
// model may come from a hostile file: nothing in it is trusted.

const { createChanges, createFailures, createVerdict } = require('./findings')
const { createRoute, createRow } = require('./rows')
const { createSeries, timesOf } = require('./series')
const { Thinning } = require('./thinning')
const { createTraces } = require('./traces')
const { createTree } = require('./trees')
const { array, isRecord, number, records, sentences, text } = require('./values')

/**
 * @typedef {import('./rows').PageRow} PageRow
 * @typedef {import('./thinning').Limits} Limits
 * @typedef {import('./findings').PageChange} Change
 *
 * @typedef {object} PageRun
 * @property {string} label
 * @property {number} [from] unix ms
 * @property {number} [to] unix ms
 * @property {Array<{ name: string, spans?: number, skipped?: number, problems: string[] }>} files
 * @property {string[]} notes
 * @property {Array<import('./rows').PageRoute>} routes
 * @property {import('./findings').PageFinding[]} verdict worst first
 * @property {PageRow[]} blockers
 * @property {import('./findings').PageFailure[]} failures most frequent first
 * @property {import('./series').PageSeries} [series]
 * @property {import('./trees').PackedNode} [tree] of the critical paths of all requests
 * @property {import('./trees').PackedNode} [slowTree] of the slowest hundredth of each route
 *
 * @typedef {object} PageData
 * @property {string} title
 * @property {PageRun[]} runs one, or two to compare
 * @property {{ sites: Change[], blockers: Change[] }} changes between two runs, worst first
 * @property {PageRow[]} slowest
 * @property {PageRow[]} open
 * @property {Array<import('./traces').PageTrace>} traces
 * @property {string[]} stacks
 * @property {string[]} names in trees and of sites
 * @property {string[]} thinned what is not on the page, in sentences
 */

/** Of the embedded data as JSON; the library, the styles and the page's code come on top. */
const MAX_BYTES = 4_100_000
const MAX_TABLE_BYTES = 2_400_000 // of these, so that many routes leave room for traces

const TABLE_LIMITS = {
  routes: 300,
  rows: 200,
  points: 128,
  outliers: 200,
  nodes: 5000,
  sites: 50,
  timedRoutes: 100,
  sums: 60_000,
  histogramSums: 80_000,
  siteSums: 80_000,
  treeSums: 60_000
}
const TRACE_LIMITS = { traces: 100, spans: 1000, text: 16_000, value: 2000 }
const MIN_LIMIT = 8
/** Of what is halved less far. @type {Record<string, number>} */
const MIN_LIMITS = {
  points: 64, nodes: 300, sums: 30_000, histogramSums: 40_000, siteSums: 60_000, treeSums: 45_000
}
const STEPS = 6
const DETAILED_ROUTES = 30 // with all of their sites
const LABEL_CHARS = 60

/**
 * Thins tables and traces independently, each as much as needed.
 * @param {any} model see Model in report/aggregate/model.js
 * @param {string} title
 * @returns {{ data: PageData, json: string }}
 */
function fit (model, title) {
  const withoutTraces = { ...model, traces: {} }
  const tables = firstFitting((step) => thin(withoutTraces, title, limitsOf(step, STEPS)), MAX_TABLE_BYTES)
  return firstFitting((step) => thin(model, title, limitsOf(tables.step, step)), MAX_BYTES)
}

/** @param {(step: number) => PageData} create @param {number} maxBytes */
function firstFitting (create, maxBytes) {
  for (let step = 0; ; step++) {
    const data = create(step)
    const json = escape(JSON.stringify(data))
    if (step === STEPS || Buffer.byteLength(json) <= maxBytes) return { data, json, step }
  }
}

/**
 * Halves every limit with each step.
 * @param {number} tableStep
 * @param {number} traceStep
 * @returns {Limits}
 */
function limitsOf (tableStep, traceStep) {
  return { ...halved(TABLE_LIMITS, tableStep), ...halved(TRACE_LIMITS, traceStep) }
}

/** @template {Record<string, number>} L @param {L} limits @param {number} step @returns {L} */
function halved (limits, step) {
  const entries = Object.entries(limits).map(([name, max]) =>
    [name, Math.max(MIN_LIMITS[name] ?? MIN_LIMIT, max >> step)])
  return /** @type {L} */ (Object.fromEntries(entries))
}

/** Escapes "<", so that no end tag and no comment can begin inside a script element. @param {string} json */
function escape (json) {
  return json.replace(/</g, '\\u003c')
}

/** @param {any} model @param {string} title @param {Limits} limits @returns {PageData} */
function thin (model, title, limits) {
  const thinning = new Thinning(limits)
  const models = isRecord(model.compare) ? [model, model.compare] : [model]
  const labels = labelsOf(models)
  return {
    title: text(title),
    runs: models.map((run, i) => createRun(run, labels[i], thinning)),
    changes: {
      sites: createChanges(model.changes?.sites, limits.rows),
      blockers: createChanges(model.changes?.blockers, limits.rows)
    },
    slowest: createRows(model.slowest, 'slowest requests', thinning),
    open: createRows(model.open, 'open requests', thinning),
    traces: createTraces(model, thinning),
    stacks: thinning.stacks,
    names: thinning.names,
    thinned: thinning.notes
  }
}

/** @param {unknown} list @param {string} noun @param {Thinning} thinning @param {number} [buckets] */
function createRows (list, noun, thinning, buckets) {
  return thinning.first(list, thinning.limits.rows, noun).map((row) => createRow(row, thinning, buckets))
}

/** @param {any} model @param {string} label @param {Thinning} thinning @returns {PageRun} */
function createRun (model, label, thinning) {
  const { limits } = thinning
  const routes = thinning.first(model.routes, limits.routes, 'routes')
  const series = createSeries(model.series)
  const buckets = series?.buckets ?? 0
  const failures = createFailures(model.failures, buckets, thinning)
  const known = records(model.blockers).filter((blocker) => blocker.at !== undefined || blocker.open === true)
  const blockers = createRows(known, 'blockers', thinning, buckets)
  const timesOfRoute = timesOf(model.series, buckets, thinning)
  return {
    label,
    from: number(model.span?.fromUnixMs),
    to: number(model.span?.toUnixMs),
    files: thinning.first(model.files, limits.rows, 'files').map(createFile),
    notes: sentences(model.notes),
    verdict: createVerdict(model.verdict),
    routes: routes.map((route, rank) => createRoute(route, {
      buckets,
      timesOfRoute,
      maxSites: rank < DETAILED_ROUTES ? limits.sites : Math.ceil(limits.sites / 5),
      thinning
    })),
    blockers,
    failures,
    series,
    tree: createTree(model.tree, buckets, thinning),
    slowTree: createTree(model.slowTree, 0, thinning)
  }
}

/** @param {any} file @returns {PageRun['files'][number]} */
function createFile (file) {
  const name = text(file.name)
  const problems = sentences(file.problems).map((problem) => `${name}: ${problem}`)
  return { name, spans: number(file.spans), skipped: number(file.skipped), problems }
}

/** Labels runs by their files if these are different and short. @param {any[]} models */
function labelsOf (models) {
  const names = models.map((model) => array(model.files).map((file) => baseName(text(file?.name))).join(', '))
  const areClear = names[0] !== names[1] && names.every((name) => name !== '' && name.length <= LABEL_CHARS)
  return names.length === 1 || areClear ? names : ['first run', 'second run']
}

/** @param {string} file */
function baseName (file) {
  return file.replace(/^.*[/\\]/, '')
}

module.exports = { fit }
