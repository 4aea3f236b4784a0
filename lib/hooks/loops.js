'use strict'

// Loops: a step that repeats one of its last ancestors has that ancestor's chain (native/chains.h). What
// belongs to the turn is noted in the record of the step: how many turns there were, and what came before the
// first.

const { CURRENT_CAUSE, current } = require('../context/current')
const records = require('../context/records')

const {
  MASK, SHIFT, REF, CHAIN, CAUSE, TIME, FLAGS, OUTER, TURNS, PRIOR, PRIOR_TIME, LOOPED, DISTANCE,
  FOLD_SHIFT, CHAIN_BITS, resources, promises
} = records

/**
 * One more turn of a loop: the step was found so many ancestors up.
 * @param {Int32Array} words
 * @param {number} at
 * @param {number} step what the engine answered: the chain, and the distance
 * @returns {number} flags
 */
function turnOf (words, at, step) {
  const cause = current[CURRENT_CAUSE]
  const distance = step >>> FOLD_SHIFT
  if (distance === 1) return turnOfOne(words, at, step & CHAIN_BITS, cause)
  const before = ancestorOf(cause, distance - 1)
  const found = before === 0 ? undefined : records.findRecord(before)
  if (found === undefined || found.words[found.offset + CHAIN] !== (step & CHAIN_BITS)) return 0
  const again = isSameTurn(before, distance, cause)
  const wasFolded = ((found.words[found.offset + FLAGS] >> DISTANCE) & 15) !== 0
  const hasPrior = again || (found.words[found.offset + FLAGS] & LOOPED) !== 0
  words[at + TURNS] = again ? found.words[found.offset + TURNS] + 1 : 2
  words[at + OUTER] = wasFolded ? found.words[found.offset + OUTER] : found.words[found.offset + CAUSE]
  notePrior(words, at, hasPrior ? found.words[found.offset + PRIOR] : found.words[found.offset + CAUSE],
    hasPrior ? found.words[found.offset + PRIOR_TIME] : undefined)
  return (again ? LOOPED : 0) | distance << DISTANCE
}

/**
 * The same for a loop of one step: the turn before is what runs now.
 * @param {Int32Array} words
 * @param {number} at
 * @param {number} chainNow
 * @param {number} cause
 */
function turnOfOne (words, at, chainNow, cause) {
  const latest = (cause & 1) === 0 ? resources : promises
  const before = ((cause >> 1) & MASK) << SHIFT
  if (latest[before + REF] !== cause || latest[before + CHAIN] !== chainNow) return 0
  const flags = latest[before + FLAGS]
  const looped = (flags & LOOPED) !== 0 && ((flags >> DISTANCE) & 15) === 1
  words[at + TURNS] = looped ? latest[before + TURNS] + 1 : 2
  words[at + OUTER] = ((flags >> DISTANCE) & 15) === 0 ? latest[before + CAUSE] : latest[before + OUTER]
  if (looped) notePrior(words, at, latest[before + PRIOR], latest[before + PRIOR_TIME])
  else notePrior(words, at, latest[before + CAUSE], undefined)
  return LOOPED | 1 << DISTANCE
}

/**
 * @param {Int32Array} words
 * @param {number} at
 * @param {number} prior reference
 * @param {number | undefined} time of it, where its record may be gone
 */
function notePrior (words, at, prior, time) {
  words[at + PRIOR] = prior
  words[at + PRIOR_TIME] = time ?? records.readWord(prior, TIME)
}

/**
 * Were the steps of the turn before the same?
 * @param {number} before
 * @param {number} distance
 * @param {number} cause
 */
function isSameTurn (before, distance, cause) {
  if (((records.readWord(before, FLAGS) >> DISTANCE) & 15) !== distance) return false
  let [one, other] = [cause, records.readWord(before, CAUSE)]
  for (let i = 1; i < distance; i++) {
    if (records.readWord(one, CHAIN) !== records.readWord(other, CHAIN)) return false
    one = ancestorOf(one, 1)
    other = ancestorOf(other, 1)
  }
  return true
}

/**
 * Goes up the chain, past the turns of loops.
 * @param {number} ref
 * @param {number} steps
 * @returns {number} reference, 0: it is not known
 */
function ancestorOf (ref, steps) {
  let at = ref
  for (let i = 0; i < steps && at !== 0; i++) {
    const found = records.findRecord(at)
    if (found === undefined) return 0
    const isFolded = ((found.words[found.offset + FLAGS] >> DISTANCE) & 15) !== 0
    at = found.words[found.offset + (isFolded ? OUTER : CAUSE)]
  }
  return at
}

module.exports = { turnOf }
