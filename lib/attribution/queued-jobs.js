'use strict'

// Jobs that a queue started by a callback. A queue that calls back starts the next job in the callback in
// which another one ended, so the chain of the job leads to whoever had that one: often another request, to
// which no promise and no resource leads. Nothing tells such a queue from a request that goes on by itself:
// both come through the same code again. So the request at the end of such a chain is told as a fact only
// while it is in flight, and for what was made before its answer was.

const { isRequest } = require('../core/records')
const { source } = require('../core/source')
const { isProgram } = require('../stacks/frames')
const { requestOf } = require('./askers')

const MAX_STEPS = 64

/** @typedef {import('../core/context').Context} Context */
/** @typedef {import('../stacks/frames').Frame} Frame */

/**
 * Returns the step that began what may be a job of another request than the one at the end of its chain.
 * @param {Context | undefined} newest
 * @returns {Context | undefined} the step in which that one began; undefined: the request is known
 */
function findStart (newest) {
  const request = requestOf(newest)
  if (request === 0 || source.isInFlight(request)) return undefined
  /** @type {Context[]} */
  const steps = []
  for (let step = newest; step !== undefined && steps.length < MAX_STEPS; step = step.parent) {
    if (isRequest(step.ref)) break
    steps.push(step)
  }
  const placesOf = steps.map((step) => placesIn(step.stack?.frames ?? []))
  for (let i = 0; i < steps.length; i++) {
    if (source.isAnsweredAfter(request, steps[i])) break
    const inner = placesOf[i].slice(0, -1) // without the callback itself, which may repeat itself
    const isRepeated = steps[i].repeats > 1 && inner.length > 0
    const older = placesOf.slice(i + 1)
    if (isRepeated || inner.some((place) => older.some((places) => places.includes(place)))) {
      return steps[i].parent
    }
  }
  return undefined
}

/** @param {Frame[]} frames @returns {string[]} the calls of code that ran, without those of Node's core */
function placesIn (frames) {
  return frames.filter((frame) => !frame.isAsync && isProgram(frame)).map(({ text }) => text)
}

module.exports = { findStart }
