'use strict'

// The figures of a thread for `longstack top`, since its last query. Each command has its own sampler, which
// stops when the command disconnects, or sends no queries any longer.

const { performance } = require('node:perf_hooks')
const timers = require('node:timers') // programs replace the global ones
const { getHeapStatistics } = require('node:v8')
const { isMainThread, threadId } = require('node:worker_threads')
const { runInSlices } = require('../ask/session')
const { applyBlocked, observers } = require('../blocked/wanted')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const { getOrAdd } = require('../group-by')
const { waitGraph } = require('../handles/wait-graph')
const { failed } = require('../core/faults')
const { changeState } = require('../listeners')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { cutUrlCredentials } = require('../text')
const { LoopDelay } = require('./loop-delay')
const { ServedFigures } = require('./served')
const { SiteFigures } = require('../handles/site-figures')

const SAMPLE_MS = 250
const LEASE_MS = 30_000 // without a query, beyond three intervals
const GRAPH_MS = 5000 // between two wait graphs
const MAX_PLACES = 50 // of blocking callbacks
const OTHER = '(other)'

/**
 * @typedef {object} TopOptions
 * @property {number} [intervalMs] between queries
 * @property {number} [rest] ms of rest per ms of counting; by default counting takes 0.1 % of the time
 * @property {number} [blockedMs] from which callbacks are reported as blocking, if no option is set
 *
 * @typedef {object} TopFacts of a thread
 * @property {number} pid
 * @property {number} threadId 0 for the main thread
 * @property {string} name of the program
 * @property {number | undefined} blockedMs from which callbacks are reported; undefined if none are
 * @property {import('../handles/site-figures').OpenFigures} handles that are already open
 * @property {string} [box] file that all this is read from, in place of querying the thread
 * @property {Stuck} [stuck] of a main thread, known from a box only
 *
 * @typedef {object} TopFigures of a thread, since the last query
 * @property {number} ms how long that was
 * @property {boolean} enabled tracing is on
 * @property {import('./served').RouteFigures[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest request that is in flight
 * @property {Figures} thread
 * @property {BlockerFigures[]} blockers
 * @property {import('../handles/site-figures').WaitFigures[] | undefined} waits undefined if unknown
 * @property {import('../handles/site-figures').OpenFigures} handles
 * @property {WaitsFor} waitsFor cycles and convoys of waits, at most a few seconds old
 *
 * @typedef {object} Stuck a callback that has been running for long
 * @property {number} ms for how long, at least
 * @property {string | undefined} inside innermost frame of the program
 * @property {string | undefined} request
 *
 * @typedef {Pick<import('../handles/wait-graph').WaitGraph, 'cycles' | 'convoys'>} WaitsFor
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {{ user: number, system: number }} CpuUsage µs
 *
 * @typedef {object} Figures
 * @property {{ share: number, p50Ms: number, p99Ms: number, maxMs: number }} loop share: of the time in which
 *   the event loop did not wait, 0 to 1; the others: how late a timer was
 * @property {number | undefined} cpuMs of this thread; undefined if Node does not report it
 * @property {{ cpuMs: number, rss: number } | undefined} process from its main thread
 * @property {{ used: number, limit: number }} heap bytes
 *
 * @typedef {object} BlockerFigures
 * @property {string} site `parse (/app/parse.js:12:3)`
 * @property {number} count
 * @property {number} ms of all
 * @property {number} worstMs
 * @property {string} stack of the worst: the frames inside it, then the hops that led to it
 *
 * @typedef {import('../ask/session').Session} Session
 */

/** CPU, event loop and memory of this thread and its process. */
class ThreadFigures {
  #delay = new LoopDelay()
  #since = takeCounters()

  /** @returns {Figures} */
  read () {
    const since = this.#since
    const { loop, processCpu, threadCpu } = this.#since = takeCounters()
    const { p50Ms, p99Ms, maxMs } = this.#delay.read()
    const { heapUsed, rss } = process.memoryUsage()
    return {
      loop: { share: performance.eventLoopUtilization(loop, since.loop).utilization, p50Ms, p99Ms, maxMs },
      cpuMs: threadCpu && since.threadCpu && cpuMs(since.threadCpu, threadCpu),
      process: isMainThread ? { cpuMs: cpuMs(since.processCpu, processCpu), rss } : undefined,
      heap: { used: heapUsed, limit: getHeapStatistics().heap_size_limit }
    }
  }

  stop () {
    this.#delay.stop()
  }
}

/** @param {CpuUsage} before @param {CpuUsage} present */
function cpuMs (before, present) {
  return (present.user - before.user + present.system - before.system) / 1000
}

