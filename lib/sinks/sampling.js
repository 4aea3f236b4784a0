'use strict'

// Which spans an output gets. The head decision is that of OpenTelemetry's ratio sampling: the last 56 bits of the
// trace id, which are random, against the ratio. It needs no talk, so all outputs and all services agree, and what
// a small ratio takes is part of what a larger one takes.

/**
 * @typedef {import('./outputs').Output} Output
 * @typedef {{ ms: number, failed: boolean, traceId: string }} Judged
 */

const BITS = 52 // of the 56: whole numbers that a double holds

/**
 * Is the trace in the sample?
 * @param {string} traceId 32 hexadecimal digits
 * @param {number} ratio 0 to 1
 */
function inSample (traceId, ratio) {
  if (ratio >= 1 || typeof traceId !== 'string') return true
  return parseInt(traceId.slice(18, 31), 16) >= (1 - ratio) * 2 ** BITS
}

/**
 * What an output takes: nothing (0), the span for itself (1), or as one of a sample (the ratio).
 * @param {Output} output
 * @param {Judged} span
 * @returns {number} how many spans of its kind the line stands for, inverted
 */
function weightFor ({ slower, errors, sample, keep }, { ms, failed, traceId }) {
  if ((slower !== undefined && !(ms >= slower)) || (errors && !failed)) return 0
  if (sample === undefined || (keep !== undefined && (failed || ms >= keep))) return 1
  return inSample(traceId, sample) ? sample : 0
}

module.exports = { inSample, weightFor }
