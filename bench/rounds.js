'use strict'

// The order of runs, and what becomes of them. In a round every subject runs once, with bare before and after each
// few; a ratio is that to the mean of the two bare runs around it, so that a machine that gets slower meanwhile does
// it to both. The order turns from round to round.

const { measure } = require('./measure')
const { median } = require('./median')

/**
 * @typedef {import('./measure').Sample} Sample
 *
 * @typedef {object} Result
 * @property {string} subject
 * @property {string} workload
 * @property {number} [cpu] µs a unit, median
 * @property {number[]} ratios to bare, one a round
 * @property {number} [ratio] their median
 * @property {[number, number]} [spread] least and most
 * @property {number} [p50] ms
 * @property {number} [p99] ms
 * @property {number} [heapUsed] bytes
 * @property {number} [rss] bytes
 * @property {number} [units] measured in one round, median
 * @property {number} [drift] median
 * @property {Record<string, any>} [inForce]
 * @property {string} [warning] what was asked for is not in force
 * @property {string} [failed] reason
 * @property {number} [failures] how many of the runs
 */

const BETWEEN_BARE = 5

/** @template T @param {T[]} list @param {number} by @returns {T[]} */
const turned = (list, by) => list.length === 0 ? [] : list.map((_, i) => list[(i + by) % list.length])

/**
 * @param {Sample[]} samples
 * @param {(sample: Sample) => number | undefined} of
 */
function middle (samples, of) {
  const values = /** @type {number[]} */ (samples.map(of).filter((value) => value !== undefined))
  return values.length === 0 ? undefined : median(values)
}

/**
 * @param {import('./subjects').Subject} subject
 * @param {Record<string, any> | undefined} inForce
 */
function disappointment ({ asks = {} }, inForce) {
  if (inForce === undefined) return undefined
  const wrong = ['engine', 'mode'].filter((what) => /** @type {any} */ (asks)[what] !== undefined && /** @type {any} */ (asks)[what] !== inForce[what])
  if (wrong.length === 0) return undefined
  return wrong.map((what) => `${/** @type {any} */ (asks)[what]} was asked for, the ${what} in force is ${inForce[what]} (${inForce[`${what}Why`]})`).join('; ')
}

/**
 * Measures some subjects under one workload.
 * @param {object} plan
 * @param {string} plan.node
 * @param {string} plan.name of the workload
 * @param {import('./workloads').Workload} plan.workload
 * @param {Array<[string, import('./subjects').Subject]>} plan.subjects bare not among them
 * @param {import('./subjects').Subject} plan.bare
 * @param {(subject: string) => string | undefined} plan.lacking why one cannot run
 * @param {number} plan.rounds
 * @param {import('./measure').Scale} plan.scale
 * @param {import('./generator').Generator} plan.generator
 * @param {string[]} plan.pin
 * @param {(done: { subject: string, round: number }) => void} plan.progress
 * @returns {Promise<Result[]>}
 */
async function inRounds ({ node, name, workload, subjects, bare, lacking, rounds, scale, generator, pin, progress }) {
  const job = { node, name, workload, scale, generator, pin }
  const kept = new Map(['bare', ...subjects.map(([subject]) => subject)].map((subject) => [subject, {
    samples: /** @type {Sample[]} */ ([]),
    ratios: /** @type {number[]} */ ([]),
    failures: /** @type {string[]} */ ([])
  }]))
  const of = (/** @type {string} */ subject) => /** @type {NonNullable<ReturnType<typeof kept.get>>} */ (kept.get(subject))

  /** @param {string} called @param {import('./subjects').Subject} subject @param {number} round */
  async function once (called, subject, round) {
    progress({ subject: called, round })
    const sample = await measure({ ...job, subject })
    if ('failed' in sample) {
      of(called).failures.push(sample.failed)
      return undefined
    }
    of(called).samples.push(sample)
    return sample
  }

  for (const [subject] of subjects) {
    const reason = lacking(subject)
    if (reason !== undefined) of(subject).failures.push(reason)
  }
  const able = subjects.filter(([subject]) => lacking(subject) === undefined)
  for (let round = 0; round < rounds; round++) {
    // Who failed twice fails.
    const present = turned(able.filter(([subject]) => of(subject).failures.length < 2), round * BETWEEN_BARE)
    let before = await once('bare', bare, round)
    for (let i = 0; i < present.length; i += BETWEEN_BARE) {
      /** @type {Array<[string, number]>} */
      const prices = []
      for (const [called, subject] of present.slice(i, i + BETWEEN_BARE)) {
        const sample = await once(called, subject, round)
        if (sample !== undefined) prices.push([called, sample.cpu])
      }
      const after = await once('bare', bare, round)
      const around = [before, after].filter((sample) => sample !== undefined).map(({ cpu }) => cpu)
      if (around.length > 0) {
        const price = around.reduce((sum, cpu) => sum + cpu, 0) / around.length
        for (const [called, cpu] of prices) of(called).ratios.push(cpu / price)
        // How far two runs of the same thing lie apart: no ratio is better known than that.
        if (around.length === 2) of('bare').ratios.push(around[1] / around[0])
      }
      before = after
    }
  }

  return [(['bare', bare]), ...subjects].map(([called, subject]) => {
    const { samples, ratios, failures } = of(called)
    const inForce = samples.at(-1)?.inForce
    /** @type {Result} */
    const result = { subject: called, workload: name, ratios }
    if (failures.length > 0) Object.assign(result, { failed: failures[0], failures: failures.length })
    if (samples.length === 0) return result
    if (ratios.length > 0) {
      result.ratio = called === 'bare' ? 1 : median(ratios)
      result.spread = [Math.min(...ratios), Math.max(...ratios)]
    }
    return Object.assign(result, {
      cpu: middle(samples, ({ cpu }) => cpu),
      p50: middle(samples, ({ p50 }) => p50),
      p99: middle(samples, ({ p99 }) => p99),
      heapUsed: middle(samples, ({ heapUsed }) => heapUsed),
      rss: middle(samples, ({ rss }) => rss),
      units: middle(samples, ({ units }) => units),
      drift: middle(samples, ({ drift }) => drift),
      inForce,
      warning: disappointment(subject, inForce)
    })
  })
}

module.exports = { inRounds }
