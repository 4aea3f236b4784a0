'use strict'

// Figures of this thread and its process since they were read last: CPU, event loop, memory.

const { monitorEventLoopDelay, performance } = require('node:perf_hooks')
const { threadId } = require('node:worker_threads')

const DELAY_RESOLUTION_MS = 20 // libuv's timer of Node's histogram: 50 wake-ups a second, in C++ alone

/**
 * @typedef {object} ThreadFigures
 * @property {{ share: number, p50Ms: number, p99Ms: number, maxMs: number }} loop share: of the time in which
 *   the event loop did not wait, 0 to 1; how late a timer was
 * @property {number | undefined} cpuMs of this thread; undefined where Node does not tell
 * @property {{ cpuMs: number, rss: number } | undefined} process from its main thread
 * @property {{ used: number, external: number }} heap bytes
 */

function createThreadFigures () {
  const delay = monitorEventLoopDelay({ resolution: DELAY_RESOLUTION_MS })
  delay.enable()
  let loop = performance.eventLoopUtilization()
  let processCpu = process.cpuUsage()
  let threadCpu = threadCpuUsage()

  return {
    /** @returns {ThreadFigures} */
    read () {
      const present = performance.eventLoopUtilization()
      const { utilization } = performance.eventLoopUtilization(present, loop)
      loop = present
      const { heapUsed, external, rss } = process.memoryUsage()
      const figures = {
        loop: { share: utilization, ...readDelay() },
        cpuMs: readThreadCpu(),
        process: threadId === 0 ? { cpuMs: readProcessCpu(), rss } : undefined,
        heap: { used: heapUsed, external }
      }
      return figures
    },

    stop () {
      delay.disable()
    }
  }

  function readDelay () {
    const late = (/** @type {number} */ ns) => Math.max(0, ns / 1e6 - DELAY_RESOLUTION_MS) || 0
    const figures = delay.count === 0
      ? { p50Ms: 0, p99Ms: 0, maxMs: 0 }
      : { p50Ms: late(delay.percentile(50)), p99Ms: late(delay.percentile(99)), maxMs: late(delay.max) }
    delay.reset()
    return figures
  }

  function readProcessCpu () {
    const before = processCpu
    processCpu = process.cpuUsage()
    return (processCpu.user - before.user + processCpu.system - before.system) / 1000
  }

  function readThreadCpu () {
    const before = threadCpu
    threadCpu = threadCpuUsage()
    if (threadCpu === undefined || before === undefined) return undefined
    return (threadCpu.user - before.user + threadCpu.system - before.system) / 1000
  }
}

/** @returns {{ user: number, system: number } | undefined} µs; undefined where Node has none */
function threadCpuUsage () {
  const { threadCpuUsage } = /** @type {any} */ (process)
  return typeof threadCpuUsage === 'function' ? threadCpuUsage() : undefined
}

module.exports = { createThreadFigures }
