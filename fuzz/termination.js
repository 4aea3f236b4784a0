'use strict'

// Terminates a traced program at random instants, in all ways that Node has: a `timeout` of vm, Ctrl-C with
// `breakOnSigint`, worker.terminate(). V8 runs no `finally` then. Afterwards tracing, formatter, limit,
// built-ins and records have to be as they were.
//
//     node fuzz/termination.js --count 10000 --engine js --mode light --node .cache/node/22/bin/node

const { spawn } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')

const root = path.join(__dirname, '..')
const PER_PROCESS = [1, 3, 100] // terminations; few in most processes: built-ins are loaded once in each
const noCounts = { terminated: 0, inState: 0, inLongstack: 0, workers: 0, byV8: 0 }
const PROCESS_MS = 120_000
const STUCK_MS = 8000 // in code that is to be terminated after 30 ms at most, or by a signal

/**
 * @typedef {object} Settings
 * @property {number} seed
 * @property {number} [count] terminations
 * @property {number} [seconds]
 * @property {'native' | 'js'} [engine]
 * @property {'full' | 'light' | 'spans'} [mode] spans: with spans and blocking callbacks as well
 * @property {string} [node] the binary
 * @property {(text: string) => void} [log]
 *
 * @typedef {typeof noCounts & { findings: string[] }} Result
 */

/**
 * Runs one program.
 * @param {Required<Pick<Settings, 'engine' | 'mode' | 'node'>>} settings
 * @param {object} input
 * @param {string} folder for spans
 * @returns {Promise<Result>}
 */
function play ({ engine, mode, node }, input, folder) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_)/.test(name))
  const env = {
    ...Object.fromEntries(inherited),
    LONGSTACK_CAPTURE: engine,
    LONGSTACK_MODE: mode === 'light' ? 'light' : 'full',
    ...(mode === 'spans' ? { LONGSTACK_SPANS: path.join(folder, 'spans'), LONGSTACK_BLOCKED: '50' } : {})
  }
  const program = path.join(__dirname, 'termination', 'program.js')
  const args = ['-r', path.join(root, 'lib', 'register.js'), program, JSON.stringify(input)]
  const child = spawn(node, args, { env, timeout: PROCESS_MS, killSignal: 'SIGKILL' })
  let stderr = ''
  child.stderr.setEncoding('utf8').on('data', (text) => { stderr += text })
  let isTerminating = false
  let isStuck = false
  const onStuck = () => { isStuck = child.kill('SIGKILL') }
  /** @type {NodeJS.Timeout | undefined} */
  let timer
  // The program prints < before code that is to be terminated, and > after it
  child.stdout.setEncoding('utf8').on('data', (text) => {
    clearTimeout(timer)
    isTerminating = text.endsWith('<')
    if (isTerminating) timer = setTimeout(onStuck, STUCK_MS)
  })
  return new Promise((resolve) => child.on('close', (code, signal) => {
    clearTimeout(timer)
    const line = stderr.split('\n').reverse().find((text) => text.startsWith('{"findings"'))
    // Bare Node from 22 on loses some terminations of code that makes promises, which then runs for ever; V8
    // ends the process where it terminates a promise hook, an empty one as well
    const isFatal = isTerminating && signal === 'SIGTRAP' // V8's own fatal errors
    const isNamed = /^termination_exception|failure_message_object=/m.test(stderr)
    const isByV8 = isStuck || isFatal || isNamed
    if (line === undefined && isByV8) return resolve({ ...noCounts, findings: [], byV8: 1 })
    const none = { findings: [`${signal ?? code}: ${stderr.slice(-2000)}`], ...noCounts }
    const result = line === undefined ? none : JSON.parse(line)
    if (line !== undefined && code !== 0) result.findings.push(`exit code ${code}`)
    resolve(result)
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
      const perProcess = Math.min(PER_PROCESS[i % PER_PROCESS.length], count - total.terminated)
      const input = {
        seed: seed + i,
        count: perProcess,
        atStart: i % 2 === 0,
        spans: mode === 'spans',
        workers: i % 6 === 2
      }
      const result = await play({ engine, mode, node }, input, folder)
      total.findings.push(...result.findings.map((text) => `${JSON.stringify(input)} ${text}`))
      total.terminated += Math.max(1, result.terminated)
      total.inState += result.inState
      total.inLongstack += result.inLongstack
      total.workers += result.workers
      total.byV8 += result.byV8 ?? 0
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
