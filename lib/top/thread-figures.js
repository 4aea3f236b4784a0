'use strict'

// Figures of this thread and its process since they were read last: CPU, event loop, memory; and callbacks
// that block, by the innermost frame of the program inside them.

const { monitorEventLoopDelay, performance } = require('node:perf_hooks')
const { isMainThread } = require('node:worker_threads')
const { applyBlocked, observers } = require('../blocked/wanted')
const { changeState } = require('../listeners')

const DELAY_RESOLUTION_MS = 20 // libuv's timer of Node's histogram: 50 wake-ups a second, in C++ alone
const MAX_PLACES = 50 // of blocking callbacks
const OTHER = '(other)'

/**
 * @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent
 * @typedef {{ user: number, system: number }} CpuUsage µs
 *
 * @typedef {object} Figures
 * @property {{ share: number, p50Ms: number, p99Ms: number, maxMs: number }} loop share: of the time in which
 *   the event loop did not wait, 0 to 1; how late a timer was
 * @property {number | undefined} cpuMs of this thread; undefined where Node does not tell
 * @property {{ cpuMs: number, rss: number } | undefined} process from its main thread
 * @property {{ used: number, external: number }} heap bytes
 *
 * @typedef {object} BlockerFigures
 * @property {string} site `parse (/app/parse.js:12:3)`
 * @property {number} count
 * @property {number} ms of all
 * @property {number} worstMs
 * @property {string} stack of the worst: the frames inside it, then the hops that led to it
 */

class ThreadFigures {
  #delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  #loop = performance.eventLoopUtilization()
  #processCpu = process.cpuUsage()
  #threadCpu = threadCpuUsage()

  constructor () {
    this.#delay.enable()
  }

  /** @returns {Figures} */
  read () {
    const [loop, processCpu, threadCpu] = [this.#loop, this.#processCpu, this.#threadCpu]
    this.#loop = performance.eventLoopUtilization()
    this.#processCpu = process.cpuUsage()
    this.#threadCpu = threadCpuUsage()
    const late = (/** @type {number} */ ns) => Math.max(0, ns / 1e6 - DELAY_RESOLUTION_MS) || 0
    const delays = [this.#delay.percentile(50), this.#delay.percentile(99), this.#delay.max]
    const [p50Ms, p99Ms, maxMs] = delays.map((ns) => this.#delay.count === 0 ? 0 : late(ns))
    this.#delay.reset()
    const { heapUsed, external, rss } = process.memoryUsage()
    return {
      loop: { share: performance.eventLoopUtilization(this.#loop, loop).utilization, p50Ms, p99Ms, maxMs },
      cpuMs: threadCpu && this.#threadCpu && cpuMs(threadCpu, this.#threadCpu),
      process: isMainThread ? { cpuMs: cpuMs(processCpu, this.#processCpu), rss } : undefined,
      heap: { used: heapUsed, external }
    }
  }

  stop () {
    this.#delay.disable()
  }
}

/** @param {CpuUsage} before @param {CpuUsage} present */
function cpuMs (before, present) {
  return (present.user - before.user + present.system - before.system) / 1000
}

/** @returns {CpuUsage | undefined} undefined where Node has none */
function threadCpuUsage () {
  return /** @type {any} */ (process).threadCpuUsage?.()
}

/** from how many ms on commands ask for them: the lowest is in force @type {Set<{ ms: number }>} */
const wishes = new Set()

function applyWishes () {
  const lowest = Math.min(Infinity, ...[...wishes].map(({ ms }) => ms))
  const ms = lowest === Infinity ? undefined : lowest
  if (observers.ms === ms) return
  observers.ms = ms
  changeState(applyBlocked)
}

class Blockers {
  /** @type {Map<string, BlockerFigures>} */
  #places = new Map()
  #wish

  /** @param {number} [ms] from how many on */
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
    const figures = this.#places.get(site) ?? { site, count: 0, ms: 0, worstMs: 0, stack }
    this.#places.set(site, figures)
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

module.exports = { Blockers, ThreadFigures }
