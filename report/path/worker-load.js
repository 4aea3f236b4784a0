'use strict'

// The load of a worker thread, in one record at the end.

const { factsRecord } = require('./facts-record')

const MIN_MS = 500 // shorter says little
const MIN_BUSY = 0.5

/**
 * @typedef {object} Load of an event loop
 * @property {number} begin of the recording, ms of the clock
 * @property {number} end
 * @property {number} busy ms in callbacks that had ended by then
 * @property {boolean} isRunning a callback had not ended: the thread was killed in it, or it waits in it for
 *   messages (Atomics.wait), so its load is unknown
 */

/**
 * @param {Load} load
 * @param {import('./source-texts').SourceTexts} texts
 * @returns {object | undefined} undefined for a main thread, and a worker that is not busy
 */
function workerRecord ({ begin, end, busy: busyMs, isRunning }, texts) {
  const ms = end - begin
  if (texts.resource['longstack.thread'] === undefined) return undefined
  const isKnown = ms >= MIN_MS
  if (isKnown ? busyMs < ms * MIN_BUSY : !isRunning) return undefined
  const load = isKnown ? { busyMs, ms } : {}
  return factsRecord('worker', { 'longstack.worker': [load] }, end, texts)
}

module.exports = { workerRecord }
