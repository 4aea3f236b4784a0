'use strict'

// Turns the queries of longstack top on and off alternately in a process with longstack, and writes the CPU
// per request of each turn to BENCH_TURNS. Process and load stay the same between neighbouring turns.

const channels = require('node:diagnostics_channel')
const fs = require('node:fs')
const path = require('node:path')

const lib = path.join(__dirname, '..', '..', 'lib')
const { shared } = require(path.join(lib, 'start'))
const { Session } = require(path.join(lib, 'ask', 'session'))

const SETTLE_MS = 500 // after a switch, not measured
const READS = 4 // per turn, one per second
const READ_MS = 1000

let requests = 0
channels.subscribe('http.server.request.start', () => { requests++ })

/** called with the next reply line @type {(line: string) => void} */
let answered = () => {}
const session = new Session(shared.tracer, (line) => answered(line), () => true)
/** @param {string} name @param {object} [argument] */
const ask = (name, argument = {}) => new Promise((resolve, reject) => {
  answered = (line) => JSON.parse(line).error === undefined ? resolve(line.length) : reject(new Error(line))
  session.receive(`${JSON.stringify({ id: 1, name, argument })}\n`)
})
const sleep = (/** @type {number} */ ms) => new Promise((resolve) => { setTimeout(resolve, ms).unref() })

/** @param {boolean} isOn */
async function turn (isOn) {
  if (isOn) await ask('startTop', { intervalMs: READ_MS })
  await sleep(SETTLE_MS)
  if (isOn) await ask('readTop')
  const cpu = process.cpuUsage()
  const before = requests
  for (let i = 0; i < READS; i++) {
    await sleep(READ_MS)
    if (isOn) await ask('readTop')
  }
  const { user, system } = process.cpuUsage(cpu)
  const count = requests - before
  if (isOn) await ask('stopTop')
  return { isOn, count, cpu: (user + system) / count }
}

async function main () {
  for (let i = 0; ; i++) {
    const result = await turn(i % 2 === 1)
    if (result.count > 1000) fs.appendFileSync(String(process.env.BENCH_TURNS), `${JSON.stringify(result)}\n`)
  }
}

main().catch((error) => { throw error })
