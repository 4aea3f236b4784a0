'use strict'

// Reads the critical path of a line from its bytes: waits and runs are most of a line, and few sites recur in
// all of them. A site that was there before is recognized by its bytes, without making a text of them.
// bench/report.js, 1 million spans with six waits and four runs each: JSON.parse alone takes some 13 s for
// whole lines, 4 s for what remains without the path.

const { KnownSites, Unexpected, isSiteMember } = require('./known-sites')
const { MAX_CONNECTIONS, MAX_ENTRIES } = require('./path-entries')

const STACK = Buffer.from('"code.stacktrace":"')
/** Cannot be in a text of JSON, which has a backslash before each quotation mark. */
const STACK_END = Buffer.from('","longstack.run_ms":')
const WAITS = Buffer.from('"longstack.waits":[')
const RAN = Buffer.from('"longstack.ran":[')
const RUNS = Buffer.from('"longstack.runs":[[')
const RUNS_END = Buffer.from(']]')
const MAX_DIGITS = 15 // of a number that is a double exactly

const [QUOTE, COMMA, COLON, POINT] = [0x22, 0x2c, 0x3a, 0x2e]
const [LETTER_B, LETTER_C, LETTER_D, LETTER_M] = [0x62, 0x63, 0x64, 0x6d]
const [LETTER_O, LETTER_S, LETTER_U] = [0x6f, 0x73, 0x75]
const TRUE_BYTES = 4
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, ZERO] = [0x7b, 0x7d, 0x5b, 0x5d, 0x30]

/**
 * @typedef {import('./path-entries').PathEntry} PathEntry
 * @typedef {import('./path-entries').Path} Path
 */

class PathScanner {
  #placeOf
  /** @type {Buffer} */
  #bytes = Buffer.alloc(0)
  #index = 0
  #end = 0
  #sites
  #rest = Buffer.alloc(1 << 12)

  /**
   * @param {(entry: Record<string, any>) => any} placeOf returns what stands for the site of an entry; equal
   *   for equal ones
   */
  constructor (placeOf) {
    this.#placeOf = placeOf
    this.#sites = new KnownSites(placeOf)
  }

  /**
   * Reads the path of a line.
   * @param {Buffer} bytes
   * @param {number} start of the line
   * @param {number} end
   * @returns {{ path: Path, json: string } | undefined} json: the line without its path, runs and stack;
   *   undefined where JSON.parse must read the line as it is
   */
  scan (bytes, start, end) {
    const waits = bytes.indexOf(WAITS, start)
    if (waits === -1 || waits >= end) return undefined
    this.#bytes = bytes
    this.#end = end
    try {
      return this.#scan(start, waits + WAITS.length)
    } catch (error) {
      if (error instanceof Unexpected) return undefined
      throw error
    }
  }

  /** @param {number} start @param {number} waitsStart */
  #scan (start, waitsStart) {
    const [bytes, end] = [this.#bytes, this.#end]
    if (this.#rest.length < end - start) this.#rest = Buffer.alloc((end - start) * 2)
    const rest = this.#rest
    this.#index = waitsStart
    const waits = this.#entries(false)
    let size = this.#copyHead(start, waitsStart)
    let copied = this.#index - 1
    /** @type {PathEntry[] | undefined} */
    let ran
    if (this.#startsWith(RAN, this.#index + 1)) {
      const ranStart = this.#index + 1 + RAN.length
      size += bytes.copy(rest, size, copied, ranStart)
      this.#index = ranStart
      ran = this.#entries(true)
      copied = this.#index - 1
    }
    const runs = bytes.indexOf(RUNS, copied)
    const runsEnd = runs === -1 || runs >= end ? -1 : bytes.indexOf(RUNS_END, runs)
    if (runsEnd !== -1 && runsEnd < end) {
      size += bytes.copy(rest, size, copied, runs + RUNS.length)
      copied = runsEnd
    }
    size += bytes.copy(rest, size, copied, end)
    return { path: { waits, ran }, json: rest.toString('utf8', 0, size) }
  }

  /**
   * Copies what is before the waits, without the text of the stack.
   * @param {number} start
   * @param {number} waitsStart
   * @returns {number} bytes
   */
  #copyHead (start, waitsStart) {
    const [bytes, rest] = [this.#bytes, this.#rest]
    const stack = bytes.indexOf(STACK, start)
    const stackEnd = stack === -1 || stack >= waitsStart ? -1 : bytes.indexOf(STACK_END, stack)
    if (stackEnd === -1 || stackEnd >= waitsStart) return bytes.copy(rest, 0, start, waitsStart)
    const size = bytes.copy(rest, 0, start, stack + STACK.length)
    return size + bytes.copy(rest, size, stackEnd, waitsStart)
  }

  /** @param {Buffer} text @param {number} index */
  #startsWith (text, index) {
    const bytes = this.#bytes
    for (let i = 0; i < text.length; i++) if (bytes[index + i] !== text[i]) return false
    return true
  }