function takeCounters () {
  return {
    loop: performance.eventLoopUtilization(),
    processCpu: process.cpuUsage(),
    /** undefined if Node has none @type {CpuUsage | undefined} */
    threadCpu: /** @type {any} */ (process).threadCpuUsage?.()
  }
}

/** thresholds that commands request; the lowest applies @type {Set<{ ms: number }>} */
const wishes = new Set()

function applyWishes () {
  const lowest = Math.min(Infinity, ...[...wishes].map(({ ms }) => ms))
  const ms = lowest === Infinity ? undefined : lowest
  if (observers.ms === ms) return
  observers.ms = ms
  changeState(applyBlocked)
}

/** Callbacks that block, by the innermost frame of the program inside them. */
class Blockers {
  /** @type {Map<string, BlockerFigures>} */
  #places = new Map()
  #wish

  /** @param {number} [ms] from which callbacks are counted */
  constructor (ms = Infinity) {
    this.#wish = { ms }
    wishes.add(this.#wish)
    observers.listeners.add(this.#note)
    applyWishes()
  }

  /** @param {BlockedEvent} event */
  #note = ({ ms, stillRunning, frames, stack }) => {
    if (stillRunning) return // it is reported again when it has ended
    const place = placeOf(frames, stack)
    const site = this.#places.has(place) || this.#places.size < MAX_PLACES ? place : OTHER
    const figures = getOrAdd(this.#places, site, () => ({ site, count: 0, ms: 0, worstMs: 0, stack }))
    figures.count++
    figures.ms += ms
    if (ms >= figures.worstMs) Object.assign(figures, { worstMs: ms, stack })
  }

  /** @returns {BlockerFigures[]} */
  read () {
    const figures = [...this.#places.values()]
    this.#places = new Map()
    return figures
  }

  stop () {
    observers.listeners.delete(this.#note)
    wishes.delete(this.#wish)
    applyWishes()
  }
}

/** @param {BlockedEvent['frames']} frames @param {string} stack */
function placeOf (frames, stack) {
  const frame = frames.find(({ kind }) => kind === 'user') ?? frames[0]
  if (frame === undefined) return /^ {4}at (.*)/.exec(stack)?.[1] ?? '(unknown)'
  const { functionName = '<anonymous>', fileName, lineNumber, columnNumber } = frame
  return `${functionName} (${fileName}:${lineNumber}:${columnNumber})`
}

class Sampler {
  #leaseMs
  #readAt = now()
  #wasEnabled = settings.enabled
  #isSampling = false
  isStopped = false
  #graphAt = -Infinity
  /** @type {WaitsFor} */
  #waitsFor = { cycles: [], convoys: [] }
  #thread = new ThreadFigures()
  #served = new ServedFigures()
  #sites
  #blockers

  /** @param {TopOptions} options */
  constructor ({ intervalMs = 1000, blockedMs, rest }) {
    this.#sites = new SiteFigures(rest)
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

  /** @returns {Generator<undefined, TopFacts>} */
  * start () {
    yield * this.#served.adoptOpen()
    yield * this.#sites.countHandles()
    return {
      pid: process.pid,
      threadId,
      name: cutUrlCredentials(String(process.argv[1] ?? process.argv[0] ?? '')),
      blockedMs: settings.options.blocked ?? observers.ms,
      handles: this.#sites.open
    }
  }

  /** @returns {Generator<void, TopFigures>} */
  * read () {
    yield * this.#sites.countHandles()
    if (now() - this.#graphAt >= GRAPH_MS) {
      this.#graphAt = now()
      const { cycles, convoys } = yield * waitGraph()
      this.#waitsFor = { cycles, convoys }
    }
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
      handles: this.#sites.open,
      waitsFor: this.#waitsFor
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
 * Starts the figures for a command.
 * @param {TopOptions} options
 * @param {Session} session
 * @returns {Generator<undefined, TopFacts>}
 */
function startTop (options, session) {
  stopTop(session)
  const sampler = new Sampler(options)
  session.kept.set('top', sampler)
  session.onEnd(sampler.stop)
  return sampler.start()
}

/**
 * Returns the figures since the last call, and starts again.
 * @param {Session} session
 * @returns {Generator<void, TopFigures> | undefined} undefined if they were not started, or have stopped
 */
function readTop (session) {
  /** @type {Sampler | undefined} */
  const sampler = session.kept.get('top')
  return sampler === undefined || sampler.isStopped ? undefined : sampler.read()
}

/** Stops the figures for a command. @param {Session} session */
function stopTop (session) {
  session.kept.get('top')?.stop()
}

module.exports = { readTop, startTop, stopTop }
