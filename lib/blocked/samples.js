'use strict'

// What the samples of one long run have in common: the path of calls that at least half of its time took, from the event
// loop inwards. One sample is told as it is.

const { Stack } = require('../stacks/frames')

const MOST = 64 // samples of one run
const WHOLE = 200 // frames: what has as many was cut off

/**
 * @typedef {object} Sample
 * @property {string} text frames, a line each, innermost first
 * @property {import('../context/context').Context | undefined} context that ran
 * @property {number | undefined} late ms, where it took long to be taken
 * @property {number} weight how much time it stands for
 *
 * @typedef {Sample & { frames: import('../stacks/frames').Frame[] }} Read frames outermost first
 */

function createSamples () {
  /** @type {Sample[]} */
  const samples = []
  let count = 0

  return {
    /** @param {Sample} sample */
    add (sample) {
      count++
      if (samples.length < MOST) samples.push(sample)
    },

    /** @returns {{ count: number, text: string, context?: Sample['context'], late?: number }} */
    best () {
      if (samples.length === 0) return { count, text: '' }
      // A sample that came late may have met what Node or longstack does when the program's part is over.
      const met = samples.filter(({ text }) => new Stack(text).program)
      const told = met.length > 0 ? met : samples
      const { text, of } = told.length === 1 ? { text: told[0].text, of: told } : path(told)
      const { context, late } = heaviest(of)
      return { count, text, context, late }
    }
  }
}

/** @param {Sample[]} samples @returns {{ text: string, of: Sample[] }} the common path, and those that took all of it */
function path (samples) {
  const read = samples.map((sample) => ({ ...sample, frames: new Stack(sample.text).frames.toReversed() }))
  if (read.some(({ frames }) => frames.length >= WHOLE)) { // a deep recursion: no two begin at the same place
    const one = heaviest(samples)
    return { text: one.text, of: [one] }
  }
  const total = weigh(read)
  /** @type {string[]} */
  const lines = []
  let alive = read
  for (let depth = 0; ; depth++) {
    const next = largest(alive.filter(({ frames }) => frames.length > depth), ({ frames }) => keyOf(frames[depth]))
    if (next.length === 0 || weigh(next) * 2 < total) break
    lines.unshift(largest(next, ({ frames }) => frames[depth].text)[0].frames[depth].text)
    alive = next
  }
  return { text: lines.join('\n'), of: alive }
}

/** Those that share the key which stands for most of the time. @param {Read[]} samples @param {(sample: Read) => string} key @returns {Read[]} */
function largest (samples, key) {
  /** @type {Map<string, Read[]>} */
  const groups = new Map()
  for (const sample of samples) {
    const group = groups.get(key(sample))
    if (group === undefined) groups.set(key(sample), [sample])
    else group.push(sample)
  }
  return [...groups.values()].reduce((best, group) => weigh(group) > weigh(best) ? group : best, [])
}

/** The function, wherever in it the sample was taken. @param {import('../stacks/frames').Frame} frame */
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

module.exports = { createSamples }
