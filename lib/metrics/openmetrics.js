'use strict'

// Metrics of threads as OpenMetrics text (specification 1.0): each metric once, with the points of all
// threads below it. A name gets its unit, and `_` for dots, as Prometheus does for those of OpenTelemetry;
// each point says of which process and thread it is.

const CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

const { getOrAdd } = require('../group-by')

/** UCUM to what a name ends with; things that are counted have none @type {Record<string, string>} */
const units = { s: 'seconds', ms: 'milliseconds' }

/**
 * @typedef {import('./figures').Metrics} Metrics
 * @typedef {import('./figures').Metric} Metric
 * @typedef {import('./figures').MetricPoint} MetricPoint
 * @typedef {Record<string, unknown>} Labels
 */

/** @param {Metrics[]} threads @returns {string} */
function formatOpenMetrics (threads) {
  /** by name @type {Map<string, string[]>} */
  const families = new Map()
  for (const { metrics, resource, sinceUnixMs } of threads) {
    const own = { process_pid: resource['process.pid'], longstack_thread: resource['longstack.thread'] ?? 0 }
    for (const [name, metric] of Object.entries(metrics)) {
      const fullName = nameOf(name, metric)
      const lines = getOrAdd(families, fullName, () => headOf(fullName, metric))
      for (const point of metric.points) {
        for (const [suffix, value, bound] of samplesOf(metric, point, sinceUnixMs)) {
          const labels = { ...own, ...point.attributes, ...(bound !== undefined && { le: bound }) }
          lines.push(`${fullName}${suffix}${labelsText(labels)} ${value}`)
        }
      }
    }
  }
  return `${[...families.values()].flat().concat('# EOF').join('\n')}\n`
}

/** @param {string} name @param {Metric} metric */
function nameOf (name, { unit }) {
  return `${name.replace(/[^a-zA-Z0-9_]/g, '_')}${units[unit] === undefined ? '' : `_${units[unit]}`}`
}

/** @param {string} name @param {Metric} metric */
function headOf (name, { type, unit, description }) {
  return [
    `# TYPE ${name} ${type === 'updowncounter' ? 'gauge' : type}`,
    ...(units[unit] === undefined ? [] : [`# UNIT ${name} ${units[unit]}`]),
    `# HELP ${name} ${escape(description)}`
  ]
}

/**
 * Lists the lines of a point: what the name ends with, the value, and the bound of a bucket.
 * @param {Metric} metric
 * @param {MetricPoint} point
 * @param {number} sinceUnixMs
 * @returns {Array<[suffix: string, value: number | undefined, bound?: string]>}
 */
function samplesOf ({ type }, { value, histogram }, sinceUnixMs) {
  const created = sinceUnixMs / 1000
  if (histogram === undefined) {
    return type === 'counter' ? [['_total', value], ['_created', created]] : [['', value]]
  }
  const { bounds, counts, count, sum } = histogram
  /** @type {ReturnType<typeof samplesOf>} */
  const samples = []
  let below = 0
  for (const [i, added] of counts.entries()) {
    below += added
    samples.push(['_bucket', below, i < bounds.length ? floatText(bounds[i]) : '+Inf'])
  }
  return [...samples, ['_count', count], ['_sum', sum], ['_created', created]]
}

/** @param {number} bound */
const floatText = (bound) => Number.isInteger(bound) ? `${bound}.0` : String(bound)

/** @param {Labels} labels */
function labelsText (labels) {
  const pairs = Object.entries(labels).map(([name, value]) =>
    `${name.replace(/[^a-zA-Z0-9_]/g, '_')}="${escape(String(value))}"`)
  return `{${pairs.join(',')}}`
}

/** @param {string} text which may have halves of surrogate pairs, as names of files may */
function escape (text) {
  // toWellFormed() is not in the types of es2023, but in Node 20
  const wellFormed = /** @type {any} */ (text).toWellFormed()
  return wellFormed.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')
}

module.exports = { CONTENT_TYPE, formatOpenMetrics }
