'use strict'

// Metrics of threads as OpenMetrics text (specification 1.0): each metric once, followed by the points of all
// threads. Names get a unit suffix, and `_` for dots, as Prometheus does for OpenTelemetry's names. Labels of
// a point name its process and thread.

const CONTENT_TYPE = 'application/openmetrics-text; version=1.0.0; charset=utf-8'

const { getOrAdd } = require('../group-by')

/** name suffixes by UCUM unit; counted things have none @type {Record<string, string>} */
const units = { s: 'seconds', ms: 'milliseconds' }

/**
 * @typedef {import('./figures').Metrics} Metrics
 * @typedef {import('./figures').Metric} Metric
 * @typedef {import('./figures').MetricPoint} MetricPoint
 * @typedef {Record<string, unknown>} Labels
 */

/** @param {Metrics[]} threads @returns {string} */
function formatOpenMetrics (threads) {
  /** lines by name @type {Map<string, string[]>} */
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
 * Lists the lines of a point: name suffix, value, and the bound of a bucket.
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

/** @param {string} text may contain lone surrogates, as file names do */
function escape (text) {
  // toWellFormed() exists in Node 20 but not in the types of es2023
  const wellFormed = /** @type {any} */ (text).toWellFormed()
  return wellFormed.replace(/["\\]/g, '\\$&').replaceAll('\n', '\\n')
}

module.exports = { CONTENT_TYPE, formatOpenMetrics }
