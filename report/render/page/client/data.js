'use strict'

// The page's data and the reader's selection: a range of time, a text, a status. Figures are those of the
// selected range. Parts of the page follow the selection, and each lists the filters it cannot apply.

/* global document */

const { Sums, sum } = require('../../../aggregate/lists')
const { Numbers, msOf } = require('../../../aggregate/numbers')
const { boxOf, logDensityOf, summarize } = require('../../../aggregate/summary')
const { foreign, h } = require('./dom')
const { unpack } = require('./pack')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../data').PageRoute} PageRoute
 * @typedef {[from: number, to: number]} Buckets the first bucket and the one after the last
 *
 * @typedef {object} Selection
 * @property {[from: number, to: number] | undefined} range ms from the start of the run; undefined for all
 * @property {string} text lower case, part of a route name or trace id; empty for all
 * @property {'all' | 'failed' | 'ok'} status
 *
 * @typedef {Omit<import('../../../aggregate/sites').Site, 'spans'> &
 *   { route: PageRoute, spans?: number }} SelectedSite
 */

/** @type {import('../data').PageData} */
const data = unpack(document.getElementById('data')?.textContent ?? '')
const { runs } = data
const labels = runs.map((run) => run.label)
const isComparison = runs.length > 1

/** @type {Selection} */
const EVERYTHING = { range: undefined, text: '', status: 'all' }
const NAMES = { range: 'the range of time', text: 'the text', status: 'the status' }
const MIN_TIMED_WAITS = 0.7 // share of the waits' time; with less, a table of the range would mislead
const CURVE_POINTS = 64
const PARTS = /** @type {const} */ (['run', 'waited', 'delayed'])

let selection = EVERYTHING
/** @type {Array<(selection: Selection) => void>} */
const listeners = []
/** Selected routes of each run. */
let selectedByRun = new Map(runs.map((run) => [run, run.routes]))

/** Appends the run to a caption if there are two runs. @param {string} preposition @param {PageRun} run */
const ofRun = (preposition, run) => isComparison ? ` ${preposition} ${run.label}` : ''

/** Creates the heading of a run if there are two runs. @param {PageRun} run */
function heading (run) {
  const swatch = h('span', { class: `swatch run-${runs.indexOf(run)}` })
  return isComparison && h('h3', { class: 'run-title' }, swatch, foreign(run.label))
}

/** Changes part of the selection. @param {Partial<Selection>} changes */
function select (changes) {
  selection = { ...selection, ...changes }
  selectedByRun = new Map(runs.map((run) => [run, filteredRoutes(run)]))
  for (const listener of listeners) listener(selection)
}

/** Calls a listener now and after each change. @param {(selection: Selection) => void} listener */
function follow (listener) {
  listeners.push(listener)
  listener(selection)
}

/** @param {keyof Selection} name */
const isSet = (name) => selection[name] !== EVERYTHING[name]

/** Returns whether any filter is active. */
const isActive = () => isSet('range') || isSet('text') || isSet('status')

/**
 * Creates a note that is visible while a filter is active that this part of the page cannot apply.
 * @param {string} subject start of a sentence, such as "Waits are"
 * @param {Array<keyof NAMES>} ignored
 */
function noteOf (subject, ignored) {
  const note = h('p', { class: 'note unfiltered' })
  follow(() => {
    const names = ignored.filter(isSet).map((name) => NAMES[name])
    note.hidden = names.length === 0
    note.textContent = `${subject} not filtered by ${names.join(' or ')}.`
  })
  return note
}

/** Returns whether any of the texts contains the selected text. @param {Array<string | undefined>} texts */
function matchesText (...texts) {
  const { text } = selection
  return text === '' || texts.some((candidate) => candidate?.toLowerCase().includes(text))
}

/** @param {boolean} isFailed */
function matchesStatus (isFailed) {
  return selection.status === 'all' || (selection.status === 'failed') === isFailed
}

/** Returns whether a time of the first run is in the selected range. @param {number} unixMs */
function isInRange (unixMs) {
  const { range } = selection
  const [{ series }] = runs
  if (range === undefined || series === undefined) return true
  const ms = unixMs - series.fromUnixMs
  return ms >= range[0] && ms < range[1]
}

