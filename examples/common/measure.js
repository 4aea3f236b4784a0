'use strict'

// What the numbered examples measure with: children that are bare or traced, a client, and what becomes of the figures. A
// measured child is pinned to one processor and the client to another, where there is a taskset. The line to a child and
// the child's end of it are those of the benchmark.
//
// In the child:    serve(server)  or  obey({ run: async (units) => { … } })
// In the parent:   const child = await start(__filename, ['serve', 'net'], { traced: true })
//                  const { rate, latency } = await load({ port: child.port, connections: 32, requests: 5_000 })
//                  await child.end()

const path = require('node:path')
const { obey, serve } = require('../../bench/child')
const line = require('../../bench/line')
const { pins } = require('../../bench/machine')
const { median } = require('../../bench/median')

const READY_MS = 30_000
const ANSWER_MS = 120_000

const register = require.resolve('longstack/register')
/** @type {ReturnType<typeof pins>} */
let pinned
const pin = () => { pinned ??= pins() ?? { subject: [], load: [] }; return pinned }

/** The environment of a child: nothing that this process was given for itself. */
function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_OPTIONS|NODE_V8_COVERAGE|npm_)/.test(name)))
}

/**
 * Starts a script that obeys.
 * @param {string} script
 * @param {string[]} args
 * @param {{ traced?: boolean, env?: Record<string, string>, flags?: string[] }} [options] env: LONGSTACK_SPANS …; flags: of Node
 */
async function start (script, args, { traced = false, env = {}, flags = [] } = {}) {
  const [command, ...before] = [...pin().subject, process.execPath]
  const child = line.start(command, [...before, '--expose-gc', ...flags, ...(traced ? ['-r', register] : []), script, ...args],
    { cwd: process.cwd(), env: { ...cleanEnvironment(), ...env } })
  const { port } = await child.ask(undefined, READY_MS)
  const cpu = async () => /** @type {number} */ ((await child.ask({ ask: 'cpu' }, ANSWER_MS)).cpu)
  return {
    /** where it listens */
    port: /** @type {number} */ (port),
    /** µs of CPU time so far, all threads */
    cpu,
    /** Does so many units. @param {number} units @returns {Promise<number>} µs of CPU time a unit */
    run: async (units) => (await child.ask({ ask: 'run', units }, ANSWER_MS)).cpu / units,
    /** Bytes held after garbage is gone. @returns {Promise<{ heapUsed: number, rss: number }>} */
    memory: () => child.ask({ ask: 'memory' }, ANSWER_MS),
    end: child.end
  }
}

/** @typedef {Awaited<ReturnType<typeof start>>} Child */

/** @type {ReturnType<typeof line.start> | undefined} */
let client

/** The client lives from the first load to `end()`. */
async function theClient () {
  if (client === undefined) {
    const [command, ...args] = [...pin().load, process.execPath, path.join(__dirname, 'load.js')]
    client = line.start(command, args, { cwd: process.cwd(), env: cleanEnvironment() })
    await client.ask(undefined, READY_MS)
  }
  return client
}

/**
 * Loads a server with GET requests over kept connections.
 * @param {{ port: number, paths?: string[], connections?: number, requests?: number, limit?: number, pause?: number }} given
 *   at most so many requests, in at most `limit` ms; `pause`: ms of a connection between an answer and its next request
 */
async function load ({ port, paths = ['/'], connections = 32, requests = Infinity, limit = 60_000, pause = 0 }) {
  const wanted = { port, paths, connections, requests: Math.min(requests, Number.MAX_SAFE_INTEGER), limit, pause }
  const { units, ms, bytes, latencies } = await (await theClient()).ask({ load: wanted }, limit + ANSWER_MS)
  return {
    units: /** @type {number} */ (units),
    /** requests a second */
    rate: units / ms * 1000,
    /** bytes a second, heads included */
    throughput: bytes / ms * 1000,
    /** ms, in the order of the answers */
    latencies: /** @type {number[]} */ (latencies),
    latency: quartiles(latencies)
  }
}

/** Ends the client. */
async function end () {
  await client?.end()
  client = undefined
}

/**
 * CPU time of a server for one request: starts it, warms it up, loads it.
 * @param {string} script
 * @param {string[]} args
 * @param {{ traced?: boolean, env?: Record<string, string>, requests: number, warm?: number, connections?: number, paths?: string[] }} how
 */
async function priceOf (script, args, { requests, warm = requests, connections, paths, ...options }) {
  const child = await start(script, args, options)
  try {
    await load({ port: child.port, connections, paths, requests: warm })
    const before = await child.cpu()
    const figures = await load({ port: child.port, connections, paths, requests })
    return { ...figures, cpu: (await child.cpu() - before) / figures.units, ...await child.memory() }
  } finally {
    await child.end()
  }
}

/**
 * Measures two things against each other, tracing off and on, one round: a b b a of each, and the mean.
 * @param {(which: 'a' | 'b', traced: boolean) => Promise<number>} once
 * @param {boolean} [quick] only a b of each
 * @returns {Promise<{ off: { a: number, b: number }, on: { a: number, b: number } }>}
 */
async function paired (once, quick = false) {
  /** @type {Array<'a' | 'b'>} */
  const order = quick ? ['a', 'b'] : ['a', 'b', 'b', 'a']
  const sums = { off: { a: 0, b: 0 }, on: { a: 0, b: 0 } }
  for (const which of order) {
    for (const state of /** @type {const} */ (['off', 'on'])) {
      sums[state][which] += await once(which, state === 'on') / (order.length / 2)
    }
  }
  return sums
}

/** @param {number[]} values at least one; quartiles as R and Python (inclusive) count them */
function quartiles (values) {
  const sorted = Float64Array.from(values).sort()
  /** @param {number} share */
  const at = (share) => {
    const place = (sorted.length - 1) * share
    const below = Math.floor(place)
    return sorted[below] + (sorted[Math.min(below + 1, sorted.length - 1)] - sorted[below]) * (place - below)
  }
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length
  return { min: at(0), q1: at(0.25), median: at(0.5), mean, q3: at(0.75), p99: at(0.99), max: at(1) }
}

/** Three digits that count. @param {number} value */
function digits (value) {
  if (value >= 1e6) return `${digits(value / 1e6)} M`
  if (value >= 1e4) return `${digits(value / 1e3)} k`
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/**
 * A table for the terminal: the first column to the left, figures to the right.
 * @param {string[]} heading
 * @param {string[][]} rows
 */
function table (heading, rows) {
  const all = [heading, ...rows]
  const widths = heading.map((_, column) => Math.max(...all.map((row) => row[column].length)))
  return all.map((row) => row.map((cell, column) => column === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[column])).join('  ').trimEnd()).join('\n')
}

module.exports = { serve, obey, start, load, end, priceOf, paired, quartiles, median, digits, table, register, cleanEnvironment }
