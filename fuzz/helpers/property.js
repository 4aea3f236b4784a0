'use strict'

const fc = require('fast-check')

const SHRINK_MS = 60_000

/**
 * Checks a property until the inputs or the time are used up. Rejects with the smallest input found that
 * contradicts it.
 * @param {fc.IRawProperty<any>} property made by fc.property or fc.asyncProperty
 * @param {import('./targets').Settings} settings
 * @param {number} [batch] inputs per seed: time is looked at in between
 * @returns {Promise<number>} number of inputs
 */
async function check (property, { seed, count = Infinity, seconds = Infinity }, batch = 50) {
  const end = performance.now() + seconds * 1000
  let inputs = 0
  for (let round = 0; inputs < count && performance.now() < end; round++) {
    const numRuns = Math.min(batch, count - inputs)
    const details = await fc.check(property, {
      seed: (seed + round) | 0, numRuns, interruptAfterTimeLimit: SHRINK_MS, markInterruptAsFailure: false
    })
    inputs += details.numRuns
    if (details.failed) {
      const { stack } = /** @type {any} */ (details.errorInstance) ?? {}
      throw new Error(`${fc.defaultReportMessage(details)}\n${stack ?? String(details.errorInstance)}`)
    }
  }
  return inputs
}

module.exports = { check, fc }
