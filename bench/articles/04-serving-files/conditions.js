'use strict'

// Conditional requests and ranges.

const { Refusal } = require('./files')

/** @param {import('node:http').IncomingHttpHeaders} headers @param {string} tag @param {Date} changed */
function isUnchanged (headers, tag, changed) {
  const tags = headers['if-none-match']
  if (tags !== undefined) return tags.trim() === '*' || (tags.match(/"[^"]*"/g) ?? []).includes(tag)
  return Date.parse(headers['if-modified-since'] ?? '') >= changed.getTime()
}

/**
 * Returns the requested range.
 * @param {import('node:http').IncomingMessage} request
 * @param {number} size of the file
 * @param {string} tag
 * @param {Date} changed
 * @returns {{ start: number, length: number } | undefined} undefined for the whole file
 */
function rangeOf ({ method, headers }, size, tag, changed) {
  const condition = headers['if-range']
  if (method !== 'GET' || size === 0) return undefined
  const isDate = Date.parse(String(condition)) === changed.getTime()
  if (condition !== undefined && condition !== tag && !isDate) return undefined
  const [, first = '', last = ''] = /^bytes=[ \t]*(\d*)-(\d*)[ \t]*$/i.exec(headers.range ?? '') ?? []
  if (first === '' && last === '') return undefined
  if (first !== '' && last !== '' && Number(last) < Number(first)) return undefined
  const start = first === '' ? Math.max(0, size - Number(last)) : Number(first)
  if (start >= size) throw new Refusal(416, { 'Content-Range': `bytes */${size}` })
  const end = first === '' || last === '' ? size : Math.min(size, Number(last) + 1)
  return { start, length: end - start }
}

module.exports = { isUnchanged, rangeOf }
