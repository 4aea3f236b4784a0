'use strict'

// The rows of the page's tables, and the parts that rows and spans share.

const { sparse } = require('./series')
const {
  NAME_CHARS, array, evenly, figures, isRecord, number, optionalText, records, round, roundMs, text
} = require('./values')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {object} Split ms
 * @property {number} [run]
 * @property {number} [waited]
 * @property {number} [delayed]
 * @property {Array<[string, number]>} wait waited, by subsystem, longest first
 *
 * @typedef {object} Wait
 * @property {number} ms
 * @property {number} count
 * @property {number} [delayed] ms
 * @property {string} [at]
 * @property {string} [until]
 * @property {string[]} callers innermost first
 * @typedef {{ spanId?: string, name?: string, ms?: number, at?: string }} Delay
 *
 * @typedef {object} Box ms
 * @property {number} [low]
 * @property {number} [q1]
 * @property {number} [median]
 * @property {number} [q3]
 * @property {number} [high]
 * @property {number[]} outliers
 * @property {number} [outlierCount]
 *
 * @typedef {object} PageSite names are indexes in the table of names
 * @property {number} [at]
 * @property {number[]} callers innermost first
 * @property {number} [until]
 * @property {Record<string, number>} figures ms, count, spans, delayed, min … max of what one request waited
 * @property {import('./series').Sparse} [byBucket] ms, count
 *
 * @typedef {object} PageRoute
 * @property {string} name
 * @property {string} kind
 * @property {Record<string, number>} figures count, rate, errors, open, min … p999
 * @property {Box} [box]
 * @property {Array<[number, number]>} logDensity
 * @property {Split} [split]
 * @property {PageSite[]} sites worst first
 * @property {import('./series').Times} [times]
 *
 * @typedef {object} PageRow a span in a table, or a blocker
 * @property {string} name
 * @property {string} [at]
 * @property {string} [traceId]
 * @property {string} [spanId]
 * @property {string} [status]
 * @property {boolean} [open] a blocker that had not ended
 * @property {boolean} [guessed] a blocker known only by the delays it caused
 * @property {Record<string, number>} figures
 * @property {Split} [split]
 * @property {Wait[]} waits worst first
 * @property {Delay[]} delayedBy
 * @property {number} [stack]
 * @property {import('./series').Sparse} [byBucket] of a blocker: callbacks, ms
 */

const ROW_WAITS = 3
const MAX_TIMED = 12 // sites of a route with sums along time
const MAX_CALLERS = 8
const MAX_DELAYS = 20
const MAX_SUBSYSTEMS = 30
const SUBSYSTEM_CHARS = 40

const FIGURES = ['count', 'weighted', 'rate', 'errors', 'open', 'totalMs']
const SITE_FIGURES = ['ms', 'count', 'spans', 'delayed']
const SITE_SUMMARY = ['min', 'q1', 'median', 'q3', 'max']
const SUMMARY = ['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999']
const ROW_FIGURES = ['ms', 'startUnixMs', 'count', 'totalMs', 'worstMs', 'delayedSpans', 'delayedMs', 'share']

/**
 * @param {any} source
 * @param {object} options
 * @param {number} options.buckets
 * @param {ReturnType<typeof import('./series').timesOf>} options.timesOfRoute
 * @param {number} options.maxSites
 * @param {Thinning} options.thinning
 * @returns {PageRoute}
 */
function createRoute (source, { buckets, timesOfRoute, maxSites, thinning }) {
  const { points } = thinning.limits
  return {
    name: text(source.name),
    kind: text(source.kind ?? '', 20),
    sites: createSites(source.sites, maxSites, buckets, thinning),
    times: timesOfRoute(source.kind, source.name),
    figures: { ...figures(source, FIGURES), ...figures(source.summary, SUMMARY) },
    box: isRecord(source.box) ? createBox(source.box, thinning) : undefined,
    logDensity: createDensity(source.logDensity, points),
    split: createSplit(source.split)
  }
}

/**
 * @param {unknown} list
 * @param {number} max
 * @param {number} buckets
 * @param {Thinning} thinning
 * @returns {PageSite[]} worst first
 */
