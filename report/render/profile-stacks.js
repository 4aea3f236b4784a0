'use strict'

// The stacks of a profile, for formats that know nothing but stacks: frames and labels of hops of a chain,
// and further inside the frames of CPU samples. Profiles come from another process and are not trusted.

const LABEL = /^── (.*) ──$/s
const FRAME = /^(.*?) \((.*?)(?::(\d+))?(?::\d+)?\)$/s
const MAX_CHARS = 1000 // of a name

/**
 * @typedef {import('../../lib/profile/profile').Profile} Profile
 * @typedef {import('../../lib/profile/profile').ProfileChain} ProfileChain
 *
 * @typedef {object} Stack
 * @property {string[]} frames innermost first
 * @property {ProfileChain} chain
 * @property {number} count callbacks; 0 for CPU samples
 * @property {number} ranMs
 * @property {number} waitedMs
 * @property {number} cpuMs
 *
 * @typedef {{ name: string, file: string, line: number }} Place of a frame; a label has no file
 */

/**
 * Lists the stacks of a profile: one for each chain, and one for each stack of CPU samples.
 * @param {Profile} profile
 * @returns {Generator<Stack>}
 */
function * stacksOf ({ chains, samples }) {
  for (const chain of chains) {
    const { count, ranMs, waitedMs } = chain
    const frames = chain.frames.length === 0 ? [chain.label] : chain.frames.map(nameOf)
    yield { frames, chain, count, ranMs, waitedMs, cpuMs: 0 }
  }
  for (const { chain: index, frames, ms } of samples) {
    const chain = chains[index]
    if (chain === undefined) continue
    const inner = [...frames, chain.label, ...chain.frames.map(nameOf)]
    yield { frames: inner, chain, count: 0, ranMs: 0, waitedMs: 0, cpuMs: ms }
  }
}

/** Returns a frame, or the label of a hop, as a name. @param {string} frame */
function nameOf (frame) {
  return (LABEL.exec(frame)?.[1] ?? frame).slice(0, MAX_CHARS)
}

/** Splits a frame: `load (/app/pool.js:34:9)`. @param {string} frame @returns {Place} */
function placeOf (frame) {
  const match = FRAME.exec(frame)
  if (match === null || match[3] === undefined) return { name: frame, file: '', line: 0 }
  const [, functionName, file, line] = match
  // Tools add up by name, and each anonymous function is another
  const name = functionName === '<anonymous>' ? `<anonymous> ${baseName(file)}:${line}` : functionName
  return { name, file, line: Number(line) }
}

/** @param {string} file */
function baseName (file) {
  return file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
}

module.exports = { placeOf, stacksOf }
