'use strict'

// A record as one line of JSON. Attributes hold whatever the program put there: what cannot be written is replaced
// by a sentence, what is too long is shortened, and both are said in the line.

const { bytesOf, onOneLine, sentenceOf, textOf } = require('../encoding/json')

const MOST = 1 << 20 // bytes of a line
const LIMITS = [1 << 16, 1 << 12, 1 << 8] // of strings and arrays, tried in this order
const SMALL = 1 << 10 // attributes up to here stay when nothing else helps

/** @typedef {Record<string, any>} SpanRecord */

/**
 * @param {SpanRecord} record
 * @param {() => void} replaced told of each attribute that cannot be written
 * @returns {string} with its line feed
 */
function lineOf (record, replaced) {
  const json = stringify(record, replaced)
  return `${onOneLine(fits(json) ? json : shortened(json))}\n`
}

/**
 * Returns the line of a record as a text of bytes, see encoding/json.js.
 * @param {SpanRecord} record
 * @param {() => void} replaced
 */
function byteLineOf (record, replaced) {
  return bytesOf(lineOf(record, replaced))
}

/** Returns the same for a record of which only the JSON is at hand, as a text of bytes. @param {string} json */
function byteLineOfJson (json) {
  return json.length < MOST ? `${json}\n` : `${bytesOf(shortened(textOf(json)))}\n`
}

/** @param {SpanRecord} record @param {() => void} replaced @returns {string} */
function stringify (record, replaced) {
  try {
    return JSON.stringify(record)
  } catch {
    return recordOf(record, replaced)
  }
}

/** Value by value, with a sentence in place of what cannot be written. @param {SpanRecord} record @param {() => void} replaced */
function recordOf (record, replaced) {
  /** @param {any} object */
  const plain = (object) => membersOf(object, (key) => jsonOf(object, key, replaced))
  /** @param {any} event */
  const eventOf = (event) => membersOf(event, (key) => key === 'attributes' ? plain(event[key]) : jsonOf(event, key, replaced))
  return membersOf(record, (key) => {
    if (key === 'attributes') return plain(record[key])
    return key === 'events' ? `[${record.events.map(eventOf).join()}]` : jsonOf(record, key, replaced)
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

/** Its text is kept: a getter or a toJSON may answer otherwise next time. @param {any} object @param {string} key @param {() => void} replaced */
function jsonOf (object, key, replaced) {
  try {
    return JSON.stringify(object[key])
  } catch (error) {
    replaced()
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
  return bare(record)
}

/** @param {string} text */
function fits (text) {
  return text.length < MOST / 3 || Buffer.byteLength(text) < MOST
}

/** @param {SpanRecord} record @param {number} limit */
function shorten (record, limit) {
  return JSON.stringify(record, (key, value) => {
    if (typeof value === 'string' && value.length > limit) return `${value.slice(0, limit).replace(/[\ud800-\udbff]$/, '')}…`
    return Array.isArray(value) && value.length > limit ? value.slice(0, limit) : value
  })
}

/** What has thousands of attributes keeps the small ones, as many as there is room for. @param {SpanRecord} record */
function bare (record) {
  /** @type {Record<string, any>} */
  const attributes = { 'longstack.shortened': true }
  let room = MOST / 2
  for (const [key, value] of Object.entries(record.attributes)) {
    const size = 3 * (key.length + JSON.stringify(value).length)
    if (size > 3 * SMALL || size > room) continue
    room -= size
    put(attributes, key, value)
  }
  const { traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, resource } = record
  return JSON.stringify({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, resource })
}

/** A key may be __proto__. @param {object} object @param {string} key @param {unknown} value */
function put (object, key, value) {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
}

module.exports = { MOST, lineOf, byteLineOf, byteLineOfJson }
