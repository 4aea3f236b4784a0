'use strict'

// What `longstack top` asks a thread: figures of what was done since it asked last. Each command that looks
// has a sampler of its own, which is stopped when the command goes, or does not ask any more.

const timers = require('node:timers') // programs replace the global ones
const { threadId } = require('node:worker_threads')
const { runInSlices } = require('../ask/session')
const { observers } = require('../blocked/wanted')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const { servedRequests: servedInFlight } = require('../handles/requests-in-flight')
const { failed } = require('../core/faults')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { ServedFigures } = require('./served')
const { SiteFigures } = require('./sites')
const { Blockers, ThreadFigures } = require('./thread-figures')

const SAMPLE_MS = 250
const LEASE_MS = 30_000 // without a question, beyond three intervals

/**
 * @typedef {object} TopOptions
 * @property {number} [intervalMs] at which it asks
 * @property {number} [blockedMs] blocking callbacks are reported from this length on, where no option is set
 *
 * @typedef {object} TopFacts of a thread
 * @property {number} pid
 * @property {number} threadId 0: the main thread
 * @property {string} name of the program
 * @property {string} node version
 * @property {number | undefined} blockedMs from which callbacks are reported; undefined: none are
 * @property {import('./sites').OpenFigures} handles what is open already
 *
 * @typedef {object} TopFigures of a thread, since it was asked last
 * @property {number} ms how long that was
 * @property {boolean} enabled tracing is on
 * @property {import('./served').RouteFigures[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest request that is in flight
 * @property {import('./thread-figures').Figures} thread
 * @property {import('./thread-figures').BlockerFigures[]} blockers
 * @property {import('./sites').WaitFigures[] | undefined} waits undefined: not known
 * @property {import('./sites').OpenFigures} handles
 *
 * @typedef {import('../ask/session').Session} Session
 */

class Sampler {
  #leaseMs
  #readAt = now()
  #wasEnabled = settings.enabled
  #isSampling = false
  isStopped = false
  #thread = new ThreadFigures()
  #served = new ServedFigures()
  #sites = new SiteFigures()
  #blockers

  /** @param {TopOptions} options */
  constructor ({ intervalMs = 1000, blockedMs }) {
    this.#leaseMs = LEASE_MS + 3 * intervalMs
    this.#blockers = new Blockers(blockedMs)
    this.unsubscribe = channels.subscribe(this.#served.subscriptions)
    this.timer = timers.setInterval(() => guard.run(this.#tick), SAMPLE_MS).unref()
  }

  #tick = () => {
    try {
      if (now() - this.#readAt > this.#leaseMs) return this.stop()
      const { enabled } = settings
      if (enabled && !this.#wasEnabled) this.#served.forgetOpen()
      this.#wasEnabled = enabled
      this.#served.sweep()
      if (!enabled || this.#isSampling) return
      this.#isSampling = true
      const done = () => { this.#isSampling = false }
      runInSlices(this.#sites.sample(), { done, failed: this.#failed, isOver: () => this.isStopped })
    } catch (error) {
      this.#failed(error)
    }
  }

  /** @param {unknown} error */
  #failed = (error) => {
    failed(error)
    this.stop()
  }

  /** Adds the requests that are in flight already. @returns {Generator<undefined, TopFacts>} */
  * start () {
    for (const served of servedInFlight()) {
      if (served === undefined) yield undefined
      else if (served.time !== undefined) this.#served.adopt({ ...served, time: served.time })
    }
    yield * this.#sites.countHandles()
    return {
      pid: process.pid,
      threadId,
      name: String(process.argv[1] ?? process.argv[0] ?? ''),
      node: process.version,
      blockedMs: settings.options.blocked ?? observers.ms,
      handles: this.#sites.open
    }
  }

  /** @returns {Generator<undefined, TopFigures>} */
  * read () {
    yield * this.#sites.countHandles()
    const time = now()
    const ms = time - this.#readAt
    this.#readAt = time
    return {
      ms,
      enabled: settings.enabled,
      ...this.#served.read(),
      thread: this.#thread.read(),
      blockers: this.#blockers.read(),
      waits: this.#sites.readWaits(),
      handles: this.#sites.open
    }
  }

  stop = () => {
    if (this.isStopped) return
    this.isStopped = true
    timers.clearInterval(this.timer)
    this.unsubscribe()
    this.#thread.stop()
    this.#blockers.stop()
  }
}

/**
 * Starts to take figures for a command.
 * @param {TopOptions} options
 * @param {Session} session
 * @returns {Generator<undefined, TopFacts>}
 */
function startTop (options, session) {
  stopTop(session)
  const sampler = new Sampler(options)
  session.kept.set('top', { sampler, stop: session.onEnd(sampler.stop) })
  return sampler.start()
}

/**
 * Returns the figures since the last call, and starts again.
 * @param {Session} session
 * @returns {Generator<undefined, TopFigures> | undefined} undefined: it was not started, or has stopped
 */
function readTop (session) {
  /** @type {Sampler | undefined} */
  const sampler = session.kept.get('top')?.sampler
  return sampler === undefined || sampler.isStopped ? undefined : sampler.read()
}

/** Takes everything back. @param {Session} session */
function stopTop (session) {
  session.kept.get('top')?.stop()
  session.kept.delete('top')
}

module.exports = { readTop, startTop, stopTop }
