'use strict'

// What the samples and counts of a soak say.

const MAX_GROWTH = 0.02
const FIGURES = /** @type {const} */ (['heapUsed', 'external', 'rss'])
const MAX_KEPT = 24 // file descriptors or threads: connections that are kept alive, threads of pools

/**
 * @typedef {object} Sample
 * @property {number} second since the start
 * @property {number} heapUsed after gc, bytes
 * @property {number} external bytes outside of V8's heap that belong to objects in it
 * @property {number} rss bytes
 * @property {number} descriptors
 * @property {number} threads
 * @property {any} stats of trace.stats()
 * @property {{ jobs: number, blocks: number, reported: number }} made
 */

/**
 * Returns how a figure grew after the first quarter, in which caches fill and V8 compiles: the least of the
 * second quarter and the least of the last, since a worker or a request that is just there adds to a sample.
 * @param {Sample[]} samples at even distances
 * @param {(sample: Sample) => number} read
 * @returns {{ early: number, late: number }}
 */
function quarters (samples, read) {
  const quarter = Math.max(1, samples.length >> 2)
  const least = (/** @type {Sample[]} */ some) => Math.min(...some.map(read))
  return { early: least(samples.slice(quarter, quarter * 2)), late: least(samples.slice(-quarter)) }
}

/**
 * Memory may grow by 2 %, and by what it grows without longstack.
 * @param {typeof FIGURES[number]} name
 * @param {Sample[]} samples
 * @param {Sample[] | undefined} bareSamples of the same load at the same time
 */
function judgeMemory (name, samples, bareSamples) {
  const inMegabytes = (/** @type {Sample} */ sample) => sample[name] / 2 ** 20
  const { early, late } = quarters(samples, inMegabytes)
  const bare = bareSamples === undefined ? undefined : quarters(bareSamples, inMegabytes)
  const bareGrowth = bare === undefined ? 0 : Math.max(0, bare.late - bare.early)
  const percent = ((late / early - 1) * 100).toFixed(1)
  const without = bare === undefined ? '' : `; bare: ${bare.early.toFixed(1)} → ${bare.late.toFixed(1)} MB`
  return {
    isFine: late - early <= MAX_GROWTH * early + bareGrowth,
    line: `${name}: ${early.toFixed(1)} → ${late.toFixed(1)} MB (${percent} %)${without}`
  }
}

/**
 * @param {object} soak
 * @param {Sample[]} soak.samples under load
 * @param {Sample[]} [soak.bareSamples] of the same load at the same time, without longstack
 * @param {Sample} soak.first before it
 * @param {Sample} soak.last after it
 * @param {boolean} soak.judgesMemory
 * @returns {Array<{ isFine: boolean, line: string }>}
 */
function judgeSamples ({ samples, bareSamples, first, last, judgesMemory }) {
  const verdicts = []
  for (const name of FIGURES) {
    const { isFine, line } = judgeMemory(name, samples, bareSamples)
    verdicts.push({ isFine: isFine || !judgesMemory, line })
  }
  for (const name of /** @type {const} */ (['descriptors', 'threads'])) {
    const isFine = last[name] - first[name] <= MAX_KEPT
    verdicts.push({ isFine, line: `${name} at rest: ${first[name]} → ${last[name]}` })
  }
  const { open = 0, dropped = 0 } = last.stats.spans ?? {}
  verdicts.push({ isFine: open === 0, line: `open spans at the end: ${open}` })
  verdicts.push({ isFine: dropped === 0, line: `dropped spans: ${dropped}` })
  const { bytes = 0, budget = Infinity, fault } = last.stats
  verdicts.push({ isFine: bytes <= budget, line: `contexts and stacks: ${bytes} of ${budget} bytes` })
  verdicts.push({ isFine: fault === undefined, line: `fault: ${fault ?? 'none'}` })
  return verdicts
}

/**
 * Compares what was answered with what was written.
 * @param {Record<string, number>} answered
 * @param {Record<string, number>} written
 * @returns {Array<{ isFine: boolean, line: string }>}
 */
function judgeSpans (answered, written) {
  const names = Object.keys(answered).filter((name) => name !== 'failed')
  const wrong = names.filter((name) => answered[name] !== written[name])
  const sum = names.reduce((total, name) => total + answered[name], 0)
  const verdicts = wrong.map((name) => (
    { isFine: false, line: `${name}: ${answered[name]} answered, ${written[name] ?? 0} spans` }))
  verdicts.push({ isFine: wrong.length === 0, line: `requests and spans: ${sum}` })
  verdicts.push({ isFine: answered.failed === 0, line: `requests failed: ${answered.failed}` })
  verdicts.push({ isFine: written.broken === 0, line: `broken lines: ${written.broken}` })
  return verdicts
}

module.exports = { judgeSamples, judgeSpans }
