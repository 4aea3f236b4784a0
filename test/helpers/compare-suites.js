'use strict'

// Runs other people's tests with and without longstack and compares them test by test: names and states, not
// only exit codes. A difference counts if it shows again when the file is run again, both ways.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs/promises')
const os = require('node:os')
const path = require('node:path')
const { register } = require('./run')

const REPEATS = 2 // of a file that differs
const RUN_MS = 180_000

/**
 * @typedef {object} Suite
 * @property {string} cwd
 * @property {string[]} files one process each
 * @property {(file: string) => string[]} command arguments of node
 * @property {(stdout: string) => Array<[name: string, state: string]>} parse
 *
 * @typedef {Map<string, string>} States test → state, and `(process)` → how it ended
 *
 * @typedef {object} Difference
 * @property {string} file
 * @property {string} name
 * @property {string} bare state without longstack, or `missing`
 * @property {string} traced state with it
 *
 * @typedef {object} Comparison
 * @property {number} files
 * @property {number} tests seen without longstack
 * @property {number} passed of them
 * @property {Difference[]} differences
 * @property {Difference[]} unsteady seen once, not again
 * @property {number} bareMs
 * @property {number} tracedMs
 */

/**
 * @param {Suite} suite
 * @param {object} [options]
 * @param {string} [options.preload]
 * @param {(line: string) => void} [options.progress]
 * @returns {Promise<Comparison>}
 */
async function compare (suite, { preload = register, progress = () => {} } = {}) {
  /** @type {Comparison} */
  const result = {
    files: suite.files.length,
    tests: 0,
    passed: 0,
    differences: [],
    unsteady: [],
    bareMs: 0,
    tracedMs: 0
  }
  const queue = [...suite.files]

  async function worker () {
    for (let file = queue.shift(); file !== undefined; file = queue.shift()) {
      const pair = await runBoth(suite, file, preload)
      result.tests += pair.bare.size - 1
      for (const state of pair.bare.values()) if (state === 'ok') result.passed++
      result.bareMs += pair.bareMs
      result.tracedMs += pair.tracedMs
      const first = differencesOf(file, pair)
      const confirmed = await confirm(suite, file, preload, first)
      result.differences.push(...confirmed)
      result.unsteady.push(...first.filter((one) => !confirmed.includes(one)))
      if (first.length > 0) progress(`${file}: ${confirmed.length} of ${first.length} differences seen again`)
    }
  }

  await Promise.all(Array.from({ length: Math.max(2, os.availableParallelism()) }, worker))
  return result
}

/**
 * Keeps the differences that every repetition shows.
 * @param {Suite} suite
 * @param {string} file
 * @param {string} preload
 * @param {Difference[]} differences
 */
async function confirm (suite, file, preload, differences) {
  let left = differences
  for (let i = 0; i < REPEATS && left.length > 0; i++) {
    const again = differencesOf(file, await runBoth(suite, file, preload))
    left = left.filter((one) => again.some((other) => other.name === one.name && other.bare === one.bare))
  }
  return left
}

/**
 * @typedef {{ bare: States, traced: States, bareMs: number, tracedMs: number }} Pair
 *
 * @param {Suite} suite
 * @param {string} file
 * @param {string} preload
 * @returns {Promise<Pair>}
 */
async function runBoth (suite, file, preload) {
  const start = Date.now()
  const bare = await run(suite, file)
  const middle = Date.now()
  // Through the environment, so that the child processes and workers of the tests have it too.
  const traced = await run(suite, file, `--require="${preload.replace(/[\\"]/g, '\\$&')}"`)
  return { bare, traced, bareMs: middle - start, tracedMs: Date.now() - middle }
}

/**
 * @param {string} file
 * @param {Pair} pair
 * @returns {Difference[]}
 */
function differencesOf (file, { bare, traced }) {
  const names = new Set([...bare.keys(), ...traced.keys()])
  return [...names]
    .map((name) => ({ file, name, bare: bare.get(name) ?? 'missing', traced: traced.get(name) ?? 'missing' }))
    .filter((one) => one.bare !== one.traced)
}

/**
 * @param {Suite} suite
 * @param {string} file
 * @param {string} [nodeOptions]
 * @returns {Promise<States>}
 */
async function run (suite, file, nodeOptions) {
  // Into a file: a runner that ends with process.exit() may leave the rest of a pipe unwritten.
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'longstack-suite-'))
  const output = await fs.open(path.join(folder, 'stdout'), 'w+')
  try {
    const child = spawn(process.execPath, suite.command(file), {
      cwd: suite.cwd,
      env: { ...cleanEnvironment(), ...(nodeOptions && { NODE_OPTIONS: nodeOptions }) },
      stdio: ['ignore', output.fd, 'ignore'],
      timeout: RUN_MS,
      killSignal: 'SIGKILL'
    })
    const [code, signal] = await once(child, 'close')
    return statesOf(suite.parse(await fs.readFile(path.join(folder, 'stdout'), 'utf8')), `${signal ?? code}`)
  } finally {
    await output.close()
    await fs.rm(folder, { recursive: true, force: true })
  }
}

/** What a test runner left in the environment would reach the suites. */
function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_|AVA_|CI$|FORCE_COLOR|NO_COLOR)/.test(name)))
}

/**
 * Tests of one name are told apart by their order.
 * @param {Array<[string, string]>} tests
 * @param {string} end
 * @returns {States}
 */
function statesOf (tests, end) {
  /** @type {States} */
  const states = new Map([['(process)', `ended with ${end}`]])
  /** @type {Map<string, number>} */
  const seen = new Map()
  for (const [name, state] of tests) {
    const count = (seen.get(name) ?? 0) + 1
    seen.set(name, count)
    states.set(count === 1 ? name : `${name} (${count})`, state)
  }
  return states
}

/**
 * The output of `node --test-reporter=tap`: every test and subtest, by its path.
 * @param {string} text
 * @returns {Array<[string, string]>}
 */
function parseTap (text) {
  /** @type {string[]} */
  const titles = []
  /** @type {Array<[string, string]>} */
  const tests = []
  for (const line of text.split('\n')) {
    const opening = /^( *)# Subtest: (.*)$/.exec(line)
    if (opening !== null) {
      titles.length = opening[1].length / 4
      titles.push(opening[2])
      continue
    }
    const result = /^( *)(ok|not ok) \d+ - (.*?)( # (?:SKIP|TODO).*)?$/.exec(line)
    if (result === null) continue
    const [, indent, state, name, directive] = result
    tests.push([[...titles.slice(0, indent.length / 4), name].join(' › '), state + (directive ?? '')])
  }
  return tests
}

/**
 * The output of mocha's `json` reporter, which may follow other output.
 * @param {string} text
 * @returns {Array<[string, string]>}
 */
function parseMocha (text) {
  const start = text.search(/^\{\s*"stats":/m)
  if (start === -1) return []
  const { passes, failures, pending } = JSON.parse(text.slice(start))
  return [...named(passes, 'ok'), ...named(failures, 'not ok'), ...named(pending, 'skipped')]
}

/**
 * @param {Array<{ fullTitle: string }>} tests
 * @param {string} state
 * @returns {Array<[string, string]>}
 */
function named (tests, state) {
  return tests.map((test) => [test.fullTitle, state])
}

module.exports = { compare, parseTap, parseMocha }
