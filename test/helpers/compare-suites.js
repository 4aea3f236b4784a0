'use strict'

// Runs other people's tests with and without longstack and compares them test by test: names and states, not
// only exit codes. A difference counts if it recurs whenever the file is run both ways, if an empty hook does
// not cause it too, and if it is not only in the text of stacks.

const { spawn } = require('node:child_process')
const { createHash } = require('node:crypto')
const { once } = require('node:events')
const fs = require('node:fs/promises')
const os = require('node:os')
const path = require('node:path')
const { environmentOf } = require('../suites/modes')

const REPEATS = 2 // runs of a file that differs
const RUN_MS = 180_000

/**
 * @typedef {object} Suite
 * @property {string} cwd
 * @property {string[]} files one process each
 * @property {(file: string) => string[]} command arguments of node
 * @property {(stdout: string) => import('../suites/parsers').Tests} parse
 * @property {boolean} [keepsStacks] runs with LONGSTACK_ERRORS=off, for tests that compare whole stacks
 *
 * @typedef {Map<string, string>} States test → state, and `(process)` → how it ended
 *
 * @typedef {import('../suites/modes').Mode} Mode
 *
 * @typedef {object} Difference
 * @property {string} file
 * @property {Mode} mode
 * @property {string} name
 * @property {string} bare state without longstack, or `missing`
 * @property {string} traced state with it
 *
 * @typedef {object} Comparison
 * @property {number} files
 * @property {number} tests number of tests without longstack
 * @property {number} passed number of these that passed
 * @property {Difference[]} differences
 * @property {Difference[]} byHook differences that an empty hook causes as well
 * @property {Difference[]} byStacks differences that disappear with LONGSTACK_ERRORS=off
 * @property {Difference[]} unsteady differences that occurred only once
 * @property {number} bareMs
 * @property {number} tracedMs total of all modes
 *
 * @typedef {object} Options
 * @property {Mode[]} [modes]
 * @property {string} [preload]
 * @property {number} [jobs] parallel processes
 * @property {(line: string) => void} [progress]
 * @property {Record<string, string>} [recorded] digests of earlier runs without longstack, by file: such a
 *   run is only repeated if the one with longstack differs from it
 */

/**
 * @param {Suite} suite
 * @param {Options} [options]
 * @returns {Promise<Comparison>}
 */
async function compare (suite, options = {}) {
  const { modes = ['full'], jobs = Math.max(2, os.availableParallelism()) } = options
  /** @type {Comparison} */
  const result = {
    files: suite.files.length,
    tests: 0,
    passed: 0,
    differences: [],
    byHook: [],
    byStacks: [],
    unsteady: [],
    bareMs: 0,
    tracedMs: 0
  }
  const queue = [...suite.files]

  async function worker () {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const first = await runAsRecorded(suite, file, modes, options, result)
      const start = Date.now()
      const bare = first ?? await run(suite, file, 'bare')
      if (first === undefined) result.bareMs += Date.now() - start
      result.tests += bare.size - 1
      for (const state of bare.values()) if (state === 'ok') result.passed++
      if (first !== undefined) continue
      for (const mode of modes) await compareMode(suite, file, mode, bare, options, result)
    }
  }

  await Promise.all(Array.from({ length: jobs }, worker))
  return result
}

/**
 * Runs a file in its only mode if an earlier run without longstack is recorded.
 * @param {Suite} suite
 * @param {string} file
 * @param {Mode[]} modes
 * @param {Options} options
 * @param {Comparison} result
 * @returns {Promise<States | undefined>} undefined: nothing is recorded, or it differs
 */
async function runAsRecorded (suite, file, modes, { preload, recorded = {} }, result) {
  if (modes.length !== 1 || recorded[file] === undefined) return undefined
  const start = Date.now()
  const traced = await run(suite, file, modes[0], preload)
  result.tracedMs += Date.now() - start
  return digestOf(traced) === recorded[file] ? traced : undefined
}

/** @param {States} states @returns {string} */
function digestOf (states) {
  return createHash('sha256').update(JSON.stringify([...states].sort())).digest('hex').slice(0, 12)
}

/**
 * Runs a file in a mode and adds its differences to the result.
 * @param {Suite} suite
 * @param {string} file
 * @param {Mode} mode
 * @param {States} bare
 * @param {Options} options
 * @param {Comparison} result
 */
