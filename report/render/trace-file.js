'use strict'

// Writes the spans of files as one Chrome trace, event by event.

const fs = require('node:fs')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { digest } = require('../aggregate/digest')
const { readFiles } = require('../read/span-files')
const { amount } = require('../read/values')
const { traceEvents } = require('./chrome-trace')
const { clean, escapeJson } = require('../../lib/text')

const MAX_SPANS = 50_000 // viewers cannot handle more
const MAX_BARS = 1_000_000 // spans and callbacks
const CHUNK_CHARS = 1 << 18

/** @typedef {import('./chrome-trace').TraceSpan} TraceSpan */

/**
 * @param {string[]} names
 * @param {string} output a file, or `-` for standard output
 * @param {Pick<import('../read/span-files').Reading, 'progress'>} [options]
 * @returns {Promise<{ spans: number, omitted: number, problems: string[] }>} problems of the files, in
 *   sentences
 */
async function writeTrace (names, output, options = {}) {
  /** @type {Map<string, TraceSpan>} */
  const spans = new Map()
  let bars = 0
  let omitted = 0
  const files = await readFiles(names, {
    ...options,
    span (span) {
      const id = `${span.traceId} ${span.spanId}`
      const previous = spans.get(id)
      if (previous !== undefined && previous.end !== 'open') return
      if (previous === undefined && (spans.size >= MAX_SPANS || bars >= MAX_BARS)) {
        omitted++
      } else {
        const traceSpan = traceSpanOf(span)
        bars += 1 + traceSpan.runs.length
        spans.set(id, traceSpan)
      }
    }
  })
  const isStdout = output === '-'
  const target = isStdout ? process.stdout : fs.createWriteStream(output, { mode: 0o600 })
  await pipeline(Readable.from(chunks([...spans.values()])), target, { end: !isStdout })
  const problems = files.flatMap((file) => file.problems.map((problem) => clean(`${file.name}: ${problem}`)))
  return { spans: spans.size, omitted, problems }
}

/**
 * Returns what a trace has of a span: not the chains of its waits, which are in the report.
 * @param {import('../read/span-line').Span} span
 * @returns {TraceSpan}
 */
function traceSpanOf (span) {
  const { resource } = span.record
  const pid = amount(resource?.['process.pid']) ?? 0
  const thread = amount(resource?.['longstack.thread']) ?? 0
  const whole = digest(span)
  const waits = whole.waits.map((wait) => ({ ...wait, callers: [], on: [] }))
  return { ...whole, ran: [], waits, pid, thread }
}

/** @param {TraceSpan[]} spans */
function * chunks (spans) {
  let chunk = '{"displayTimeUnit":"ms","traceEvents":[\n'
  let separator = ''
  for (const event of traceEvents(spans)) {
    chunk += separator + escapeJson(JSON.stringify(event))
    separator = ',\n'
    if (chunk.length < CHUNK_CHARS) continue
    yield chunk
    chunk = ''
  }
  yield `${chunk}\n]}\n`
}

module.exports = { writeTrace }
