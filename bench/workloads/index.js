'use strict'

// Workloads, and the form of their figures. load.js loads servers; a loop or client runs its units itself,
// chunk by chunk; the others run many short processes alternately.

/**
 * @typedef {object} Workload
 * @property {string} says description
 * @property {string} unit of `value`, such as µs/request
 * @property {number} factor from µs of CPU to the unit
 * @property {'ratio' | 'value' | 'over'} shows figure in the summary
 * @property {number} warmMs
 * @property {{ connections: number, fresh?: boolean }} [load] for a server: concurrent connections, kept or
 *   new per unit
 * @property {number} chunk for a loop or client: units between two readings of the clock
 * @property {string} [upstream] for a client: the workload that it sends requests to, in BENCH_PORT
 * @property {string[]} peers required packages
 * @property {boolean} [inTurn] many short processes, alternating between bare and the subjects
 * @property {boolean} [perCase] has its own table
 */

const WARM_SERVER_MS = 10_000
const WARM_CLIENT_MS = 6_000
const WARM_LOOP_MS = 2_000

/** @param {string} says @param {Partial<Workload>} more @returns {Workload} */
function server (says, more) {
  const unit = 'µs/request'
  return { says, unit, factor: 1, shows: 'ratio', warmMs: WARM_SERVER_MS, chunk: 0, peers: [], ...more }
}

/**
 * @param {string} says
 * @param {Partial<Workload> & { chunk: number, unit: string }} more
 * @returns {Workload}
 */
function loop (says, more) {
  return { says, factor: 1, shows: 'value', warmMs: WARM_LOOP_MS, peers: [], ...more }
}

/** @param {string} says @param {Partial<Workload>} [more] @returns {Workload} */
function inTurn (says, more) {
  return { says, unit: 'ms', factor: 1, shows: 'over', warmMs: 0, chunk: 0, peers: [], inTurn: true, ...more }
}

/** @type {Record<string, Workload>} */
const workloads = {
  hello: server('HTTP server, constant response, keep-alive', { load: { connections: 32 } }),
  real: server('HTTP server, promise-heavy: a 1 ms timer, fs.promises.readFile, setImmediate, Promise.all ' +
    'of three async functions, keep-alive', { load: { connections: 32 } }),
  fastify: server('Fastify, two hooks and an async handler, keep-alive', {
    load: { connections: 32 }, peers: ['fastify']
  }),
  connections: server('TCP server, one new connection per unit', {
    load: { connections: 16, fresh: true }, unit: 'µs/connection'
  }),
  fetch: loop('client: await (await fetch(url)).text(), 16 at once, the server in another process', {
    unit: 'µs/request', chunk: 160, warmMs: WARM_CLIENT_MS, shows: 'ratio', upstream: 'hello'
  }),
  timers: loop('100 chains of setTimeout(1) that set themselves again', { unit: 'µs/timer', chunk: 3_000 }),
  streams: loop('a large file piped from stream to stream, 64 KiB a piece', { unit: 'µs/MiB', chunk: 128 }),
  awaits: loop('await of an async function in a loop', { unit: 'ns/await', factor: 1000, chunk: 5_000 }),
  bundle: loop('100 pairs of async functions of one name each, as esbuild\'s keepNames makes them', {
    unit: 'ns/call', factor: 1000, chunk: 1_000
  }),
  errors: loop('an error thrown, caught and read in a chain of two timers, a third each in sloppy, strict ' +
    'and async functions', { unit: 'µs/error', chunk: 300 }),
  relearn: loop('3,000 async functions once each, after a mark-sweep', {
    unit: 'ms', factor: 1e-3, chunk: 1
  }),
  'first-error': inTurn('the first error of a process, thrown, caught and read in a chain of two timers'),
  'start-up': inTurn('node -r X -e 0, wall time of the whole process'),
  memory: inTurn('growth of the heap after a million steps', { unit: 'MB', perCase: true }),
  capture: inTurn('one capture of ten frames of a stack captured before', { unit: 'ns', perCase: true })
}

module.exports = { workloads }
