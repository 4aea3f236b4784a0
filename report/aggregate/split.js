'use strict'

// The breakdown of a span's duration: run, waited by subsystem, and delayed.

const { amount, isRecord } = require('../read/values')

/**
 * @typedef {object} Split breakdown of a duration, in ms: run, waited and delayed add up to it
 * @property {number} run
 * @property {number} waited
 * @property {number} delayed
 * @property {Record<string, number>} wait waited, by the subsystem that ended it, or `unknown`; in files with
 *   idle time by what was pending, and may add up to more
 */

const MAX_SUBSYSTEMS = 64
const ROUNDING_MS = 0.0005 // of times with three decimals

/**
 * Reads the breakdown of a span's duration. Idle time, which older files have, counts as waited.
 * @param {Record<string, any>} attributes
 * @returns {Split | undefined} undefined if any part is not known
 */
function splitOf (attributes) {
  const run = amount(attributes['longstack.run_ms'])
  const waited = amount(attributes['longstack.waited_ms'])
  const delayed = amount(attributes['longstack.delayed_ms'])
  if (run === undefined || waited === undefined || delayed === undefined) return undefined
  const idle = amount(attributes['longstack.idle_ms'] ?? 0)
  if (idle === undefined) return undefined
  const wait = subsystemsOf(attributes['longstack.wait_ms'])
  if (idle > 0) addIdle(wait, idle, subsystemsOf(attributes['longstack.idle_until']))
  return { run, waited: waited + idle, delayed, wait: Object.fromEntries(wait) }
}

/**
 * Reads times by subsystem.
 * @param {unknown} times
 * @returns {Map<string, number>} ms
 */
function subsystemsOf (times) {
  /** @type {Map<string, number>} */
  const sums = new Map()
  if (!isRecord(times)) return sums
  for (const name of Object.keys(times)) {
    const ms = amount(times[name])
    if (ms === undefined || !/^[A-Z][\w.:-]{0,63}$/i.test(name)) continue
    sums.set(name, ms)
    if (sums.size === MAX_SUBSYSTEMS) break
  }
  return sums
}

/**
 * Adds idle time to the waits for what ended it, as far as known.
 * @param {Map<string, number>} wait
 * @param {number} idle ms
 * @param {Map<string, number>} ends
 */
function addIdle (wait, idle, ends) {
  let remaining = idle
  for (const [name, ms] of ends) {
    const part = Math.min(ms, remaining)
    wait.set(name, (wait.get(name) ?? 0) + part)
    remaining -= part
  }
  if (remaining > ROUNDING_MS) wait.set('unknown', (wait.get('unknown') ?? 0) + remaining)
}

module.exports = { splitOf }
