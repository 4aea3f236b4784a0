'use strict'

// The conductor: npm run bench -- [options]. Figures go to the terminal and a JSON file, docs/cost.md is made from
// the same figures.

const fs = require('node:fs')
const path = require('node:path')
const { nearest } = require('../lib/errors')
const { createGenerator } = require('./generator')
const machine = require('./machine')
const { Mistake, say, valuesOf, roundsOf, versionOf } = require('./options')
const { provide, lacking } = require('./peers')
const { inRounds } = require('./rounds')
const { startUp } = require('./start-up')
const { subjects } = require('./subjects')
const table = require('./table')
const { workloads } = require('./workloads')

const PAGE = path.join(__dirname, '..', 'docs', 'cost.md')
const SCALES = {
  full: { scale: { share: 1, warmLimit: 3_000, limit: 2_000 }, rounds: 3, starts: 15 },
  quick: { scale: { share: 0.1, warmLimit: 500, limit: 400 }, rounds: 1, starts: 3 }
}

const HELP = `Measures what tracing costs, with longstack and with others.

  npm run bench -- [options]

  --node PATH[,PATH...]   Node binaries to measure; default: the one that runs this
  --subjects A[,B...]     default: all; bare always runs
                          ${list(Object.keys(subjects))}
  --workloads A[,B...]    default: all
                          ${list(Object.keys(workloads))}
  --rounds N              how often each subject runs; default ${SCALES.full.rounds}, with --quick ${SCALES.quick.rounds}
  --quick                 a tenth of the work: shows that everything works, the figures are rough
  --json FILE             write the figures there
  --from FILE[,FILE...]   measure nothing, take the figures of earlier runs
  --docs                  write docs/cost.md from the figures
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

/**
 * @param {string | undefined} given
 * @param {string[]} known
 * @param {string} what
 */
function chosen (given, known, what) {
  if (given === undefined) return known
  const names = given.split(',').map((name) => name.trim()).filter(Boolean)
  if (names.length === 0) throw new Mistake(`No ${what} is named.`)
  for (const name of names) {
    if (known.includes(name)) continue
    const hint = nearest(name, known)
    throw new Mistake(`Unknown ${what} ${JSON.stringify(name)}. ${hint === undefined ? `Known are ${known.join(', ')}.` : `Did you mean ${JSON.stringify(hint)}?`}`)
  }
  return known.filter((name) => names.includes(name))
}

/** @param {string} file @returns {import('./table').Report} */
function saved (file) {
  try {
    const report = JSON.parse(fs.readFileSync(file, 'utf8'))
    if (!Array.isArray(report.versions)) throw new Error('not figures of this benchmark')
    return report
  } catch (error) {
    throw new Mistake(`${file} cannot be read: ${/** @type {Error} */ (error).message}.`)
  }
}

/** @param {string[]} args */
function options (args) {
  const values = valuesOf(args, {
    node: { type: 'string' },
    subjects: { type: 'string' },
    workloads: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    json: { type: 'string' },
    from: { type: 'string' },
    docs: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  })
  const { scale, starts, ...by } = SCALES[values.quick ? 'quick' : 'full']
  const rounds = roundsOf(values.rounds, by.rounds)
  if (values.json !== undefined && !fs.existsSync(path.dirname(path.resolve(values.json)))) throw new Mistake(`There is no folder for ${values.json}.`)
  if (values.help) return { help: true, from: [], nodes: [], subjects: [], workloads: [], scale, starts, rounds, ...pick(values) }
  return {
    help: false,
    from: values.from?.split(',').map(saved) ?? [],
    nodes: (values.node ?? process.execPath).split(',').map((file) => ({ file, version: versionOf(file) })),
    subjects: chosen(values.subjects, Object.keys(subjects), 'subject').filter((name) => name !== 'bare'),
    workloads: chosen(values.workloads, Object.keys(workloads), 'workload'),
    scale,
    starts,
    rounds,
    ...pick(values)
  }
}

/** @param {{ quick?: boolean, docs?: boolean, json?: string }} values */
const pick = ({ quick = false, docs = false, json }) => ({ quick, docs, json })

/** Several runs as one; later ones win where a version was measured twice. @param {import('./table').Report[]} reports */
function joined (reports) {
  const [first] = reports
  const versions = new Map(reports.flatMap((report) => report.versions.map((version) => [version.node, version])))
  return {
    ...first,
    how: { ...first.how, quick: reports.some(({ how }) => how.quick), rounds: Math.min(...reports.map(({ how }) => how.rounds)) },
    peers: Object.assign({}, ...reports.map(({ peers }) => peers)),
    subjects: Object.assign({}, ...reports.map((report) => report.subjects)),
    workloads: Object.assign({}, ...reports.map((report) => report.workloads)),
    versions: [...versions.values()].sort((a, b) => parseInt(a.node) - parseInt(b.node))
  }
}

/** @param {string} text the line being worked on, on a terminal only that */
function working (text) {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`)
}

