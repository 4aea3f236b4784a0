'use strict'

// Changes between two runs: figures of routes, waits by await site, blockers. Sites are matched by function
// and file; waits and blockers are per request, since runs differ in length.

const { parseFrame } = require('./frames')
const { groupsOf, lineUp, sum } = require('./lists')
const { requestRoutes, routeKey } = require('./route-names')

/**
 * @typedef {import('./model').Model} Model
 * @typedef {import('./routes').Route} Route
 * @typedef {import('./sites').Site} Site
 * @typedef {import('./blockers').Blocker} Blocker
 * @typedef {(path: string) => string} FileName
 *
 * @typedef {object} Figures of a route in one run; times in ms
 * @property {number} count spans, weighted
 * @property {number | undefined} rate per second
 * @property {number} errors share of the spans, from 0 to 1
 * @property {number} p50
 * @property {number} p99
 * @property {number} mean
 *
 * @typedef {object} RouteChange
 * @property {string} name
 * @property {Route['kind']} kind
 * @property {Figures | undefined} before undefined if none of its spans ended in the first run
 * @property {Figures | undefined} after
 * @property {number} changeMs total extra time of the second run's spans over the same number at the first
 *   run's mean; 0 if only one run has the route
 *
 * @typedef {object} SiteChange
 * @property {string} route
 * @property {Route['kind']} kind
 * @property {string | undefined} at frame of the second run, or of the first if only that has it
 * @property {string[]} callers of that frame
 * @property {string | undefined} until cause of the end of most of its waits
 * @property {number} beforeMs per request of the route
 * @property {number} afterMs
 * @property {number} change afterMs − beforeMs
 * @property {number} changeMs of all requests of the second run
 *
 * @typedef {object} BlockerChange
 * @property {string} name
 * @property {string | undefined} at
 * @property {number} beforeMs blocked or delayed, whichever is more; per request of the run
 * @property {number} afterMs
 * @property {number} change afterMs − beforeMs
 *
 * @typedef {object} Changes worst first: slowdowns, then speedups
 * @property {RouteChange[]} routes all, servers first
 * @property {SiteChange[]} sites of the outermost routes that both runs have; at most 100
 * @property {BlockerChange[]} blockers at most 100
 *
 * @typedef {{ key: string, ms: number, worst: Site }} MergedSite ms per request
 */

const MAX_CHANGES = 100
const MIN_MS = 0.001 // per request, the precision of a line; smaller changes are ignored
const MIN_MATCHING = 0.5 // share of the files of the run with fewer files

/**
 * @param {Model} before
 * @param {Model} after
 * @returns {Changes}
 */
function changesOf (before, after) {
  const names = fileNames(framesOf(before), framesOf(after))
  return {
    routes: routeChanges(before.routes, after.routes),
    sites: siteChanges(before.routes, after.routes, names),
    // Blocked callbacks are recorded from this threshold on only, if at all
    blockers: before.blocked === after.blocked ? blockerChanges(before, after, names) : []
  }
}

/** Returns one run, or both if two are compared. @param {Model} model */
function runsOf (model) {
  return model.compare === undefined ? [model] : [model, model.compare]
}

/** Lists the frames of sites and blockers. @param {Model} model */
function framesOf ({ routes, blockers }) {
  const sites = [...routes.flatMap((route) => route.sites), ...blockers]
  return sites.flatMap(({ at: frame }) => frame === undefined ? [] : frame)
}

/** @param {Route[]} before @param {Route[]} after @returns {RouteChange[]} */
function routeChanges (before, after) {
  const changes = lineUp([after, before], routeKey).map(([b, a]) => {
    const { name, kind } = /** @type {Route} */ (b ?? a)
    const [first, second] = [figuresOf(a), figuresOf(b)]
    const isInBoth = first !== undefined && second !== undefined
    const changeMs = isInBoth ? (second.mean - first.mean) * second.count : 0
    return { name, kind, before: first, after: second, changeMs }
  })
  const isServer = (/** @type {RouteChange} */ { kind }) => Number(kind === 'SERVER')
  return changes.sort((a, b) => isServer(b) - isServer(a) || b.changeMs - a.changeMs)
}

/** @param {Route | undefined} route @returns {Figures | undefined} */
function figuresOf (route) {
  if (route?.summary === undefined) return undefined
  const { weighted: count, rate, errors, summary: { median: p50, p99, mean } } = route
  return { count, rate, errors: errors / count, p50, p99, mean }
}

/**
 * @param {Route[]} before
 * @param {Route[]} after
 * @param {[FileName, FileName]} fileNames
 * @returns {SiteChange[]}
 */
function siteChanges (before, after, [first, second]) {
  const changes = lineUp([after, before], routeKey).flatMap(([b, a]) => {
    if (a?.summary === undefined || b?.summary === undefined || b.kind !== after[0].kind) return []
    const { name: route, kind, weighted } = b
    return costChanges(mergedSites(a, first), mergedSites(b, second)).map(({ worst, figures }) => {
      const { at: frame, callers, until } = worst
      return { route, kind, at: frame, callers, until, ...figures, changeMs: figures.change * weighted }
    })
  })
  return largest(changes, ({ changeMs }) => changeMs)
}

