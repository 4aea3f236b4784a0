'use strict'

// The callbacks of a span.

const { CALLED, OUTSIDE } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')

const GAP = 0.01 // ms; a smaller gap joins two parts of one run
const MIN_RUN = 0.02 // ms of a reported run
const MAX_RUNS = 1000 // per span

/**
 * @typedef {object} Callback that the event loop called
 * @property {number} id asyncId of its resource
 * @property {number} chain
 * @property {boolean} outside the filter excludes it: the chain is its cause's
 *
 * @typedef {{ begin: number, end: number, callback: Callback | undefined }} Run times in ms
 */

/**
 * Returns the runs of a span in order, without those of inner spans; only the longest if there are too many.
 * @param {import('./entries').Recording} recording
 * @param {import('./requests').Request} span
 * @returns {Run[]}
 */
function runsOf (recording, { begin, end, number, top }) {
  const { at, end: endOf, head, previous, request, run: runOf } = recording
  /** newest first @type {Run[]} */
  let runs = []
  let [from, until, callback] = [Infinity, -Infinity, NONE] // run that may continue with an older slice
  const add = () => {
    if (until - from < MIN_RUN) return
    runs.push({ begin: from, end: until, callback: callbackAt(recording, callback) })
  }
  for (let i = top.slice; i !== NONE && endOf[i] >= begin; i = previous[i]) {
    if (request[i] !== number || at[i] >= end) continue
    const stop = Math.min(end, endOf[i])
    if (from - stop >= GAP) {
      add()
      until = stop
    }
    from = Math.max(begin, at[i])
    callback = head[runOf[i]]
  }
  add()
  if (runs.length > MAX_RUNS) {
    runs = runs.sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, MAX_RUNS).sort((a, b) => b.begin - a.begin)
  }
  return runs.reverse()
}

/** @param {{ begin: number, end: number }} run */
const lengthOf = ({ begin, end }) => end - begin

/**
 * @param {import('./entries').Recording} recording
 * @param {number} run that the event loop called, NONE if unknown
 * @returns {Callback | undefined} undefined if no hook reported what the event loop called
 */
function callbackAt ({ b, chain, flags }, run) {
  if (run === NONE || (flags[run] & CALLED) === 0) return undefined
  return { id: b[run], chain: chain[run], outside: (flags[run] & OUTSIDE) !== 0 }
}

module.exports = { callbackAt, runsOf }
