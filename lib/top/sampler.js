'use strict'

// What `longstack top` asks a thread: figures of what was done since it asked last. Each command that looks
// has a sampler of its own, which is stopped when the command goes, or does not ask any more.

const timers = require('node:timers') // programs replace the global ones
const { threadId } = require('node:worker_threads')
const { observers } = require('../blocked/wanted')
const guard = require('../context/guard')
const { now } = require('../context/clock')
const { servedRequests: servedInFlight } = require('../handles/requests-in-flight')
const { failed } = require('../hooks/faults')
const { servedRequests } = require('../hooks/served')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { createBlockerFigures } = require('./blocker-figures')
const { createServedFigures } = require('./served-figures')
const { createSiteFigures } = require('./site-figures')
const { runInSlices } = require('../ask/session')
const { createThreadFigures } = require('./thread-figures')

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
 * @property {import('./site-figures').OpenFigures} handles what is open already
 *
 * @typedef {object} TopFigures of a thread, since it was asked last
 * @property {number} ms how long that was
 * @property {boolean} enabled tracing is on
 * @property {import('./served-figures').RouteFigures[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest request that is in flight
 * @property {import('./thread-figures').ThreadFigures} thread
 * @property {import('./blocker-figures').BlockerFigures[]} blockers
 * @property {import('./site-figures').WaitFigures[] | undefined} waits undefined: not known
 * @property {import('./site-figures').OpenFigures} handles
 *
 * @typedef {import('../ask/session').Session} Session
 */

class Sampler {
  /** @param {TopOptions} options */
  constructor ({ intervalMs = 1000, blockedMs }) {
    this.leaseMs = LEASE_MS + 3 * intervalMs
    this.readAt = now()
    this.wasEnabled = settings.enabled
    this.isStopped = false
    this.isSampling = false
    this.served = createServedFigures(servedRequests().loadKoaRoutes().routeTextOf)
    this.thread = createThreadFigures()
    this.sites = createSiteFigures()
    this.blockers = createBlockerFigures(observers, blockedMs)
    this.unsubscribe = channels.subscribe(this.served.subscriptions)
    this.timer = timers.setInterval(() => guard.run(this.tick), SAMPLE_MS).unref()
  }

  tick = () => {
    try {
      if (now() - this.readAt > this.leaseMs) return this.stop()
      const { enabled } = settings
      if (enabled && !this.wasEnabled) this.served.forgetOpen()
      this.wasEnabled = enabled
      this.served.sweep()
      if (enabled && !this.isSampling) this.sample()
    } catch (error) {
      this.failed(error)
    }
  }

  sample () {
    this.isSampling = true
    runInSlices(this.sites.sample(), {
      done: () => { this.isSampling = false },
      failed: this.failed,
      isOver: () => this.isStopped
    })
  }

  /** @param {unknown} error */
  failed = (error) => {
    failed(error)
    this.stop()
  }

  /** Adds the requests that are in flight already. @returns {Generator<undefined, void>} */
  * adoptOpen () {
    for (const served of servedInFlight()) {
      if (served === undefined) yield undefined
      else if (served.time !== undefined) this.served.adopt({ ...served, time: served.time })
    }
  }

  /** @returns {Generator<undefined, TopFigures>} */
  * read () {
    yield * this.sites.countHandles()
    const time = now()
    const ms = time - this.readAt
    this.readAt = time
    return {
      ms,
      enabled: settings.enabled,
      ...this.served.read(),
      thread: this.thread.read(),
      blockers: this.blockers.read(),
      ...this.sites.read()
    }
  }

  stop = () => {
    if (this.isStopped) return
    this.isStopped = true
    timers.clearInterval(this.timer)
    this.unsubscribe()
    this.thread.stop()
    this.blockers.stop()
  }
}

/**
 * Starts to take figures for a command.
 * @param {TopOptions} options
 * @param {Session} session
 * @returns {Generator<undefined, TopFacts>}
 */
function * startTop (options, session) {
  stopTop({}, session)
  const sampler = new Sampler(options)
  session.kept.set('top', { sampler, stop: session.onEnd(sampler.stop) })
  yield * sampler.adoptOpen()
  yield * sampler.sites.countHandles()
  const { blocked } = settings.options
  return {
    pid: process.pid,
    threadId,
    name: String(process.argv[1] ?? process.argv[0] ?? ''),
    node: process.version,
    blockedMs: blocked ?? observers.ms,
    handles: sampler.sites.open()
  }
}

/**
 * Returns the figures since the last call, and starts again.
 * @param {{}} _
 * @param {Session} session
 * @returns {Generator<undefined, TopFigures | undefined>} undefined: it was not started, or has stopped
 */
function * readTop (_, session) {
  /** @type {Sampler | undefined} */
  const sampler = session.kept.get('top')?.sampler
  return sampler === undefined || sampler.isStopped ? undefined : yield * sampler.read()
}

/** Takes everything back. @param {{}} _ @param {Session} session */
function stopTop (_, session) {
  session.kept.get('top')?.stop()
  session.kept.delete('top')
}

module.exports = { readTop, startTop, stopTop }
