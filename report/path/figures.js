'use strict'

// Figures of a request in whole microseconds: run, waited and delayed add up to its duration.

/** @param {number} ms */
const us = (ms) => Math.round(ms * 1000)

/**
 * @param {import('./requests').Request} request
 * @param {import('./critical-path').Path} path
 */
function figuresOf (request, { beside, own, unknown, waits }) {
  const duration = us(request.end - request.begin)
  const run = Math.min(duration, us(own))
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
    // More than `delayed` if an arrival time is unknown.
    delayedMax: Math.max(delayed, Math.min(rest, us(most + unknown))),
    waited: rest - delayed,
    beside: Math.min(run, us(beside)), // part of its run time that is off its path
    unread: us(request.unread),
    unknown: Math.min(rest, us(unknown)) // entries are lost: it may have run, waited, or been delayed
  }
}

module.exports = { figuresOf }