/** Merges the sites of a route that are in one function. @param {Route} route @param {FileName} fileName */
function mergedSites ({ sites, weighted }, fileName) {
  return merged(sites.map((worst) => {
    const { at: frame, until, label = '', ms } = worst
    // The peer's port may differ between runs.
    const unknown = `until ${(until ?? label).replace(/:\d+$/, '')}`
    return { key: frame === undefined ? unknown : functionOf(frame, fileName), ms: ms / weighted, worst }
  }))
}

/**
 * Sums items with the same key.
 * @template T
 * @param {Array<{ key: string, ms: number, worst: T }>} items worst first
 */
function merged (items) {
  return groupsOf(items, ({ key }) => key).map((group) => ({ ...group[0], ms: sum(group, ({ ms }) => ms) }))
}

/**
 * @param {Model} before
 * @param {Model} after
 * @param {[FileName, FileName]} fileNames
 * @returns {BlockerChange[]}
 */
function blockerChanges (before, after, [first, second]) {
  const changes = costChanges(costsOf(before, first), costsOf(after, second)).map(({ worst, figures }) =>
    ({ name: worst.name, at: worst.at, ...figures }))
  return largest(changes, ({ change }) => change)
}

/**
 * Pairs the costs of two runs by key, and drops changes that are too small.
 * @template T
 * @param {Array<{ key: string, ms: number, worst: T }>} before
 * @param {Array<{ key: string, ms: number, worst: T }>} after
 */
function costChanges (before, after) {
  return lineUp([after, before], ({ key }) => key).map(([b, a]) => {
    const [beforeMs, afterMs] = [a?.ms ?? 0, b?.ms ?? 0]
    const { worst } = /** @type {{ worst: T }} */ (b ?? a)
    return { worst, figures: { beforeMs, afterMs, change: afterMs - beforeMs } }
  }).filter(({ figures }) => Math.abs(figures.change) >= MIN_MS)
}

/**
 * Sums the blockers of known functions, worst first.
 * @param {Model} model
 * @param {FileName} fileName
 * @returns {Array<{ key: string, ms: number, worst: Blocker }>}
 */
function costsOf (model, fileName) {
  const requests = Math.max(1, sum(requestRoutes(model.routes), ({ weighted }) => weighted))
  return merged(model.blockers.filter(({ at: frame }) => frame !== undefined).map((worst) => ({
    key: functionOf(String(worst.at), fileName),
    ms: Math.max(worst.totalMs, worst.delayedMs) / requests,
    worst
  })))
}

/**
 * Keeps the largest changes in either direction, worst first.
 * @template T
 * @param {T[]} changes
 * @param {(change: T) => number} size
 */
function largest (changes, size) {
  const sorted = changes.sort((a, b) => Math.abs(size(b)) - Math.abs(size(a))).slice(0, MAX_CHANGES)
  return sorted.sort((a, b) => size(b) - size(a))
}

/**
 * Names the function and file of a frame, without line and column.
 * @param {string} frame
 * @param {FileName} fileName
 */
function functionOf (frame, fileName) {
  const place = parseFrame(frame)
  return place === undefined ? frame : place.start + fileName(place.path)
}

/**
 * Returns for each of two runs how to name its files, so that they match the other's: by full paths; if the
 * runs were in different directories, by paths below the common directory of all files of a run; otherwise by
 * base names.
 * @param {string[]} before frames of the first run
 * @param {string[]} after
 * @returns {[FileName, FileName]}
 */
function fileNames (before, after) {
  const paths = [before, after].map((frames) =>
    new Set(frames.map((frame) => parseFrame(frame)?.path ?? frame)))
  const whole = (/** @type {string} */ path) => path
  const baseName = (/** @type {string} */ path) => path.replace(/^.*[/\\]/s, '')
  const [first, second] = paths.map((set) => belowRoot([...set]))
  /** @type {Array<[FileName, FileName]>} */
  const ways = [[whole, whole], [first, second]]
  return ways.find((names) => isMatching(paths, names)) ?? [baseName, baseName]
}

/** @param {string[]} paths @returns {FileName} */
function belowRoot (paths) {
  const directories = paths.map((path) => path.split(/[/\\]/).slice(0, -1))
  const [first = []] = directories
  let depth = 0
  while (depth < first.length && directories.every((parts) => parts[depth] === first[depth])) depth++
  return (path) => path.split(/[/\\]/).slice(depth).join('/')
}

/** @param {Array<Set<string>>} paths of two runs @param {[FileName, FileName]} names */
function isMatching ([before, after], [first, second]) {
  const others = new Set([...after].map(second))
  const count = [...before].filter((path) => others.has(first(path))).length
  return count >= MIN_MATCHING * Math.min(before.size, after.size)
}

module.exports = { changesOf, framesOf, runsOf }
