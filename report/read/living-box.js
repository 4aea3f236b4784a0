'use strict'

// Reads the black box of a living process again and again: what its threads did since, and their state.

const fs = require('node:fs')
const { ENTRY_BYTES } = require('../../lib/record/block')
const { isAlive } = require('../../lib/record/box-files')
const { SpanMaker } = require('../path/span-maker')
const { SpanReader } = require('../path/window')
const { partsOf } = require('./box-file')
const { BlockReader } = require('./recording-file')

const NO_ENTRIES = new Uint8Array(0)

/**
 * @typedef {object} ThreadState times are ms of its clock
 * @property {Array<import('../../lib/encoding/span-form').Told>} spans that ended since the last call
 * @property {number} readTo the log up to then is in `busyMs`; the rest is not in a block yet
 * @property {number} busyMs of its event loop until then, in callbacks that had ended
 * @property {number} lostMs time until then that is unknown: its entries were overwritten unread
 * @property {number} aliveAt
 * @property {import('./box-file').OpenRequest[]} open requests, oldest first
 * @property {import('./box-file').Death} end what runs, and the memory
 * @property {SpanMaker['latest']} latest
 */

/** The part of a thread, whose blocks are read once. */
class LivingThread {
  #reader = new BlockReader()
  #spans = new SpanReader()
  #maker = new SpanMaker()
  #last = 0 // number of the last block
  #next = 0 // number of the entry after it
  #lostMs = 0
  /** the last time without entries @type {{ from: number, until: number } | undefined} */
  #gap

  /** @param {ReturnType<typeof partsOf>['parts'][number]} part @returns {ThreadState} */
  read (part) {
    const { aliveAt } = part
    const state = part.state()
    for (const { header: { number }, block } of part.written()) {
      if (number <= this.#last) continue
      this.#last = number
      for (const { origin, texts, ...entries } of this.#reader.push(block)) {
        this.#maker.setOrigin(origin)
        this.#maker.add(texts)
        this.#spans.push(entries)
        this.#next = (entries.first + entries.entries.length / ENTRY_BYTES) | 0
        this.#noteGap()
      }
    }
    const isIdle = state.end.runningMs === undefined && this.#next === ((part.newest + 1) | 0)
    if (isIdle) this.#spans.push({ first: this.#next, entries: NO_ENTRIES, until: aliveAt })
    const spans = this.#maker.make(this.#spans.ended(), aliveAt).flatMap(({ span }) => span ?? [])
    const { busy, end } = this.#spans.load
    const readTo = isIdle ? Math.max(end, aliveAt) : end
    const { latest } = this.#maker
    return { spans, readTo, busyMs: busy, lostMs: this.#lostMs, aliveAt, ...state, latest }
  }

  #noteGap () {
    const gap = this.#spans.recording.gaps.at(-1)
    if (gap === undefined || gap === this.#gap) return
    this.#gap = gap
    this.#lostMs += gap.until - gap.from
  }
}

class LivingBox {
  /** by source of the blocks @type {Map<number, LivingThread>} */
  #threads = new Map()

  /** @param {string} file */
  constructor (file) {
    this.file = file
  }

  /**
   * @returns {ThreadState[] | undefined} of the main thread, then of workers; undefined if the process has
   *   ended, or the box cannot be read
   */
  read () {
    let bytes
    try {
      bytes = fs.readFileSync(this.file)
    } catch {
      return undefined // an orderly end removes it
    }
    const { parts } = partsOf(bytes, true) // the part of a worker that starts may not be readable yet
    if (parts.length === 0 || !isAlive(this.file)) return undefined
    const known = this.#threads
    this.#threads = new Map()
    const states = parts.map((part) => {
      const thread = known.get(part.source) ?? new LivingThread()
      this.#threads.set(part.source, thread)
      return thread.read(part)
    })
    return states.sort((a, b) => a.end.thread - b.end.thread)
  }
}

module.exports = { LivingBox }
