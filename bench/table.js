'use strict'

// The saved figures as tables: on the terminal, and as the page docs/cost.md. Data in, text out.

/**
 * @typedef {import('./rounds').Result} Result
 * @typedef {import('./start-up').StartUp} StartUp
 *
 * @typedef {object} Version
 * @property {string} node
 * @property {Result[]} results
 * @property {StartUp[]} startUp
 * @property {import('./capture').Figures | { failed: string }} [capture]
 *
 * @typedef {object} Report
 * @property {string} date
 * @property {ReturnType<typeof import('./machine').describe>} machine
 * @property {{ pinned: boolean, generator: string, startUp: string, rounds: number, quick: boolean, conductor: string }} how
 * @property {Record<string, string>} peers version by package
 * @property {Record<string, { says: string }>} subjects
 * @property {Record<string, { says: string, unit: string, server: boolean }>} workloads
 * @property {Version[]} versions
 */

const NATIVE_FULL = 'longstack-native'
const LEAST_OVERHEAD = 0.005 // below this a quotient of overheads says nothing
const UNSETTLED = 0.15 // a price that still changes so much

const fixed = (/** @type {number | undefined} */ value, /** @type {number} */ digits) => value === undefined || Number.isNaN(value) ? '–' : value.toFixed(digits)
const megabytes = (/** @type {number | undefined} */ bytes) => fixed(bytes === undefined ? undefined : bytes / 1e6, 1)

/** A price: three digits that count. @param {number | undefined} value */
function price (value) {
  if (value === undefined) return '–'
  return value.toFixed(value >= 100 ? 0 : value >= 10 ? 1 : 2)
}

/** @param {Result} result */
function spread ({ spread }) {
  return spread === undefined ? '–' : `${fixed(spread[0], 2)}–${fixed(spread[1], 2)}`
}

/** How many times the overhead of longstack in full with the native engine. @param {Result} result @param {Result[]} all */
function against ({ ratio, subject }, all) {
  const measure = all.find((other) => other.subject === NATIVE_FULL)?.ratio
  if (ratio === undefined || measure === undefined || subject === 'bare' || measure - 1 < LEAST_OVERHEAD) return '–'
  return `${Math.max(0, (ratio - 1) / (measure - 1)).toFixed(1)} ×`
}

/** @param {Result} result @param {boolean} quick where nothing has time to settle */
function remarks ({ failed, failures, cpu, inForce, warning, drift = 1 }, quick) {
  const said = []
  if (inForce !== undefined) said.push(`${inForce.engine}, ${inForce.mode}`)
  if (warning !== undefined) said.push('NOT WHAT WAS ASKED FOR')
  if (inForce?.fault !== undefined) said.push(`defect: ${inForce.fault}`)
  if (!quick && Math.abs(drift - 1) > UNSETTLED) said.push(`not settled, ×${drift.toFixed(2)} from first to second half`)
  if (failed !== undefined && cpu !== undefined) said.push(`failed ${failures === 1 ? 'once' : `${failures} times`}: ${failed}`)
  return said.join('; ')
}

/**
 * @param {Result[]} results of one workload
 * @param {{ unit: string, server: boolean }} workload
 * @param {boolean} quick
 * @returns {string[][]} the first row is the heading
 */
function workloadRows (results, { unit, server }, quick) {
  const latency = server ? ['p99 ms'] : []
  const heading = ['subject', `CPU µs/${unit}`, 'ratio', 'spread', '× overhead of native full', ...latency, 'heap MB', 'rss MB', 'remarks']
  return [heading, ...results.map((result) => {
    const name = result.subject
    if (result.cpu === undefined) return [name, `failed: ${result.failed ?? 'no run'}`]
    const p99 = server ? [fixed(result.p99, 2)] : []
    return [name, price(result.cpu), fixed(result.ratio, 2), spread(result), against(result, results), ...p99, megabytes(result.heapUsed), megabytes(result.rss), remarks(result, quick)]
  })]
}

/** @param {StartUp[]} startUp */
function startUpRows (startUp) {
  return [['subject', 'ms', 'ms over bare'], ...startUp.map(({ subject, ms, over, failed }) => failed === undefined
    ? [subject, fixed(ms, 1), fixed(over, 1)]
    : [subject, `failed: ${failed}`])]
}

/** @param {NonNullable<Version['capture']>} capture */
function captureRows (capture) {
  const heading = ['what', 'ns']
  if ('failed' in capture) return [heading, ['failed', capture.failed]]
  if (capture.walk === undefined) return [heading, ['failed', `no native engine: ${capture.why}`]]
  return [
    heading,
    ['the walk, call from JavaScript included', fixed(capture.walk, 1)],
    ['with time and context, as a hook does it', fixed(capture.take, 1)],
    ['performance.now() alone', fixed(capture.clock, 1)],
    ['Error.captureStackTrace', fixed(capture.v8, 0)]
  ]
}

/** Median ratios of all workloads. @param {Version} version */
function summaryRows ({ results }) {
  const workloads = [...new Set(results.map(({ workload }) => workload))]
  const subjects = [...new Set(results.map(({ subject }) => subject))]
  return [['subject', ...workloads], ...subjects.map((subject) => [subject, ...workloads.map((workload) => {
    const result = results.find((other) => other.subject === subject && other.workload === workload)
    return result?.cpu === undefined ? 'failed' : fixed(result.ratio, 2)
  })])]
}

