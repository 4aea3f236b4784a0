'use strict'

// Terminates a traced program at random instants, in all ways that Node has: a `timeout` of vm, Ctrl-C with
// `breakOnSigint`, worker.terminate(). V8 runs no `finally` then. Afterwards tracing, formatter, limit,
// built-ins and records have to be as they were.
//
//     node fuzz/termination.js --count 10000 --engine js --mode mixed --node .cache/node/22/bin/node

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')

const root = path.join(__dirname, '..')
const PER_PROCESS = [1, 3, 100] // terminations; few in most processes: built-ins are loaded once in each
const noCounts = { terminated: 0, inState: 0, inLongstack: 0, workers: 0, lost: 0, byV8: 0 }
const PROCESS_MS = 180_000
const MAX_FINDINGS = 50
const modes = /** @type {const} */ (['full', 'spans'])

/**
 * @typedef {object} Settings
 * @property {number} seed
 * @property {number} [count] terminations
 * @property {number} [seconds]
 * @property {'native' | 'js'} [engine]
 * @property {typeof modes[number] | 'mixed'} [mode] spans: with spans and blocking callbacks as well; mixed:
 *   each in turn
 * @property {string} [node] the binary
 * @property {(text: string) => void} [log]
 *
 * @typedef {typeof noCounts & { findings: string[] }} Result lost: terminations that V8 lost; byV8: processes
 *   and workers that V8, or Node, ended
 */

/**
 * Returns whether V8 itself ended a process in which code was being terminated, as it does with an empty
 * hook: by an error of its own, while no native code of longstack's was running.
 * @param {string} stderr
 * @param {NodeJS.Signals | null} signal
 */
function isByV8 (stderr, signal) {
  if (/^termination_exception|failure_message_object=/m.test(stderr)) return true
  const isFatal = /^# Fatal error in |^FATAL ERROR: /m.test(stderr) || signal === 'SIGTRAP'
  return isFatal && !/longstack[^\s/]*\.node/.test(stderr)
}

/**
 * Returns whether Node ended a process because its own stack of async ids was not left: code that was
 * terminated in a callback of a promise is so with any async hook that promises are reported to.
 * @param {string} stderr
 */
function isByNode (stderr) {
  return /async hook stack has become corrupted|Assertion failed: .*execution_async_id/.test(stderr)
}

/** @param {string} folder */
const spansIn = (folder) => ({
  LONGSTACK_SPANS: path.join(folder, 'spans'),
  LONGSTACK_RECORD: path.join(folder, 'recording'),
  LONGSTACK_BLOCKED: '50'
})

/**
 * Runs one program.
 * @param {{ engine: string, mode: string, node: string }} settings
 * @param {object} input
 * @param {string} folder for spans
 * @returns {Promise<Result>}
 */
function play ({ engine, mode, node }, input, folder) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name))
  const env = {
    ...Object.fromEntries(inherited),
    LONGSTACK_CAPTURE: engine,
    ...(mode === 'spans' ? spansIn(folder) : {})
  }
  const program = path.join(__dirname, 'termination', 'program.js')
  const args = ['-r', path.join(root, 'lib', 'register.js'), program, JSON.stringify(input)]
  const child = spawn(node, args, { env, timeout: PROCESS_MS, killSignal: 'SIGKILL' })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
  let marks = ''
  // The program prints < before code that is to be terminated and > after it, [ and ] around a worker's life
  child.stdout.setEncoding('utf8').on('data', (text) => { marks += text })
  return new Promise((resolve) => child.on('close', (code, signal) => {
    const lines = stderr.split('\n').filter((text) => /^\{"(finding|isEnd)"/.test(text))
      .map((text) => JSON.parse(text))
    const findings = lines.map(({ finding }) => finding).filter((text) => text !== undefined)
    const counts = lines.find(({ isEnd }) => isEnd)
    const ended = `${signal ?? `exit code ${code}`}: ${stderr.slice(-2000)}`
    if (counts !== undefined) {
      if (code !== 0) findings.push(ended)
      return resolve({ ...noCounts, ...counts, findings })
    }
    const byV8 = isByNode(stderr) || (/[<[]$/.test(marks) && isByV8(stderr, signal)) ? 1 : 0
    if (byV8 === 0) findings.push(ended)
    resolve({ ...noCounts, terminated: marks.split('>').length - 1, byV8, findings })
  }))
}

/** @param {Settings} settings @returns {Promise<Result>} */
async function terminateAtRandom (settings) {
  const { seed, count = Infinity, seconds } = settings
  const { engine = 'native', mode = 'full', node = process.execPath } = settings
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-termination-'))
  const end = performance.now() + (seconds ?? Infinity) * 1000
  const total = { findings: /** @type {string[]} */ ([]), ...noCounts }
  try {
    for (let i = 0; total.terminated < count && performance.now() < end; i++) {
      if (total.findings.length >= MAX_FINDINGS) break
      const modeNow = mode === 'mixed' ? modes[Math.floor(i / PER_PROCESS.length) % modes.length] : mode
      const perProcess = Math.min(PER_PROCESS[i % PER_PROCESS.length], count - total.terminated)
      const input = {
        seed: seed + i,
        count: perProcess,
        atStart: i % 2 === 0,
        spans: modeNow === 'spans',
        workers: i % 6 === 2
      }
      const result = await play({ engine, mode: modeNow, node }, input, folder)
      total.findings.push(...result.findings.map((text) => `${modeNow} ${JSON.stringify(input)} ${text}`))
      for (const name of /** @type {Array<keyof typeof noCounts>} */ (Object.keys(noCounts))) {
        total[name] += result[name]
      }
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true })
  }
  return total
}

/** @param {Settings} settings @returns {Promise<number>} */
async function run (settings) {
  const { findings, terminated } = await terminateAtRandom(settings)
  if (findings.length > 0) throw new Error(findings.slice(0, 5).join('\n'))
  return terminated
}

async function main () {
  const string = /** @type {const} */ ({ type: 'string' })
  const options = { count: string, seed: string, engine: string, mode: string, node: string }
  const { values } = parseArgs({ options })
  const { count = '300', seed = String(Date.now() % 1e6), ...others } = values
  const start = performance.now()
  const settings = /** @type {Settings} */ ({ ...others, count: Number(count), seed: Number(seed) })
  const result = await terminateAtRandom(settings)
  for (const finding of result.findings) console.log(finding)
  const seconds = Math.round((performance.now() - start) / 1000)
  console.log(`${JSON.stringify({ ...settings, ...result, findings: result.findings.length })} ${seconds} s`)
  process.exitCode = result.findings.length > 0 ? 1 : 0
}

module.exports = { name: 'termination', run, terminateAtRandom }

if (require.main === module) main()
