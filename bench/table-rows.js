'use strict'

// Builds the rows of all tables from the saved figures, starting with the heading; table.js formats them as
// text.

/**
 * @typedef {import('./rounds').Result} Result
 *
 * @typedef {object} Version
 * @property {string} node
 * @property {Result[]} results
 * @property {import('./memory').MemoryFigure[]} [memory]
 * @property {import('./capture').Figures | { failed: string }} [capture]
 *
 * @typedef {object} Workload
 * @property {string} says description
 * @property {string} unit such as µs/request
 * @property {'ratio' | 'value' | 'over'} shows figure in the summary
 * @property {number} warm seconds
 *
 * @typedef {object} Setup
 * @property {boolean} pinned
 * @property {number} rounds
 * @property {number} seconds
 * @property {number} turns of short processes
 * @property {number} hops of the memory cases
 * @property {boolean} quick
 * @property {string} conductor
 *
 * @typedef {object} Report
 * @property {string} date
 * @property {ReturnType<typeof import('./machine').describe>} machine
 * @property {Setup} how
 * @property {Record<string, string>} peers version by package
 * @property {Record<string, { says: string }>} subjects description by name
 * @property {Record<string, Workload>} workloads
 * @property {Version[]} versions
 */

const FULL = 'longstack-full'
const MIN_OVERHEAD = 0.005 // below this, a quotient of overheads is noise
const MAX_LISTED = 5 // rounds; if there are more, only min and max are printed
const MAIN_MAJOR = 24 // in the summary, other versions only have the workloads marked onAllVersions
/** @type {Array<{ workload: string, label: string, onAllVersions?: boolean }>} */
const SUMMARY_WORKLOADS = [
  { workload: 'hello', label: 'HTTP server, constant response', onAllVersions: true },
  { workload: 'real', label: 'HTTP server, promise-heavy', onAllVersions: true },
  { workload: 'fetch', label: 'client with `fetch`' },
  { workload: 'awaits', label: 'one `await`' },
  { workload: 'errors', label: 'an error thrown, caught and read' },
  { workload: 'first-error', label: 'the first error of a process' },
  { workload: 'start-up', label: 'start of a process' }
]
/** @type {Record<string, string>} */
const SUMMARY_SUBJECTS = {
  bare: 'bare',
  'longstack-full': 'full',
  'longstack-spans': 'full, spans',
  opentelemetry: 'OpenTelemetry'
}

/** @param {number | undefined} value @param {number} digits */
function fixed (value, digits) {
  return value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits)
}

/** @param {number | undefined} bytes */
const megabytes = (bytes) => fixed(bytes === undefined ? undefined : bytes / 1e6, 1)

