'use strict'

// Takes values out of untrusted input: a value of the wrong type counts as absent.

/**
 * Returns whether a value is a JSON object, not an array.
 * @param {unknown} value
 * @returns {value is Record<string, any>}
 */
function isRecord (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/**
 * Returns a value if it is a number that can be used in a figure.
 * @param {unknown} value
 * @returns {number | undefined}
 */
function amount (value) {
  return typeof value === 'number' && value >= 0 && value < 1e15 ? value : undefined
}

/**
 * Returns a string, truncated if it is too long; undefined for other values.
 * @param {unknown} value
 * @param {number} max characters
 * @returns {string | undefined}
 */
function text (value, max) {
  if (typeof value !== 'string') return undefined
  return value.length > max ? `${value.slice(0, max)}… (${value.length - max} more characters)` : value
}

/** @param {unknown} value @param {number} [max] items @returns {any[]} empty if it is not a list */
function list (value, max = Infinity) {
  return Array.isArray(value) ? value.slice(0, max) : []
}

/** @param {string} json @returns {any} undefined if it is not JSON */
function parseJson (json) {
  try {
    return JSON.parse(json)
  } catch {
    return undefined
  }
}

module.exports = { amount, isRecord, list, parseJson, text }
