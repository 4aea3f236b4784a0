'use strict'

// Reads the critical path of a line from its bytes: waits and runs are most of a line, and few sites recur in
// all of them. A site that was there before is recognized by its bytes, without making a text of them.
// bench/report.js, 1 million spans with six waits and four runs each: JSON.parse alone takes some 13 s for
// whole lines, 4 s for what remains without the path.

const { amount } = require('./span-line')

const WAITS = Buffer.from('"longstack.waits":[')
const RAN = Buffer.from('"longstack.ran":[')
const RUNS = Buffer.from('"longstack.runs":[[')
const RUNS_END = Buffer.from(']]')
const MAX_ENTRIES = 10 // of each list
const MAX_CONNECTIONS = 4
const SLOTS = 1 << 12 // of the table of sites; a power of two
const MAX_CHAIN = 64 // sites of a slot
const MAX_SITES = 32_000
const MAX_SITE_BYTES = 16 << 20 // of all sites
const MAX_HASHED = 120 // bytes of a site
const MAX_DIGITS = 15 // of a number that is a double exactly

const [QUOTE, BACKSLASH, COMMA, COLON, POINT] = [0x22, 0x5c, 0x2c, 0x3a, 0x2e]
const [LETTER_A, LETTER_B, LETTER_C, LETTER_D, LETTER_L] = [0x61, 0x62, 0x63, 0x64, 0x6c]
const [LETTER_M, LETTER_O, LETTER_S, LETTER_T, LETTER_U] = [0x6d, 0x6f, 0x73, 0x74, 0x75]
const TRUE_BYTES = 4
const [OPEN, CLOSE, OPEN_LIST, CLOSE_LIST, ZERO] = [0x7b, 0x7d, 0x5b, 0x5d, 0x30]

/**
 * @typedef {object} PathEntry a wait or a run, of one or several that are equal
 * @property {number} ms
 * @property {number} count
 * @property {number} delayed ms in which the loop ran the code of others
 * @property {number | undefined} sent
 * @property {number | undefined} unsent
 * @property {number | undefined} beside
 * @property {number[] | undefined} on asyncIds of connections
 * @property {any} place what `placeOf` returned for its site
 * @property {boolean} isRun
 *
 * @typedef {{ bytes: Buffer, place: any }} KnownSite the members that describe a site, as they are written
 *
 * @typedef {{ waits: PathEntry[], ran: PathEntry[] | undefined }} Path ran: undefined if the line has none
 */

/** What is wrong with bytes that are no path as longstack writes it: JSON.parse reads them. */
class Unexpected extends Error {}

class PathScanner {
  #placeOf
  /** @type {Buffer} */
  #bytes = Buffer.alloc(0)
  #index = 0
  #end = 0
  /** by a hash of their first bytes, the latest ones first @type {Array<KnownSite[] | undefined>} */
  #sites = Array(SLOTS).fill(undefined)
  #siteCount = 0
  #siteBytes = 0
  #rest = Buffer.alloc(1 << 12)

  /**
   * @param {(entry: Record<string, any>) => any} placeOf returns what stands for the site of an entry; equal
   *   for equal ones
   */
  constructor (placeOf) {
    this.#placeOf = placeOf
  }

