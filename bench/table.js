'use strict'

// The saved figures as tables: on the terminal, as the page docs/cost.md, and as the short table of
// README.md. Data in, text out.

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
 * @property {string} says
 * @property {string} unit such as µs/request
 * @property {'ratio' | 'value' | 'over'} shows what a summary shows of it
 * @property {number} warm seconds
 *
 * @typedef {object} How
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
 * @property {How} how
 * @property {Record<string, string>} peers version by package
 * @property {Record<string, { says: string }>} subjects
 * @property {Record<string, Workload>} workloads
 * @property {Version[]} versions
 *
 * @typedef {{ title: string, rows: string[][], note?: string }} Part
 */

const FULL = 'longstack-full'
const MIN_OVERHEAD = 0.005 // below this a quotient of overheads means nothing
const MAX_LISTED = 5 // rounds; of more than that the least and the most are given
const BUSY_LOAD = 0.9

const SUMMARY_MARKS = ['<!-- cost: written by npm run bench -- --docs -->', '<!-- /cost -->']
const MAIN_MAJOR = 24 // the summary gives the lesser workloads for one version only
/** @type {Array<{ workload: string, label: string, onAllVersions?: boolean }>} */
const SUMMARY_WORKLOADS = [
  { workload: 'hello', label: 'HTTP server, constant answer', onAllVersions: true },
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
  'longstack-light': 'light',
  'longstack-full': 'full',
  'longstack-light-spans': 'light, spans',
  'longstack-spans': 'full, spans',
  opentelemetry: 'OpenTelemetry'
}

/** @param {number | undefined} value @param {number} digits */
function fixed (value, digits) {
  return value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits)
}

/** @param {number | undefined} bytes */
const megabytes = (bytes) => fixed(bytes === undefined ? undefined : bytes / 1e6, 1)

/** Formats an amount with three digits that count. @param {number | undefined} value */
function amount (value) {
  if (value === undefined) return '–'
  return value.toFixed(Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2)
}

/** @param {Result} result */
function roundsOf ({ ratios }) {
  if (ratios.length <= MAX_LISTED) return ratios.map((ratio) => ratio.toFixed(2)).join(' ')
  return `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`
}

/** Formats how many times the overhead of longstack in full. @param {Result} result @param {Result[]} all */
function against ({ ratio, subject }, all) {
  const full = all.find((other) => other.subject === FULL)?.ratio
  if (ratio === undefined || full === undefined || subject === 'bare' || full - 1 < MIN_OVERHEAD) return '–'
  return `${Math.max(0, (ratio - 1) / (full - 1)).toFixed(1)} ×`
}

/** @param {Result} result */
function remarks ({ failed, failures, value, inForce, warning }) {
  const list = []
  if (inForce !== undefined) list.push(`${inForce.engine}, ${inForce.mode}`)
  if (warning !== undefined) list.push('NOT WHAT WAS ASKED FOR')
  if (inForce?.fault !== undefined) list.push(`defect: ${inForce.fault}`)
  if (failed !== undefined && value !== undefined) {
    list.push(`failed ${failures === 1 ? 'once' : `${failures} times`}: ${failed}`)
  }
  return list.join('; ')
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
    const { subject, value, over, ratio, rss, rssOver, heapUsed, failed } = result
    if (value === undefined) return [subject, `failed: ${failed ?? 'no run'}`]
    const bytes = hasMemory ? [rss, rssOver, heapUsed].map(megabytes) : []
    const ratios = [fixed(ratio, 2), roundsOf(result), against(result, results)]
    return [subject, amount(value), amount(over), ...ratios, ...bytes, remarks(result)]
  })]
}

