'use strict'

// Runs a program in its own child process, as users do, so that contexts are never counted inside the test
// runner.

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { runsAll } = require('./scope')
const { timeFactor } = require('./time-factor')

const root = path.resolve(__dirname, '..', '..')
const register = path.join(root, 'lib', 'register.js')

// Limits parallel children: ava starts all tests of a file at once, and the timeout of a child includes
// waiting.
const MAX_CHILDREN = 8
const CHILD_MS = 180_000 // one second of work can take a minute on a busy machine

let running = 0
/** starts the next waiting child @type {Array<(value?: unknown) => void>} */
const waiting = []

/** Variables that a child does not inherit: they configure longstack, Node or the test runner's colors. */
const ownVariables = /^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/
const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !ownVariables.test(name)))

/** Engine for all tests: ENGINE=js npx ava. A test that sets the engine itself overrides it. */
const engine = process.env.ENGINE ? { LONGSTACK_CAPTURE: process.env.ENGINE } : {}

/**
 * @typedef {object} Result
 * @property {string} stdout
 * @property {string} stderr
 * @property {number | null} code
 * @property {string | null} signal
 */

/**
 * Runs Node until it exits.
 * @param {string[]} args of node
 * @param {object} [options]
 * @param {Record<string, string | undefined>} [options.env] added to a clean environment
 * @param {string} [options.cwd]
 * @param {string} [options.input]
 * @param {number} [options.timeout] ms, times TIME_FACTOR
 * @returns {Promise<Result>}
 */
function node (args, { env = {}, cwd = root, input = '', timeout = CHILD_MS } = {}) {
  const options = /** @type {const} */ ({
    env: { ...inherited, ...engine, ...env }, cwd, timeout: timeout * timeFactor, killSignal: 'SIGKILL'
  })
  return inTurn(() => exited(args, options, input))
}

/**
 * Delays work that starts a child process until few are running.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
async function inTurn (work) {
  if (running === MAX_CHILDREN) await new Promise((resolve) => { waiting.push(resolve) })
  else running++
  try {
    return await work()
  } finally {
    const next = waiting.shift()
    if (next === undefined) running--
    else next()
  }
}

/**
 * @param {string[]} args of node
 * @param {import('node:child_process').SpawnOptionsWithoutStdio} options
 * @param {string} input
 * @returns {Promise<Result>}
 */
function exited (args, options, input) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, options)
    let stdout = ''
    let stderr = ''
    child.stdout.setEncoding('utf8').on('data', (text) => { stdout += text })
    child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
    child.on('error', reject)
    child.on('close', (code, signal) => resolve({ stdout, stderr, code, signal }))
    child.stdin.on('error', () => {}).end(input)
  })
}

/**
 * Runs a program text under the preload.
 * @param {string} source
 * @param {object} [options]
 * @param {'cjs' | 'mjs'} [options.type]
 * @param {string[]} [options.args] of node, before the program
 * @param {boolean} [options.preload] default true
 * @param {Record<string, string | undefined>} [options.env]
 * @param {number} [options.timeout]
 */
async function program (source, { type = 'cjs', args = [], preload = true, ...options } = {}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-'))
  try {
    const file = path.join(folder, `program.${type}`)
    fs.writeFileSync(file, source)
    return await node([...(preload ? ['-r', register] : []), ...args, file], options)
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
}

/**
 * Splits a long stack into the error's own part and its hops.
 * @param {string} stack
 * @returns {{ head: string, hops: Array<{ title: string, frames: string }> }}
 */
function split (stack) {
  const [head, ...rest] = stack.split(/^ {2}── /m)
  const hops = rest.map((part) => ({ title: part.split('\n', 1)[0], frames: part.split('\n').slice(1).join('\n') }))
  return { head, hops }
}

/** @param {string} word */
const quoteForShell = (word) => `'${word.replaceAll("'", "'\\''")}'`

/** Line above a hop, at any indentation. */
const separator = /^\s*(?:\| )*── .+ ──$/

/**
 * Removes appended hops from any text with printed stacks, including indented ones of a cause.
 * @param {string} text
 */
function withoutHops (text) {
  /** @type {string[]} */
  const kept = []
  let inHop = false
  for (const line of text.split('\n')) {
    if (separator.test(line)) {
      inHop = true
      continue
    }
    const frame = inHop ? /^\s+(?:at (?:.*:\d+:\d+\)?|.*<anonymous>\)?)|\.{3} \d+ frames? in [\w@/.:, -]+|\.{3} as above: [^{},\]]+(?:, [\w$.]+)*)(.*)$/.exec(line) : null
    if (frame === null) {
      inHop = false
      kept.push(line)
    } else if (frame[1] !== '') { // text continues after a stack: " {", ",", "]" or another stack
      inHop = false
      kept[kept.length - 1] += frame[1]
    }
  }
  return kept.join('\n')
}

module.exports = {
  inTurn,
  inherited,
  node,
  program,
  quoteForShell,
  split,
  separator,
  withoutHops,
  runsAll,
  root,
  register
}