async function compareMode (suite, file, mode, bare, { preload, progress = () => {} }, result) {
  const start = Date.now()
  const traced = await run(suite, file, mode, preload)
  result.tracedMs += Date.now() - start
  const first = differencesOf(file, mode, bare, traced)
  if (first.length === 0) return

  let confirmed = first
  for (let i = 0; i < REPEATS && confirmed.length > 0; i++) {
    const [bareAgain, tracedAgain] = [await run(suite, file, 'bare'), await run(suite, file, mode, preload)]
    confirmed = repeated(confirmed, differencesOf(file, mode, bareAgain, tracedAgain))
  }
  const byHook = await remaining(confirmed, () => run(suite, file, 'hook'), bare)
  const others = confirmed.filter((difference) => !byHook.includes(difference))
  const withoutStacks = { ...suite, keepsStacks: true }
  const differences = await remaining(others, () => run(withoutStacks, file, mode, preload), bare)
  const byStacks = others.filter((difference) => !differences.includes(difference))
  result.unsteady.push(...first.filter((difference) => !confirmed.includes(difference)))
  result.byHook.push(...byHook)
  result.byStacks.push(...byStacks)
  result.differences.push(...differences)
  const causes = `${byHook.length} by an empty hook, ${byStacks.length} by stacks`
  progress(`${file}, ${mode}: ${first.length} differences, ${confirmed.length} again, ${causes}`)
  for (const { name, bare, traced } of confirmed) progress(`  ${name}: ${bare} → ${traced}`)
}

/**
 * Keeps the differences that recur in further runs of the file.
 * @param {Difference[]} differences
 * @param {() => Promise<States>} runAgain
 * @param {States} bare
 */
async function remaining (differences, runAgain, bare) {
  let kept = differences
  for (let i = 0; i < REPEATS && kept.length > 0; i++) {
    kept = repeated(kept, differencesOf(kept[0].file, kept[0].mode, bare, await runAgain()))
  }
  return kept
}

/**
 * Keeps the differences of a test that also occur in another run.
 * @param {Difference[]} differences
 * @param {Difference[]} others
 */
function repeated (differences, others) {
  const keys = new Set(others.map(({ name, bare }) => `${name} ${bare}`))
  return differences.filter(({ name, bare }) => keys.has(`${name} ${bare}`))
}

/**
 * @param {string} file
 * @param {Mode} mode
 * @param {States} bare
 * @param {States} traced
 * @returns {Difference[]}
 */
function differencesOf (file, mode, bare, traced) {
  const names = new Set([...bare.keys(), ...traced.keys()])
  return [...names]
    .map((name) => ({ file, mode, name, bare: stateIn(bare, name), traced: stateIn(traced, name) }))
    .filter((difference) => difference.bare !== difference.traced)
}

/** @param {States} states @param {string} name */
function stateIn (states, name) {
  return states.get(name) ?? 'missing'
}

/**
 * @param {Suite} suite
 * @param {string} file
 * @param {import('../suites/modes').Column} column
 * @param {string} [preload]
 * @returns {Promise<States>}
 */
async function run (suite, file, column, preload) {
  // Writes to a file: a runner that ends with process.exit() may leave the rest of a pipe unwritten.
  const directory = await fs.mkdtemp(path.join(os.tmpdir(), 'longstack-suite-'))
  const output = await fs.open(path.join(directory, 'stdout'), 'w+')
  try {
    const child = spawn(process.execPath, suite.command(file), {
      cwd: suite.cwd,
      env: environmentOf(column, directory, { preload, keepsStacks: suite.keepsStacks }),
      stdio: ['ignore', output.fd, 'ignore'],
      timeout: RUN_MS,
      killSignal: 'SIGKILL'
    })
    const [code, signal] = await once(child, 'close')
    return statesOf(suite.parse(await fs.readFile(path.join(directory, 'stdout'), 'utf8')), `${signal ?? code}`)
  } finally {
    await output.close()
    await fs.rm(directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

/**
 * Returns states by test; tests of the same name are distinguished by their order.
 * @param {import('../suites/parsers').Tests} tests
 * @param {string} end
 * @returns {States}
 */
function statesOf (tests, end) {
  /** @type {States} */
  const states = new Map([['(process)', `ended with ${end}`]])
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const [name, state] of tests) {
    const count = (counts.get(name) ?? 0) + 1
    counts.set(name, count)
    states.set(count === 1 ? name : `${name} (${count})`, state)
  }
  return states
}

module.exports = { compare, digestOf, run }
