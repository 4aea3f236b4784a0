'use strict'

// npm run articles: measures the claims of the articles behind the numbered examples, and writes
// docs/articles.md. Each round runs every directory here once with --json, in its own process. The figures
// are kept next to the page, so that a second run can be compared with them.

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { promisify } = require('node:util')
const machine = require('../machine')
const { UsageError, printStatus, valuesOf, roundsOf, versionOf } = require('../options')
const { page, compared, formatRatio, figure } = require('./page')

const DOCS = path.join(__dirname, '..', '..', 'docs')
const ROUNDS = { full: 5, quick: 2 }
const LIMIT_MS = 10 * 60_000 // limit for one example in one round
const MAX_OUTPUT = 64 * 2 ** 20 // bytes of its figures

const HELP = `Measures the claims of the articles behind the examples: docs/articles.md and articles.json.

  npm run articles -- [options]

  --check          write nothing; measure, and print what does not agree with the page: exit code 1 then
  --add            adds these rounds to those of the page: its spreads then contain what differs between runs
  --only 02[,04]   only these examples
  --rounds N       default ${ROUNDS.full}, with --quick ${ROUNDS.quick}
  --quick          less work: shows that everything works, the figures are rough
  --node PATH      the Node to measure; default: the one that runs this
  --docs DIRECTORY where the page and its figures are; default: docs
  --page           measure nothing, make the page from its figures
  --help
`

/** An example that printed no figures. */
class Failure extends Error {}

/** @returns {string[]} the names of the numbered examples, equal to those of the directories here */
const listExamples = () => fs.readdirSync(__dirname).filter((name) => /^\d\d-/.test(name)).sort()

/** @param {string | undefined} only numbers separated by commas */
function chosenOf (only) {
  const names = listExamples()
  if (only === undefined) return names
  const numbers = only.split(',').map((number) => number.trim())
  const unknown = numbers.find((number) => !names.some((name) => name.startsWith(`${number}-`)))
  if (unknown !== undefined) {
    const numbersOfAll = names.map((name) => name.slice(0, 2)).join(', ')
    throw new UsageError(`There is no example ${JSON.stringify(unknown)}. Known are ${numbersOfAll}.`)
  }
  return names.filter((name) => numbers.includes(name.slice(0, 2)))
}

/** @param {string[]} args */
function options (args) {
  const values = valuesOf(args, {
    check: { type: 'boolean', default: false },
    add: { type: 'boolean', default: false },
    only: { type: 'string' },
    rounds: { type: 'string' },
    quick: { type: 'boolean', default: false },
    node: { type: 'string', default: process.execPath },
    docs: { type: 'string', default: DOCS },
    page: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false }
  })
  const rounds = roundsOf(values.rounds, ROUNDS[values.quick ? 'quick' : 'full'])
  if (!fs.existsSync(values.docs)) throw new UsageError(`There is no directory ${values.docs}.`)
  return { ...values, rounds, names: chosenOf(values.only) }
}

/** Returns the title of an example: the first clause of its harness's head comment. @param {string} name */
function titleOf (name) {
  const text = fs.readFileSync(path.join(__dirname, name, 'index.js'), 'utf8')
  const [, first = name] = /^\/\/ (.*?)[.:]?$/m.exec(text) ?? []
  return `${name.slice(0, 2)} · ${first.split(/[.:](?: |$)/)[0]}`
}

/**
 * Measures one example once.
 * @param {string} node
 * @param {string} name
 * @param {boolean} quick
 * @returns {Promise<{ claims: import('./page').Claim[], tables?: import('./page').Table[] }>}
 */
async function measureExample (node, name, quick) {
  const args = [path.join(__dirname, name), '--json', ...(quick ? ['--quick'] : [])]
  try {
    const { stdout } = await promisify(execFile)(node, args, { timeout: LIMIT_MS, maxBuffer: MAX_OUTPUT })
    return JSON.parse(stdout)
  } catch (error) {
    const { stderr, message } = /** @type {Error & { stderr?: string }} */ (error)
    throw new Failure(`${name} failed: ${stderr?.trim() || message}`)
  }
}

