'use strict'

// Formats the saved figures: all tables on the terminal, one per version of Node in docs/cost.md, and the
// short table of README.md. table-rows.js builds the rows.

const { workloadRows, memoryRows, captureRows, versionRows, summaryRows } = require('./table-rows')

/**
 * @typedef {import('./rounds').Result} Result
 * @typedef {import('./table-rows').Report} Report
 * @typedef {import('./table-rows').Version} Version
 * @typedef {{ title: string, rows: string[][], note?: string }} Table
 */

const BUSY_LOAD = 0.9
const SUMMARY_MARKS = ['<!-- cost: written by npm run bench -- --docs -->', '<!-- /cost -->']

/** @param {Result[]} results of one workload @returns {string | undefined} how busy the CPUs were */
function busyNote (results) {
  const busy = results.find(({ subject }) => subject === 'bare')?.busy
  if (busy === undefined || busy.load === 0) return undefined
  const percent = (/** @type {number} */ share) => `${Math.round(share * 100)} %`
  const [subjectShare, loadShare] = [percent(busy.subjects), percent(busy.load)]
  const line = `Busy: the CPU of the subjects to ${subjectShare}, that of their loads to ${loadShare}.`
  return busy.load > BUSY_LOAD ? `${line} The load generators were the bottleneck.` : line
}

/** @param {Result[]} results @returns {string[]} one sentence per subject that did not run as requested */
function warnings (results) {
  const wrong = results.filter(({ warning }) => warning !== undefined)
  return [...new Set(wrong.map(({ subject, warning }) => `${subject}: ${warning}.`))]
}

/** @param {string[][]} rows the last cell of a short row extends to the end of the line */
function plainTable (rows) {
  const isShort = (/** @type {string[]} */ row) => row.length < rows[0].length
  const width = (/** @type {string[]} */ row, /** @type {number} */ column) =>
    row.length > column && !(isShort(row) && column === row.length - 1) ? row[column].length : 0
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => width(row, column))))
  return rows.map((row) => row.map((cell, column) => {
    const isText = column === 0 || column === widths.length - 1 || isShort(row)
    return isText ? cell.padEnd(widths[column]) : cell.padStart(widths[column])
  }).join('  ').trimEnd()).join('\n')
}

/** @param {string[][]} rows */
function markdownTable ([heading, ...rows]) {
  const escaped = (/** @type {string} */ cell) => cell.replaceAll('|', '\\|')
  const line = (/** @type {string[]} */ cells) => `| ${cells.map(escaped).join(' | ')} |`
  const filled = rows.map((row) => [...row, ...Array(heading.length - row.length).fill('')])
  const numeric = heading.map((name, column) => column === 0 || name === 'remarks' ? '---' : '---:')
  return [line(heading), line(numeric), ...filled.map(line)].join('\n')
}

/** @param {Report} report @returns {Array<{ title: string, version: Version, parts: Table[] }>} */
function tables (report) {
  return report.versions.map((version) => {
    /** @type {Table[]} */
    const parts = []
    for (const [name, workload] of Object.entries(report.workloads)) {
      const results = version.results.filter((result) => result.workload === name)
      if (results.length === 0) continue
      const rows = workloadRows(results, workload)
      parts.push({ title: `${name}: ${workload.says}`, rows, note: busyNote(results) })
    }
    if (version.memory !== undefined) {
      const steps = report.how.hops.toLocaleString('en')
      const title = `memory: MB of heap growth after ${steps} steps (peak resident memory)`
      parts.push({ title, rows: memoryRows(version.memory) })
    }
    if (version.capture !== undefined) {
      const title = 'capture: ten frames of a stack captured before'
      parts.push({ title, rows: captureRows(version.capture) })
    }
    return { title: `Node ${version.node}`, version, parts }
  })
}

/** @param {Report} report */
function terminal (report) {
  return tables(report).map(({ title, version, parts }) => [
    title,
    ...parts.map(({ title: name, rows, note = '' }) => `${name}\n${plainTable(rows)}\n${note}`.trimEnd()),
    ...warnings(version.results).map((warning) => `Warning: ${warning}`)
  ].join('\n\n')).join('\n\n')
}

