'use strict'

// What the samples and counts of a soak say.

const MAX_GROWTH = 0.02
const MAX_KEPT = 24 // file descriptors or threads: connections that are kept alive, threads of pools

/**
 * @typedef {object} Sample
 * @property {number} second since the start
 * @property {number} heapUsed after gc, bytes
 * @property {number} rss bytes
 * @property {number} descriptors
 * @property {number} threads
 * @property {any} stats of trace.stats()
 * @property {{ jobs: number, blocks: number, reported: number }} made
 */

/** @param {number[]} values */
function median (values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[sorted.length >> 1]
}

/**
 * @param {Sample[]} samples at even distances
 * @param {(sample: Sample) => number} read
 * @returns {{ early: number, late: number }} medians of the second and the last tenth
 */
function tenths (samples, read) {
  const tenth = Math.max(1, Math.floor(samples.length / 10))
  return {
    early: median(samples.slice(tenth, tenth * 2).map(read)),
    late: median(samples.slice(-tenth).map(read))
  }
}

/**
 * @param {object} soak
 * @param {Sample[]} soak.samples under load
 * @param {Sample} soak.first before it
 * @param {Sample} soak.last after it
 * @param {boolean} soak.judgesMemory
 * @returns {Array<{ isFine: boolean, line: string }>}
 */
function judgeSamples ({ samples, first, last, judgesMemory }) {
  const verdicts = []
  for (const name of /** @type {const} */ (['heapUsed', 'rss'])) {
    const { early, late } = tenths(samples, (sample) => sample[name] / 2 ** 20)
    const growth = late / early - 1
    const figures = `${early.toFixed(1)} → ${late.toFixed(1)} MB (${(growth * 100).toFixed(1)} %)`
    verdicts.push({ isFine: !judgesMemory || growth <= MAX_GROWTH, line: `${name}: ${figures}` })
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
