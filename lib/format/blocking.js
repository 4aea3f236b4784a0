'use strict'

// A blocking callback as text, for a terminal. Data in, string out.

const { formatDuration, clean } = require('../text')

/** @typedef {import('../blocked/blocking-callback').BlockedEvent} BlockedEvent */

/**
 * @param {BlockedEvent} event
 * @param {{ name: string } | undefined} span that it was part of
 * @returns {string}
 */
function formatBlocking (event, span) {
  const lines = [`the event loop ${headline(event, span)}`, ...remarks(event), event.stack]
  return lines.filter((line) => line !== '').join('\n')
}

/** @param {BlockedEvent} event @param {{ name: string } | undefined} span */
function headline ({ ms, stillRunning }, span) {
  const blocker = span === undefined ? '' : ` by ${clean(span.name)}`
  const duration = formatDuration(ms)
  if (stillRunning) return `is blocked${blocker}, for ${duration} so far`
  return `was blocked for ${duration}${blocker}`
}

/** @param {BlockedEvent} event */
function remarks ({ samples, sampledLate }) {
  if (samples === 0) return ['  no sample could be taken inside, as in one long native call; what led to it:']
  if (sampledLate === undefined) return []
  const late = formatDuration(sampledLate)
  return [`  sampled ${late} late, as on leaving a native call or a garbage collection:`]
}

module.exports = { formatBlocking }
