'use strict'

// Loops of the program: a step that repeats one of its last ancestors has that ancestor's chain
// (native/chains.h). Its record holds the number of repetitions and the step before the first one.

const { CURRENT_CAUSE, current } = require('./current')
const records = require('./records')
const { notePrior } = require('./record-ids')
const { on } = require('./on')

const {
  MASK, SHIFT, REF, CHAIN, CAUSE, FLAGS, OUTER, REPEATS, PRIOR, PRIOR_TIME, PRIOR_WRAPS, LOOPED, DISTANCE,
  FOLD_SHIFT, CHAIN_BITS, resources, promises
} = records

/**
 * Chains of steps that repeat an older step, with other steps in between. Without records, a chain may have
 * come from those steps or from the ones before the older step: a queue calls one function for all callers'
 * jobs.
 * @type {Set<number>}
 */
const joined = new Set()

/** @param {number} flags @returns {number} steps from a repetition up to the previous one, 0: none */
const distanceOf = (flags) => (flags >> DISTANCE) & 15

/**
 * Notes another repetition of a loop in the record of a step.
 * @param {Int32Array} words
 * @param {number} offset
 * @param {number} step from the engine: the chain, and the number of ancestors up to the match
 * @returns {number} flags
 */
function noteRepetition (words, offset, step) {
  const cause = current[CURRENT_CAUSE]
  const distance = step >>> FOLD_SHIFT
  if (distance === 1) return noteSelfRepetition(words, offset, step & CHAIN_BITS, cause)
  const before = ancestorOf(cause, distance - 1)
  const record = before === 0 ? undefined : records.findRecord(before)
  if (record === undefined || record.words[record.offset + CHAIN] !== (step & CHAIN_BITS)) return 0
  const isRepeated = hasSameSteps(before, distance, cause)
  if (!isRepeated) joined.add(step & CHAIN_BITS)
  const flags = record.words[record.offset + FLAGS]
  const hasPrior = isRepeated || (flags & LOOPED) !== 0
  words[offset + REPEATS] = isRepeated ? record.words[record.offset + REPEATS] + 1 : 2
  words[offset + OUTER] = record.words[record.offset + (distanceOf(flags) !== 0 ? OUTER : CAUSE)]
  if (hasPrior) copyPrior(words, offset, record.words, record.offset)
  else notePrior(words, offset, record.words[record.offset + CAUSE])
  return (isRepeated ? LOOPED : 0) | distance << DISTANCE
}

/**
 * Does the same for a loop of one step: the previous repetition is the current step.
 * @param {Int32Array} words
 * @param {number} offset
 * @param {number} chain
 * @param {number} cause
 */
function noteSelfRepetition (words, offset, chain, cause) {
  const ring = (cause & 1) === 0 ? resources : promises
  const before = ((cause >> 1) & MASK) << SHIFT
  if (ring[before + REF] !== cause || ring[before + CHAIN] !== chain) return 0
  const flags = ring[before + FLAGS]
  const isLooped = (flags & LOOPED) !== 0 && distanceOf(flags) === 1
  words[offset + REPEATS] = isLooped ? ring[before + REPEATS] + 1 : 2
  words[offset + OUTER] = distanceOf(flags) === 0 ? ring[before + CAUSE] : ring[before + OUTER]
  if (isLooped) copyPrior(words, offset, ring, before)
  else notePrior(words, offset, ring[before + CAUSE])
  return LOOPED | 1 << DISTANCE
}

/**
 * Copies the step before a loop from the previous repetition: that step's record may be gone.
 * @param {Int32Array} words
 * @param {number} offset
 * @param {Int32Array} ring
 * @param {number} before
 */
function copyPrior (words, offset, ring, before) {
  words[offset + PRIOR] = ring[before + PRIOR]
  words[offset + PRIOR_TIME] = ring[before + PRIOR_TIME]
  words[offset + PRIOR_WRAPS] = ring[before + PRIOR_WRAPS]
}

/**
 * Returns whether the previous repetition had the same steps.
 * @param {number} before its last step
 * @param {number} distance
 * @param {number} cause
 */
function hasSameSteps (before, distance, cause) {
  if (distanceOf(records.readWord(before, FLAGS)) !== distance) return false
  let [step, previous] = [cause, records.readWord(before, CAUSE)]
  for (let i = 1; i < distance; i++) {
    if (records.readWord(step, CHAIN) !== records.readWord(previous, CHAIN)) return false
    step = ancestorOf(step, 1)
    previous = ancestorOf(previous, 1)
  }
  return true
}

/**
 * Goes up the chain, past repetitions of loops.
 * @param {number} ref
 * @param {number} steps
 * @returns {number} reference, 0: unknown
 */
function ancestorOf (ref, steps) {
  let ancestor = ref
  for (let i = 0; i < steps && ancestor !== 0; i++) {
    const record = records.findRecord(ancestor)
    if (record === undefined) return 0
    const isFolded = distanceOf(record.words[record.offset + FLAGS]) !== 0
    ancestor = record.words[record.offset + (isFolded ? OUTER : CAUSE)]
  }
  return ancestor
}

/** Returns whether several steps have led to a chain. @param {number} chain */
const isJoined = (chain) => joined.has(chain)

/** @returns {number} count of such chains */
const joinedChains = () => joined.size

on('forgetting', () => joined.clear())

module.exports = { distanceOf, isJoined, joinedChains, noteRepetition }
