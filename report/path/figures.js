'use strict'

// The figures of a request in whole microseconds: what it ran, waited and was delayed add up to its duration.

const { ownTime } = require('./requests')

/** @param {number} ms */
const us = (ms) => Math.round(ms * 1000)

/**
 * @param {import('./entries').Recording} recording
 * @param {import('./requests').Request} request
 * @param {import('./critical-path').Path} path
 */
function figuresOf (recording, request, { beside, waits }) {
  const duration = us(request.end - request.begin)
  const run = Math.min(duration, us(ownTime(recording, request).between(request.begin, request.end)))
  const rest = duration - run
  let [certain, most] = [0, 0]
  for (const { delayed, delayedMax } of waits) {
    certain += delayed
    most += delayedMax
  }
  const delayed = Math.min(rest, us(certain))
  return {
    duration,
    run,
    delayed,
    // More than `delayed` if it is not known when something had come.
    delayedMax: Math.max(delayed, Math.min(rest, us(most))),
    waited: rest - delayed,
    beside: Math.min(run, us(beside)), // of what it ran, what is not on its path
    unread: us(request.unread)
  }
}

module.exports = { figuresOf }
