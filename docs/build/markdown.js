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

/**
 * @param {string[]} titles
 * @param {string[][]} rows
 * @returns {string}
 */
function table (titles, rows) {
  return [titles, titles.map(() => '---'), ...rows].map(row).join('\n')
}

/** @param {string[]} cells */
function row (cells) {
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

module.exports = { table, wrap }
