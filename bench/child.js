'use strict'

// The child's side of child-channel.js: runs commands of run.js, replies, and is idle in between. CPU time
// covers the whole process, because collector and compiler threads are part of the cost.

const { setTimeout: delay } = require('node:timers/promises')

/** @returns {number} µs of CPU time, all threads */
function cpu () {
  const { user, system } = process.cpuUsage()
  return user + system
}

/**
 * Runs chunks of units sequentially for a time.
 * @param {(units: number) => Promise<unknown>} run
 * @param {{ ms: number, chunk: number }} amount
 * @returns {Promise<{ units: number, cpu: number }>} cpu in µs, of the process or as returned by `run`
 */
async function runFor (run, { ms, chunk }) {
  const end = performance.now() + ms
  const began = cpu()
  let units = 0
  /** @type {number | undefined} */
  let cpuOfUnits
  do {
    const cpuOfChunk = await run(chunk)
    if (typeof cpuOfChunk === 'number') cpuOfUnits = (cpuOfUnits ?? 0) + cpuOfChunk
    units += chunk
  } while (performance.now() < end)
  return { units, cpu: cpuOfUnits ?? cpu() - began }
}

/** Measures memory after several mark-sweeps, in bytes. */
async function memory () {
  for (let i = 0; i < 5; i++) {
    /** @type {() => void} */ (global.gc)()
    await delay(10)
  }
  const { heapUsed, rss } = process.memoryUsage()
  return { heapUsed, rss }
}

/**
 * Runs the commands of the conductor until `end`.
 * @param {object} workload
 * @param {number} [workload.port] port of a server
 * @param {(units: number) => Promise<unknown>} [workload.run] runs units; returns nothing, or the µs of CPU
 *   that count; servers have none
 */
function obey ({ port, run }) {
  /** @type {Record<string, (message: any) => unknown>} */
  const answers = {
    cpu: () => ({ cpu: cpu(), rss: process.memoryUsage.rss() }),
    runFor: (message) => runFor(/** @type {NonNullable<typeof run>} */ (run), message),
    async run ({ units }) {
      const began = cpu()
      await /** @type {NonNullable<typeof run>} */ (run)(units)
      return { cpu: cpu() - began }
    },
    memory,
    proof: ({ name }) => require('./proofs')[/** @type {keyof typeof import('./proofs')} */ (name)](),
    end: () => process.exit(0)
  }
  const send = (/** @type {object} */ answer) => { if (process.connected) process.send?.(answer) }
  process.on('message', async (/** @type {any} */ message) => {
    try {
      send({ ...await /** @type {any} */ (answers[message.command](message)) })
    } catch (error) {
      send({ error: String(error) })
    }
  })
  process.on('disconnect', () => process.exit(1))
  send({ ready: true, port })
}

/**
 * Listens on a free port, and then runs the commands of the conductor.
 * @param {import('node:net').Server} server
 */
function serve (server) {
  server.listen(0, '127.0.0.1', () => {
    const { port } = /** @type {import('node:net').AddressInfo} */ (server.address())
    obey({ port })
  })
}

/** Keeps idle connections open between commands. @param {import('node:http').Server} server */
function serveHttp (server) {
  server.keepAliveTimeout = 120_000
  serve(server)
}

module.exports = { cpu, obey, serve, serveHttp }
