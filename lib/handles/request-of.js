'use strict'

// The request in which a step was made, found up its causes.

const { contextAt } = require('../context/context')
const { CAUSE, DISTANCE, FLAGS, OUTER, findRecord, isRequest } = require('../context/records')

const MAX_STEPS = 1 << 15 // from a step up to its request

/** Remembers what was found, for as long as a query lasts. */
class RequestLookup {
  /** by reference of a step @type {Map<number, number>} */
  #requests = new Map()

  /**
   * Returns the request in which a step was made.
   * @param {number} ref
   * @returns {number} reference of the request, 0: none is known
   */
  of (ref) {
    const steps = []
    let step = ref
    let request = 0
    for (; step !== 0 && steps.length < MAX_STEPS; step = causeOf(step)) {
      const remembered = isRequest(step) ? step : this.#requests.get(step)
      if (remembered !== undefined) {
        request = remembered
        break
      }
      steps.push(step)
    }
    for (const passed of steps) this.#requests.set(passed, request)
    return request
  }
}

/** Returns what came before a step, and before the loop that it repeats. @param {number} ref */
function causeOf (ref) {
  const record = findRecord(ref)
  if (record === undefined) return 0
  const { words, offset } = record
  const isRepetition = ((words[offset + FLAGS] >> DISTANCE) & 15) !== 0
  return (isRepetition && words[offset + OUTER]) || words[offset + CAUSE]
}

/** @param {number} ref of a request @returns {string | undefined} `GET /report` */
function requestName (ref) {
  return ref === 0 ? undefined : contextAt(ref)?.request
}

module.exports = { RequestLookup, requestName }
