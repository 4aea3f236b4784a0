'use strict'

// Runs a question in slices: the event loop of the process that is asked is held for some milliseconds at a
// time, and the program runs in between.

const { setTimeout } = require('node:timers') // programs replace the global ones
const { now } = require('../context/clock')
const guard = require('../context/guard')

const SLICE_MS = 12
const PAUSE_MS = 3

/**
 * A question: yields what is to be sent at once, or undefined where the event loop may go on; returns the
 * rest of the answer.
 * @typedef {Generator<any, any>} Question
 */

/**
 * @param {Question} question
 * @param {object} steps
 * @param {() => void} steps.begin called before each slice
 * @param {(part: any) => void} steps.send
 * @param {(answer: any) => void} steps.done
 * @param {(error: unknown) => void} steps.failed
 * @param {() => boolean} steps.isReady more can be sent now
 * @param {() => boolean} steps.isOver nobody waits for the answer any more
 */
function runInSlices (question, { begin, send, done, failed, isReady, isOver }) {
  const slice = () => guard.run(() => {
    try {
      if (isOver()) return question.return(undefined)
      begin()
      for (const end = now() + SLICE_MS; isReady() && now() < end;) {
        const step = question.next()
        if (step.done) return done(step.value)
        if (step.value !== undefined) send(step.value)
      }
    } catch (error) {
      return failed(error)
    }
    // An immediate without a reference does not end a wait for events.
    setTimeout(slice, PAUSE_MS).unref()
  })
  slice()
}

module.exports = { runInSlices }
