'use strict'

// Text for Markdown pages.

const COLUMNS = 110

/**
 * Breaks a paragraph into lines; a `{type}` or `code` is not broken.
 * @param {string} text
 * @param {number} [columns]
 * @returns {string}
 */
function wrap (text, columns = COLUMNS) {
  const words = text.match(/(?:\{[^}]*\}|`[^`]*`|\[[^\]]*\]\([^)]*\)|\S)+/g) ?? []
  const lines = ['']
  for (const word of words) {
    const last = lines[lines.length - 1]
    if (last === '') lines[lines.length - 1] = word
    else if (last.length + 1 + word.length <= columns) lines[lines.length - 1] += ` ${word}`
    else lines.push(word)
  }
  return lines.join('\n')
}

module.exports = { wrap }