/** @param {Result[]} results of one workload @returns {string | undefined} how busy the processors were */
function busyNote (results) {
  const busy = results.find(({ subject }) => subject === 'bare')?.busy
  if (busy === undefined || busy.load === 0) return undefined
  const percent = (/** @type {number} */ share) => `${Math.round(share * 100)} %`
  const [ours, loads] = [percent(busy.subjects), percent(busy.load)]
  const line = `Busy: the processor of the subjects to ${ours}, that of their loads to ${loads}.`
  return busy.load > BUSY_LOAD ? `${line} The load generators were the bottleneck.` : line
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
  const heading = ['what', 'ns']
  if ('failed' in capture) return [heading, ['failed', capture.failed]]
  if (capture.walk === undefined) return [heading, ['failed', `no native engine: ${capture.why}`]]
  return [
    heading,
    ['the walk, call from JavaScript included', fixed(capture.walk, 1)],
    ['with its chain and the time, as a hook does it', fixed(capture.step, 1)],
    ['performance.now() alone', fixed(capture.clock, 1)],
    ['Error.captureStackTrace', fixed(capture.v8, 0)]
  ]
}

/** @param {Workload} workload @returns {string} without what it is one of: µs of µs/request */
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

/** @param {Result[]} results @returns {string[]} one sentence per subject that did not get what it asked for */
function warnings (results) {
  const wrong = results.filter(({ warning }) => warning !== undefined)
  return [...new Set(wrong.map(({ subject, warning }) => `${subject}: ${warning}.`))]
}

/** @param {string[][]} rows a short row's last cell runs to the end of the line */
function plain (rows) {
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
function markdown ([heading, ...rows]) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const filled = rows.map((row) => [...row, ...Array(heading.length - row.length).fill('')])
  const numeric = heading.map((name, column) => column === 0 || name === 'remarks' ? '---' : '---:')
  return [line(heading), line(numeric), ...filled.map(line)].join('\n')
}

/** @param {Report} report @returns {Array<{ title: string, version: Version, parts: Part[] }>} */
function tables (report) {
  return report.versions.map((version) => {
    /** @type {Part[]} */
    const parts = []
    for (const [name, workload] of Object.entries(report.workloads)) {
      const results = version.results.filter((result) => result.workload === name)
      if (results.length === 0) continue
      const rows = workloadRows(results, workload)
      parts.push({ title: `${name}: ${workload.says}`, rows, note: busyNote(results) })
    }
    if (version.memory !== undefined) {
      const steps = report.how.hops.toLocaleString('en')
      const title = `memory: MB left of the heap after ${steps} steps (most resident memory)`
      parts.push({ title, rows: memoryRows(version.memory) })
    }
    if (version.capture !== undefined) {
      parts.push({ title: 'capture: ten frames, known before', rows: captureRows(version.capture) })
    }
    return { title: `Node ${version.node}`, version, parts }
  })
}

/** @param {Report} report */
function terminal (report) {
  return tables(report).map(({ title, version, parts }) => [
    title,
    ...parts.map(({ title: name, rows, note = '' }) => `${name}\n${plain(rows)}\n${note}`.trimEnd()),
    ...warnings(version.results).map((warning) => `Warning: ${warning}`)
  ].join('\n\n')).join('\n\n')
}

