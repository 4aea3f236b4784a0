'use strict'

// Counts the lines of a file that are no spans, and adds sentences on them to the file's report.

const { MAX_LINE_BYTES } = require('./lines')
const { reasons } = require('./span-line')

const PENDING_CHARS = 1000

/** @typedef {import('./span-line').Reason} Reason */

class SkippedLines {
  isOtlp = false // lines of OpenTelemetry's file exporter were read
  #report
  /** @type {Map<Reason, { count: number, first: number }>} */
  #counts = new Map()
  /**
   * The latest line that is not JSON: it may be the last one, truncated.
   * @type {{ line: string, number: number } | undefined}
   */
  #pending
  #isBinary = false

  /** @param {import('./span-files').FileReport} report */
  constructor (report) {
    this.#report = report
  }

  /** @param {Reason} reason @param {number} number of the line */
  add (reason, number) {
    this.#report.skipped++
    const entry = this.#counts.get(reason)
    if (entry === undefined) this.#counts.set(reason, { count: 1, first: number })
    else entry.count++
  }

  /** @param {string} line that is not JSON @param {number} number */
  addUnparsed (line, number) {
    this.#pending = { line: line.slice(0, PENDING_CHARS), number }
  }

  /** @param {number} number */
  addOverlong (number) {
    this.#report.skipped++
    this.#report.problems.push(`line ${number} skipped: longer than ${MAX_LINE_BYTES >> 20} MB`)
  }

  /** Counts the pending line, as another one follows. */
  flush () {
    if (this.#pending === undefined) return
    const { line, number } = this.#pending
    this.#pending = undefined
    if (number === 1 && /[\0\ufffd]/.test(line)) this.#isBinary = true
    this.add('json', number)
  }

  /** @param {boolean} isUnterminated the last line has no end */
  end (isUnterminated) {
    const report = this.#report
    if (isUnterminated && this.#pending !== undefined && this.#pending.line.startsWith('{')) {
      report.skipped++
      report.problems.push(`line ${this.#pending.number} skipped: the last line is truncated`)
      this.#pending = undefined
    }
    this.flush()
    for (const [reason, { count, first }] of this.#counts) {
      report.problems.push(sentenceOf(count, reasons[reason], first))
    }
    if (report.spans === 0 && report.skipped > 0) report.problems.push(this.#noSpans())
    if (this.isOtlp) {
      report.problems.push("written by OpenTelemetry's file exporter: may lack what only longstack records")
    }
  }

  #noSpans () {
    return `no spans found${this.#isBinary ? ': a binary file, or text in an encoding other than UTF-8' : ''}`
  }
}

/** @param {number} count @param {string} reason @param {number} first */
function sentenceOf (count, reason, first) {
  const lines = count === 1 ? `line ${first} skipped` : `${count} lines skipped, the first is line ${first}`
  return `${lines}: ${reason}`
}

module.exports = { SkippedLines }
