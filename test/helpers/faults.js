'use strict'

// Runs a program without and with longstack under the same fault, and compares everything observable.

const { spawn, spawnSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { strict } = require('./installed')
const { register, withoutHops } = require('./run')
const { recordsOf } = require('./records')

const SERVICE = path.join(__dirname, '..', 'fixtures', 'faults', 'service.js')
const SHIM = path.join(__dirname, '..', 'fixtures', 'faults', 'shim.c')
const LIMIT_MS = 120_000

const inherited = Object.fromEntries(Object.entries(process.env)
  .filter(([name]) => !/^(LONGSTACK|NODE_|AVA_|FORCE_COLOR|NO_COLOR)/.test(name)))

/** @typedef {{ capture: 'native' | 'js' }} Way */

/** All variants of tracing. @type {Way[]} */
const ways = [{ capture: 'native' }, { capture: 'js' }]

/**
 * @typedef {object} Outcome
 * @property {number | null} code
 * @property {string | null} signal
 * @property {string} stdout output without hops
 * @property {string} stderr
 * @property {number} ms
 * @property {any} stats statistics of longstack, if the program could send them
 *
 * @typedef {object} Scene
 * @property {string} directory of the test, as DIR; spans go there unless `spans` names another place
 * @property {string} [file] of the program
 * @property {string} [shell] commands of a shell before it replaces itself by node, for example a limit
 * @property {string[]} [first] arguments of node before the preload
 * @property {string[]} [args] of node
 * @property {Record<string, string>} [env]
 * @property {string | undefined} [spans]
 * @property {(child: import('node:child_process').ChildProcess) => void} [started]
 * @property {() => void} [prepare] called before each run
 */

/**
 * @param {Scene} scene
 * @param {string[]} preload
 * @param {Record<string, string>} own variables of longstack
 * @returns {Promise<Outcome>}
 */
function runOnce (scene, preload, own) {
  const { directory, file = SERVICE, shell, first = [], args = [], env = {}, started = () => {} } = scene
  const node = [process.execPath, ...first, ...preload, ...args, file]
  const [command, ...words] = shell === undefined ? node : ['/bin/sh', '-c', `${shell}\nexec "$0" "$@"`, ...node]
  const begin = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(command, words, {
      cwd: directory,
      env: { ...inherited, DIR: directory, ...env, ...own },
      stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
      timeout: LIMIT_MS,
      killSignal: 'SIGKILL'
    })
    const texts = ['', '', '', '']
    for (const fd of [1, 2, 3]) {
      const stream = /** @type {import('node:stream').Readable} */ (child.stdio[fd])
      stream.setEncoding('utf8').on('data', (text) => { texts[fd] += text }).on('error', () => {})
    }
    child.on('error', reject)
    child.on('close', (code, signal) => {
      const ms = performance.now() - begin
      const stats = texts[3] === '' ? undefined : JSON.parse(texts[3])
      resolve({ code, signal, stdout: withoutHops(texts[1]), stderr: texts[2], ms, stats })
    })
    started(child)
  })
}

/**
 * Asserts that a program behaves the same with and without longstack, under the same fault.
 * @param {import('ava').ExecutionContext} t
 * @param {Scene} scene
 * @param {Way} way
 * @param {Record<string, string>} [options] further variables of longstack
 * @returns {Promise<{ bare: Outcome, traced: Outcome, lines: string[] }>} lines: additional lines of stderr
 *   under longstack
 */
async function compare (t, scene, { capture }, options = {}) {
  const { spans = path.join(scene.directory, 'spans.jsonl') } = scene
  const own = { LONGSTACK_SPANS: spans, LONGSTACK_CAPTURE: capture, ...options }
  const { prepare = () => {} } = scene
  prepare()
  const bare = await runOnce(scene, [], {})
  prepare()
  const traced = await runOnce(scene, ['-r', register], own)
  const label = `${capture}: ${traced.stderr}`
  t.deepEqual([traced.code, traced.signal], [bare.code, bare.signal], label)
  t.is(traced.stdout, bare.stdout, label)
  const lines = traced.stderr.split('\n').filter((line) => line.startsWith('longstack: '))
  const others = withoutHops(traced.stderr).split('\n').filter((line) => !line.startsWith('longstack: ')).join('\n')
  t.is(others, bare.stderr, label)
  return { bare, traced, lines }
}

/** Counts the spans in a file; throws on a torn line. @param {string} file */
function countSpans (file) {
  if (!fs.existsSync(file)) return 0
  const records = recordsOf(fs.readFileSync(file, 'utf8').split('\n').slice(0, -1))
  return records.length
}

/** @type {string | undefined} */
let library

/**
 * Builds the fault library.
 * @returns {{ shim: string, reason?: undefined } | { shim?: undefined, reason: string }}
 * @throws {Error} if it is required (CI)
 */
function buildShim () {
  if (process.platform !== 'linux') return { reason: 'the library of faults is for Linux' }
  if (library !== undefined) return { shim: library }
  const target = path.join(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-shim-')), 'shim.so')
  const { status, stderr, error } = spawnSync('gcc', ['-O1', '-Wall', '-shared', '-fPIC', '-o', target, SHIM, '-ldl'], { encoding: 'utf8' })
  if (status === 0) {
    process.on('exit', () => fs.rmSync(path.dirname(target), { recursive: true, force: true }))
    library = target
    return { shim: target }
  }
  const reason = `gcc: ${error?.message ?? stderr}`
  if (strict) throw new Error(reason)
  return { reason }
}

/**
 * Declares the tests of a file.
 * @template Plan
 * @param {(title: string, plan: Plan) => void} testCase
 * @param {Record<string, Plan>} cases without the fault library
 * @param {Array<[title: string, plan: Plan]>} shimmed cases with it
 */
function testPlans (testCase, cases, shimmed) {
  if (process.platform === 'linux') for (const [title, plan] of Object.entries(cases)) testCase(title, plan)
  const { reason } = buildShim()
  if (reason === undefined) for (const [title, plan] of shimmed) testCase(title, plan)
  else console.log(`Without the library of faults some are not tested: ${reason}`)
}

/** @param {import('ava').ExecutionContext} t */
function temporary (t) {
  const directory = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-fault-')))
  t.teardown(() => {
    spawnSync('chmod', ['-R', 'u+rwx', directory])
    fs.rmSync(directory, { recursive: true, force: true })
  })
  return directory
}

module.exports = { SERVICE, buildShim, compare, countSpans, runOnce, temporary, testPlans, ways }