/** @param {Report} report @returns {string} how it was measured, as a list */
function method ({ how, workloads }) {
  const rounds = `${how.rounds} round${how.rounds === 1 ? '' : 's'}`
  const warm = [...new Set(Object.values(workloads).map((workload) => workload.warm))].filter((s) => s > 0)
  const seconds = warm.sort((a, b) => b - a).join(', ')
  const own = 'Each server has a load generator of its own (bench/load.js)'
  return [
    '- Every figure comes from clean child processes. All subjects of a workload run at once, bare and at ' +
      'most four others; of more there are several groups, each with bare. They share one processor in slices ' +
      'of milliseconds, so that whatever slows the machine slows all alike.',
    how.pinned
      ? `- The subjects were pinned to one processor, their loads to another. ${own}; all clients share one ` +
        'server, which runs beside the loads.'
      : `- **Nothing was pinned to a processor: there was no taskset.** ${own}.`,
    `- Warm-up: ${seconds} s, by workload. Measured: ${how.seconds} s in each of ${rounds}. The ratio is that ` +
      'of CPU per unit to bare in the same group and round; the table gives its median, and each round beside ' +
      'it. A subject that fills a smaller group is measured twice in a round, which counts as their mean.',
    '- CPU is that of the whole process, collector and compiler threads included, divided by the units done.',
    '- rss is that under load, heap what is left once connections are closed, after several mark-sweeps.',
    `- Start-up and the first error: ${how.turns} processes of each subject in turn with bare, wall time; ` +
      'their median, and the median of what each is over bare in the same turn.',
    '- “× overhead of full”: (ratio − 1) ÷ (ratio of longstack-full − 1), same workload.',
    '- After its figures were taken each subject had to show in the same child that it was at work (a long ' +
      'stack, a span, a list of handles …); for longstack the engine and mode in force are what it reports itself.'
  ].join('\n')
}

/** @param {Report} report */
function page (report) {
  const { machine, how, peers, subjects, workloads } = report
  const versions = report.versions.map(({ node }) => node).join(', ')
  const sections = tables(report).map(({ title, version, parts }) => [
    `## ${title}`,
    'Ratios of CPU per unit to that of bare Node; where a unit is given, the amount itself:',
    markdown(versionRows(version, workloads)),
    ...warnings(version.results).map((warning) => `**Warning.** ${warning}`),
    ...parts.map(({ title: name, rows, note = '' }) => `### ${name}\n\n${markdown(rows)}\n\n${note}`.trimEnd())
  ].join('\n\n'))
  const quick = how.quick ? '. **A quick run: it shows that everything works, the figures mean nothing**' : ''
  return [
    '<!-- Generated by npm run bench -- --docs. Do not edit. -->',
    '# What tracing costs',
    `Measured on ${report.date.slice(0, 10)} with Node ${versions} on ${machine.cpu}, ${machine.processors} ` +
      `processors, ${Math.round(machine.memory / 2 ** 30)} GiB, ${machine.system}${quick}. The machine's load ` +
      `before was ${machine.loadBefore.toFixed(1)}. Absolute times drift from run to run; ratios inside one run hold.`,
    ...sections,
    '## How it was measured',
    method(report),
    'The workloads:',
    Object.entries(workloads).map(([name, { says }]) => `- **${name}**: ${says}`).join('\n'),
    'The subjects:',
    Object.entries(subjects).map(([name, { says }]) => `- **${name}**: ${says}`).join('\n'),
    ...Object.keys(peers).length > 0
      ? [`Versions: ${Object.entries(peers).map(([name, version]) => `${name} ${version}`).join(', ')}.`]
      : [],
    '## How to repeat it',
    [
      '```',
      'npm run bench -- --json figures.json --node /path/to/node24,/path/to/node26',
      'npm run bench -- --from figures.json --docs',
      'npm run bench -- --bars --node /path/to/node20,/path/to/node22,/path/to/node24,/path/to/node26',
      'npm run bench -- --subjects longstack-full,trace --workloads real',
      'npm run bench -- --help',
      '```'
    ].join('\n')
  ].join('\n\n') + '\n'
}

/**
 * Puts the short table between the marks of the README.
 * @param {string} readme
 * @param {Report} report
 * @returns {string}
 * @throws {Error} where the marks are missing
 */
function withSummary (readme, report) {
  const [begin, end] = SUMMARY_MARKS
  const from = readme.indexOf(begin)
  const to = readme.indexOf(end, from)
  if (from === -1 || to === -1) throw new Error(`README.md lacks the marks ${begin} and ${end}`)
  return `${readme.slice(0, from + begin.length)}\n\n${markdown(summaryRows(report))}\n\n${readme.slice(to)}`
}

module.exports = { terminal, page, withSummary }