  /** Reads entries to the end of their list. @param {boolean} isRun */
  #entries (isRun) {
    /** @type {PathEntry[]} */
    const entries = []
    if (this.#bytes[this.#index] === CLOSE_LIST) {
      this.#index++
      return entries
    }
    for (;;) {
      const entry = this.#entry(isRun)
      if (entries.length < MAX_ENTRIES) entries.push(entry)
      const next = this.#bytes[this.#index++]
      if (next === CLOSE_LIST) return entries
      if (next !== COMMA) throw new Unexpected()
    }
  }

  /** @param {boolean} isRun @returns {PathEntry} */
  #entry (isRun) {
    /** @type {PathEntry} */
    const entry = {
      ms: NaN,
      count: 1,
      delayed: 0,
      sent: undefined,
      unsent: undefined,
      beside: undefined,
      on: undefined,
      place: undefined,
      isRun
    }
    this.#expect(OPEN)
    for (;;) {
      if (isSiteMember(this.#bytes, this.#index)) {
        if (entry.place !== undefined) throw new Unexpected()
        entry.place = this.#sites.find(this.#bytes, this.#index, this.#end)
        this.#index = this.#sites.end
      } else {
        this.#member(entry)
      }
      const next = this.#bytes[this.#index++]
      if (next === CLOSE) break
      if (next !== COMMA) throw new Unexpected()
    }
    if (Number.isNaN(entry.ms)) throw new Unexpected()
    entry.place ??= this.#placeOf({})
    return entry
  }

  /** Reads the number or list of `"key":value`. @param {PathEntry} entry */
  #member (entry) {
    const bytes = this.#bytes
    const start = this.#index
    this.#expect(QUOTE)
    while (this.#index < this.#end && bytes[this.#index] !== QUOTE) this.#index++
    const length = this.#index - start - 1
    const first = bytes[start + 1]
    this.#index++
    this.#expect(COLON)
    if (length === 2 && first === LETTER_M) entry.ms = this.#number()
    else if (length === 5 && first === LETTER_C) entry.count = this.#number()
    else if (length === 7 && first === LETTER_D) entry.delayed = this.#number()
    else if (length === 2 && first === LETTER_O) entry.on = this.#connections()
    else if (length === 8 && first === LETTER_U) this.#index += TRUE_BYTES // unproven
    else if (length === 4 && first === LETTER_S) entry.sent = this.#number()
    else if (length === 6 && first === LETTER_U) entry.unsent = this.#number()
    else if (length === 6 && first === LETTER_B) entry.beside = this.#number()
    else throw new Unexpected()
  }

  /** @param {number} byte */
  #expect (byte) {
    if (this.#bytes[this.#index++] !== byte) throw new Unexpected()
  }

  /** Reads a number without sign and exponent. */
  #number () {
    const bytes = this.#bytes
    const start = this.#index
    let value = 0
    let scale = 0
    for (;; this.#index++) {
      const byte = bytes[this.#index]
      if (byte >= ZERO && byte <= ZERO + 9) {
        value = value * 10 + byte - ZERO
        scale *= 10
      } else if (byte === POINT && scale === 0) {
        scale = 1
      } else {
        break
      }
    }
    const length = this.#index - start
    if (length === 0 || length > MAX_DIGITS) throw new Unexpected()
    return scale > 1 ? value / scale : value
  }

  #connections () {
    /** @type {number[]} */
    const ids = []
    this.#expect(OPEN_LIST)
    if (this.#bytes[this.#index] === CLOSE_LIST) {
      this.#index++
      return ids
    }
    for (;;) {
      const id = this.#number()
      if (ids.length < MAX_CONNECTIONS) ids.push(id)
      const next = this.#bytes[this.#index++]
      if (next === CLOSE_LIST) return ids
      if (next !== COMMA) throw new Unexpected()
    }
  }
}

module.exports = { PathScanner }
