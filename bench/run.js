'use strict'

// Runs the benchmarks: npm run bench -- [options]. Figures are printed to the terminal and written to a JSON
// file; docs/cost.md and the table in README.md are generated from them.

const fs = require('node:fs')
const path = require('node:path')
const { firstErrors } = require('./errors')
const machine = require('./machine')
const { memoryOn } = require('./memory')
const { UsageError, printStatus, valuesOf, roundsOf, millisecondsOf } = require('./options')
const { installPeers, missingReason } = require('./peers')
const { planOf, minutesOf } = require('./plan')
const { inRounds } = require('./rounds')
const { startUp } = require('./start-up')
const { subjects } = require('./subjects')
const table = require('./table')
const { workloads } = require('./workloads')

/** @typedef {import('./table-rows').Report} Report */
/** @typedef {[string, import('./subjects').Subject]} NamedSubject */

const ROOT = path.join(__dirname, '..')
const PAGE = path.join(ROOT, 'docs', 'cost.md')
const README = path.join(ROOT, 'README.md')
/** @type {Record<'full' | 'bars' | 'quick', import('./plan').Scale>} */
const SCALES = {
  full: { rounds: 3, ms: 6_000, warmShare: 1, turns: 15, hops: 1_000_000 },
  bars: { rounds: 3, ms: 4_000, warmShare: 1, turns: 15, hops: 1_000_000 },
  quick: { rounds: 1, ms: 300, warmShare: 0.03, turns: 2, hops: 10_000 }
}

const { full, bars, quick } = SCALES
const HELP = `Measures what tracing costs, with longstack and with others. All subjects of a workload run at
once on one CPU, at most four and bare, each under a load of its own from another.

  npm run bench -- [options]

  --node PATH[,PATH...]   Node binaries to measure; default: the one that runs the benchmark
  --subjects A[,B...]     default: all; bare always runs
                          ${list(Object.keys(subjects))}
  --workloads A[,B...]    default: all
                          ${list(Object.keys(workloads))}
  --bars                  a fixed choice of both for Node 20, 22, 24 and 26, in some twelve minutes
  --rounds N              times that each group runs; default ${full.rounds}, with --quick ${quick.rounds}
  --seconds N             duration of a measurement in a round, after a warm-up of 10 s (loops without a
                          server 2 s, fetch 6 s); default ${full.ms / 1000}, with --bars ${bars.ms / 1000},
                          with --quick ${quick.ms / 1000}
  --quick                 little work: proves that everything works, its figures mean nothing
  --json FILE             write the figures to it, after each workload
  --from FILE[,FILE...]   measure nothing, read the figures of earlier runs
  --docs                  write docs/cost.md and the table in README.md from the figures
  --help
`

/** @param {string[]} names */
function list (names) {
  const lines = ['']
  for (const name of names) {
    if (lines[lines.length - 1].length + name.length > 80) lines.push('')
    lines[lines.length - 1] += ` ${name}`
  }
  return lines.map((line) => line.trim()).join(`\n${' '.repeat(26)}`)
}

