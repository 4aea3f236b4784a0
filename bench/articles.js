'use strict'

// npm run articles: measures the claims of the articles behind the numbered examples, and writes docs/articles.md. Each
// round runs every example once with --json, a process of its own; the figures are kept beside the page, so that a
// second run can be held against it.

const { execFile } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const { promisify } = require('node:util')
const machine = require('./machine')
const { Mistake, say, valuesOf, roundsOf, versionOf } = require('./options')
const { page, compared, shown, figure } = require('./articles-page')

const EXAMPLES = path.join(__dirname, '..', 'examples')
const DOCS = path.join(__dirname, '..', 'docs')
const ROUNDS = { full: 5, quick: 2 }
const LIMIT_MS = 10 * 60_000 // of one example in one round
const LONGEST = 64 * 2 ** 20 // bytes of its figures

const HELP = `Measures the claims of the articles behind the examples, and writes docs/articles.md and docs/articles.json.

  npm run articles -- [options]

  --check          write nothing; measure, and say what does not agree with the page: exit code 1 then
  --add            these rounds count beside those that the page has: what differs from run to run is in its spreads then
  --only 02[,04]   only these examples
  --rounds N       default ${ROUNDS.full}, with --quick ${ROUNDS.quick}
  --quick          less work: shows that everything works, the figures are rough
  --node PATH      the Node to measure; default: the one that runs this
  --docs FOLDER    where the page and its figures are; default: docs
  --page           measure nothing, make the page from its figures
  --help
`

/** An example that did not tell its figures. */
class Failure extends Error {}

/** @returns {string[]} the numbered examples, without `.js` */
const numbered = () => fs.readdirSync(EXAMPLES).filter((name) => /^\d\d-.*\.js$/.test(name)).map((name) => name.slice(0, -3)).sort()

/** @param {string | undefined} only */
function chosen (only) {
  const known = numbered()
  if (only === undefined) return known
  const numbers = only.split(',').map((number) => number.trim())
  const wrong = numbers.find((number) => !known.some((name) => name.startsWith(`${number}-`)))
  if (wrong !== undefined) throw new Mistake(`There is no example ${JSON.stringify(wrong)}. Known are ${known.map((name) => name.slice(0, 2)).join(', ')}.`)
  return known.filter((name) => numbers.includes(name.slice(0, 2)))
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
  if (!fs.existsSync(values.docs)) throw new Mistake(`There is no folder ${values.docs}.`)
  return { ...values, rounds, names: chosen(values.only) }
}

/** What the example is called: the first sentence of its head. @param {string} name */
function titleOf (name) {
  const [, first = name] = /^\/\/ (.*?)[.:]?$/m.exec(fs.readFileSync(path.join(EXAMPLES, `${name}.js`), 'utf8')) ?? []
  return `${name.slice(0, 2)} · ${first.split(/[.:](?: |$)/)[0]}`
}

/**
 * One example, once.
 * @param {string} node
 * @param {string} name
 * @param {boolean} quick
 * @returns {Promise<{ claims: import('./articles-page').Claim[], tables?: import('./articles-page').Table[] }>}
 */
async function take (node, name, quick) {
  const args = [path.join(EXAMPLES, `${name}.js`), '--json', ...(quick ? ['--quick'] : [])]
  try {
    const { stdout } = await promisify(execFile)(node, args, { timeout: LIMIT_MS, maxBuffer: LONGEST })
    return JSON.parse(stdout)
  } catch (error) {
    const { stderr, message } = /** @type {Error & { stderr?: string }} */ (error)
    throw new Failure(`${name} failed: ${stderr?.trim() || message}`)
  }
}

