'use strict'

// Converts recordings to the lines of a spans file. Several files can be parts of one recording, so the state
// of each process is kept across files.

const { Definitions } = require('../../lib/encoding/definitions')
const { lineOf } = require('../../lib/encoding/serialize')
const { getOrAdd } = require('../../lib/group-by')
const { SpanMaker } = require('../path/span-maker')
const { SpanReader } = require('../path/window')
const { BlockReader, describeMissing } = require('./recording-file')

/**
 * @typedef {import('../path/span-maker').MadeSpan} MadeSpan
 * @typedef {object} Source
 * @property {SpanReader} spans
 * @property {SpanMaker} maker
 * @property {Definitions} definitions
 * @property {number} now ms of its clock in its last block
 */

class RecordedLines {
  /** by number @type {Map<number, Source>} */
  #sources = new Map()
  /** @type {import('./recording-file').Missing['sources']} */
  #states = new Map()
  /** spans that could not be written */
  #failed = 0
  #withOpen

  #reader = new BlockReader()

  /** @param {boolean} [withOpen] also requests that a process was serving when it was killed */
  constructor (withOpen = false) {
    this.#withOpen = withOpen
  }

  /** Starts the next file. Its lines contain all definitions they refer to. */
  nextFile () {
    this.#reader = new BlockReader()
    this.#reader.missing.sources = this.#states
    for (const source of this.#sources.values()) source.definitions = new Definitions()
  }

  /** @param {Uint8Array} chunk of the file @returns {string} lines */
  push (chunk) {
    return this.#linesOf(this.#reader.push(chunk))
  }

  /** Ends the current file. @returns {{ lines: string, problems: string[] }} problems: without full stops */
  endFile () {
    const lines = this.#linesOf(this.#reader.end())
    return { lines, problems: describeMissing({ ...this.#reader.missing, sources: new Map() }, String) }
  }

  /** @param {import('./recording-file').Block[]} blocks */
  #linesOf (blocks) {
    let lines = ''
    for (const block of blocks) {
      const source = this.#sourceOf(block.source)
      source.now = block.now
      source.maker.setOrigin(block.origin)
      source.maker.add(block.texts)
      source.spans.push(block)
      lines += this.#write(source, source.maker.make(source.spans.ended(), block.now))
    }
    return lines
  }

  /** No more files follow. @returns {{ lines: string, problems: string[] }} of all files */
  end () {
    let lines = ''
    for (const source of this.#sources.values()) {
      const { load } = source.spans
      source.spans.end(source.now)
      source.maker.dropUsed(source.spans)
      lines += this.#write(source, source.maker.make(source.spans.ended()))
      lines += this.#write(source, source.maker.finish(load, this.#withOpen))
    }
    return { lines, problems: this.#missing() }
  }

  #missing () {
    const nameOf = (/** @type {number} */ number) => nameOfSource(this.#sources.get(number)?.maker.source)
    const sentences = describeMissing({ skipped: 0, cut: 0, repeated: 0, sources: this.#states }, nameOf)
    if (this.#failed === 0) return sentences
    return [...sentences, `${this.#failed} spans cannot be written: their texts are damaged`]
  }

  /** @param {number} number */
  #sourceOf (number) {
    return getOrAdd(this.#sources, number, () => {
      const [spans, maker] = [new SpanReader(), new SpanMaker()]
      spans.onAfter = (after) => maker.addAfter(after)
      spans.onBackground = (chain, ms) => maker.addBackground(chain, ms)
      spans.onCalled = (chain, start, due) => maker.addCalled(chain, start, due)
      return { spans, maker, definitions: new Definitions(), now: -Infinity }
    })
  }

  /** @param {Source} source @param {MadeSpan[]} made */
  #write ({ definitions }, made) {
    let lines = ''
    for (const span of made) {
      try {
        lines += `${span.line?.(definitions, 1, nothing) ?? lineOf(span.record(), nothing)}\n`
      } catch {
        this.#failed++
      }
    }
    return lines
  }
}

const nothing = () => {}

/** @param {Record<string, any> | undefined} source */
function nameOfSource ({ pid, thread } = {}) {
  if (typeof pid !== 'number') return 'a process'
  return thread === undefined ? `process ${pid}` : `process ${pid}, thread ${thread}`
}

module.exports = { RecordedLines }
