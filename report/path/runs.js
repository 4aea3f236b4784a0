'use strict'

// The callbacks of a span.

const { CALLED, OUTSIDE } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')

const GAP = 0.01 // ms between two parts of one run
const MIN_RUN = 0.02 // ms of a run that is told
const MAX_RUNS = 1000 // of one span

/**
 * @typedef {object} Callback that the event loop called
 * @property {number} id asyncId of its resource
 * @property {number} chain
 * @property {boolean} outside the filter leaves it out: the chain is its cause's
 *
 * @typedef {{ begin: number, end: number, callback: Callback | undefined }} Run times in ms
 */

/**
 * Returns the runs of a span, without those of spans inside of it, in order; of very many the longest.
 * @param {import('./entries').Recording} recording
 * @param {import('./requests').Request} span
 * @returns {Run[]}
 */
function runsOf (recording, { begin, end, number, top }) {
  const { at, end: endOf, head, previous, request, run: runOf } = recording
  /** newest first @type {Array<{ begin: number, end: number, head: number }>} */
  let runs = []
  let next
  for (let i = top.slice; i !== NONE && endOf[i] >= begin; i = previous[i]) {
    if (request[i] !== number || at[i] >= end) continue
    const run = { begin: Math.max(begin, at[i]), end: Math.min(end, endOf[i]), head: head[runOf[i]] }
    if (next !== undefined && next.begin - run.end < GAP) {
      next.begin = run.begin
      next.head = run.head
    } else {
      next = run
      runs.push(run)
    }
  }
  runs = runs.filter((run) => lengthOf(run) >= MIN_RUN)
  if (runs.length > MAX_RUNS) {
    runs = runs.sort((a, b) => lengthOf(b) - lengthOf(a)).slice(0, MAX_RUNS).sort((a, b) => b.begin - a.begin)
  }
  return runs.reverse().map((run) => {
    return { begin: run.begin, end: run.end, callback: callbackAt(recording, run.head) }
  })
}

/** @param {{ begin: number, end: number }} run */
const lengthOf = ({ begin, end }) => end - begin

/**
 * @param {import('./entries').Recording} recording
 * @param {number} run that the event loop called, NONE: not known
 * @returns {Callback | undefined} undefined: no hook has told what the event loop called
 */
function callbackAt ({ b, chain, flags }, run) {
  if (run === NONE || (flags[run] & CALLED) === 0) return undefined
  return { id: b[run], chain: chain[run], outside: (flags[run] & OUTSIDE) !== 0 }
}

module.exports = { callbackAt, runsOf }
