'use strict'

// Sites of waits and runs, found by the bytes that describe them in a line.

/** What is wrong with bytes that are no path as longstack writes it: JSON.parse reads them. */
class Unexpected extends Error {}

/** @typedef {{ bytes: Buffer, place: any }} KnownSite bytes: the members that describe it */

const SLOTS = 1 << 12 // a power of two
const MAX_CHAIN = 64 // sites of a slot
const MAX_SITES = 32_000
const MAX_SITE_BYTES = 16 << 20 // of all sites
const MAX_HASHED = 120 // bytes of a site

const [QUOTE, BACKSLASH, COMMA, COLON] = [0x22, 0x5c, 0x2c, 0x3a]
const [CLOSE, OPEN_LIST, CLOSE_LIST] = [0x7d, 0x5b, 0x5d]
const [LETTER_A, LETTER_C, LETTER_L, LETTER_T, LETTER_U] = [0x61, 0x63, 0x6c, 0x74, 0x75]

class KnownSites {
  /** index of the first byte behind the site that was found last */
  end = 0
  #placeOf
  /** by a hash of their first bytes, those often found first @type {Array<KnownSite[] | undefined>} */
  #chains = Array(SLOTS).fill(undefined)
  #count = 0
  #size = 0 // bytes

  /** @param {(entry: Record<string, any>) => any} placeOf */
  constructor (placeOf) {
    this.#placeOf = placeOf
  }

  /**
   * Reads the members that describe a site, and returns what stands for it.
   * @param {Buffer} bytes
   * @param {number} start of the first of them
   * @param {number} end of the line
   */
  find (bytes, start, end) {
    const chain = this.#chains[hashOf(bytes, start) & (SLOTS - 1)] ??= []
    for (let i = 0; i < chain.length; i++) {
      const site = chain[i]
      if (!isAt(site.bytes, bytes, start)) continue
      if (i > 0) [chain[i - 1], chain[i]] = [site, chain[i - 1]]
      this.end = start + site.bytes.length
      return site.place
    }
    this.end = endOf(bytes, start, end)
    const place = this.#placeOf(parsed(`{${bytes.toString('utf8', start, this.end)}}`))
    const length = this.end - start
    const hasSpace = this.#count < MAX_SITES && this.#size + length <= MAX_SITE_BYTES
    if (hasSpace && chain.length < MAX_CHAIN) {
      this.#count++
      this.#size += length
      chain.push({ bytes: Buffer.from(bytes.subarray(start, this.end)), place })
    }
    return place
  }
}

/**
 * Hashes the first bytes of a site, to the end of the first text behind its key.
 * @param {Buffer} bytes
 * @param {number} start
 */
function hashOf (bytes, start) {
  const end = start + MAX_HASHED
  let hash = 0
  let quotes = 0
  for (let i = start; i < end && quotes < 4; i++) {
    const byte = bytes[i]
    if (byte === QUOTE) quotes++
    hash = Math.imul(hash ^ byte, 0x9e3779b1)
  }
  return hash ^ (hash >>> 15)
}

/**
 * Returns whether exactly this site is there.
 * @param {Buffer} site
 * @param {Buffer} bytes
 * @param {number} start
 */
function isAt (site, bytes, start) {
  const { length } = site
  const end = start + length
  // Sites of one function mostly differ in their length or in what they waited until.
  if (bytes[end - 1] !== site[length - 1] || bytes[end - 2] !== site[length - 2]) return false
  if (end > bytes.length || site.compare(bytes, start, end) !== 0) return false
  return bytes[start + length] === CLOSE || !isSiteMember(bytes, start + length + 1)
}

/**
 * Returns whether a member begins that describes a site: at, callers, label or until.
 * @param {Buffer} bytes
 * @param {number} start
 */
function isSiteMember (bytes, start) {
  const first = bytes[start + 1]
  if (first === LETTER_A || first === LETTER_L) return true
  if (first === LETTER_C) return bytes[start + 2] === LETTER_A
  return first === LETTER_U && bytes[start + 3] === LETTER_T
}

/**
 * Returns the end of the members that describe a site.
 * @param {Buffer} bytes
 * @param {number} start
 * @param {number} end of the line
 */
function endOf (bytes, start, end) {
  let isText = false
  let isList = false
  for (let i = start; i < end; i++) {
    const byte = bytes[i]
    if (isText) {
      if (byte === QUOTE) isText = false
      else if (byte === BACKSLASH) i++
    } else if (byte === QUOTE) {
      isText = true
    } else if (byte === OPEN_LIST || byte === CLOSE_LIST) {
      isList = byte === OPEN_LIST
    } else if (byte === CLOSE || (byte === COMMA && !isList && !isSiteMember(bytes, i + 1))) {
      return i
    } else if (byte !== COMMA && byte !== COLON) {
      throw new Unexpected()
    }
  }
  throw new Unexpected()
}

/** @param {string} json of an entry */
function parsed (json) {
  try {
    return JSON.parse(json)
  } catch {
    throw new Unexpected()
  }
}

module.exports = { KnownSites, Unexpected, isSiteMember }
