'use strict'

// What the samples of one blocking callback have in common: the path of calls, from the event loop inwards,
// that at least half of its time took. A single sample is reported as it is.

const { groupBy } = require('../group-by')
const { Stack } = require('../stacks/frames')
const { frameLines, joinFrames } = require('../stacks/text-scan')

const MAX_SAMPLES = 64 // of one callback
const MAX_FRAMES = 200 // a sample with as many was cut off

/**
 * @typedef {object} Sample
 * @property {string} text frames, as joinFrames makes it, innermost first
 * @property {import('../core/context').Context | undefined} context that ran
 * @property {number | undefined} late ms from the request to the sample, if many
 * @property {number} weight how much time it stands for
 *
 * @typedef {Sample & { frames: import('../stacks/frames').Frame[] }} ParsedSample frames outermost first
 */

class Samples {
  /** @type {Sample[]} */
  #samples = []
  #count = 0

  /** @param {Sample} sample */
  add (sample) {
    this.#count++
    if (this.#samples.length < MAX_SAMPLES) this.#samples.push(sample)
  }

  /** @returns {{ count: number, text: string, context?: Sample['context'], late?: number }} */
  best () {
    const count = this.#count
    if (this.#samples.length === 0) return { count, text: '' }
    // A late sample may show what Node or longstack does after the program's part has ended.
    const withProgram = this.#samples.filter(({ text }) => new Stack(text).program)
    const { text, samples } = commonPath(withProgram.length > 0 ? withProgram : this.#samples)
    const { context, late } = heaviest(samples)
    return { count, text, context, late }
  }
}

/**
 * Returns the frames of a stack, a line each.
 * @param {string} stack
 * @param {number} skipped innermost frames to leave out
 */
function linesOf (stack, skipped) {
  const lines = frameLines(stack, true)
  return skipped === 0 ? lines : lines.split('\n').slice(skipped).join('\n')
}

/**
 * Returns the common path, and the samples that took all of it.
 * @param {Sample[]} samples
 * @returns {{ text: string, samples: Sample[] }}
 */
function commonPath (samples) {
  if (samples.length === 1) return { text: samples[0].text, samples }
  const parsed = samples.map((sample) => ({ ...sample, frames: new Stack(sample.text).frames.toReversed() }))
  if (parsed.some(({ frames }) => frames.length >= MAX_FRAMES)) { // deep recursion: outermost frames differ
    const sample = heaviest(samples)
    return { text: sample.text, samples: [sample] }
  }
  const total = weigh(parsed)
  /** @type {string[]} */
  const lines = []
  let matching = parsed
  for (let depth = 0; ; depth++) {
    const deeper = matching.filter(({ frames }) => frames.length > depth)
    const next = largestGroup(deeper, ({ frames }) => keyOf(frames[depth]))
    if (next.length === 0 || weigh(next) * 2 < total) break
    lines.unshift(largestGroup(next, ({ frames }) => frames[depth].text)[0].frames[depth].text)
    matching = next
  }
  return { text: joinFrames(lines), samples: matching }
}

/**
 * Returns the samples that share the key which stands for most of the time.
 * @param {ParsedSample[]} samples
 * @param {(sample: ParsedSample) => string} key
 * @returns {ParsedSample[]}
 */
function largestGroup (samples, key) {
  return groupBy(samples, key).reduce((best, group) => weigh(group) > weigh(best) ? group : best, [])
}

/**
 * Identifies the function of a frame, wherever in it the sample was taken.
 * @param {import('../stacks/frames').Frame} frame
 */
function keyOf ({ functionName, fileName }) {
  return `${functionName} ${fileName}`
}

/** @param {Sample[]} samples */
function weigh (samples) {
  return samples.reduce((sum, { weight }) => sum + weight, 0)
}

/** @param {Sample[]} samples */
function heaviest (samples) {
  return samples.reduce((best, sample) => sample.weight > best.weight ? sample : best)
}

module.exports = { Samples, linesOf }
