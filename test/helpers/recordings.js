'use strict'

// Programs that record themselves (LONGSTACK_RECORD), and the content of their recordings.

const fs = require('node:fs')
const { BlockReader, inOrder } = require('../../report/read/recording-file')
const { SourceTexts } = require('../../report/path/source-texts')
const { unpack } = require('../../lib/encoding/packed-spans')
const { checkSpans } = require('./span-faults')

const ENTRY_BYTES = 48

/**
 * @typedef {object} Source a thread's part of a recording
 * @property {Record<string, any>} head its header
 * @property {import('../../report/read/recording-file').Block[]} blocks
 * @property {any[]} texts parsed
 * @property {string[]} spans names of spans that have ended
 * @property {number} entries
 * @property {import('../../report/read/recording-file').SourceState} state
 */

/**
 * Returns the texts of a source, with one text per span, expanded by its form.
 * @param {any[]} texts parsed
 */
function withForms (texts) {
  const source = new SourceTexts()
  return texts.flatMap((text) => {
    const span = source.add(text)
    if (span !== undefined) return [{ ...span, open: undefined, ...text }]
    if (text.spans === undefined) return [text]
    return unpack(text.spans).map((packed) => {
      return { ...source.packedSpan(packed), span: packed.number, open: undefined }
    })
  })
}

/**
 * Reads recordings.
 * @param {...string} names of files
 */
function readRecordings (...names) {
  const reader = new BlockReader()
  const blocks = inOrder(names).flatMap((name) => [...reader.push(fs.readFileSync(name)), ...reader.end()])
  /** @type {Source[]} */
  const sources = [...reader.missing.sources].map(([source, state]) => {
    const own = blocks.filter((block) => block.source === source)
    checkWhole(own)
    const texts = withForms(own.flatMap((block) => block.texts).map((line) => JSON.parse(line)))
    return {
      head: texts.find((text) => text.source !== undefined)?.source,
      blocks: own,
      texts,
      spans: texts.filter((text) => text.span !== undefined && text.open !== true).map(({ name }) => name),
      entries: own.reduce((sum, { entries }) => sum + entries.length / ENTRY_BYTES, 0),
      state
    }
  })
  return { blocks, sources, missing: reader.missing }
}

/**
 * Checks the spans of a source if no entry is missing; otherwise the log may begin inside a callback.
 * @param {import('../../report/read/recording-file').Block[]} blocks
 */
function checkWhole (blocks) {
  const some = blocks.filter(({ entries }) => entries.length > 0)
  if (some.length === 0 || blocks[0].number !== 1) return
  let next = some[0].first
  for (const { entries, first } of some) {
    if (first !== next) return
    next = (first + entries.length / ENTRY_BYTES) | 0
  }
  checkSpans(Buffer.concat(some.map(({ entries }) => entries)), some[0].first)
}

/** Beginning of all programs: `trace`, `work(name)` makes an ended span, `wait(ms)`. */
const prelude = `
const trace = require(${JSON.stringify(require.resolve('../../index.js'))})
const fs = require('node:fs')
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const work = (name) => trace.span(name, () => {})
`

module.exports = { prelude, readRecordings, withForms }
