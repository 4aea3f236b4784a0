'use strict'

// Spans for a command that asks this process, as lines of a file, beside the outputs that the option names.
// What is too much is sampled by trace, as outputs are: in a busy service the command needs some thousands.

const guard = require('../core/guard')
const { now } = require('../core/clock')
const { Definitions } = require('../encoding/definitions')
const { changeState } = require('../listeners')
const { formOf, weightFor } = require('../sinks/sinks')
const { applySpans, taps } = require('./index')

const MAX_PER_SECOND = 1000
const INTERVAL_MS = 100 // from one choice of the ratio to the next
const MAX_BATCH = 1 << 16 // characters
const FLUSH_MS = 200

/**
 * @typedef {object} Receiver
 * @property {(lines: string) => void} send
 * @property {() => boolean} isReady it has read enough of what was sent before
 */

class Tap {
  #receiver
  definitions = new Definitions()
  #lines = ''
  #dropped = 0
  /** `sample` is set where there is too much @type {import('../sinks/outputs').Output} */
  #output = { to: '-', keep: Infinity }
  #spans = 0 // of this interval
  #intervalStart = now()
  #sentAt = now()

  /** @param {Receiver} receiver */
  constructor (receiver) {
    this.#receiver = receiver
  }

  /** @param {import('../sinks/sinks').EndedSpan} span */
  write = (span) => {
    this.#spans++
    const ms = now() - this.#intervalStart
    if (ms >= INTERVAL_MS) {
      const ratio = MAX_PER_SECOND * ms / 1000 / this.#spans
      this.#output.sample = ratio < 1 ? ratio : undefined
      this.#intervalStart += ms
      this.#spans = 0
    }
    try {
      const weight = weightFor(this.#output, span)
      if (weight !== 0) this.#add(formOf(span, this, weight, () => {}))
    } catch {} // an attribute or a built-in of the program's throws
  }

  /** @param {string} lines one, behind definitions that it needs */
  #add (lines) {
    if (this.#receiver.isReady()) {
      this.#lines += `${lines}\n`
    } else {
      this.#dropped++
      this.definitions.clear() // they may have been among the lines
    }
    if (this.#lines.length >= MAX_BATCH || now() - this.#sentAt >= FLUSH_MS) this.flush()
  }

  /** Sends what there is. @returns {{ dropped: number }} spans that were too much for the command */
  flush () {
    const lines = this.#lines
    this.#lines = ''
    this.#sentAt = now()
    if (lines !== '') this.#receiver.send(lines)
    return { dropped: this.#dropped }
  }

  /** Takes spans, which are made if they were not. */
  start () {
    guard.run(() => {
      taps.add(this)
      changeState(applySpans)
    })
  }

  stop () {
    guard.run(() => {
      if (taps.delete(this)) changeState(applySpans)
    })
  }
}

module.exports = { Tap }
