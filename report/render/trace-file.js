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
const MAX_TEXTS = 10_000
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
  const texts = new Map()
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
        const traceSpan = traceSpanOf(span, texts)
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
 * Returns what a trace has of a span.
 * @param {import('../read/span-line').Span} span
 * @param {Map<string, string>} texts one for each different text that spans share
 * @returns {TraceSpan}
 */
function traceSpanOf (span, texts) {
  const { resource } = span.record
  const pid = amount(resource?.['process.pid']) ?? 0
  const thread = amount(resource?.['longstack.thread']) ?? 0
  const whole = digest(span)
  const runs = whole.runs.map(([start, ms, type]) =>
    /** @type {[number, number, string]} */ ([start, ms, shared(type, texts)]))
  const waits = whole.waits.map((wait) => ({
    ...wait,
    at: wait.at && shared(wait.at, texts),
    until: wait.until && shared(wait.until, texts),
    callers: [], // the trace of a request is no place for its chains: they are in the report
    on: []
  }))
  return { ...whole, runs, waits, pid, thread }
}

/** @param {string} text @param {Map<string, string>} texts */
function shared (text, texts) {
  const existing = texts.get(text)
  if (existing === undefined && texts.size < MAX_TEXTS) texts.set(text, text)
  return existing ?? text
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
