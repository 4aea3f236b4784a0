'use strict'

// Writes a record as one line of JSON. Attributes hold any values of the program: unserializable values are
// replaced by a sentence, long ones are shortened, and the line is marked.

const { attempt } = require('../files')

const MAX_LINE = 1 << 20 // bytes of a line
const LIMITS = [1 << 16, 1 << 12, 1 << 8] // limits of strings and arrays, tried in this order
const SMALL = 1 << 10 // attributes up to this size are kept as a last resort
/** Properties kept with them. */
const KEPT = ['traceId', 'spanId', 'parentSpanId', 'name', 'kind', 'startTimeUnixNano', 'endTimeUnixNano',
  'start', 'duration', 'status', 'source', 'stack', 'attributes', 'resource', 'span', 'form', 'ids', 'us']

/** @typedef {Record<string, any>} SpanRecord */

/**
 * @param {SpanRecord} record
 * @param {() => void} onReplaced called for each attribute that cannot be written
 * @returns {string} the line without its line feed: adding it would copy the text
 */
function lineOf (record, onReplaced) {
  const json = attempt(() => JSON.stringify(record)) ?? jsonByValue(record, onReplaced)
  return onOneLine(fits(json) ? json : shortened(json))
}

/**
 * Returns the JSON of a record, built value by value, with a sentence for each unserializable value.
 * @param {SpanRecord} record
 * @param {() => void} onReplaced
 */
function jsonByValue (record, onReplaced) {
  /** @param {any} object */
  const jsonOfMembers = (object) => membersOf(object, (key) => jsonOf(object, key, onReplaced))
  /** @param {any} event */
  const jsonOfEvent = (event) => membersOf(event, (key) => {
    return key === 'attributes' ? jsonOfMembers(event[key]) : jsonOf(event, key, onReplaced)
  })
  return membersOf(record, (key) => {
    if (record[key] === undefined) return undefined
    if (key === 'attributes') return jsonOfMembers(record[key])
    return key === 'events' ? `[${record.events.map(jsonOfEvent).join()}]` : jsonOf(record, key, onReplaced)
  })
}

/** @param {object | undefined} object @param {(key: string) => string | undefined} write */
function membersOf (object, write) {
  const parts = []
  for (const key of Object.keys(object ?? {})) {
    const text = write(key)
    if (text !== undefined) parts.push(`${JSON.stringify(key)}:${text}`)
  }
  return `{${parts.join()}}`
}

/**
 * Returns the JSON of one value. Reads it once: a getter or toJSON may return something else next time.
 * @param {any} object
 * @param {string} key
 * @param {() => void} onReplaced
 */
function jsonOf (object, key, onReplaced) {
  try {
    return JSON.stringify(object[key])
  } catch (error) {
    onReplaced()
    return JSON.stringify(sentenceOf(error))
  }
}

/** @param {string} text */
function shortened (text) {
  const record = JSON.parse(text)
  record.attributes = { ...record.attributes, 'longstack.shortened': true }
  for (const limit of LIMITS) {
    const shorter = shorten(record, limit)
    if (fits(shorter)) return shorter
  }
  return withSmallAttributes(record)
}

/** @param {string} text */
function fits (text) {
  return text.length < MAX_LINE / 3 || Buffer.byteLength(text) < MAX_LINE
}

/** @param {SpanRecord} record @param {number} limit */
function shorten (record, limit) {
  return JSON.stringify(record, (key, value) => {
    if (typeof value === 'string' && value.length > limit) {
      return `${value.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}…`
    }
    return Array.isArray(value) && value.length > limit ? value.slice(0, limit) : value
  })
}

/** Keeps only small attributes, as many as fit. @param {SpanRecord} record */
function withSmallAttributes (record) {
  /** @type {Record<string, any>} */
  const attributes = { 'longstack.shortened': true }
  let free = MAX_LINE / 2
  for (const [key, value] of Object.entries(record.attributes)) {
    const size = 3 * (key.length + JSON.stringify(value).length)
    if (size > 3 * SMALL || size > free) continue
    free -= size
    put(attributes, key, value)
  }
  const small = /** @type {SpanRecord} */ ({ ...record, attributes })
  return JSON.stringify(Object.fromEntries(KEPT.map((name) => [name, small[name]])))
}

/** Returns the replacement for an unserializable value. @param {unknown} error */
function sentenceOf (error) {
  const message = attempt(() => String(/** @type {any} */ (error)?.message ?? error))
  return `not written: ${message?.split('\n', 1)[0].slice(0, 200) ?? 'it throws when it is read'}`
}

/** Escapes characters that JSON allows in strings but editors take for line ends. @param {string} json */
function onOneLine (json) {
  if (!json.includes('\u2028') && !json.includes('\u2029')) return json
  return json.replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
}

/**
 * Returns attributes with others added, without running getters of the program.
 * @param {Record<string, any> | undefined} attributes
 * @param {Record<string, unknown>} more
 * @returns {Record<string, any>}
 */
function withAttributes (attributes, more) {
  const copy = Object.defineProperties({}, Object.getOwnPropertyDescriptors(attributes ?? {}))
  for (const key of Object.keys(more)) put(copy, key, more[key])
  return copy
}

/** Sets a property, even __proto__. @param {object} object @param {string} key @param {unknown} value */
function put (object, key, value) {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
}

module.exports = { lineOf, onOneLine, withAttributes }