/** @param {string} file @returns {Report} */
function readReport (file) {
  try {
    const report = JSON.parse(fs.readFileSync(file, 'utf8'))
    const complete = Array.isArray(report.versions) && report.how?.seconds !== undefined
    if (!complete) throw new Error('not figures of this benchmark')
    return report
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${/** @type {Error} */ (error).message}.`)
  }
}

/** @param {string[]} args */
function parseOptions (args) {
  const values = valuesOf(args, {
    node: { type: 'string', default: process.execPath },
    subjects: { type: 'string' },
    workloads: { type: 'string' },
    bars: { type: 'boolean', default: false },
    rounds: { type: 'string' },
    seconds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    from: { type: 'string' },
    docs: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  })
  const { node, docs = false, help = false, json } = values
  const isQuick = values.quick === true
  const isBars = values.bars === true
  const scale = { ...SCALES[isQuick ? 'quick' : isBars ? 'bars' : 'full'] }
  scale.rounds = roundsOf(values.rounds, scale.rounds)
  scale.ms = millisecondsOf(values.seconds, scale.ms)
  if (json !== undefined && !fs.existsSync(path.dirname(path.resolve(json)))) {
    throw new UsageError(`There is no directory for ${json}.`)
  }
  const reports = values.from?.split(',').map(readReport) ?? []
  const measures = !help && reports.length === 0
  const { subjects: names, workloads: works } = values
  const selection = { node: String(node), subjects: names, workloads: works, bars: isBars }
  return { help, docs, json, quick: isQuick, reports, scale, plans: measures ? planOf(selection) : [] }
}

/**
 * Joins the reports of several runs; later figures of a subject and workload replace earlier ones.
 * @param {Report[]} reports
 * @returns {Report}
 */
function joinReports (reports) {
  /** @type {Map<string, import('./table-rows').Version>} */
  const versions = new Map()
  for (const { node, results, ...more } of reports.flatMap((report) => report.versions)) {
    const version = versions.get(node) ?? { node, results: [] }
    const isNew = (/** @type {import('./rounds').Result} */ old) =>
      !results.some(({ workload, subject }) => workload === old.workload && subject === old.subject)
    versions.set(node, { ...version, ...more, results: [...version.results.filter(isNew), ...results] })
  }
  const [first] = reports
  return {
    ...first,
    how: {
      ...first.how,
      pinned: reports.every((report) => report.how.pinned),
      quick: reports.some((report) => report.how.quick),
      rounds: Math.min(...reports.map((report) => report.how.rounds)),
      seconds: Math.min(...reports.map((report) => report.how.seconds))
    },
    peers: Object.assign({}, ...reports.map(({ peers }) => peers)),
    subjects: Object.assign({}, ...reports.map((report) => report.subjects)),
    workloads: Object.assign({}, ...reports.map((report) => report.workloads)),
    versions: [...versions.values()].sort((a, b) => parseInt(a.node) - parseInt(b.node))
  }
}

/** Replaces the progress line, only on a terminal. @param {string} text */
function showProgress (text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

/** @param {string[]} node its command @returns {import('./table-rows').Version['capture']} */
function captureOn ([command, ...args]) {
  const printed = machine.output(command, [...args, path.join(__dirname, 'capture.js'), '--json'], 60_000)
  return printed === undefined ? { failed: 'bench/capture.js failed' } : JSON.parse(printed)
}

/**
 * Measures one workload on one Node, and adds the results to the figures of that version.
 * @param {import('./table-rows').Version} figures
 * @param {import('./plan').Task} task
 * @param {{ file: string, scale: import('./plan').Scale, pins: import('./machine').Pins }} conditions
 */
async function measureTask (figures, task, { file, scale, pins }) {
  const workload = workloads[task.workload]
  const named = task.subjects.map((name) => /** @type {NamedSubject} */ ([name, subjects[name]]))
  const reasonOf = (/** @type {string} */ name) => missingReason([...subjects[name].peers, ...workload.peers])
  const title = `Node ${figures.node}, ${task.workload}`
  showProgress(title)
  if (workload.inTurn) {
    const runnable = named.filter(([name]) => reasonOf(name) === undefined)
    return measureInTurn(figures, task.workload, { node: [...pins.subject, file], runnable, scale })
  }
  figures.results.push(...await inRounds({
    node: file,
    name: task.workload,
    workload,
    subjects: named,
    bare: subjects.bare,
    missingReason: reasonOf,
    rounds: scale.rounds,
    warmMs: workload.warmMs * scale.warmShare,
    ms: scale.ms,
    pins,
    progress: ({ subjects: group, round }) =>
      showProgress(`${title}, round ${round + 1} of ${scale.rounds}: bare ${group.join(' ')}`)
  }))
}

/**
 * Measures a workload of many short processes, and adds the results to the figures of that version.
 * @param {import('./table-rows').Version} figures
 * @param {string} workload
 * @param {{ node: string[], runnable: NamedSubject[], scale: import('./plan').Scale }} conditions
 */
async function measureInTurn (figures, workload, { node, runnable, scale }) {
  /** @type {NamedSubject} */
  const bare = ['bare', subjects.bare]
  const plan = { node, subjects: [bare, ...runnable], turns: scale.turns }
  const longstacks = runnable.filter(([, { engine }]) => engine !== undefined)
  if (workload === 'start-up') figures.results.push(...startUp(plan))
  if (workload === 'first-error') figures.results.push(...firstErrors(plan))
  if (workload === 'memory') figures.memory = await memoryOn(node, [bare, ...longstacks], scale.hops)
  if (workload === 'capture' && longstacks.length > 0) figures.capture = captureOn(node)
}

/**
 * @param {ReturnType<typeof parseOptions>} options
 * @param {(report: Report) => void} save
 * @returns {Promise<Report>}
 */
async function measureAll ({ plans, scale, quick }, save) {
  const tasks = plans.flatMap((plan) => plan.tasks)
  const works = [...new Set(tasks.map(({ workload }) => workload))]
  const names = ['bare', ...new Set(tasks.flatMap((task) => task.subjects))]
  const used = [...names.map((name) => subjects[name]), ...works.map((name) => workloads[name])]
  const needed = [...new Set(used.flatMap(({ peers }) => peers))]
  installPeers(needed, printStatus)

  const taskset = machine.pins()
  if (taskset === undefined) printStatus('There is no taskset: subjects and loads share all CPUs.')
  const pins = taskset ?? { subject: [], load: [] }
  const versionsOfPeers = /** @type {Record<string, string>} */ (require('./package.json').dependencies)
  /** @type {Report} */
  const report = {
    date: new Date().toISOString(),
    machine: machine.describe(),
    how: {
      pinned: taskset !== undefined,
      rounds: scale.rounds,
      seconds: scale.ms / 1000,
      turns: scale.turns,
      hops: scale.hops,
      quick,
      conductor: process.version
    },
    peers: Object.fromEntries(needed.map((name) => [name, versionsOfPeers[name]])),
    subjects: Object.fromEntries(names.map((name) => [name, { says: subjects[name].says }])),
    workloads: Object.fromEntries(works.map((name) => {
      const { says, unit, shows, warmMs } = workloads[name]
      return [name, { says, unit, shows, warm: warmMs * scale.warmShare / 1000 }]
    })),
    versions: []
  }
  printStatus(`About ${minutesOf(plans, scale)} min, without the short processes.`)
  for (const { file, version, tasks } of plans) {
    /** @type {import('./table-rows').Version} */
    const figures = { node: version, results: [] }
    report.versions.push(figures)
    for (const task of tasks) {
      const began = performance.now()
      await measureTask(figures, task, { file, scale, pins })
      showProgress('')
      printStatus(`Node ${version}, ${task.workload}: ${((performance.now() - began) / 1000).toFixed(0)} s`)
      save(report)
    }
  }
  return report
}

async function main () {
  const options = parseOptions(process.argv.slice(2))
  if (options.help) return process.stdout.write(HELP)
  const save = (/** @type {Report} */ report) => {
    if (options.json !== undefined) fs.writeFileSync(options.json, `${JSON.stringify(report, null, 2)}\n`)
  }
  const report = options.reports.length > 0 ? joinReports(options.reports) : await measureAll(options, save)
  save(report)
  process.stdout.write(`${table.terminal(report)}\n`)
  if (!options.docs) return
  fs.writeFileSync(PAGE, table.page(report))
  fs.writeFileSync(README, table.withSummary(fs.readFileSync(README, 'utf8'), report))
  printStatus('Written: docs/cost.md and the table in README.md')
}

main().catch((error) => {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
})
