'use strict'

// Accounts for the time of a callback, for the JavaScript watchdog and the thread that it watches;
// native/watchdog.cc does the same. Time counts only as far as the thread ran: where the watchdog slept for
// much longer than it meant to, the process was stopped, or the machine was asleep or overloaded.

const fs = require('node:fs')

const FILE = '/proc/self/schedstat' // of the main thread: ns on a CPU, ns in the run queue
const STILL_RATIO = 0.1 // of a time, on a CPU: below it the thread stands still
const SLACK = 0.2 // of the threshold: shorter stops do not matter

/**
 * Returns the on-CPU plus run-queue time of the main thread in ms; where the kernel does not report it, the
 * CPU time of the process.
 * @returns {number}
 */
function cpuTime () {
  const { ran, waited } = schedule()
  if (ran > 0) return ran + waited
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}

/** @returns {number} ms that the main thread has waited for a CPU */
function queuedMs () {
  return schedule().waited
}

function schedule () {
  try {
    const [ran, waited] = fs.readFileSync(FILE, 'latin1').split(' ')
    return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
  } catch {
    return { ran: 0, waited: 0 } // not Linux, or --permission
  }
}

/**
 * @typedef {object} Account of a callback, in ms
 * @property {number} late between checks of which the second came late
 * @property {number} used of that, on a CPU or in its queue
 * @property {number} still between checks, without either
 */

/**
 * Adds the time since the last check. The kernel reports time in the run queue when it is over: more than has
 * passed makes up for what was missing before.
 * @param {Account} account
 * @param {{ passed: number, part: number, busy: number, isLate: boolean }} check `part` of `passed` belongs
 *   to the callback
 */
function add (account, { passed, part, busy, isLate }) {
  if (isLate) {
    account.late += part
    account.used += Math.min(busy, part)
  } else {
    if (busy > passed) account.used += busy - passed
    if (busy < passed * STILL_RATIO) account.still += part
  }
}

/** @param {Account} account @returns {number} ms that do not count */
function lostMs ({ late, used }) {
  return Math.max(0, late - used)
}

module.exports = { cpuTime, queuedMs, add, lostMs, SLACK, STILL_RATIO }
