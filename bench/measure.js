'use strict'

// Measures several subjects under one workload at the same time. All start together on one CPU, each with its
// own load from another CPU. They share the CPU in slices of milliseconds, so anything that slows the machine
// affects all of them equally. A subject that fails has a reason instead of figures; the others continue.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { createGenerator } = require('./generator')
const { startChild, ChildFailure } = require('./child-channel')

/**
 * @typedef {object} Sample
 * @property {number} cpu µs per unit
 * @property {number} cpuTotal µs during the measurement
 * @property {number} loadTotal µs of the generator during the measurement, 0 for a loop
 * @property {number} units measured
 * @property {number} ms from the first unit to the last answer
 * @property {number} rss bytes, under load
 * @property {number} heapUsed bytes, after the load and several mark-sweeps
 * @property {Record<string, any>} [inForce] engine reported by longstack
 *
 * @typedef {object} Job
 * @property {string} node
 * @property {string} name of the workload
 * @property {import('./workloads').Workload} workload
 * @property {number} warmMs
 * @property {number} ms
 * @property {import('./machine').Pins} pins
 */

const READY_MS = 60_000
const ANSWER_MS = 120_000
/** Steps of a measurement. All participants finish a step before the next one starts. */
const STEPS = /** @type {const} */ (['start', 'warm', 'readBefore', 'measure', 'readAfter', 'prove'])

/** Returns the environment of a child without variables that configure Node, npm or a subject. */
function cleanEnvironment () {
  const configuring = /^(LONGSTACK|NODE_|DD_|OTEL_|npm_)/
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !configuring.test(name)))
}

/** One subject in its own child process. */
class Participant {
  /** @param {string} name @param {import('./subjects').Subject} subject @param {Job} job */
  constructor (name, subject, job) {
    this.name = name
    this.subject = subject
    this.job = job
    this.directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-bench-'))
    /** @type {string | undefined} */
    this.failed = undefined
    /** @type {import('./child-channel').ChildChannel | undefined} */
    this.channel = undefined
    /** @type {import('./generator').Generator | undefined} */
    this.generator = undefined
    this.before = { cpu: 0 }
    /** @type {Partial<Sample>} */
    this.sample = {}
  }

  /**
   * Runs a step unless an earlier one failed.
   * @param {typeof STEPS[number]} step
   */
  async attempt (step) {
    if (this.failed !== undefined) return
    try {
      await this[step]()
    } catch (error) {
      // The generator sees the end of a server first, but the reason is in the server's own stderr.
      const reason = await this.channel?.failureWithin(300) ?? error
      if (!(error instanceof ChildFailure) && !(reason instanceof ChildFailure)) throw error
      this.failed = /** @type {Error} */ (reason).message
      await this.end()
    }
  }

  /** @param {object | undefined} command @param {number} [ms] @returns {Promise<any>} */
  request (command, ms = ANSWER_MS) {
    return /** @type {import('./child-channel').ChildChannel} */ (this.channel).request(command, ms)
  }

  async start () {
    const { node, name, pins, workload, upstream } = /** @type {Job & { upstream?: number }} */ (this.job)
    const program = path.join(__dirname, 'workloads', `${name}.js`)
    const flags = this.subject.args(this.directory)
    const [command, ...args] = [...pins.subject, node, '--expose-gc', ...flags, program]
    const env = { ...cleanEnvironment(), ...this.subject.env(this.directory) }
    if (upstream !== undefined) env.BENCH_PORT = String(upstream)
    this.channel = startChild(command, args, { cwd: this.directory, env })
    const { port } = await this.request(undefined, READY_MS)
    if (workload.load === undefined) return
    this.generator = await createGenerator(pins.load, { port, ...workload.load })
  }

  /** @param {number} ms @returns {Promise<{ units: number, cpu: number }>} */
  run (ms) {
    if (this.generator !== undefined) return this.generator.load(ms)
    return this.request({ command: 'runFor', ms, chunk: this.job.workload.chunk }, ms + ANSWER_MS)
  }

  async warm () {
    await this.run(this.job.warmMs)
  }

  async readBefore () {
    this.before = await this.request({ command: 'cpu' })
  }

  async measure () {
    const began = performance.now()
    const { units, cpu } = await this.run(this.job.ms)
    const isServer = this.generator !== undefined
    if (units === 0) throw new ChildFailure('no unit was finished in time')
    const ms = performance.now() - began
    Object.assign(this.sample, { units, ms, cpuTotal: isServer ? 0 : cpu, loadTotal: isServer ? cpu : 0 })
  }

  async readAfter () {
    const { cpu, rss } = await this.request({ command: 'cpu' })
    const { sample } = this
    if (this.generator !== undefined) sample.cpuTotal = cpu - this.before.cpu
    sample.cpu = Number(sample.cpuTotal) / Number(sample.units)
    sample.rss = rss
  }

  /** Measures memory, and requests the proof that the subject is active. */
  async prove () {
    await this.generator?.close()
    this.sample.heapUsed = (await this.request({ command: 'memory' })).heapUsed
    if (this.subject.proof === undefined) return
    const { ok, observed, inForce } = await this.request({ command: 'proof', name: this.subject.proof })
    const firstLine = String(observed).trim().split('\n')[0].slice(0, 120)
    if (!ok) throw new ChildFailure(`not active: ${firstLine}`)
    this.sample.inForce = inForce
  }

  async end () {
    await Promise.all([this.channel?.end(), this.generator?.end()])
    fs.rmSync(this.directory, { recursive: true, force: true, maxRetries: 3 })
  }
}

/**
 * Starts the server that a client workload sends requests to, on the CPU of the load generators.
 * @param {Job} job
 */
async function startUpstream ({ pins, workload: { upstream } }) {
  if (upstream === undefined) return undefined
  const program = path.join(__dirname, 'workloads', `${upstream}.js`)
  const [command, ...args] = [...pins.load, process.execPath, '--expose-gc', program]
  const channel = startChild(command, args, { cwd: __dirname, env: cleanEnvironment() })
  const { port } = await channel.request(undefined, READY_MS)
  return { port: /** @type {number} */ (port), end: channel.end }
}

/**
 * Measures subjects at the same time, including bare.
 * @param {Array<[string, import('./subjects').Subject]>} subjects in starting order
 * @param {Job} job
 * @returns {Promise<Map<string, Sample | { failed: string }>>}
 */
async function measureTogether (subjects, job) {
  const upstream = await startUpstream(job)
  const sharedJob = { ...job, upstream: upstream?.port }
  const participants = subjects.map(([name, subject]) => new Participant(name, subject, sharedJob))
  try {
    for (const step of STEPS) {
      await Promise.all(participants.map((participant) => participant.attempt(step)))
    }
  } finally {
    await Promise.all([upstream?.end(), ...participants.map((participant) => participant.end())])
  }
  return new Map(participants.map(({ name, failed, sample }) => [
    name,
    failed === undefined ? /** @type {Sample} */ (sample) : { failed }
  ]))
}

module.exports = { measureTogether, cleanEnvironment }
