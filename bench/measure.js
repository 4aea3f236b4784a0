'use strict'

// One subject under one workload, once, in a clean child: prepare, warm up, measure in parts, look at memory, ask
// for the proof. What cannot be measured becomes a reason.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { start, ChildFailure } = require('./line')
const { median } = require('./median')

/**
 * @typedef {object} Sample
 * @property {number} cpu µs a unit
 * @property {number} units measured
 * @property {number} warmed units before
 * @property {number} drift CPU a unit of the last measured part over that of the first: 1 where the compiler has settled
 * @property {number} [p50] ms, servers
 * @property {number} [p99] ms, servers
 * @property {number} heapUsed bytes after collection
 * @property {number} rss bytes
 * @property {Record<string, any>} [inForce] longstack's own word
 *
 * @typedef {object} Scale
 * @property {number} share of the workload's units
 * @property {number} warmLimit ms
 * @property {number} limit ms of the measured part
 *
 * @typedef {object} Job
 * @property {string} node
 * @property {import('./subjects').Subject} subject
 * @property {string} name of the workload
 * @property {import('./workloads').Workload} workload
 * @property {Scale} scale
 * @property {import('./generator').Generator} generator
 * @property {string[]} pin
 */

const PARTS = 4
const READY_MS = 30_000
const ANSWER_MS = 60_000

/** The environment of a child: nothing that this process was given for itself. */
function cleanEnvironment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(LONGSTACK|NODE_|DD_|OTEL_|npm_)/.test(name)))
}

/**
 * Does units in parts until they are done or the time is over.
 * @param {{ units: number, parts: number, limit: number }} amount
 * @param {(units: number, limit: number) => Promise<{ units: number, cpu: number, p50?: number, p99?: number }>} step
 */
async function inParts ({ units, parts, limit }, step) {
  const end = performance.now() + limit
  const size = Math.max(1, Math.ceil(units / parts))
  const done = []
  for (let i = 0; i < parts && (i === 0 || performance.now() < end); i++) {
    done.push(await step(size, Math.max(100, (end - performance.now()) / (parts - i))))
  }
  return done
}

/** @param {Array<{ units: number }>} parts */
const unitsOf = (parts) => parts.reduce((sum, { units }) => sum + units, 0)

/**
 * @param {Job} job
 * @param {import('./line').Line} line
 * @returns {Promise<Sample>}
 */
async function take ({ subject, workload, scale, generator }, line) {
  const { port } = await line.ask(undefined, READY_MS)
  const cpu = async () => (await line.ask({ ask: 'cpu' }, ANSWER_MS)).cpu

  const step = async (/** @type {number} */ units, /** @type {number} */ limit) => {
    if (port === undefined) return { units, ...await line.ask({ ask: 'run', units }, ANSWER_MS) }
    const before = await cpu()
    const figures = await generator.load(units, limit)
    return { ...figures, cpu: await cpu() - before }
  }

  if (workload.load !== undefined) await generator.open({ port, ...workload.load })
  // Small parts, so that a slow subject can stop in time.
  const fine = port === undefined ? PARTS * 4 : PARTS
  const warm = await inParts({ units: workload.warm * scale.share, parts: fine, limit: scale.warmLimit }, step)
  const parts = await inParts({ units: workload.units * scale.share, parts: fine, limit: scale.limit }, step)
  if (workload.load !== undefined) await generator.close()

  const { heapUsed, rss } = await line.ask({ ask: 'memory' }, ANSWER_MS)
  const proof = subject.proof === undefined ? { ok: true } : await line.ask({ ask: 'proof', name: subject.proof }, ANSWER_MS)
  if (!proof.ok) throw new ChildFailure(`no sign of its work: ${String(proof.saw).trim().split('\n')[0].slice(0, 120)}`)

  const units = unitsOf(parts)
  if (units === 0) throw new ChildFailure('not one unit was done in time')
  const half = Math.ceil(parts.length / 2)
  const price = (/** @type {typeof parts} */ some) => some.reduce((sum, part) => sum + part.cpu, 0) / unitsOf(some)
  const latency = port === undefined
    ? {}
    : { p50: median(parts.map(({ p50 }) => Number(p50))), p99: median(parts.map(({ p99 }) => Number(p99))) }
  return {
    cpu: price(parts),
    units,
    warmed: unitsOf(warm),
    drift: parts.length > 1 ? price(parts.slice(-half)) / price(parts.slice(0, half)) : 1,
    ...latency,
    heapUsed,
    rss,
    inForce: proof.inForce
  }
}

/**
 * @param {Job} job
 * @returns {Promise<Sample | { failed: string }>}
 */
async function measure (job) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
  const { subject, node, pin, name, generator } = job
  const [command, ...args] = [...pin, node, '--expose-gc', ...subject.args(folder), path.join(__dirname, 'workloads', `${name}.js`)]
  const line = start(command, args, { cwd: folder, env: { ...cleanEnvironment(), ...subject.env(folder) } })
  try {
    return await take(job, line)
  } catch (error) {
    // A server that ended is met first by its generator: what the server said tells more.
    const reason = await line.death(300) ?? error
    await generator.close().catch(() => {})
    if (!(error instanceof ChildFailure) && !(reason instanceof ChildFailure)) throw error
    return { failed: /** @type {Error} */ (reason).message }
  } finally {
    await line.end()
    fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

module.exports = { measure, cleanEnvironment }
