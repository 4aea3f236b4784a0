'use strict'

// Which spans an output gets. The head decision is that of OpenTelemetry's ratio sampling: the last 56 bits
// of the trace id, which are random, against the ratio. All outputs and all services decide alike without
// talking to each other, and the sample of a small ratio is part of that of a larger one.

/**
 * @typedef {import('./outputs').Output} Output
 * @typedef {{ ms: number, failed: boolean, traceId: string }} Candidate
 */

const BITS = 52 // of the 56: integers that a double holds

/**
 * Returns whether a trace is in the sample.
 * @param {string} traceId 32 hexadecimal digits
 * @param {number} ratio 0 to 1
 */
function inSample (traceId, ratio) {
  if (ratio >= 1 || typeof traceId !== 'string') return true
  return parseInt(traceId.slice(18, 31), 16) >= (1 - ratio) * 2 ** BITS
}

/**
 * Returns what an output gets of a span: nothing (0), the span for itself (1), or as part of a sample (the
 * ratio).
 * @param {Output} output
 * @param {Candidate} span
 * @returns {number} inverted, the number of spans of its kind that the line stands for
 */
function weightFor ({ slower, errors, sample, keep }, { ms, failed, traceId }) {
  if ((slower !== undefined && !(ms >= slower)) || (errors && !failed)) return 0
  if (sample === undefined || (keep !== undefined && (failed || ms >= keep))) return 1
  return inSample(traceId, sample) ? sample : 0
}

module.exports = { inSample, weightFor }
