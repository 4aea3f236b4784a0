'use strict'

// Figures, curves and box plots as text. Data in, string out.

const { counted, digits, grouped, percent, time } = require('./format')
const { columnsOf } = require('./wrap')
const { clean } = require('../../lib/text')

/**
 * @typedef {import('../aggregate/summary').Density} Density
 * @typedef {import('../aggregate/summary').Box} Box
 *
 * @typedef {object} Axis range of a curve or box plot, in ms
 * @property {number} from
 * @property {number} to
 * @property {number} width in characters
 *
 * @typedef {(text: string) => string} Colour
 * @typedef {Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', Colour>} Colours
 */

const BLOCKS = ' ▁▂▃▄▅▆▇█'
const MAX_WORD_CHARS = 120
const MAX_LINE_CHARS = 300

/** @type {Colours} */
const noColours = { bold: String, dim: String, red: String, green: String, yellow: String, cyan: String }

/** Formats ms for a column of figures. @param {number} ms */
function figure (ms) {
  if (ms >= 9999.5) return grouped(ms)
  if (ms >= 99.995) return ms.toFixed(ms >= 999.95 ? 0 : 1)
  return ms.toFixed(ms >= 9.9995 ? 2 : 3)
}

/** @param {number | undefined} perSecond */
function rate (perSecond) {
  return perSecond === undefined ? '' : `, ${digits(perSecond)}/s`
}

/** Formats a time in UTC. @param {number} unixMs @param {boolean} [isShort] without the day */
function moment (unixMs, isShort = false) {
  const iso = new Date(unixMs).toISOString()
  return isShort ? iso.slice(11, 23) : iso.replace('T', ' ').replace(/Z$/, '')
}

/**
 * Aligns columns, all but the first to the right.
 * @param {string[][]} rows of equal length
 * @returns {string[]}
 */
function columns (rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => columnsOf(row[i]))))
  const align = (/** @type {string} */ cell, /** @type {number} */ i) => {
    const padding = ' '.repeat(widths[i] - columnsOf(cell))
    return i === 0 ? cell + padding : padding + cell
  }
  return rows.map((row) => row.map(align).join('  ').trimEnd())
}

/** Draws a curve as a line of blocks. @param {Density} density @param {Axis} axis */
function curve (density, axis) {
  return blockLine(cells(density, axis)).trimEnd()
}

/** Draws figures side by side, as blocks. @param {number[]} values */
function blockLine (values) {
  const top = Math.max(0, ...values)
  return values.map((value) => {
    const isFlat = top === 0 || value < top / 100
    return BLOCKS[isFlat ? 0 : Math.min(8, Math.max(1, Math.round(value / top * 8)))]
  }).join('')
}

/**
 * Returns the highest point of a curve in each character of a line.
 * @param {Density} density
 * @param {Axis} axis
 */
function cells ({ x, y }, { from: origin, to, width }) {
  const step = (to - origin) / width
  const start = x[0]
  const pitch = x[1] - start
  return Array.from({ length: width }, (_, cell) => {
    const first = (origin + cell * step - start) / pitch
    const last = (origin + (cell + 1) * step - start) / pitch
    let max = Math.max(interpolate(y, first), interpolate(y, last))
    const end = Math.min(last, y.length - 1)
    for (let i = Math.max(0, Math.ceil(first)); i <= end; i++) max = Math.max(max, y[i])
    return max
  })
}

/** @param {number[]} y @param {number} index between two of them */
function interpolate (y, index) {
  const low = Math.floor(index)
  if (low < 0 || low + 1 >= y.length) return 0
  return y[low] + (y[low + 1] - y[low]) * (index - low)
}

/** Draws a box plot as a line; an arrow stands for all beyond its end. @param {Box} box @param {Axis} axis */
function boxLine (box, { from: origin, to: end, width }) {
  const line = Array(width).fill(' ')
  const scale = (width - 1) / (end - origin || 1)
  const column = (/** @type {number} */ value) => Math.round((value - origin) * scale)
  const put = (/** @type {number} */ index, /** @type {string} */ mark) => {
    line[Math.max(0, Math.min(index, width - 1))] = mark
  }
  for (const outlier of box.outliers) put(column(outlier), column(outlier) >= width ? '›' : '·')
  for (let i = column(box.low); i <= column(box.high); i++) put(i, '─')
  put(column(box.low), '├')
  put(column(box.high), column(box.high) >= width ? '›' : '┤')
  for (let i = column(box.q1); i <= column(box.q3); i++) put(i, '▒')
  put(column(box.median), '┃')
  return line.join('').trimEnd()
}

/** @param {Axis} axis */
function scale ({ from: origin, to: end, width }) {
  const [low, high] = [time(origin), time(end)]
  return low + high.padStart(width - low.length)
}

/** Makes a name or path from a file safe for a terminal. @param {string} foreign @param {number} [max] */
function word (foreign, max = MAX_WORD_CHARS) {
  const text = clean(foreign)
  return text.length > max ? `${text.slice(0, max - 1)}…` : text
}

/**
 * Makes lines from a file safe for a terminal.
 * @param {string} foreign
 * @param {number} max
 * @param {string} indent
 */
function lines (foreign, max, indent) {
  const whole = foreign.split(/\r?\n/)
  const printed = whole.slice(0, max).map((line) => indent + word(line, MAX_LINE_CHARS))
  return whole.length > max ? [...printed, `${indent}… ${counted(whole.length - max, 'more line')}`] : printed
}

module.exports = {
  noColours,
  time,
  figure,
  grouped,
  counted,
  percent,
  rate,
  moment,
  columns,
  blockLine,
  curve,
  boxLine,
  scale,
  word,
  lines,
  digits
}
