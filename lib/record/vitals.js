'use strict'

// CPU time, garbage collection, heap and wait for a CPU of this thread.

const { readFileSync } = require('node:fs')
const process = require('node:process')
const allocationClock = require('../core/allocation-clock')
const { attempt } = require('../files')
const { youngBytes } = require('./heap-growth')

// Node 23.9 and later report the CPU time of a thread, earlier ones only that of the process.
const { cpuUsage, threadCpuUsage = cpuUsage } = /** @type {any} */ (process)

/** @type {number | undefined} */
let young

/**
 * Returns how long this thread has been ready to run, but had no CPU.
 * @returns {number | null} µs, see Documentation/scheduler/sched-stats.rst; null if the system does not tell
 */
function waitedUs () {
  const stat = attempt(() => readFileSync('/proc/thread-self/schedstat', 'latin1'))
  return stat === undefined ? null : Math.round(Number(stat.split(' ', 2)[1]) / 1000)
}

/**
 * @returns {Array<number | null> | undefined} µs of CPU of the thread, or of the process if Node does not
 *   report it; µs of garbage collections, null if unknown; bytes of the heap, and the
 *   limit of its old generation; µs of the wait for a CPU, null if unknown
 */
function vitals () {
  return attempt(() => {
    const { user, system } = threadCpuUsage.call(process)
    const { used_heap_size: used, heap_size_limit: limit } = require('node:v8').getHeapStatistics()
    young ??= youngBytes()
    return [user + system, allocationClock.collectedUs() ?? null, used, limit - young, waitedUs()]
  })
}

module.exports = { vitals }
