'use strict'

// Limits that a run must not exceed, such as p99 > +10 %. Each is checked for every route that it selects.
// Figures of too few spans are noise and are not checked.

const { requestRoutes, routeKey, routePattern } = require('./route-names')

/**
 * @typedef {import('./model').Model} Model
 * @typedef {import('./routes').Route} Route
 *
 * @typedef {'ms' | 'share' | 'rate' | 'count'} Unit
 * @typedef {'>' | '<' | '>=' | '<='} Comparator
 *
 * @typedef {object} Limit
 * @property {string} expression as written
 * @property {string | undefined} pattern of routes; default: all server routes, or all if there are none
 * @property {keyof typeof metrics} metric
 * @property {Comparator} comparator
 * @property {'value' | 'change' | 'ratio'} kind compared: the figure, its change, its relative change
 * @property {number} value in ms, spans per second, spans, or a share from 0 to 1
 *
 * @typedef {object} LimitCheck of one route
 * @property {string} expression
 * @property {'exceeded' | 'held' | 'unchecked'} state
 * @property {string} route
 * @property {Route['kind']} kind
 * @property {Unit} unit of `before` and `after`
 * @property {number} [before] figure of the first run, if two are compared
 * @property {number} [after] limited figure
 * @property {number} [needed] spans needed, if there are too few to check it
 */

/**
 * @typedef {object} Metric
 * @property {Unit} unit
 * @property {number} spans minimum for the figure to be checked
 * @property {(route: Route) => number | undefined} of
 */

const MIN_SPANS = 30

const metrics = /** @satisfies {Record<string, Metric>} */ ({
  p50: { unit: 'ms', spans: MIN_SPANS, of: ({ summary }) => summary?.median },
  p99: { unit: 'ms', spans: 500, of: ({ summary }) => summary?.p99 }, // five values beyond it
  p999: { unit: 'ms', spans: 5000, of: ({ summary }) => summary?.p999 },
  mean: { unit: 'ms', spans: MIN_SPANS, of: ({ summary }) => summary?.mean },
  max: { unit: 'ms', spans: MIN_SPANS, of: ({ summary }) => summary?.max },
  wait: { unit: 'ms', spans: MIN_SPANS, of: ({ split }) => split?.waited },
  run: { unit: 'ms', spans: MIN_SPANS, of: ({ split }) => split?.run },
  delayed: { unit: 'ms', spans: MIN_SPANS, of: ({ split }) => split?.delayed },
  errors: { unit: 'share', spans: MIN_SPANS, of: errorsOf },
  rate: { unit: 'rate', spans: 1, of: ({ rate }) => rate },
  count: { unit: 'count', spans: 1, of: ({ weighted }) => weighted }
})

/** @param {Route} route */
function errorsOf ({ errors, weighted }) {
  return weighted > 0 ? errors / weighted : undefined
}

/**
 * @param {Model} model its `compare`, if present, is the limited run
 * @param {Limit[]} limits
 * @returns {LimitCheck[]} exceeded first, then unchecked
 */
function checkLimits (model, limits) {
  const [before, after] = model.compare === undefined ? [undefined, model] : [model, model.compare]
  const others = new Map(before?.routes.map((route) => [routeKey(route), route]))
  const checks = limits.flatMap((limit) => [
    ...selectedRoutes(after, limit.pattern).map((route) => check(limit, others.get(routeKey(route)), route)),
    ...(before === undefined ? [] : missing(limit, before, after))
  ])
  const order = ['exceeded', 'unchecked', 'held']
  return checks.sort((a, b) => order.indexOf(a.state) - order.indexOf(b.state))
}

/**
 * Returns the routes that a limit applies to; routes without an ended span have no figures.
 * @param {Model} model
 * @param {string | undefined} pattern
 */
function selectedRoutes ({ routes }, pattern) {
  if (pattern === undefined) return requestRoutes(routes)
  const isSelected = routePattern(pattern)
  return routes.filter(({ name }) => isSelected(name))
}

/**
 * Lists routes that a pattern selects only in the first run, which would pass any limit.
 * @param {Limit} limit
 * @param {Model} before
 * @param {Model} after
 * @returns {LimitCheck[]}
 */
function missing ({ expression, pattern, metric }, before, after) {
  if (pattern === undefined) return []
  const present = new Set(after.routes.map(routeKey))
  const gone = selectedRoutes(before, pattern).filter((route) => !present.has(routeKey(route)))
  /** @type {Metric} */
  const { unit, of: figureOf } = metrics[metric]
  return gone.map((route) =>
    ({ expression, state: 'unchecked', route: route.name, kind: route.kind, unit, before: figureOf(route) }))
}

/**
 * @param {Limit} limit
 * @param {Route | undefined} other same route in the first run
 * @param {Route} route
 * @returns {LimitCheck}
 */
function check (limit, other, route) {
  /** @type {Metric} */
  const { unit, spans, of: figureOf } = metrics[limit.metric]
  const isChange = limit.kind !== 'value'
  const after = figureOf(route)
  const before = other && figureOf(other)
  // A failed request is not noise.
  const needed = limit.metric === 'errors' && !isChange ? 1 : spans
  const count = isChange ? Math.min(route.count, other?.count ?? Infinity) : route.count
  const result = { expression: limit.expression, route: route.name, kind: route.kind, unit, before, after }
  if (count < needed) return { ...result, state: 'unchecked', needed }
  if (after === undefined || (isChange && before === undefined)) return { ...result, state: 'unchecked' }
  return { ...result, state: isExceeded(limit, before ?? 0, after) ? 'exceeded' : 'held' }
}

/** @param {Limit} limit @param {number} before @param {number} after */
function isExceeded ({ kind, comparator, value }, before, after) {
  const figure = kind === 'value' ? after : kind === 'change' ? after - before : ratio(before, after)
  // Absorbs rounding: 11 ms is exactly 10 % more than 10 ms.
  const difference = Math.abs(figure - value) < 1e-9 * Math.max(1, Math.abs(value)) ? 0 : figure - value
  if (comparator === '>') return difference > 0
  if (comparator === '<') return difference < 0
  return comparator === '>=' ? difference >= 0 : difference <= 0
}

/**
 * Returns the relative change; infinite from zero to nonzero.
 * @param {number} before
 * @param {number} after
 */
function ratio (before, after) {
  return before === after ? 0 : (after - before) / before
}

module.exports = { checkLimits, isExceeded, metrics, ratio }
