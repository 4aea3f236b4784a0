'use strict'

// Measures the cost of a pending timer: node bench/pending-timers.js [COUNT] creates that many timers, bare,
// with an empty hook and traced. It prints CPU and resident memory of each and, per timer, the difference to
// the hook. All run at the same time on one CPU; the median of three rounds counts.

const { execFile } = require('node:child_process')
const path = require('node:path')
const { promisify } = require('node:util')
const { pins } = require('./machine')
const { cleanEnvironment } = require('./measure')
const { median } = require('./median')

const COUNT = Number(process.argv[2] ?? 1_000_000)
const ROUNDS = 3

/** @type {Record<string, string[]>} */
const subjects = {
  bare: [],
  hook: ['-r', path.join(__dirname, 'preloads', 'hooks.js')],
  longstack: ['-r', path.join(__dirname, '..', 'lib', 'register.js')]
}

/** @param {number} count of timers */
function measure (count) {
  const began = process.cpuUsage()
  for (let i = 0; i < count; i++) setTimeout(() => {}, 1 + i % 50)
  process.on('exit', () => {
    const { user, system } = process.cpuUsage(began)
    console.log(JSON.stringify({ seconds: (user + system) / 1e6, bytes: process.memoryUsage().rss }))
  })
}

/** @typedef {{ seconds: number, bytes: number }} Figures */

/** @param {string} name of a subject @param {number} count @returns {Promise<Figures>} */
async function run (name, count) {
  const [command, ...args] = [...(pins()?.subject ?? []), process.execPath, ...subjects[name]]
  const options = { env: { ...cleanEnvironment(), PENDING_TIMERS: String(count) } }
  const { stdout } = await promisify(execFile)(command, [...args, __filename], options)
  return JSON.parse(stdout)
}

async function main () {
  const names = Object.keys(subjects)
  /** COUNT timers compared with one timer @type {Figures[][]} */
  const rounds = []
  for (let i = 0; i < ROUNDS; i++) {
    const many = await Promise.all(names.map((name) => run(name, COUNT)))
    const one = await Promise.all(names.map((name) => run(name, 1)))
    rounds.push(names.map((_, at) => ({
      seconds: many[at].seconds - one[at].seconds, bytes: many[at].bytes - one[at].bytes
    })))
  }
  const per = (/** @type {number} */ value) => value / COUNT
  console.log(`Node ${process.versions.node}, ${COUNT} timers:`)
  for (const [at, name] of names.entries()) {
    const of = (/** @type {keyof Figures} */ figure, base = -1) => per(median(rounds.map((round) => {
      return round[at][figure] - (base < 0 ? 0 : round[base][figure])
    })))
    const hook = names.indexOf('hook')
    const text = (base = -1) => {
      return `${(of('seconds', base) * 1e6).toFixed(2)} µs, ${Math.round(of('bytes', base))} bytes`
    }
    console.log(`${name}: ${text()} each${at <= hook ? '' : `; over the hook ${text(hook)}`}`)
  }
}

if (process.env.PENDING_TIMERS !== undefined) measure(Number(process.env.PENDING_TIMERS))
else main()
