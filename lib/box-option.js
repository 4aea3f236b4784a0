'use strict'

// The value of the option `box`.

const INITIAL_BYTES = 16 << 20
const [MIN_BYTES, MAX_BYTES] = [4 << 20, 1 << 30]
const POWERS = { K: 10, M: 20, G: 30 }

/**
 * Reads `DIR`, `DIR,keep`, `DIR,size=64MiB`.
 * @param {string} option
 * @returns {{ directory: string, keep: boolean, bytes: number }} bytes: NaN if invalid
 */
function parseBox (option) {
  const [directory, ...rest] = option.split(',')
  const words = rest.filter((word) => word !== 'keep')
  const bytes = words.length === 0 ? INITIAL_BYTES : sizeOf(words[0])
  const isValid = words.length < 2 && bytes >= MIN_BYTES && bytes <= MAX_BYTES
  return { directory, keep: rest.includes('keep'), bytes: isValid ? bytes : NaN }
}

/** @param {string} word @returns {number} bytes; NaN if invalid */
function sizeOf (word) {
  const [, digits, power] = /^size=(\d+)([KMG])iB$/i.exec(word) ?? []
  return Number(digits) * 2 ** POWERS[/** @type {keyof typeof POWERS} */ (power?.toUpperCase())]
}

/** @param {unknown} option @returns {boolean} */
function isBoxOption (option) {
  if (typeof option !== 'string' || option.includes('\0')) return false
  const { directory, bytes } = parseBox(option)
  return directory !== '' && bytes > 0
}

module.exports = { isBoxOption, parseBox }
