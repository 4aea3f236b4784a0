'use strict'

// The load of a worker thread, in one record at the end.

const { factsRecord } = require('./facts-record')

const MIN_MS = 500 // shorter says little

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
 * @returns {object | undefined} undefined for a main thread, and if the load is unknown
 */
function workerRecord ({ begin, end, busy: busyMs, isRunning }, texts) {
  const ms = end - begin
  if (texts.resource['longstack.thread'] === undefined || (ms < MIN_MS && !isRunning)) return undefined
  const load = ms < MIN_MS ? {} : { busyMs, ms }
  return factsRecord('worker', { 'longstack.worker': [load] }, end, texts)
}

module.exports = { workerRecord }
