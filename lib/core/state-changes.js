'use strict'

// Who brought an object into a state in which it can do no more: ended or destroyed a stream, sent headers
// of a message, aborted a signal. Noted on the object as a step when it happens (requests/changed-states.js),
// and told of the errors that come of that state (attribution/former-state.js).

const { CURRENT_CAUSE, CURRENT_CHAIN, current } = require('./current')
const guard = require('./guard')
const kindTable = require('./kind-table')
const { resolve } = require('./lookup')
const { CHAIN_BITS, ENDED_AT, ENDED_CAUSE, ENDED_CHAIN, OWN_WORK_CHAIN, findRecord } = require('./records')
const { createStepTag, createTag } = require('./tag')
const capture = require('../stacks/capture')

const MAX_FAILED = 256 // steps in which a call failed

/**
 * @typedef {'ended' | 'destroyed' | 'sent' | 'aborted'} State
 * @typedef {{ state: State, chain: number, cause: number, time: number }} Change ms of the clock
 */

/** @type {Record<State, ReturnType<typeof createStepTag>>} */
const tags = {
  ended: createStepTag(), destroyed: createStepTag(), sent: createStepTag(), aborted: createStepTag()
}
/** the objects' changes that errors come of, on these @type {ReturnType<typeof createTag<Change>>} */
const errorTag = createTag()
/**
 * what calls failed of, by the step in which they did: an error that is thrown does not lead to its object.
 * undefined: of several objects
 * @type {Map<number, Change | undefined>}
 */
const failed = new Map()

/**
 * Notes who changes an object.
 * @param {State} state
 * @param {object} object
 * @param {string} call name of the hop
 * @param {Function} above stacks begin below this function
 * @returns {number} chain of the step, 0: it is longstack's own, or left out
 */
function note (state, object, call, above) {
  if (guard.inOwnWork) return 0
  resolve()
  const parent = current[CURRENT_CHAIN]
  const kind = kindTable.kinds.get(call) ?? kindTable.add(call)
  if (parent === OWN_WORK_CHAIN || !kind.isSelected) return 0
  const chain = capture.step(parent, kind.number, above) & CHAIN_BITS
  tags[state].write(object, chain, current[CURRENT_CAUSE], capture.clock[0])
  return chain
}

/**
 * Returns who changed an object.
 * @param {object} object
 * @param {State[]} states the first of which that is known counts
 * @returns {Change | undefined}
 */
function changeOf (object, states) {
  for (let i = 0; i < states.length; i++) {
    const step = tags[states[i]].read(object)
    if (step !== undefined) return { state: states[i], ...step }
  }
  return undefined
}

/** @param {State} state @param {object} object @returns {boolean} whether it is known who changed it */
const isNoted = (state, object) => tags[state].has(object)

/** Notes what an error comes of. @param {object} error @param {Change | undefined} change */
function link (error, change) {
  if (change !== undefined && errorTag.read(error) === undefined) errorTag.write(error, change)
}

/** @param {object} error @returns {Change | undefined} what was noted for it */
const linkedTo = (error) => errorTag.read(error)

/** @param {number} request reference @returns {Change | undefined} who ended the response to it */
function enderOf (request) {
  const record = findRecord(request)
  if (record === undefined || record.words[record.offset + ENDED_CHAIN] === 0) return undefined
  const { words, offset } = record
  return {
    state: 'ended',
    chain: words[offset + ENDED_CHAIN],
    cause: words[offset + ENDED_CAUSE],
    time: words[offset + ENDED_AT]
  }
}

/** A call is about to fail because of what was done before. @param {Change | undefined} change */
function fail (change) {
  resolve()
  const step = current[CURRENT_CAUSE]
  const other = failed.get(step)
  const isOther = failed.has(step) && (other?.chain !== change?.chain || other?.cause !== change?.cause)
  if (failed.size >= MAX_FAILED) failed.delete(/** @type {number} */ (failed.keys().next().value))
  failed.set(step, isOther ? undefined : change)
}

/** @param {number} step reference @returns {Change | undefined} what made calls fail in it */
const failedIn = (step) => failed.get(step)

module.exports = { changeOf, enderOf, fail, failedIn, isNoted, link, linkedTo, note }
