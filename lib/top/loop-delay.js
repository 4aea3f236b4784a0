'use strict'

// Event loop delay of this thread, by Node's histogram: how late timers are.

const { monitorEventLoopDelay } = require('node:perf_hooks')

const RESOLUTION_MS = 20 // of libuv's timer: 50 wake-ups a second, in C++ alone

class LoopDelay {
  #delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })

  constructor () {
    this.#delay.enable()
  }

  /** Returns the figures since the last call: count of the measurements, and ms that a timer was late. */
  read () {
    const { count, mean, max } = this.#delay
    const delays = [mean, max, ...[50, 90, 99].map((share) => this.#delay.percentile(share))]
    this.#delay.reset()
    const [meanMs, maxMs, p50Ms, p90Ms, p99Ms] =
      delays.map((ns) => Math.max(0, ns / 1e6 - RESOLUTION_MS))
    return { count, meanMs, maxMs, p50Ms, p90Ms, p99Ms }
  }

  stop () {
    this.#delay.disable()
  }
}

module.exports = { LoopDelay }
