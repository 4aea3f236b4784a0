'use strict'

// The breakdown of a span's duration: run, waited by subsystem, and delayed.

const { amount, isRecord } = require('../read/values')

/**
 * @typedef {object} Split breakdown of a duration, in ms: run, waited and delayed add up to it
 * @property {number} run
 * @property {number} waited
 * @property {number} delayed
 * @property {Record<string, number>} wait waited, by the subsystem that ended it, or `unknown`
 */

const MAX_SUBSYSTEMS = 64

/**
 * Reads the breakdown of a span's duration.
 * @param {Record<string, any>} attributes
 * @returns {Split | undefined} undefined if any part is not known
 */
function splitOf (attributes) {
  const run = amount(attributes['longstack.run_ms'])
  const waited = amount(attributes['longstack.waited_ms'])
  const delayed = amount(attributes['longstack.delayed_ms'])
  if (run === undefined || waited === undefined || delayed === undefined) return undefined
  /** @type {Record<string, number>} */
  const wait = {}
  const times = attributes['longstack.wait_ms']
  let count = 0
  for (const name of isRecord(times) ? Object.keys(times) : []) {
    if (amount(times[name]) === undefined || !/^[A-Z][\w.:-]{0,63}$/i.test(name)) continue
    wait[name] = times[name]
    if (++count === MAX_SUBSYSTEMS) break
  }
  return { run, waited, delayed, wait }
}

module.exports = { splitOf }
