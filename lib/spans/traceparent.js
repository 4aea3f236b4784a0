'use strict'

// The traceparent header of W3C Trace Context, level 1 and what it says of versions to come: where a request comes
// from, and where a request of our own is to say it comes from. What is not exactly right is as if it were not there.

const HEADER = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-[^,]*)?$/
const SAMPLED = 1
const LONGEST = 512 // of a version to come; nobody says how long it may be

/** @typedef {{ traceId: string, spanId: string, sampled: boolean }} SpanContext */

/**
 * @param {unknown} header as Node has it: of several headers, all in one string with commas between them, or a list
 * @returns {SpanContext | undefined}
 */
function parse (header) {
  const value = Array.isArray(header) && header.length === 1 ? header[0] : header
  if (typeof value !== 'string' || value.length > LONGEST) return undefined
  const parts = HEADER.exec(value)
  if (parts === null) return undefined
  const [, version, traceId, spanId, flags, rest] = parts
  if (version === '00' && rest !== undefined) return undefined
  return { traceId, spanId, sampled: (parseInt(flags, 16) & SAMPLED) !== 0 }
}

/** @param {{ traceId: string, spanId: string, sampled?: boolean }} span @returns {string} */
function format ({ traceId, spanId, sampled = true }) {
  return `00-${traceId}-${spanId}-0${sampled ? SAMPLED : 0}`
}

module.exports = { parse, format }