/** Formats an amount with three significant digits. @param {number | undefined} value */
function amount (value) {
  if (value === undefined) return '–'
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

/** @param {Result} result */
function formatRounds ({ ratios }) {
  if (ratios.length <= MAX_LISTED) return ratios.map((ratio) => ratio.toFixed(2)).join(' ')
  return `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`
}

/**
 * Formats the overhead as a multiple of that of longstack-full.
 * @param {Result} result
 * @param {Result[]} results of the same workload
 */
function overheadOfFull ({ ratio, subject }, results) {
  const full = results.find((other) => other.subject === FULL)?.ratio
  if (ratio === undefined || full === undefined || subject === 'bare' || full - 1 < MIN_OVERHEAD) return '–'
  return `${Math.max(0, (ratio - 1) / (full - 1)).toFixed(1)} ×`
}

/** @param {Result} result */
function remarks ({ failed, failures, value, inForce, warning }) {
  const parts = []
  if (inForce !== undefined) parts.push(inForce.engine)
  if (warning !== undefined) parts.push('NOT AS REQUESTED')
  if (inForce?.fault !== undefined) parts.push(`defect: ${inForce.fault}`)
  if (failed !== undefined && value !== undefined) {
    parts.push(`failed ${failures === 1 ? 'once' : `${failures} times`}: ${failed}`)
  }
  return parts.join('; ')
}

/**
 * @param {Result[]} results of one workload
 * @param {Workload} workload
 * @returns {string[][]} the first row is the heading
 */
function workloadRows (results, { unit }) {
  const hasMemory = results.some(({ rss }) => rss !== undefined)
  const memory = hasMemory ? ['rss MB', 'rss over bare', 'heap MB'] : []
  const ratioNames = ['ratio', 'rounds', '× overhead of full']
  const heading = ['subject', unit, 'over bare', ...ratioNames, ...memory, 'remarks']
  return [heading, ...results.map((result) => {
    const { subject, value, over: overBare, ratio, rss, rssOver, heapUsed, failed } = result
    if (value === undefined) return [subject, `failed: ${failed ?? 'no run'}`]
    const bytes = hasMemory ? [rss, rssOver, heapUsed].map(megabytes) : []
    const ratios = [fixed(ratio, 2), formatRounds(result), overheadOfFull(result, results)]
    return [subject, amount(value), amount(overBare), ...ratios, ...bytes, remarks(result)]
  })]
}

/** @param {NonNullable<Version['memory']>} memory */
function memoryRows (memory) {
  const names = [...new Set(memory.map(({ subject }) => subject))]
  const cases = [...new Set(memory.map((figure) => figure.case))]
  return [['case', ...names], ...cases.map((name) => [name, ...names.map((subject) => {
    const figure = memory.find((other) => other.case === name && other.subject === subject)
    return figure?.left === undefined ? 'failed' : `${fixed(figure.left, 2)} (${fixed(figure.peak, 0)})`
  })])]
}

/** @param {NonNullable<Version['capture']>} capture */
function captureRows (capture) {
  const heading = ['operation', 'ns']
  if ('failed' in capture) return [heading, ['failed', capture.failed]]
  if (capture.walk === undefined) return [heading, ['failed', `no native engine: ${capture.why}`]]
  return [
    heading,
    ['the stack walk, call from JavaScript included', fixed(capture.walk, 1)],
    ['with its chain and the time, as in a hook', fixed(capture.step, 1)],
    ['performance.now() alone', fixed(capture.clock, 1)],
    ['Error.captureStackTrace', fixed(capture.v8, 0)]
  ]
}

/** @param {Workload} workload @returns {string} unit without the divisor: µs for µs/request */
const unitOf = ({ unit }) => unit.split('/')[0]

/** @param {Result | undefined} result @param {Workload} workload */
function summaryCell (result, workload) {
  if (result === undefined) return '–'
  if (result.value === undefined) return 'failed'
  if (workload.shows === 'ratio') return fixed(result.ratio, 2)
  const unit = unitOf(workload)
  const isOver = workload.shows === 'over' && result.subject !== 'bare'
  return isOver ? `+${amount(result.over)} ${unit}` : `${amount(result.value)} ${unit}`
}

/** @param {Version} version @param {Report['workloads']} workloads */
function versionRows ({ results }, workloads) {
  const names = [...new Set(results.map(({ workload }) => workload))]
  const subjects = [...new Set(results.map(({ subject }) => subject))]
  return [['subject', ...names], ...subjects.map((subject) => [subject, ...names.map((name) => {
    const result = results.find((other) => other.subject === subject && other.workload === name)
    return summaryCell(result, workloads[name])
  })])]
}

/** @param {Report} report @returns {string[][]} the rows of the table in README.md */
function summaryRows ({ versions, workloads }) {
  const main = versions.find(({ node }) => parseInt(node) === MAIN_MAJOR) ?? versions.at(-1)
  const lines = SUMMARY_WORKLOADS.flatMap(({ workload, label, onAllVersions = false }) =>
    versions.filter((version) => onAllVersions || version === main).map(({ node, results }) => ({
      workload,
      label: `${label}, Node ${parseInt(node)}`,
      results: results.filter((result) => result.workload === workload)
    })).filter(({ results }) => results.length > 1))
  const measured = new Set(lines.flatMap(({ results }) => results.map(({ subject }) => subject)))
  const columns = Object.keys(SUMMARY_SUBJECTS).filter((name) => measured.has(name))
  const heading = ['', ...columns.map((name) => SUMMARY_SUBJECTS[name])]
  return [heading, ...lines.map(({ workload, label, results }) => [
    label,
    ...columns.map((name) => {
      const result = results.find(({ subject }) => subject === name)
      const isAmount = name === 'bare' && result?.value !== undefined
      if (!isAmount) return summaryCell(result, workloads[workload])
      return `${amount(result.value)} ${unitOf(workloads[workload])}`
    })
  ])]
}

module.exports = { workloadRows, memoryRows, captureRows, versionRows, summaryRows }
