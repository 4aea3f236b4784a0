'use strict'

// Measures an error that is thrown, caught and read: node bench/errors.js [--json] [NODE…] prints µs after
// warm-up and ms for the first error of a process, bare and with longstack, in a chain of two timers, by the
// kind of function that fails. The workloads errors and first-error of run.js measure the same for all
// subjects.

const { spawnSync } = require('node:child_process')
const path = require('node:path')
const { kinds } = require('./error-kinds')
const { inTurn } = require('./in-turn')
const { median } = require('./median')

const PROCESSES = 7
const ROUNDS = 60
const ERRORS = 100 // per round, which is shorter than a slice of the scheduler
const WARM = 10_000
const MAX_MS = 60_000

/** @param {string} kind @param {number} rounds 0 to measure only the first error */
function source (kind, rounds) {
  return `${kinds[kind]}((fail) => {
    const began = performance.now()
    fail(0)
    const first = performance.now() - began
    let best = Infinity
    for (let i = 0; i < ${rounds > 0 ? WARM : 0}; i++) fail(i)
    for (let round = 0; round < ${rounds}; round++) {
      const start = performance.now()
      for (let i = 0; i < ${ERRORS}; i++) fail(i)
      best = Math.min(best, performance.now() - start)
    }
    console.log(JSON.stringify({ first, warm: best / ${ERRORS} * 1000 }))
    process.exit()
  })`
}

/**
 * @param {string[]} node its command
 * @param {string} kind
 * @param {number} rounds
 * @param {{ cwd?: string, env?: Record<string, string | undefined> }} [options]
 * @returns {{ first: number, warm: number }} ms and µs
 */
function once ([command, ...args], kind, rounds, options = {}) {
  const spawnOptions = /** @type {const} */ ({ ...options, encoding: 'utf8', timeout: MAX_MS })
  const nodeArgs = [...args, '-e', source(kind, rounds)]
  const { stdout, stderr, status, error } = spawnSync(command, nodeArgs, spawnOptions)
  if (status !== 0) throw new Error(error?.message ?? `exit code ${status}: ${stderr.trim().split('\n')[0]}`)
  return JSON.parse(String(stdout.trim().split('\n').at(-1)))
}

/**
 * Measures the first error of a process in ms, with alternating kinds.
 * @param {Omit<Parameters<typeof inTurn>[0], 'once' | 'workload'>} plan
 */
function firstErrors (plan) {
  const names = Object.keys(kinds)
  return inTurn({
    ...plan,
    workload: 'first-error',
    once ({ node, options }, turn) {
      try {
        return { value: once(node, names[turn % names.length], 0, options).first }
      } catch (error) {
        return { failed: /** @type {Error} */ (error).message.slice(0, 160) }
      }
    }
  })
}

/** @param {string} node */
function measure (node) {
  const register = path.join(__dirname, '..', 'lib', 'register.js')
  return Object.keys(kinds).map((kind) => {
    /** @type {Record<string, { first: number[], warm: number[] }>} */
    const runs = { bare: { first: [], warm: [] }, longstack: { first: [], warm: [] } }
    for (let i = 0; i < PROCESSES; i++) {
      for (const subject of Object.keys(runs)) {
        const { first, warm } = once(subject === 'bare' ? [node] : [node, '-r', register], kind, ROUNDS)
        runs[subject].first.push(first)
        runs[subject].warm.push(warm)
      }
    }
    const { bare, longstack } = runs
    const min = Math.min(...longstack.first)
    return {
      kind,
      warm: { bare: Math.min(...bare.warm), longstack: Math.min(...longstack.warm) },
      first: { bare: median(bare.first), longstack: median(longstack.first), least: min }
    }
  })
}

function main () {
  const args = process.argv.slice(2)
  const nodes = args.filter((arg) => arg !== '--json')
  const results = (nodes.length > 0 ? nodes : [process.execPath]).map((node) => ({
    version: spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.trim(),
    figures: measure(node)
  }))
  if (args.includes('--json')) return console.log(JSON.stringify(results, undefined, 2))
  for (const { version, figures } of results) {
    console.log(`${version}: an error thrown, caught and read in a chain of two timers`)
    for (const { kind, warm, first } of figures) {
      const us = [warm.bare, warm.longstack, warm.longstack - warm.bare]
      const [bare, long, more] = us.map((value) => value.toFixed(1))
      console.log(`  ${kind.padEnd(7)} warm ${bare} µs bare, ${long} with longstack (+${more})`)
      const [bareMs, longMs, minMs] = [first.bare, first.longstack, first.least].map((ms) => ms.toFixed(2))
      console.log(`          first ${bareMs} ms bare, ${longMs} with longstack, min ${minMs}`)
    }
  }
}

if (require.main === module) main()

module.exports = { firstErrors }
