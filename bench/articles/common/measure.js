'use strict'

// Tools to measure the articles' claims: bare or traced children, a client, and statistics. If taskset is
// installed, the measured child is pinned to one CPU and the client to another. The channel to a child, and
// the child's end of it, are shared with the benchmark.
//
// In the child:    serve(server)  or  obey({ run: async (units) => { … } })
// In the parent:   const child = await start(__filename, ['serve', 'net'], { traced: true })
//                  const { rate } = await load({ port: child.port, connections: 32, requests: 5_000 })
//                  await child.end()

const path = require('node:path')
const { obey, serve } = require('../../child')
const { startChild } = require('../../child-channel')
const { pins } = require('../../machine')
const { median } = require('../../median')

const READY_MS = 30_000
const ANSWER_MS = 120_000

const register = require.resolve('../../../lib/register')
/** @type {ReturnType<typeof pins>} */
let pinned
const pin = () => { pinned ??= pins() ?? { subject: [], load: [] }; return pinned }

/** Returns the environment of a child without the options of this process. */
function cleanEnvironment () {
  const isOption = /^(LONGSTACK|NODE_OPTIONS|NODE_V8_COVERAGE|npm_)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isOption.test(name)))
}

/**
 * Starts a script that calls obey.
 * @param {string} script
 * @param {string[]} args
 * @param {{ traced?: boolean, env?: Record<string, string>, flags?: string[] }} [options] flags: for Node
 */
async function start (script, args, { traced = false, env = {}, flags = [] } = {}) {
  const [command, ...prefix] = [...pin().subject, process.execPath]
  const preload = traced ? ['-r', register] : []
  const child = startChild(command, [...prefix, '--expose-gc', ...flags, ...preload, script, ...args],
    { cwd: process.cwd(), env: { ...cleanEnvironment(), ...env } })
  const { port } = await child.request(undefined, READY_MS)
  return {
    /** port it listens on */
    port: /** @type {number} */ (port),
    /** Returns the µs of CPU time so far, all threads. @returns {Promise<number>} */
    cpu: async () => (await child.request({ command: 'cpu' }, ANSWER_MS)).cpu,
    /** Runs units of work. @param {number} units @returns {Promise<number>} µs of CPU time per unit */
    run: async (units) => (await child.request({ command: 'run', units }, ANSWER_MS)).cpu / units,
    end: child.end
  }
}

/** @typedef {Awaited<ReturnType<typeof start>>} Child */

/** @type {ReturnType<typeof startChild> | undefined} */
let client

/** Starts the client, which runs from the first load until `end()`. */
async function startClient () {
  if (client === undefined) {
    const [command, ...args] = [...pin().load, process.execPath, path.join(__dirname, 'load.js')]
    client = startChild(command, args, { cwd: process.cwd(), env: cleanEnvironment() })
    await client.request(undefined, READY_MS)
  }
  return client
}

/**
 * Loads a server with GET requests over keep-alive connections.
 * @param {object} options
 * @param {number} options.port
 * @param {string[]} [options.paths]
 * @param {number} [options.connections]
 * @param {number} [options.requests] maximum
 * @param {number} [options.limit] maximum ms
 */
async function load ({ port, paths = ['/'], connections = 32, requests = Infinity, limit = 60_000 }) {
  const load = { port, paths, connections, requests: Math.min(requests, Number.MAX_SAFE_INTEGER), limit }
  const { units, ms, bytes, latencies } = await (await startClient()).request({ load }, limit + ANSWER_MS)
  return {
    units: /** @type {number} */ (units),
    /** requests per second */
    rate: units / ms * 1000,
    /** bytes per second, heads included */
    throughput: bytes / ms * 1000,
    latency: quartiles(latencies)
  }
}

/** Ends the client. */
async function end () {
  await client?.end()
  client = undefined
}

/**
 * Measures the CPU time of a server per request: starts it, warms it up, loads it.
 * @param {string} script
 * @param {string[]} args
 * @param {{ traced?: boolean, requests: number, connections?: number }} options
 * @returns {Promise<number>} µs
 */
async function cpuPerRequest (script, args, { requests, connections, ...options }) {
  const child = await start(script, args, options)
  try {
    await load({ port: child.port, connections, requests })
    const before = await child.cpu()
    const { units } = await load({ port: child.port, connections, requests })
    return (await child.cpu() - before) / units
  } finally {
    await child.end()
  }
}

/**
 * Measures two sides alternately, with tracing off and on, for one round: a b b a, and the mean.
 * @param {(side: 'a' | 'b', traced: boolean) => Promise<number>} measure
 * @param {boolean} [quick] one pass: a b
 * @returns {Promise<{ off: { a: number, b: number }, on: { a: number, b: number } }>}
 */
async function paired (measure, quick = false) {
  /** @type {Array<'a' | 'b'>} */
  const order = quick ? ['a', 'b'] : ['a', 'b', 'b', 'a']
  const sums = { off: { a: 0, b: 0 }, on: { a: 0, b: 0 } }
  for (const side of order) {
    for (const state of /** @type {const} */ (['off', 'on'])) {
      sums[state][side] += await measure(side, state === 'on') / (order.length / 2)
    }
  }
  return sums
}

/** Returns quartiles as defined by R and Python (inclusive). @param {number[]} values at least one */
function quartiles (values) {
  const sorted = Float64Array.from(values).sort()
  /** @param {number} share */
  const quantile = (share) => {
    const place = (sorted.length - 1) * share
    const index = Math.floor(place)
    return sorted[index] + (sorted[Math.min(index + 1, sorted.length - 1)] - sorted[index]) * (place - index)
  }
  const mean = sorted.reduce((sum, value) => sum + value, 0) / sorted.length
  const [min, q1, middle, q3, p99, max] = [0, 0.25, 0.5, 0.75, 0.99, 1].map(quantile)
  return { min, q1, median: middle, mean, q3, p99, max }
}

/** Formats a number with three significant digits. @param {number} value */
function digits (value) {
  if (value >= 1e6) return `${digits(value / 1e6)} M`
  if (value >= 1e4) return `${digits(value / 1e3)} k`
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/**
 * Runs an article's harness according to its arguments: --answers, --json, or the role of a child.
 * @param {object} harness
 * @param {() => unknown} harness.answers prints output that must be equal bare and traced
 * @param {(quick: boolean) => Promise<{ claims: object[], tables?: object[] }>} harness.measure
 * @param {Record<string, (...args: string[]) => unknown>} [harness.roles]
 */
async function main ({ answers, measure, roles = {} }) {
  const [role, ...args] = process.argv.slice(2)
  if (role === '--answers') return answers()
  if (role === '--json') {
    const figures = await measure(args.includes('--quick'))
    return console.log(JSON.stringify(figures, undefined, 2))
  }
  if (roles[role] !== undefined) return roles[role](...args)
  console.error('Expected --answers, or --json with or without --quick.')
  process.exitCode = 2
}

module.exports = {
  cleanEnvironment,
  cpuPerRequest,
  digits,
  end,
  load,
  main,
  median,
  obey,
  paired,
  quartiles,
  register,
  serve,
  start
}
