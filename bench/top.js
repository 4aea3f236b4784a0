'use strict'

// Measures the cost of longstack top for the observed process: node bench/top.js [--minutes N] [--node PATH]
// [--workloads hello,real]. Compares CPU per request with and without it, in alternating turns of some
// seconds in the same process under the same load; each turn is compared with the mean of its two neighbours.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { parseArgs } = require('node:util')
const machine = require('./machine')
const { measureTogether } = require('./measure')
const { median } = require('./median')
const { workloads } = require('./workloads')

const WARM_MS = 10_000
const register = path.join(__dirname, '..', 'lib', 'register.js')
const preload = path.join(__dirname, 'preloads', 'top.js')

/** @typedef {{ isOn: boolean, count: number, cpu: number }} Turn */

/**
 * Returns the ratio of each turn with it to the neighbouring turns without it.
 * @param {Turn[]} turns
 */
function ratiosOf (turns) {
  /** @type {number[]} */
  const ratios = []
  for (let i = 1; i + 1 < turns.length; i++) {
    const [before, turn, after] = turns.slice(i - 1, i + 2)
    if (turn.isOn && !before.isOn && !after.isOn) ratios.push(turn.cpu / ((before.cpu + after.cpu) / 2))
  }
  return ratios
}

/** @param {string} name of the workload @param {string} node @param {number} ms */
async function measure (name, node, ms) {
  const file = path.join(os.tmpdir(), `longstack-top-${process.pid}-${name}.jsonl`)
  fs.rmSync(file, { force: true })
  /** @type {import('./subjects').Subject} */
  const subject = {
    says: 'longstack, full; longstack top by turns',
    args: () => ['-r', register, '-r', preload],
    env: () => ({ BENCH_TURNS: file }),
    peers: []
  }
  const pins = machine.pins() ?? { subject: [], load: [] }
  const job = { node, name, workload: workloads[name], warmMs: WARM_MS, ms, pins }
  const sample = (await measureTogether([['top', subject]], job)).get('top')
  if (sample === undefined || 'failed' in sample) throw new Error(sample?.failed ?? 'no sample')
  /** @type {Turn[]} */
  const turns = fs.readFileSync(file, 'utf8').trim().split('\n').map((line) => JSON.parse(line))
  fs.rmSync(file, { force: true })
  const ratios = ratiosOf(turns.slice(2))
  const mean = ratios.reduce((sum, ratio) => sum + ratio, 0) / ratios.length
  const squares = ratios.reduce((sum, ratio) => sum + (ratio - mean) ** 2, 0)
  const error = Math.sqrt(squares / (ratios.length - 1) / ratios.length)
  const off = median(turns.filter(({ isOn }) => !isOn).map(({ cpu }) => cpu))
  console.log(`${name}: ${off.toFixed(1)} µs/request without; ratio with it ${median(ratios).toFixed(4)} ` +
    `(median), ${mean.toFixed(4)} ± ${error.toFixed(4)} (mean), ${ratios.length} turns`)
}

async function main () {
  const { values } = parseArgs({
    options: {
      minutes: { type: 'string', default: '4' },
      node: { type: 'string', default: process.execPath },
      workloads: { type: 'string', default: 'hello,real' }
    }
  })
  const ms = Number(values.minutes) * 60_000
  for (const name of values.workloads.split(',')) await measure(name, values.node, ms)
}

main().catch((error) => {
  console.error(error)
  process.exitCode = 1
})
