'use strict'

// The spans of files as one Chrome trace, written as it is made.

const fs = require('node:fs')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { digest } = require('../aggregate/digest')
const { readFiles } = require('../read/span-files')
const { amount } = require('../read/span-line')
const { traceEvents } = require('./chrome-trace')
const { clean } = require('../../text')

const MOST = 50_000 // more makes a file that no viewer opens with pleasure

/** @typedef {import('./chrome-trace').Drawn} Drawn */

/**
 * @param {string[]} names
 * @param {string} to a file, or `-` for standard output
 * @param {{ progress?: (bytes: number, of: number | undefined) => void }} [options]
 * @returns {Promise<{ spans: number, left: number, problems: string[] }>} problems of the files, in sentences
 */
async function writeTrace (names, to, options = {}) {
  /** @type {Map<string, Drawn>} */
  const spans = new Map()
  let left = 0
  const files = await readFiles(names, {
    ...options,
    span (span) {
      const id = `${span.traceId} ${span.spanId}`
      const before = spans.get(id)
      if (before !== undefined && before.end !== 'open') return
      if (before === undefined && spans.size === MOST) left++
      else spans.set(id, drawn(span))
    }
  })
  await pipeline(Readable.from(text([...spans.values()])), to === '-' ? process.stdout : fs.createWriteStream(to), { end: to !== '-' })
  const problems = files.flatMap(({ name, problems }) => problems.map((problem) => clean(`${name}: ${problem}`)))
  return { spans: spans.size, left, problems }
}

/** @param {import('../read/span-line').Span} span @returns {Drawn} */
function drawn (span) {
  const { resource } = span.record
  return { ...digest(span), pid: amount(resource?.['process.pid']) ?? 0, thread: amount(resource?.['longstack.thread']) ?? 0 }
}

/** @param {Drawn[]} spans */
function * text (spans) {
  let piece = '{"displayTimeUnit":"ms","traceEvents":[\n'
  let separator = ''
  for (const event of traceEvents(spans)) {
    piece += separator + JSON.stringify(event)
    separator = ',\n'
    if (piece.length < 1 << 18) continue
    yield piece
    piece = ''
  }
  yield `${piece}\n]}\n`
}

module.exports = { writeTrace }