/** @param {Report} report @returns {string} a markdown list of the conditions of the measurement */
function method ({ how: setup, workloads }) {
  const rounds = `${setup.rounds} round${setup.rounds === 1 ? '' : 's'}`
  const warm = [...new Set(Object.values(workloads).map((workload) => workload.warm))].filter((s) => s > 0)
  const seconds = warm.sort((a, b) => b - a).join(', ')
  return [
    '- All subjects of a workload run at the same time in clean child processes and share one CPU in ' +
      'slices of milliseconds, so that anything that slows the machine slows all of them equally.',
    setup.pinned
      ? '- They were pinned to one CPU, and their load generators to another.'
      : '- **Nothing was pinned to a CPU: there was no taskset.**',
    `- Warm-up: ${seconds} s, depending on the workload. Measured: ${setup.seconds} s in each of ${rounds}` +
      '; the figure is the median of the ratios to bare in the same round.',
    '- CPU is that of the whole process, including garbage collector and compiler threads, per unit of work.',
    `- Start-up and the first error are wall time of ${setup.turns} processes of each subject, alternating ` +
      'with bare.',
    '- Afterwards each subject had to prove that it was active, by a long stack, a span or a list of ' +
      'handles.',
    '',
    'For the cost of many pending timers, see [limits](limits.md#memory-and-cost).'
  ].join('\n')
}

/** @param {Report} report */
function page (report) {
  const { machine, how: setup, peers, subjects, workloads } = report
  const versions = report.versions.map(({ node }) => node).join(', ')
  const sections = report.versions.map((version) => [
    `## Node ${version.node}`,
    markdownTable(versionRows(version, workloads)),
    ...warnings(version.results).map((warning) => `**Warning.** ${warning}`)
  ].join('\n\n'))
  const quick = setup.quick
    ? '. **A quick run: it proves that everything works; its figures mean nothing**'
    : ''
  /** @param {Array<[string, { says: string }]>} entries */
  const list = (entries) => entries.map(([name, { says }]) => `- **${name}**: ${says}`).join('\n')
  const measured = new Set(report.versions.flatMap(({ results }) => results.map(({ workload }) => workload)))
  return [
    '<!-- Generated by npm run bench -- --docs. Do not edit. -->',
    '# What tracing costs',
    `Measured on ${report.date.slice(0, 10)} with Node ${versions} on ${machine.cpu}, ` +
      `${machine.processors} CPUs, ${Math.round(machine.memory / 2 ** 30)} GiB, ${machine.system}${quick}. ` +
      'Absolute times drift between runs; ratios within one run are comparable.',
    'Ratios are CPU per unit of work relative to bare Node. Figures with a unit are absolute; `+` means in ' +
      'addition to bare Node.',
    ...sections,
    '## What was measured',
    'Workloads:',
    list(Object.entries(workloads).filter(([name]) => measured.has(name))),
    'Subjects:',
    list(Object.entries(subjects)),
    'Method:',
    method(report),
    ...Object.keys(peers).length > 0
      ? [`Versions: ${Object.entries(peers).map(([name, version]) => `${name} ${version}`).join(', ')}.`]
      : [],
    [
      '```',
      'npm run bench -- --json figures.json --node /path/to/node24,/path/to/node26',
      'npm run bench -- --from figures.json --docs',
      '```'
    ].join('\n')
  ].join('\n\n') + '\n'
}

/**
 * Writes the short table between the markers of the README.
 * @param {string} readme
 * @param {Report} report
 * @returns {string}
 * @throws {Error} if the markers are missing
 */
function withSummary (readme, report) {
  const [begin, end] = SUMMARY_MARKS
  const start = readme.indexOf(begin)
  const stop = readme.indexOf(end, start)
  if (start === -1 || stop === -1) throw new Error(`README.md lacks the marks ${begin} and ${end}`)
  const summary = markdownTable(summaryRows(report))
  return `${readme.slice(0, start + begin.length)}\n\n${summary}\n\n${readme.slice(stop)}`
}

module.exports = { terminal, page, withSummary }