/** @param {ReturnType<typeof options>} settings @returns {Promise<import('./page').Figures>} */
async function measureAll ({ names, rounds, quick, node }) {
  const version = versionOf(node)
  if (machine.pins() === undefined) {
    printStatus('There is no taskset here: server and client share all CPUs, figures are rougher.')
  }
  const figures = { date: new Date().toISOString(), node: version, quick, machine: machine.describe() }
  /** @type {import('./page').Example[]} */
  const examples = names.map((name) => ({ name, title: titleOf(name), rounds: [], tables: [] }))
  for (let round = 1; round <= rounds; round++) {
    for (const example of examples) {
      const began = performance.now()
      const { claims, tables = [] } = await measureExample(node, example.name, quick)
      example.rounds.push(claims)
      example.tables = tables
      const seconds = ((performance.now() - began) / 1000).toFixed(0)
      printStatus(`round ${round} of ${rounds}, ${example.name}: ${seconds} s`)
    }
  }
  return { ...figures, examples }
}

/** @param {string} file @returns {import('./page').Figures | undefined} undefined if there is no such file */
function readSaved (file) {
  if (!fs.existsSync(file)) return undefined
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch (error) {
    throw new UsageError(`${file} cannot be read: ${/** @type {Error} */ (error).message}.`)
  }
}

/** @param {string} file */
function requireSaved (file) {
  const figures = readSaved(file)
  if (figures === undefined) {
    throw new UsageError(`There are no figures yet in ${file}: run npm run articles first.`)
  }
  return figures
}

/**
 * Adds rounds of another run if their claims are equal.
 * @param {import('./page').Figures} old
 * @param {import('./page').Figures} figures
 */
function addRounds (old, figures) {
  if (old.node !== figures.node || old.quick !== figures.quick) {
    const kind = old.quick ? ', a quick run' : ''
    throw new UsageError(`The page is of Node ${old.node}${kind}: rounds of something else cannot be added.`)
  }
  /** @param {import('./page').Example} example */
  const ids = ({ rounds }) => rounds[0].map(({ id }) => id).join()
  const examples = figures.examples.map((example) => {
    const before = old.examples.find(({ name }) => name === example.name)
    if (before === undefined || ids(before) !== ids(example)) return example
    return { ...example, rounds: [...before.rounds, ...example.rounds] }
  })
  return { ...figures, examples }
}

/**
 * Joins the figures of some examples with the saved figures of the others.
 * @param {import('./page').Figures | undefined} old
 * @param {import('./page').Figures} figures
 */
function joinFigures (old, figures) {
  const names = listExamples().filter((name) => !figures.examples.some((example) => example.name === name))
  const kept = (old?.examples ?? []).filter(({ name }) => names.includes(name))
  return { ...figures, examples: [...kept, ...figures.examples].sort((a, b) => a.name < b.name ? -1 : 1) }
}

/**
 * Prints which ratios agree with the page.
 * @param {import('./page').Figures} saved
 * @param {import('./page').Figures} figures
 * @returns {boolean} whether all agree
 */
function printComparison (saved, figures) {
  const results = compared(saved, figures)
  for (const { id, state, stated, ratio, agrees } of results) {
    const line = `${id}, tracing ${state}: ${figure(ratio)}, the page has ${formatRatio(stated)}`
    console.log(`${agrees ? 'agrees' : 'DIFFERS'}  ${line}`)
  }
  const count = results.filter(({ agrees }) => agrees).length
  console.log(`${count} of ${results.length} ratios agree with the page.`)
  return count === results.length
}

async function main () {
  const settings = options(process.argv.slice(2))
  if (settings.help) return process.stdout.write(HELP)
  const [text, data] = ['articles.md', 'articles.json'].map((name) => path.join(settings.docs, name))
  if (settings.page) return fs.writeFileSync(text, page(requireSaved(data)))

  if (settings.check && settings.add) {
    throw new UsageError('A check writes nothing: it adds no rounds either.')
  }
  const saved = settings.check || settings.add ? requireSaved(data) : undefined
  const figures = await measureAll(settings)
  if (settings.check && saved !== undefined) {
    if (!printComparison(saved, figures)) process.exitCode = 1
    return
  }
  const rounds = saved === undefined ? figures : addRounds(saved, figures)
  const joined = joinFigures(settings.only === undefined ? undefined : readSaved(data), rounds)
  fs.writeFileSync(data, `${JSON.stringify(joined)}\n`)
  fs.writeFileSync(text, page(joined))
  printStatus(`Written: ${text}`)
}

main().catch((error) => {
  if (!(error instanceof UsageError || error instanceof Failure)) throw error
  printStatus(error.message)
  process.exitCode = error instanceof UsageError ? 2 : 1
})
