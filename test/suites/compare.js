'use strict'

// Runs the tests of other people's packages with and without longstack: node test/suites/compare.js --help

const fs = require('node:fs')
const path = require('node:path')
const { parseArgs } = require('node:util')
const { compare } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')
const { parseModes } = require('./modes')
const { filesOf, packages, parsers, suiteOf } = require('./packages')

const usage = `Usage: node test/suites/compare.js --all | PACKAGE…
       node test/suites/compare.js --checkout DIR --runner RUNNER --files REGEX [-- FLAGS]

Runs the tests of packages from npm, or of a checkout whose dependencies are installed, with the Node that
runs this, without a preload and with longstack, and prints what differs. Exit code 1: there are differences that neither an empty hook makes nor consist in the
text of stacks (LONGSTACK_ERRORS=off does not make these).

  --all            every package of test/suites/packages.js
  --checkout DIR   tests that a package leaves out of npm
  --runner RUNNER  of a checkout: ${Object.keys(parsers).join(', ')}
  FLAGS            of a checkout's runner: of mocha, or else of node
  --modes A,B      full, js, spans (default all)
  --modules DIR    the node_modules folder with the packages (default: installed into .cache/suites)
  --jobs N         processes at a time (default 2)
  --files REGEX    only these files of tests
  --json           one line of JSON for each package`

main()

async function main () {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      all: { type: 'boolean', default: false },
      checkout: { type: 'string' },
      runner: { type: 'string', default: 'node:test' },
      modes: { type: 'string' },
      modules: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      files: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  const isWrong = values.checkout === undefined
    ? !values.all && positionals.length === 0
    : !Object.hasOwn(parsers, values.runner)
  if (values.help || isWrong) {
    console.log(usage)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const modes = parseModes(values.modes)
  const isWanted = (/** @type {string} */ file) => new RegExp(values.files).test(file)
  const suites = values.checkout === undefined
    ? suitesOf(values.modules ?? installed(), values.all ? undefined : positionals)
    : { [path.basename(values.checkout)]: checkoutOf(values.checkout, values.runner, positionals) }
  for (const [name, suite] of Object.entries(suites)) {
    suite.files = suite.files.filter(isWanted)
    const result = await compare(suite, {
      modes,
      jobs: Number(values.jobs),
      progress: (line) => console.error(`  ${line}`)
    })
    if (values.json) console.log(JSON.stringify({ name, node: process.version, modes, ...result }))
    else print(name, result)
    if (result.differences.length > 0) process.exitCode = 1
  }
}

/**
 * @param {string} modules
 * @param {string[]} [names] by default all
 * @returns {Record<string, import('../helpers/compare-suites').Suite>}
 */
function suitesOf (modules, names) {
  const chosen = packages.filter(({ name }) => names?.includes(name) ?? true)
  return Object.fromEntries(chosen.map((description) => [description.name, suiteOf(description, modules)]))
}

/**
 * @param {string} directory
 * @param {string} runner
 * @param {string[]} flags
 * @returns {import('../helpers/compare-suites').Suite}
 */
function checkoutOf (directory, runner, flags) {
  const cwd = fs.realpathSync(directory)
  const mocha = ['node_modules/mocha/bin/_mocha', '--reporter', 'json', ...flags]
  const before = runner === 'mocha' ? mocha : runner === 'node:test' ? ['--test-reporter=tap', ...flags] : flags
  return {
    cwd,
    files: filesOf(cwd, /^tests?\//),
    command: (file) => [...before, file],
    parse: parsers[/** @type {keyof typeof parsers} */ (runner)]
  }
}

/** @returns {string} */
function installed () {
  const { modules, offline } = install()
  if (modules === undefined) throw new Error(offline)
  return modules
}

/**
 * @param {string} name
 * @param {import('../helpers/compare-suites').Comparison} result
 */
function print (name, { files, tests, passed, differences, byHook, byStacks, unsteady, bareMs, tracedMs }) {
  const figures = [`${files} files`, `${tests} tests`, `${passed} passed`, `${differences.length} differences`,
    `${byHook.length} by an empty hook`, `${byStacks.length} in stacks`, `${unsteady.length} unsteady`]
  console.log(`${name}: ${figures.join(', ')}; ${seconds(bareMs)} bare, ${seconds(tracedMs)} traced`)
  for (const [cause, list] of Object.entries({ '': differences, 'empty hook: ': byHook, 'stacks: ': byStacks })) {
    for (const { file, mode, name, bare, traced } of list) {
      console.log(`  ${cause}${file}, ${mode}: ${name}: ${bare} → ${traced}`)
    }
  }
}

/** @param {number} ms */
function seconds (ms) {
  return `${Math.round(ms / 1000)} s`
}