/** @param {string[]} node its command @returns {import('./table').Version['capture']} */
function captureOn ([command, ...args]) {
  const told = machine.output(command, [...args, path.join(__dirname, 'capture.js'), '--json'], 60_000)
  return told === undefined ? { failed: 'bench/capture.js did not end well' } : JSON.parse(told)
}

/**
 * @param {ReturnType<typeof options>} asked
 * @returns {Promise<import('./table').Report>}
 */
async function measureAll ({ nodes, rounds, scale, starts, quick, ...names }) {
  const chosenSubjects = names.subjects.map((name) => /** @type {[string, import('./subjects').Subject]} */ ([name, subjects[name]]))
  const needed = [...new Set([...chosenSubjects.flatMap(([, { peers }]) => peers), ...names.workloads.flatMap((name) => workloads[name].peers)])]
  provide(needed, say)

  const pins = machine.pins()
  if (pins === undefined) say('There is no taskset here: subject and load share all processors, figures are rougher.')
  const pin = pins?.subject ?? []
  const wrk = machine.tool('wrk')
  const hyperfine = machine.tool('hyperfine')
  /** @type {import('./table').Report} */
  const report = {
    date: new Date().toISOString(),
    machine: machine.describe(),
    how: { pinned: pins !== undefined, generator: wrk ?? 'own generator (bench/load.js)', startUp: hyperfine ?? 'own loop', rounds, quick, conductor: process.version },
    peers: Object.fromEntries(needed.map((name) => [name, require('./package.json').dependencies[/** @type {'trace'} */ (name)]])),
    subjects: Object.fromEntries([['bare', subjects.bare], ...chosenSubjects].map(([name, { says }]) => [name, { says }])),
    workloads: Object.fromEntries(names.workloads.map((name) => [name, { says: workloads[name].says, unit: workloads[name].unit, server: workloads[name].load !== undefined }])),
    versions: []
  }
  const generator = await createGenerator(pins?.load ?? [], wrk !== undefined)
  try {
    for (const { file, version } of nodes) {
      /** @type {import('./rounds').Result[]} */
      const results = []
      for (const name of names.workloads) {
        const began = performance.now()
        results.push(...await inRounds({
          node: file,
          name,
          workload: workloads[name],
          subjects: chosenSubjects,
          bare: subjects.bare,
          lacking: (subject) => lacking([...subjects[subject].peers, ...workloads[name].peers]),
          rounds,
          scale,
          generator,
          pin,
          progress: ({ subject, round }) => working(`Node ${version}, ${name}, round ${round + 1} of ${rounds}: ${subject}`)
        }))
        working('')
        say(`Node ${version}, ${name}: ${((performance.now() - began) / 1000).toFixed(0)} s`)
      }
      working(`Node ${version}, start-up`)
      const able = /** @type {typeof chosenSubjects} */ ([['bare', subjects.bare], ...chosenSubjects]).filter(([, { peers }]) => lacking(peers) === undefined)
      const starting = startUp([...pin, file], able, starts, hyperfine !== undefined)
      working('')
      const capture = chosenSubjects.some(([, { asks }]) => asks !== undefined) ? captureOn([...pin, file]) : undefined
      report.versions.push({ node: version, results, startUp: starting, capture })
    }
  } finally {
    await generator.end()
  }
  return report
}

async function main () {
  const asked = options(process.argv.slice(2))
  if (asked.help) return process.stdout.write(HELP)
  const report = asked.from.length > 0 ? joined(asked.from) : await measureAll(asked)
  process.stdout.write(`${table.terminal(report)}\n`)
  if (asked.json !== undefined) fs.writeFileSync(asked.json, `${JSON.stringify(report, null, 2)}\n`)
  if (asked.docs) {
    fs.writeFileSync(PAGE, table.page(report))
    say('Written: docs/cost.md')
  }
}

main().catch((error) => {
  if (!(error instanceof Mistake)) throw error
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
})
