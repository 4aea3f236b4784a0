'use strict'

// A record as one line of JSON. Attributes hold whatever the program put there: what cannot be written is replaced
// by a sentence, what is too long is shortened, and both are said in the line.

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
  const text = fit(stringify(record, replaced))
  // JSON leaves these two as they are, and some readers take them for the end of a line.
  return `${/[\u2028\u2029]/.test(text) ? text.replace(/[\u2028\u2029]/g, (one) => one === '\u2028' ? '\\u2028' : '\\u2029') : text}\n`
}

/** @param {SpanRecord} record @param {() => void} replaced */
function stringify (record, replaced) {
  try {
    return JSON.stringify(record)
  } catch {
    return JSON.stringify(writable(record, replaced))
  }
}

/**
 * The same with a sentence in place of each value that cannot be written.
 * @param {SpanRecord} record
 * @param {() => void} replaced
 */
function writable (record, replaced) {
  const events = Array.isArray(record.events) ? record.events.map((event) => ({ ...event, attributes: each(event.attributes, replaced) })) : undefined
  return each({ ...record, attributes: each(record.attributes, replaced), ...(events && { events }) }, replaced)
}

/**
 * @param {Record<string, any> | undefined} values
 * @param {() => void} replaced
 * @returns {Record<string, any>}
 */
function each (values, replaced) {
  /** @type {Record<string, any>} */
  const result = {}
  for (const key of Object.keys(values ?? {})) {
    try {
      // Asked once: a getter or a toJSON may answer otherwise next time.
      const text = JSON.stringify(/** @type {any} */ (values)[key])
      if (text !== undefined) put(result, key, JSON.parse(text))
    } catch (error) {
      replaced()
      put(result, key, `not written: ${reasonOf(error)}`)
    }
  }
  return result
}

/** A key may be __proto__. @param {object} object @param {string} key @param {unknown} value */
function put (object, key, value) {
  Object.defineProperty(object, key, { value, enumerable: true, configurable: true, writable: true })
}

/** @param {unknown} error */
function reasonOf (error) {
  try {
    return String(/** @type {any} */ (error)?.message ?? error).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'it throws when it is read'
  }
}

/** @param {string} text */
function fit (text) {
  if (fits(text)) return text
  const record = JSON.parse(text)
  record.attributes = { ...record.attributes, 'longstack.shortened': true }
  for (const limit of LIMITS) {
    const shorter = shorten(record, limit)
    if (fits(shorter)) return shorter
  }
  return bare(JSON.parse(shorten(record, SMALL)))
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

module.exports = { lineOf }