/** @param {ReturnType<typeof options>} asked @returns {Promise<import('./articles-page').Figures>} */
async function measureAll ({ names, rounds, quick, node }) {
  const version = versionOf(node)
  if (machine.pins() === undefined) say('There is no taskset here: server and client share all processors, figures are rougher.')
  const figures = { date: new Date().toISOString(), node: version, quick, machine: machine.describe() }
  /** @type {import('./articles-page').Example[]} */
  const examples = names.map((name) => ({ name, title: titleOf(name), rounds: [], tables: [] }))
  for (let round = 1; round <= rounds; round++) {
    for (const example of examples) {
      const began = performance.now()
      const { claims, tables = [] } = await take(node, example.name, quick)
      example.rounds.push(claims)
      example.tables = tables
      say(`round ${round} of ${rounds}, ${example.name}: ${((performance.now() - began) / 1000).toFixed(0)} s`)
    }
  }
  return { ...figures, examples: examples.filter((example) => example.rounds[0].length > 0 || example.tables.length > 0) }
}

/** @param {string} file @returns {import('./articles-page').Figures | undefined} nothing where there is no such file */
function saved (file) {
  if (!fs.existsSync(file)) return undefined
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'))
  } catch (error) {
    throw new Mistake(`${file} cannot be read: ${/** @type {Error} */ (error).message}.`)
  }
}

/** @param {string} file */
function needed (file) {
  const figures = saved(file)
  if (figures === undefined) throw new Mistake(`There are no figures yet in ${file}: run npm run articles first.`)
  return figures
}

/** Rounds of another run, where they are of the same claims. @param {import('./articles-page').Figures} old @param {import('./articles-page').Figures} figures */
function added (old, figures) {
  if (old.node !== figures.node || old.quick !== figures.quick) {
    throw new Mistake(`The page is of Node ${old.node}${old.quick ? ', a quick run' : ''}: rounds of something else cannot be added.`)
  }
  const ids = (/** @type {import('./articles-page').Example | undefined} */ example) => example?.rounds[0].map(({ id }) => id).join()
  const examples = figures.examples.map((example) => {
    const before = old.examples.find(({ name }) => name === example.name)
    return before !== undefined && ids(before) === ids(example) ? { ...example, rounds: [...before.rounds, ...example.rounds] } : example
  })
  return { ...figures, examples }
}

/** The figures of some examples do not throw away those of the others. @param {import('./articles-page').Figures | undefined} old @param {import('./articles-page').Figures} figures */
function joined (old, figures) {
  const kept = (old?.examples ?? []).filter(({ name }) => !figures.examples.some((example) => example.name === name) && numbered().includes(name))
  return { ...figures, examples: [...kept, ...figures.examples].sort((a, b) => a.name < b.name ? -1 : 1) }
}

async function main () {
  const asked = options(process.argv.slice(2))
  if (asked.help) return process.stdout.write(HELP)
  const [text, data] = ['articles.md', 'articles.json'].map((name) => path.join(asked.docs, name))
  if (asked.page) return fs.writeFileSync(text, page(needed(data)))

  if (asked.check && asked.add) throw new Mistake('A check writes nothing: it adds no rounds either.')
  const before = asked.check || asked.add ? needed(data) : undefined
  const figures = await measureAll(asked)
  if (before === undefined || asked.add) {
    const all = joined(asked.only === undefined ? undefined : saved(data), before === undefined ? figures : added(before, figures))
    fs.writeFileSync(data, `${JSON.stringify(all)}\n`)
    fs.writeFileSync(text, page(all))
    return say(`Written: ${text}`)
  }
  const results = compared(before, figures)
  for (const { id, state, stated, ratio, agrees } of results) {
    console.log(`${agrees ? 'agrees' : 'DIFFERS'}  ${id}, tracing ${state}: ${figure(ratio)}, the page says ${shown(stated)}`)
  }
  const apart = results.filter(({ agrees }) => !agrees).length
  console.log(`${results.length - apart} of ${results.length} ratios agree with the page.`)
  if (apart > 0) process.exitCode = 1
}

main().catch((error) => {
  if (!(error instanceof Mistake || error instanceof Failure)) throw error
  say(error.message)
  process.exitCode = error instanceof Mistake ? 2 : 1
})
