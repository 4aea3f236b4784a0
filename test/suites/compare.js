'use strict'

// Runs the tests of other people's packages with and without longstack: node test/suites/compare.js --help

const { parseArgs } = require('node:util')
const { compare } = require('../helpers/compare-suites')
const { install } = require('../helpers/install-suites')
const { parseModes } = require('./modes')
const { packages, suiteOf } = require('./packages')

const usage = `Usage: node test/suites/compare.js --all | PACKAGE…

Runs the tests of packages from npm with the Node that runs this, without a preload and with longstack, and
prints what differs. Exit code 1: there are differences that neither an empty hook makes nor consist in the
text of stacks (LONGSTACK_ERRORS=off does not make these).

  --all            every package of test/suites/packages.js
  --modes A,B      full, light, js, spans (default all)
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
      modes: { type: 'string' },
      modules: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      files: { type: 'string', default: '' },
      json: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false }
    }
  })
  if (values.help || (!values.all && positionals.length === 0)) {
    console.log(usage)
    process.exitCode = values.help ? 0 : 2
    return
  }
  const modules = values.modules ?? installed()
  const modes = parseModes(values.modes)
  const chosen = packages.filter(({ name }) => values.all || positionals.includes(name))
  for (const description of chosen) {
    const suite = suiteOf(description, modules)
    suite.files = suite.files.filter((file) => new RegExp(values.files).test(file))
    const result = await compare(suite, {
      modes,
      jobs: Number(values.jobs),
      progress: (line) => console.error(`  ${line}`)
    })
    const { name } = description
    if (values.json) console.log(JSON.stringify({ name, node: process.version, modes, ...result }))
    else print(name, result)
    if (result.differences.length > 0) process.exitCode = 1
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
