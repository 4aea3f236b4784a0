'use strict'

// Packs a page's data as JSON for an element: each long text once, no figure finer than a nanosecond, and no
// "<" that could end the element. Also escapes texts for display.

const SHORT_CHARS = 12 // texts up to this length are not replaced by a reference
const REFERENCE = '#' // prefix of a reference
const INVISIBLE =
  /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]/gu

/** @param {unknown} data @returns {string} */
function pack (data) {
  /** @type {Map<string, number>} */
  const indexes = new Map()
  const json = JSON.stringify(data, (_, value) => {
    if (typeof value === 'number') return rounded(value)
    const isReplaced = typeof value === 'string' && (value.length > SHORT_CHARS || value[0] === REFERENCE)
    if (!isReplaced) return value
    if (!indexes.has(value)) indexes.set(value, indexes.size)
    return `${REFERENCE}${indexes.get(value)}`
  })
  return `[${JSON.stringify([...indexes.keys()])},${json}]`.replace(/</g, '\\u003c')
}

/** @param {number} value ms, or ms since 1970, which a double holds to 0.2 µs */
function rounded (value) {
  return Number.isInteger(value) || Math.abs(value) > 1e9 ? value : Math.round(value * 1e6) / 1e6
}

/** @param {string} json @returns {any} */
function unpack (json) {
  const [texts, data] = JSON.parse(json)
  /** @param {any} value @returns {any} */
  function restore (value) {
    if (typeof value === 'string') return value[0] === REFERENCE ? texts[Number(value.slice(1))] : value
    if (Array.isArray(value)) return value.map(restore)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, restore(member)]))
  }
  return restore(data)
}

/**
 * Escapes characters from files that reverse the direction of text, are invisible, or are control characters.
 * Line ends and tabs are kept.
 * @param {unknown} text
 */
function escapeInvisible (text) {
  return String(text).replace(/\r\n/g, '\n').replace(INVISIBLE, (char) =>
    char === '\n' || char === '\t' ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}

module.exports = { escapeInvisible, pack, unpack }