  /**
   * Reads the path of a line.
   * @param {Buffer} bytes
   * @param {number} start of the line
   * @param {number} end
   * @returns {{ path: Path, json: string } | undefined} json: the line without its path and runs; undefined
   *   where JSON.parse must read the line as it is
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
    let size = bytes.copy(rest, 0, start, waitsStart)
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
      if (this.#isSite()) {
        if (entry.place !== undefined) throw new Unexpected()
        entry.place = this.#site()
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

  /** Returns whether a member begins that describes a site: at, callers, label or until. */
  #isSite () {
    const [bytes, i] = [this.#bytes, this.#index]
    const first = bytes[i + 1]
    if (first === LETTER_A || first === LETTER_L) return true
    if (first === LETTER_C) return bytes[i + 2] === LETTER_A
    return first === LETTER_U && bytes[i + 3] === LETTER_T
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

  /** Reads the members that describe a site, and returns what stands for it. */
  #site () {
    const slot = this.#hash() & (SLOTS - 1)
    const chain = this.#sites[slot] ??= []
    for (let i = 0; i < chain.length; i++) {
      const site = chain[i]
      if (!this.#isAt(site.bytes)) continue
      if (i > 0) [chain[i - 1], chain[i]] = [site, chain[i - 1]]
      this.#index += site.bytes.length
      return site.place
    }
    const start = this.#index
    this.#skipSite()
    const place = this.#placeOf(parsed(`{${this.#bytes.toString('utf8', start, this.#index)}}`))
    const length = this.#index - start
    const hasSpace = this.#siteCount < MAX_SITES && this.#siteBytes + length <= MAX_SITE_BYTES
    if (hasSpace && chain.length < MAX_CHAIN) {
      this.#siteCount++
      this.#siteBytes += length
      chain.push({ bytes: Buffer.from(this.#bytes.subarray(start, this.#index)), place })
    }
    return place
  }

  /** Hashes the first bytes of a site, to the end of the first text behind its key. */
  #hash () {
    const bytes = this.#bytes
    const end = this.#index + MAX_HASHED
    let hash = 0
    let quotes = 0
    for (let i = this.#index; i < end && quotes < 4; i++) {
      const byte = bytes[i]
      if (byte === QUOTE) quotes++
      hash = Math.imul(hash ^ byte, 0x9e3779b1)
    }
    return hash ^ (hash >>> 15)
  }

  /** Returns whether exactly this site is next. @param {Buffer} site */
  #isAt (site) {
    const [bytes, start] = [this.#bytes, this.#index]
    const { length } = site
    // From the end: sites of one function differ in their lines, or in their callers.
    for (let i = length - 1; i >= 0; i--) if (bytes[start + i] !== site[i]) return false
    if (bytes[start + length] === CLOSE) return true
    this.#index = start + length + 1
    const isWhole = !this.#isSite()
    this.#index = start
    return isWhole
  }

  /** Goes to the end of the members that describe a site. */
  #skipSite () {
    const [bytes, end] = [this.#bytes, this.#end]
    let isText = false
    let isList = false
    for (; this.#index < end; this.#index++) {
      const byte = bytes[this.#index]
      if (isText) {
        if (byte === QUOTE) isText = false
        else if (byte === BACKSLASH) this.#index++
      } else if (byte === QUOTE) {
        isText = true
      } else if (byte === OPEN_LIST || byte === CLOSE_LIST) {
        isList = byte === OPEN_LIST
      } else if (byte === CLOSE) {
        return
      } else if (byte === COMMA && !isList) {
        this.#index++
        const isMore = this.#isSite()
        this.#index--
        if (!isMore) return
      } else if (byte !== COMMA && byte !== COLON) {
        throw new Unexpected()
      }
    }
  }
}

/** @param {string} json of an entry */
function parsed (json) {
  try {
    return JSON.parse(json)
  } catch {
    throw new Unexpected()
  }
}

/**
 * Makes the entries of a path of an attribute that JSON.parse has read.
 * @param {unknown} list
 * @param {boolean} isRun
 * @param {(entry: Record<string, any>) => any} placeOf
 * @returns {PathEntry[]}
 */
function entriesOf (list, isRun, placeOf) {
  if (!Array.isArray(list)) return []
  const valid = list.slice(0, MAX_ENTRIES).filter((entry) => amount(entry?.ms) !== undefined)
  return valid.map((entry) => ({
    ms: entry.ms,
    count: Number.isSafeInteger(entry.count) && entry.count > 0 ? entry.count : 1,
    delayed: amount(entry.delayed) ?? 0,
    sent: amount(entry.sent),
    unsent: amount(entry.unsent),
    beside: amount(entry.beside),
    on: connectionsOf(entry.on),
    place: placeOf(entry),
    isRun
  }))
}

/** @param {unknown} on @returns {number[] | undefined} */
function connectionsOf (on) {
  return Array.isArray(on) ? on.slice(0, MAX_CONNECTIONS).filter((id) => amount(id) !== undefined) : undefined
}

module.exports = { PathScanner, entriesOf }
