'use strict'

// What of the page's data is selected: routes, sites, blockers, failures and requests, their figures those of
// the selected range.

const {
  bucketsOf, isInRange, matchesStatus, matchesText, sparseSums
} = require('./filter')
const { data, runs } = require('./page-data')
const { routeInRange } = require('./range-figures')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../rows').PageRoute} PageRoute
 * @typedef {import('../rows').PageRow} PageRow
 * @typedef {import('./filter').Selection} Selection
 *
 * @typedef {object} SelectedSite
 * @property {PageRoute} route
 * @property {string} [at]
 * @property {string[]} callers innermost first
 * @property {string} [until]
 * @property {Record<string, number>} figures ms, count, share of the route's time, quartiles
 */

const MIN_TIMED = 0.7 // of the waits' time; with less a table of the range would mislead

/** @type {WeakMap<Selection, Map<PageRun, PageRoute[]>>} */
const routesBySelection = new WeakMap()

/**
 * Returns the routes of a run that are selected, those with no request in the range left out.
 * @param {PageRun} run
 * @param {Selection} selection
 * @returns {PageRoute[]}
 */
function selectedRoutes (run, selection) {
  const byRun = routesBySelection.get(selection) ?? new Map()
  routesBySelection.set(selection, byRun)
  const routes = byRun.get(run) ?? filterRoutes(run, selection)
  byRun.set(run, routes)
  return routes
}

/** @param {PageRun} run @param {Selection} selection */
function filterRoutes (run, selection) {
  const buckets = bucketsOf(selection, run)
  const names = namesOfTraces(selection)
  const routes = run.routes.filter(({ name }) => matchesText(selection, name) || names.has(name))
  if (buckets === undefined) return routes
  const seconds = (buckets[1] - buckets[0]) * Number(run.series?.stepMs) / 1000
  return routes.filter(({ times }) => times !== undefined)
    .map((route) => routeInRange(route, buckets, seconds))
    .filter(({ figures }) => figures.weighted > 0)
}

/** Returns the names of spans in traces whose id is selected. @param {Selection} selection */
function namesOfTraces ({ text }) {
  if (!/^[0-9a-f]{4,32}$/.test(text)) return new Set()
  const traces = data.traces.filter(({ id }) => id.toLowerCase().includes(text))
  return new Set(traces.flatMap(({ spans }) => spans.map(({ name }) => name)))
}

/**
 * Returns the sites of the selected routes.
 * @param {PageRun} run
 * @param {Selection} selection
 * @returns {SelectedSite[]}
 */
function selectedSites (run, selection) {
  const buckets = areSitesTimed(run) ? bucketsOf(selection, run) : undefined
  return selectedRoutes(run, selection).flatMap((route) => {
    const names = data.names
    return route.sites.flatMap(({ at: frame, callers, until, figures, byBucket }) => {
      const own = buckets === undefined ? figures : inBuckets(sparseSums(byBucket ?? [], 2, buckets))
      if (own.ms === 0) return []
      return [{
        route,
        at: frame === undefined ? undefined : names[frame],
        callers: callers.map((caller) => names[caller]),
        until: until === undefined ? undefined : names[until],
        figures: { ...own, share: own.ms / route.figures.totalMs }
      }]
    })
  })
}

/** Quartiles of a range are not known. @param {number[]} sums */
function inBuckets ([ms, count]) {
  return { ms, count }
}

/** Returns the part of the waits that is known along time, from 0 to 1. @param {PageRun} run */
function timedWaits (run) {
  const sites = run.routes.flatMap((route) => route.sites)
  const sum = (/** @type {typeof sites} */ list) => list.reduce((ms, { figures }) => ms + figures.ms, 0)
  const total = sum(sites)
  return total > 0 ? sum(sites.filter(({ byBucket }) => byBucket !== undefined)) / total : 1
}

/** Returns whether the sites of a run can be filtered by time. @param {PageRun} run */
function areSitesTimed (run) {
  return timedWaits(run) >= MIN_TIMED
}

/** @param {PageRun} run @param {Selection} selection @returns {PageRow[]} */
function selectedBlockers (run, selection) {
  const buckets = bucketsOf(selection, run)
  const rows = run.blockers.filter(({ name, at: frame }) => matchesText(selection, name, frame))
  if (buckets === undefined) return rows
  return rows.flatMap((row) => {
    if (row.byBucket === undefined) return [row]
    const [count, totalMs] = sparseSums(row.byBucket, 2, buckets)
    return count > 0 ? [{ ...row, figures: { count, totalMs } }] : []
  })
}

/** @param {PageRun} run @param {Selection} selection */
function selectedFailures (run, selection) {
  const buckets = bucketsOf(selection, run)
  if (selection.status === 'ok') return []
  const rows = run.failures.filter(({ type, message, at: frame, routes, traceId }) =>
    matchesText(selection, type, message, frame, traceId, ...routes.map(({ name }) => name)))
  if (buckets === undefined) return rows
  return rows.flatMap((row) => {
    if (row.byBucket === undefined) return [row]
    const [count] = sparseSums(row.byBucket, 1, buckets)
    return count > 0 ? [{ ...row, figures: { ...row.figures, count } }] : []
  })
}

/** @param {PageRow[]} rows single requests of the first run @param {Selection} selection */
function selectedRequests (rows, selection) {
  return rows.filter(({ name, traceId, status, figures }) =>
    matchesText(selection, name, traceId) && matchesStatus(selection, status) &&
    isInRange(selection, runs[0], figures.startUnixMs))
}

/** @param {Selection} selection */
function selectedTraces (selection) {
  return data.traces.filter(({ id, name, startUnixMs, spans }) => {
    const status = spans.some((span) => span.status === 'ERROR') ? 'ERROR' : undefined
    return matchesText(selection, name, id) && matchesStatus(selection, status) &&
      isInRange(selection, runs[0], startUnixMs)
  })
}

module.exports = {
  areSitesTimed,
  selectedBlockers,
  selectedFailures,
  selectedRequests,
  selectedRoutes,
  selectedSites,
  selectedTraces,
  timedWaits
}