function createSites (list, max, buckets, thinning) {
  const valid = records(list).filter(({ ms }) => number(ms) !== undefined)
  return valid.slice(0, max).map((site, rank) => {
    const callers = Array.isArray(site.callers) ? site.callers.slice(0, MAX_CALLERS) : []
    return {
      at: nameOf(site.at, thinning),
      callers: callers.map((/** @type {unknown} */ caller) => thinning.addName(text(caller))),
      until: nameOf(site.until ?? site.label, thinning),
      figures: rounded({ ...figures(site, SITE_FIGURES), ...figures(site.summary, SITE_SUMMARY) }),
      byBucket: rank < MAX_TIMED ? sparse(site.byBucket, 2, buckets, thinning, 'siteSums') : undefined
    }
  })
}

/** @param {unknown} name @param {Thinning} thinning */
function nameOf (name, thinning) {
  return typeof name === 'string' && name !== '' ? thinning.addName(text(name)) : undefined
}

/** @param {Record<string, number>} source */
function rounded (source) {
  return Object.fromEntries(Object.entries(source).map(([name, value]) => [name, roundMs(value)]))
}

/** @param {any} source @param {Thinning} thinning @returns {Box} */
function createBox (source, thinning) {
  const valid = array(source.outliers).map(number).filter((value) => value !== undefined)
  const outlierCount = number(source.outlierCount) ?? valid.length
  const outliers = evenly(valid, thinning.limits.outliers).map(round)
  if (outliers.length < outlierCount) {
    thinning.note('At most a few hundred outliers of each route are drawn; the figures count all.')
  }
  return { ...figures(source, ['low', 'q1', 'median', 'q3', 'high']), outliers, outlierCount }
}

/** @param {any} source @param {number} points @returns {Array<[number, number]>} */
function createDensity (source, points) {
  if (!isRecord(source)) return []
  const ys = array(source.y)
  /** @type {Array<[number, number]>} */
  const pairs = []
  array(source.x).forEach((value, i) => {
    const [x, y] = [number(value), number(ys[i])]
    if (x !== undefined && y !== undefined) pairs.push([x, y])
  })
  return evenly(pairs, points).map(([x, y]) => [round(x), round(y)])
}

/** @param {any} source @param {Thinning} thinning @param {number} [buckets] @returns {PageRow} */
function createRow (source, thinning, buckets = 0) {
  return {
    name: text(source.name ?? ''),
    at: optionalText(source.at, NAME_CHARS),
    traceId: optionalText(source.traceId, 32),
    spanId: optionalText(source.spanId, 16),
    status: optionalText(source.status?.code, 20),
    open: source.open === true || undefined,
    guessed: source.known === 'delays' || undefined,
    figures: figures(source, ROW_FIGURES),
    split: createSplit(source.split),
    waits: createWaits(source.waits, ROW_WAITS),
    delayedBy: createDelays(source.delayedBy, thinning),
    stack: thinning.addStack(source.stack),
    byBucket: sparse(source.byBucket, 2, buckets, thinning)
  }
}

/** @param {any} source @returns {Split | undefined} */
function createSplit (source) {
  if (!isRecord(source)) return undefined
  /** @type {Split['wait']} */
  const wait = []
  for (const [name, value] of Object.entries(isRecord(source.wait) ? source.wait : {})) {
    const ms = number(value)
    if (ms !== undefined) wait.push([text(name, SUBSYSTEM_CHARS), ms])
  }
  wait.sort((a, b) => b[1] - a[1])
  return { ...figures(source, ['run', 'waited', 'delayed']), wait: wait.slice(0, MAX_SUBSYSTEMS) }
}

/** @param {unknown} list @param {number} max @returns {Wait[]} */
function createWaits (list, max) {
  const valid = records(list).filter(({ ms }) => number(ms) !== undefined)
  return valid.slice(0, max).map(({ ms, count, delayed, at: frame, until, label, callers }) => ({
    ms: roundMs(ms),
    delayed: number(delayed),
    count: number(count) ?? 1,
    at: optionalText(frame, NAME_CHARS),
    until: optionalText(until ?? label, NAME_CHARS),
    callers: array(callers).slice(0, MAX_CALLERS).map((caller) => text(caller))
  }))
}

/** @param {unknown} list @param {Thinning} thinning @returns {Delay[]} */
function createDelays (list, { limits }) {
  return records(list).slice(0, MAX_DELAYS).map(({ spanId, name, ms, at: frame }) => ({
    spanId: optionalText(spanId, 16),
    name: optionalText(name, NAME_CHARS),
    ms: number(ms),
    at: optionalText(frame, limits.value)
  }))
}

module.exports = { createDelays, createRoute, createRow, createSplit, createWaits }