/**
 * Returns the selected buckets of a run.
 * @param {PageRun} run
 * @returns {Buckets | undefined} undefined for all
 */
function bucketsOf ({ series }) {
  const { range } = selection
  if (range === undefined || series === undefined) return undefined
  const [from, to] = range.map((ms) => Math.max(0, Math.min(series.buckets, Math.round(ms / series.stepMs))))
  return [from, to]
}

/** @param {number[]} values @param {Buckets} buckets */
const sumIn = (values, buckets) => sum(values.slice(...buckets), Number)

/**
 * Adds up the figures of the selected buckets.
 * @param {number[]} sparse bucket, figures, bucket, figures …
 * @param {number} width figures per bucket
 * @param {Buckets} buckets
 * @returns {number[]}
 */
function sparseSums (sparse, width, [from, to]) {
  const sums = Array(width).fill(0)
  for (let i = 0; i < sparse.length; i += width + 1) {
    if (sparse[i] < from || sparse[i] >= to) continue
    for (let j = 0; j < width; j++) sums[j] += sparse[i + 1 + j]
  }
  return sums
}

/** Returns the selected routes of a run that have requests in the range. @param {PageRun} run */
const selectedRoutes = (run) => selectedByRun.get(run) ?? []

/** @param {PageRun} run @returns {PageRoute[]} */
function filteredRoutes (run) {
  const buckets = bucketsOf(run)
  const names = namesOfTraces()
  const routes = run.routes.filter(({ name }) => matchesText(name) || names.has(name))
  if (buckets === undefined) return routes
  const seconds = (buckets[1] - buckets[0]) * Number(run.series?.stepMs) / 1000
  return routes.map((route) => routeInRange(route, buckets, seconds)).filter(({ weighted }) => weighted > 0)
}

/** Returns the span names of traces whose id is selected. */
function namesOfTraces () {
  if (!/^[0-9a-f]{4,32}$/.test(selection.text)) return new Set()
  const traces = data.traces.filter(({ id }) => id.toLowerCase().includes(selection.text))
  return new Set(traces.flatMap(({ spans }) => spans.map(({ name }) => name)))
}

/**
 * Returns a route restricted to the requests that began in a range.
 * @param {PageRoute} route
 * @param {Buckets} buckets
 * @param {number} seconds length of the range
 * @returns {PageRoute}
 */
function routeInRange (route, buckets, seconds) {
  const { times } = route
  if (times === undefined) return { ...route, weighted: 0 }
  const sumOf = (/** @type {'count' | 'errors' | 'totalMs'} */ name) => sumIn(times[name], buckets)
  const [weighted, totalMs] = [sumOf('count'), sumOf('totalMs')]
  const sample = times.histogram && sampleOf(times.histogram, buckets)
  const isEmpty = sample === undefined || sample.total === 0
  const exact = { mean: totalMs / weighted, max: Math.max(...times.max.slice(...buckets)) }
  return {
    ...route,
    ...{ weighted, count: weighted, rate: weighted / seconds, errors: sumOf('errors'), totalMs, open: NaN },
    unreadMs: 0, // unknown
    summary: /** @type {PageRoute['summary']} */ ({ ...(isEmpty ? {} : summarize(sample)), ...exact }),
    box: isEmpty ? undefined : { ...boxOf(sample), outliers: [] },
    logDensity: isEmpty ? undefined : logDensityOf(sample, CURVE_POINTS),
    split: splitIn(route, buckets, weighted)
  }
}

/**
 * Returns the durations of a range; each bin is represented by its geometric middle.
 * @param {number[]} histogram bucket, bin, count …
 * @param {Buckets} buckets
 * @returns {import('../../../aggregate/summary').Sample}
 */
function sampleOf (histogram, [from, to]) {
  /** @type {Sums<number>} */
  const counts = new Sums()
  for (let i = 0; i < histogram.length; i += 3) {
    const [bucket, bin, count] = histogram.slice(i, i + 3)
    if (bucket >= from && bucket < to) counts.add(bin, count)
  }
  const durations = new Numbers()
  for (const [bin, count] of counts) durations.add(msOf(bin), count)
  return durations.sorted()
}

/**
 * Returns the mean breakdown of the spans that have one.
 * @param {PageRoute} route
 * @param {Buckets} buckets
 * @param {number} weighted requests in the range
 * @returns {PageRoute['split']}
 */
