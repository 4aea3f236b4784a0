'use strict'

// The account of a run's time, for a watchdog in JavaScript and the thread that it watches; native/watchdog.cc has the same.
// Time counts only as far as somebody ran: where the watchdog slept for much longer than it meant to, the process was
// stopped, or the machine was asleep or had too much to do.

const fs = require('node:fs')

const FILE = '/proc/self/schedstat' // of the main thread: ns on a processor, ns in the queue for one
const STANDS = 0.1 // of a time, on a processor: less is none
const SLACK = 0.2 // of the threshold: shorter stops than that do not matter

/** @returns {number} ms that the main thread has been on a processor, or would have liked to be; where nobody tells, ms of the process */
function used () {
  const { ran, waited } = schedule()
  if (ran > 0) return ran + waited
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e3
}

/** @returns {number} ms that the main thread has waited for a processor */
function queued () {
  return schedule().waited
}

function schedule () {
  try {
    const [ran, waited] = fs.readFileSync(FILE, 'latin1').split(' ')
    return { ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 }
  } catch {
    return { ran: 0, waited: 0 } // no Linux, or --permission
  }
}

/**
 * @typedef {object} Account of a run, in ms
 * @property {number} late between looks of which the second came late
 * @property {number} used of that, on a processor or in the queue for one
 * @property {number} still between looks, without either
 */

/**
 * Adds what has passed since the last look. The time in the queue is told when it is over: what is more than has passed makes
 * up for what was missing.
 * @param {Account} account
 * @param {{ passed: number, part: number, busy: number, late: boolean }} look `part` of `passed` belongs to the run
 */
function add (account, { passed, part, busy, late }) {
  if (late) {
    account.late += part
    account.used += Math.min(busy, part)
  } else {
    if (busy > passed) account.used += busy - passed
    if (busy < passed * STANDS) account.still += part
  }
}

/** @param {Account} account @returns {number} ms that do not count */
function lost ({ late, used }) {
  return Math.max(0, late - used)
}

module.exports = { used, queued, add, lost, SLACK, STANDS }
