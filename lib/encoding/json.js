'use strict'

// JSON texts of a record's parts, as JSON.stringify writes them, but cached where they come again. Hot path:
// each attribute of each span passes here.
//
// They are texts of bytes: a character stands for a byte of UTF-8. So a line has one byte a character in V8's
// heap too, is put together and copied to a file without being encoded, and its length is its size.

const MAX_CACHED = 2000 // texts of short strings
const SHORT = 128 // characters
const MAX_LONG = 1 << 20 // characters of cached long strings

/** @type {Map<string, string>} */
let shortTexts = new Map()
/** @type {Map<string, string>} */
let longTexts = new Map()
let longCharacters = 0

/** Has the methods that the program added to the prototypes of all objects or arrays. @type {any} */
const anyArray = []

/** Returns whether JSON.stringify calls a method that the program gave to all objects, or to all arrays. */
function isRewritten () {
  return anyArray.toJSON !== undefined
}

/** Escapes what JSON does not, and some readers take for the end of a line. @param {string} json */
function onOneLine (json) {
  if (!json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

/** Returns a text of JSON on one line as a text of bytes. @param {string} json */
function bytesOf (json) {
  return Buffer.byteLength(json) === json.length ? json : Buffer.from(onOneLine(json)).toString('latin1')
}

/** Returns the text that a text of bytes stands for. @param {string} bytes */
function textOf (bytes) {
  return Buffer.from(bytes, 'latin1').toString()
}

/** Returns the JSON text of a value that has one. @param {unknown} value */
function stringify (value) {
  return bytesOf(JSON.stringify(value))
}

/** Returns the JSON text of a string that may come again. @param {string} string */
function quote (string) {
  if (string.length > SHORT) return stringify(string)
  const cached = shortTexts.get(string)
  if (cached !== undefined) return cached
  if (shortTexts.size >= MAX_CACHED) shortTexts = new Map()
  const text = stringify(string)
  shortTexts.set(string, text)
  return text
}

/** Returns the JSON text of a string that comes again, however long. @param {string} string */
function quoteLong (string) {
  const cached = longTexts.get(string)
  if (cached !== undefined) return cached
  const text = stringify(string)
  if (longCharacters + text.length > MAX_LONG) {
    longTexts = new Map()
    longCharacters = 0
  }
  if (text.length <= MAX_LONG / 8) {
    longTexts.set(string, text)
    longCharacters += text.length
  }
  return text
}

/** Returns the JSON text of a number. @param {number} number */
function numeral (number) {
  return Number.isFinite(number) ? String(number) : 'null'
}

/**
 * Returns a member of an object as JSON text, with its key; undefined where JSON leaves it out.
 * @param {string} key
 * @param {unknown} value
 * @returns {string | undefined}
 */
function member (key, value) {
  switch (typeof value) {
    case 'string': return `${quote(key)}:${quote(value)}`
    case 'number': return `${quote(key)}:${numeral(value)}`
    case 'boolean': return `${quote(key)}:${value}`
    case 'undefined': case 'symbol': return undefined
    default: return value === null ? `${quote(key)}:null` : anyMember(key, value)
  }
}

/**
 * Returns the same for a value whose toJSON may be called, with the key.
 * @param {string} key
 * @param {unknown} value an object, a function or a BigInt
 * @returns {string | undefined}
 */
function anyMember (key, value) {
  const holder = Object.create(null)
  holder[key] = value
  const text = stringify(holder)
  return text === '{}' ? undefined : text.slice(1, -1)
}

/** Returns what is written instead of a value that cannot be. @param {unknown} error */
function sentenceOf (error) {
  return `not written: ${reasonOf(error)}`
}

/** @param {unknown} error */
function reasonOf (error) {
  try {
    return String(/** @type {any} */ (error)?.message ?? error).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'it throws when it is read'
  }
}

module.exports = {
  isRewritten, onOneLine, bytesOf, textOf, stringify, quote, quoteLong, numeral, member, sentenceOf
}