function splitIn ({ times, split, weighted: count }, buckets, weighted) {
  if (times === undefined || split === undefined) return undefined
  const sumOfAll = sum([...PARTS], (part) => sumIn(times[part], [0, Infinity]))
  const meanOfAll = sum([...PARTS], (part) => split[part])
  const recorded = meanOfAll > 0 ? Math.min(1, sumOfAll / meanOfAll / count) : 1 // share with a split
  const [run, waited, delayed] = PARTS.map((part) => sumIn(times[part], buckets) / (weighted * recorded))
  return { run, waited, delayed, wait: {} }
}

/**
 * Returns the sites of the selected routes; quartiles of a range are unknown.
 * @param {PageRun} run
 * @returns {SelectedSite[]}
 */
function selectedSites (run) {
  const buckets = areSitesTimed(run) ? bucketsOf(run) : undefined
  const sites = selectedRoutes(run).flatMap((route) => route.sites.map((site) => {
    if (buckets === undefined) return { ...site, route }
    const [ms, count] = sparseSums(site.byBucket ?? [], 2, buckets)
    return { ...site, route, ms, count, share: ms / route.totalMs, summary: undefined, spans: undefined }
  }))
  return sites.filter(({ ms }) => ms > 0)
}

/** Returns the share of the waits that is known along time, from 0 to 1. @param {PageRun} run */
function timedWaits (run) {
  const sites = run.routes.flatMap((route) => route.sites)
  const ms = sum(sites, (site) => site.ms)
  return ms > 0 ? sum(sites, (site) => site.byBucket && site.ms) / ms : 1
}

/** Returns whether the sites of a run can be filtered by time. @param {PageRun} run */
const areSitesTimed = (run) => timedWaits(run) >= MIN_TIMED_WAITS

/**
 * Returns rows with the sums of the selected buckets, if these are known.
 * @template {{ byBucket: number[] | undefined }} T
 * @param {T[]} rows
 * @param {PageRun} run
 * @param {number} width sums per bucket; the first is a count
 * @param {(sums: number[]) => Partial<T>} figuresOf
 * @returns {T[]}
 */
function inRange (rows, run, width, figuresOf) {
  const buckets = bucketsOf(run)
  return rows.flatMap((row) => {
    if (buckets === undefined || row.byBucket === undefined) return [row]
    const sums = sparseSums(row.byBucket, width, buckets)
    return sums[0] > 0 ? [{ ...row, ...figuresOf(sums) }] : []
  })
}

/** @param {PageRun} run */
function selectedBlockers (run) {
  const rows = run.blockers.filter(({ name, at: frame }) => matchesText(name, frame))
  return inRange(rows, run, 2, ([count, totalMs]) =>
    ({ count, totalMs, worstMs: NaN, delayedSpans: NaN, delayedMs: NaN }))
}

/** @param {PageRun} run */
function selectedFailures (run) {
  if (selection.status === 'ok') return []
  const rows = run.failures.filter(({ type, message, at: frame, routes, traceId }) =>
    matchesText(type, message, frame, traceId, ...routes.map(({ name }) => name)))
  return inRange(rows, run, 1, ([count]) => ({ count }))
}

/** @param {import('../../../aggregate/digest').Digest[]} rows requests of the first run */
function selectedRequests (rows) {
  return rows.filter(({ name, traceId, status, startUnixMs }) => matchesText(name, traceId) &&
    matchesStatus(status.code === 'ERROR') && isInRange(startUnixMs))
}

function selectedTraces () {
  return data.traces.filter(({ id, name, startUnixMs, spans }) => matchesText(name, id) &&
    matchesStatus(spans.some(({ status }) => status.code === 'ERROR')) && isInRange(startUnixMs))
}

module.exports = {
  EVERYTHING,
  areSitesTimed,
  bucketsOf,
  current: () => selection,
  data,
  follow,
  heading,
  isActive,
  isComparison,
  labels,
  matchesText,
  noteOf,
  ofRun,
  runs,
  select,
  selectedBlockers,
  selectedFailures,
  selectedRequests,
  selectedRoutes,
  selectedSites,
  selectedTraces,
  sparseSums,
  sumIn,
  timedWaits
}
