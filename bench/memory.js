'use strict'

// Measures the heap still in use after much work: node bench/memory.js runs each case in its own child, with
// and without the preload, and prints a table; node --expose-gc -r longstack/register bench/memory.js CASE
// [HOPS] runs one case. The workload memory of run.js does the same for all subjects.

const { execFile, execFileSync } = require('node:child_process')
const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { promisify } = require('node:util')

const HOPS = Number(process.argv[3] ?? 1_000_000)
const CONNECTIONS = HOPS / 100
const MAX_MS = 120_000

const cases = {
  timers: () => new Promise((resolve) => {
    // 1,000,000 timers of 1 ms would take twenty minutes, so every thousandth is a timer, the others
    // immediates.
    let remaining = HOPS
    ;(function hop () {
      if (remaining-- === 0) resolve()
      else if (remaining % 1000 === 0) setTimeout(hop, 0)
      else setImmediate(hop)
    })()
  }),

  immediates: () => new Promise((resolve) => {
    let remaining = HOPS
    ;(function hop () { remaining-- === 0 ? resolve() : setImmediate(hop) })()
  }),

  promises: () => new Promise((resolve) => {
    let remaining = HOPS
    ;(function hop () { remaining-- === 0 ? resolve() : Promise.resolve().then(hop) })()
  }),

  async awaits () {
    for (let i = 0; i < HOPS; i++) await null
  },

  ticks: () => new Promise((resolve) => {
    let remaining = HOPS
    ;(function hop () { remaining-- === 0 ? resolve() : process.nextTick(hop) })()
  }),

  async pending () {
    let pending = []
    for (let i = 0; i < HOPS; i++) pending.push(new Promise(() => {}))
    await new Promise((resolve) => setTimeout(resolve, 10))
    pending = undefined
  },

  async connections () {
    const net = require('node:net')
    const server = net.createServer((socket) => socket.end('x')).listen(0, '127.0.0.1')
    await require('node:events').once(server, 'listening')
    const { port } = server.address()
    for (let i = 0; i < CONNECTIONS / 50; i++) {
      await Promise.all(Array.from({ length: 50 }, () => new Promise((resolve, reject) => {
        net.connect(port, '127.0.0.1').on('error', reject).on('close', resolve).resume()
      })))
    }
    await new Promise((resolve) => server.close(resolve))
  },

  async toggles () {
    const trace = require('..')
    const wasEnabled = trace.enabled
    for (let i = 0; i < 1000; i++) {
      trace.enable()
      await null
      trace.disable()
    }
    if (wasEnabled) trace.enable()
  }
}

/** Collects garbage. The registry of handles releases entries within a second (lib/core/registry.js). */
async function collectGarbage () {
  for (const ms of [20, 20, 20, 1000, 20, 20]) {
    global.gc()
    await new Promise((resolve) => setTimeout(resolve, ms))
  }
}

async function run (name) {
  await collectGarbage()
  const before = process.memoryUsage().heapUsed
  const began = process.cpuUsage()
  await cases[name]()
  const cpu = process.cpuUsage(began)
  await collectGarbage()
  const heapGrowth = (process.memoryUsage().heapUsed - before) / 1e6
  const { contexts, stacks, captured, dropped, handles } = require('..').stats()
  const peak = process.resourceUsage().maxRSS / 1000
  const figures = { left: heapGrowth, cpu: (cpu.user + cpu.system) / 1e6, peak }
  console.log(JSON.stringify({ ...figures, contexts, stacks, captured, dropped, handles }))
}

/**
 * @typedef {object} MemoryFigure
 * @property {string} case
 * @property {string} subject
 * @property {number} [left] MB of heap growth after the work
 * @property {number} [peak] MB of resident memory
 * @property {string} [failed]
 */

/**
 * Runs all cases for one subject.
 * @param {string} subject
 * @param {import('./in-turn').Command} command
 * @param {number} hops
 * @returns {Promise<MemoryFigure[]>}
 */
async function memoryOf (subject, { node: [command, ...args], options }, hops) {
  const figures = []
  for (const name of Object.keys(cases)) {
    const childArgs = [...args, '--expose-gc', __filename, name, String(hops)]
    try {
      const { stdout } = await promisify(execFile)(command, childArgs, { ...options, timeout: MAX_MS })
      const { left: heapGrowth, peak } = JSON.parse(String(stdout.trim().split('\n').at(-1)))
      figures.push({ case: name, subject, left: heapGrowth, peak })
    } catch (error) {
      const { killed, code, signal } = /** @type {any} */ (error)
      const failed = killed ? `does not end within ${MAX_MS / 1000} s` : `exit code ${code ?? signal}`
      figures.push({ case: name, subject, failed })
    }
  }
  return figures
}

/**
 * Runs all cases for each subject.
 * @param {string[]} node its command
 * @param {Array<[string, import('./subjects').Subject]>} subjects
 * @param {number} hops
 * @returns {Promise<MemoryFigure[]>}
 */
async function memoryOn (node, subjects, hops) {
  const { commandOf } = require('./in-turn') // not in the measured process
  const figures = []
  for (const [name, subject] of subjects) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
    figures.push(...await memoryOf(name, commandOf(node, subject, directory), hops))
    fs.rmSync(directory, { recursive: true, force: true, maxRetries: 3 })
  }
  return figures
}

function printAll () {
  const register = path.join(__dirname, '..', 'lib', 'register.js')
  for (const name of Object.keys(cases)) {
    for (const preload of [[], ['-r', register]]) {
      const childArgs = ['--expose-gc', ...preload, __filename, name]
      const output = execFileSync(process.execPath, childArgs, { encoding: 'utf8' })
      const { left: heapGrowth, cpu, peak, ...figures } = JSON.parse(output)
      const subject = preload.length > 0 ? 'longstack' : 'bare     '
      const held = Object.entries(figures).map(([key, value]) => `${key} ${value}`).join(', ')
      const amounts = `heap +${heapGrowth.toFixed(2)} MB, ${cpu.toFixed(1)} s CPU, peak ${peak.toFixed(0)} MB`
      console.log(`${process.version} ${name.padEnd(12)} ${subject} ${amounts}, ${held}`)
    }
  }
}

if (require.main === module) {
  if (process.argv[2] !== undefined) run(process.argv[2])
  else printAll()
}

module.exports = { memoryOn }
