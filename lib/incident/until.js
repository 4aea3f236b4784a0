'use strict'

// longstack PID --until 'p99 > 500 ms': polls the figures of a running process, those of longstack top, until
// a limit is exceeded or its event loop stops responding.

const { setTimeout: sleep } = require('node:timers/promises')
const { isExceeded, metrics } = require('../../report/aggregate/limits')
const { routePattern } = require('../../report/aggregate/route-names')
const { counted, value } = require('../../report/render/text-parts')
const { UsageError, quote } = require('../cli/flags')
const { parseLimit } = require('../cli/limit-parser')
const { Model } = require('../top/model')
const { Watched } = require('../top/watched')

const INTERVAL_MS = 1000
const WINDOW_MS = 10_000 // that figures cover
const MIN_REQUESTS = 10 // in it, for a quantile, mean or share

/**
 * @typedef {import('../../report/aggregate/limits').Limit} Limit
 * @typedef {import('../top/model').RouteRow} RouteRow
 *
 * @typedef {object} Exceeded
 * @property {string} metric
 * @property {string | undefined} route undefined: all
 */

/** By metric, from the figures of a route. @type {Record<string, (row: RouteRow) => number | undefined>} */
const figures = {
  p50: ({ count, p50Ms }) => count < MIN_REQUESTS ? undefined : p50Ms,
  p99: ({ count, p99Ms }) => count < MIN_REQUESTS ? undefined : p99Ms,
  mean: ({ count, meanMs }) => count < MIN_REQUESTS ? undefined : meanMs,
  max: ({ count, maxMs }) => count === 0 ? undefined : maxMs,
  errors: ({ count, errors }) => count < MIN_REQUESTS ? undefined : errors / count,
  rate: ({ perSecond }) => perSecond
}

/**
 * Parses the value of --until.
 * @param {string} expression
 * @returns {Limit}
 * @throws {UsageError}
 */
function untilLimit (expression) {
  const limit = parseLimit(expression, 'until')
  const fail = (/** @type {string} */ reason) => new UsageError(`--until ${quote(expression)}: ${reason}.`)
  if (limit.kind !== 'value') throw fail('a change needs a run to compare with')
  if (!Object.hasOwn(figures, limit.metric)) {
    throw fail(`the metric must be one of ${Object.keys(figures).join(', ')}`)
  }
  return limit
}

/**
 * Waits until a process exceeds a limit. It is traced meanwhile.
 * @param {string} name of the process, a word of the command line
 * @param {Limit} limit
 * @param {boolean} withChildren
 * @param {(status: string) => void} show
 * @returns {Promise<{ sentence: string, exceeded?: Exceeded }>} exceeded: unless it does not respond
 * @throws {import('../ask/system').RefusedError} if the process does not respond at first, or ends
 */
async function waitUntil (name, limit, withChildren, show) {
  const watched = new Watched(name, { intervalMs: INTERVAL_MS, blockedMs: undefined })
  const model = new Model()
  try {
    await watched.connect(withChildren)
    for (;;) {
      const answers = await watched.poll()
      model.add(answers, Date.now())
      const silent = answers.find(({ silentMs }) => silentMs >= WINDOW_MS / 2)
      if (silent !== undefined) return { sentence: `Process ${silent.key.split(' ')[0]} does not respond.` }
      const { routes, total } = model.frame(WINDOW_MS)
      const exceeded = exceededRow(limit, limit.pattern === undefined ? [total] : routes)
      if (exceeded !== undefined) return exceeded
      const requests = counted(total.count, 'request')
      show(`waiting until ${limit.expression}: ${requests} in the last ${WINDOW_MS / 1000} s`)
      await sleep(INTERVAL_MS)
      watched.discover()
    }
  } finally {
    await watched.close()
  }
}

/**
 * @param {Limit} limit
 * @param {RouteRow[]} rows
 * @returns {{ sentence: string, exceeded: Exceeded } | undefined}
 */
function exceededRow (limit, rows) {
  const isSelected = limit.pattern === undefined ? () => true : routePattern(limit.pattern)
  for (const row of rows.filter(({ name }) => isSelected(name))) {
    const figure = figures[limit.metric](row)
    if (figure === undefined || !isExceeded(limit, 0, figure)) continue
    const route = limit.pattern === undefined ? undefined : row.name
    const place = route === undefined ? '' : ` of ${route}`
    const sentence = `${limit.metric}${place} is ${value(figure, metrics[limit.metric].unit)}.`
    return { sentence, exceeded: { metric: limit.metric, route } }
  }
}

module.exports = { untilLimit, waitUntil }
