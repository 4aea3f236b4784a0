'use strict'

// Screen content of a terminal after some output: supports the few control sequences of programs that redraw
// lines.

const ESC = '\u001b'
const TOKENS = new RegExp(`${ESC}\\[[?\\d;]*[A-Za-z]|${ESC}.|\\r|\\n|[^${ESC}\\r\\n]`, 'gu')
const COMMAND = new RegExp(`^${ESC}\\[([?\\d;]*)([A-Za-z])$`)

/** @typedef {{ lines: string[], isAlternate: boolean, isCursorHidden: boolean }} Shown */

/**
 * @param {string} output
 * @param {{ columns: number, rows: number }} size
 * @returns {Shown}
 */
function screenOf (output, { columns, rows }) {
  /** @type {string[][]} */
  let cells = Array.from({ length: rows }, () => [])
  let [row, column] = [0, 0]
  let [isAlternate, isCursorHidden] = [false, false]
  const scroll = () => { while (row >= rows) { cells.shift(); cells.push([]); row-- } }
  const parts = output.match(TOKENS) ?? []
  for (const part of parts) {
    const [, argument = '', command] = COMMAND.exec(part) ?? []
    const count = Number(argument) || 1
    if (part === '\r') column = 0
    else if (part === '\n') { row++; scroll() } else if (command === 'A') row = Math.max(0, row - count)
    else if (command === 'B') row = Math.min(rows - 1, row + count)
    else if (command === 'G') column = count - 1
    else if (command === 'H') [row, column] = [0, 0]
    else if (command === 'J') cells = Array.from({ length: rows }, () => [])
    else if (command === 'K') cells[row] = argument === '2' ? [] : cells[row].slice(0, column)
    else if (argument === '?1049') isAlternate = command === 'h'
    else if (argument === '?25') isCursorHidden = command === 'l'
    else if (command === undefined && !part.startsWith('\u001b') && column < columns) {
      for (let i = cells[row].length; i < column; i++) cells[row][i] = ' '
      cells[row][column++] = part
    }
  }
  return { lines: cells.map((line) => line.join('').trimEnd()), isAlternate, isCursorHidden }
}

module.exports = { screenOf }