/** @param {Result[]} results @returns {string[]} one sentence per subject that did not get what it asked for */
function warnings (results) {
  const said = results.filter(({ warning }) => warning !== undefined).map(({ subject, warning }) => `${subject}: ${warning}.`)
  return [...new Set(said)]
}

/** @param {string[][]} rows a short row's last cell runs to the end of the line */
function plain (rows) {
  const widths = rows[0].map((_, column) => Math.max(...rows.map((row) => row.length > column && !(row.length < rows[0].length && column === row.length - 1) ? row[column].length : 0)))
  return rows.map((row) => row.map((cell, column) => column === 0 || column === widths.length - 1 || row.length < rows[0].length
    ? cell.padEnd(widths[column])
    : cell.padStart(widths[column])).join('  ').trimEnd()).join('\n')
}

/** @param {string[][]} rows */
function markdown ([heading, ...rows]) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  const filled = rows.map((row) => [...row, ...Array(heading.length - row.length).fill('')])
  const numeric = heading.map((name, column) => column === 0 || name === 'remarks' ? '---' : '---:')
  return [line(heading), line(numeric), ...filled.map(line)].join('\n')
}

/** @param {Report} report @returns {Array<{ title: string, version: Version, parts: Array<{ title: string, rows: string[][] }> }>} */
function tables (report) {
  return report.versions.map((version) => {
    const parts = Object.entries(report.workloads).map(([name, workload]) => ({
      title: `${name}: ${workload.says}`,
      rows: workloadRows(version.results.filter((result) => result.workload === name), workload, report.how.quick)
    }))
    if (version.startUp.length > 0) parts.push({ title: 'start-up: node -r X -e 0', rows: startUpRows(version.startUp) })
    if (version.capture !== undefined) parts.push({ title: 'one capture of ten frames, known before', rows: captureRows(version.capture) })
    return { title: `Node ${version.node}`, version, parts }
  })
}

/** @param {Report} report */
function terminal (report) {
  return tables(report).map(({ title, version, parts }) => [
    title,
    ...parts.map((part) => `${part.title}\n${plain(part.rows)}`),
    ...warnings(version.results).map((warning) => `Warning: ${warning}`)
  ].join('\n\n')).join('\n\n')
}

/** @param {Report} report */
function page (report) {
  const { machine, how, peers } = report
  const sections = tables(report).map(({ title, version, parts }) => [
    `## ${title}`,
    'Median ratios of CPU time per unit to that of bare Node:',
    markdown(summaryRows(version)),
    ...warnings(version.results).map((warning) => `**Warning.** ${warning}`),
    ...parts.flatMap((part) => [`### ${part.title}`, markdown(part.rows)])
  ].join('\n\n'))
  return [
    '<!-- Generated by npm run bench -- --docs. Do not edit. -->',
    '# What tracing costs',
    `Measured on ${report.date.slice(0, 10)} with Node ${report.versions.map(({ node }) => node).join(', ')} on ${machine.cpu}, ` +
      `${machine.processors} processors, ${Math.round(machine.memory / 2 ** 30)} GiB, ${machine.system}` +
      `${how.quick ? '. **A quick run: it shows that everything works, the figures are rough**' : ''}. ` +
      `The machine's load before was ${machine.loadBefore.toFixed(1)}. Absolute times drift from run to run; ratios inside one run hold.`,
    ...sections,
    '## How it was measured',
    [
      `- Every figure comes from clean child processes. In each of ${how.rounds} round${how.rounds === 1 ? '' : 's'} every subject ran once, ` +
        'with bare before and after each few of them; a ratio is that to the mean of the two bare runs around it. ' +
        'The table gives the median over the rounds, and the least and most as spread. ' +
        'For bare the spread is that of one bare run over the one before it: no ratio is better known than that.',
      `- ${how.pinned ? 'The subject was pinned to one processor, the load generator to another' : 'Nothing was pinned to a processor: there was no taskset'}. ` +
        `Load: ${how.generator}. Start-up: ${how.startUp}.`,
      '- CPU is that of the whole process, collector and compiler threads included, divided by the units done, after a warm-up. Slow subjects stop at a time limit and do fewer units.',
      '- A price that differed by more than 15 % between the two halves of the measured part is remarked as not settled.',
      '- p99 is the latency of a server kept busy all the time: it tells how subjects compare, not what an idle service answers.',
      '- Memory is taken after the load, connections closed, after several full collections.',
      '- “× overhead of native full”: (ratio − 1) ÷ (ratio of longstack in full with the native engine − 1), same workload, same run.',
      '- After its figures were taken each subject had to show in the same child that it was at work (a long stack, a span, a list of handles …); ' +
        'for longstack the engine and mode in force are its own word.'
    ].join('\n'),
    'The workloads:',
    Object.entries(report.workloads).map(([name, { says }]) => `- **${name}**: ${says}`).join('\n'),
    'The subjects:',
    Object.entries(report.subjects).map(([name, { says }]) => `- **${name}**: ${says}`).join('\n'),
    ...Object.keys(peers).length > 0 ? [`Versions: ${Object.entries(peers).map(([name, version]) => `${name} ${version}`).join(', ')}.`] : [],
    '## How to repeat it',
    [
      '```',
      'npm run bench -- --docs --node /path/to/node20,/path/to/node26',
      'npm run bench -- --quick',
      'npm run bench -- --subjects longstack-native,trace --workloads real',
      'npm run bench -- --help',
      '```'
    ].join('\n')
  ].join('\n\n') + '\n'
}

module.exports = { terminal, page }
