'use strict'

// Words, figures and little pictures that a report in text is made of. Data in, string out.

const { clean } = require('../../text')

/**
 * @typedef {import('../aggregate/summary').Density} Density
 * @typedef {import('../aggregate/summary').Box} Box
 *
 * @typedef {object} Axis what a picture shows, in ms
 * @property {number} from
 * @property {number} to
 * @property {number} width in characters
 *
 * @typedef {(text: string) => string} Colour
 * @typedef {Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', Colour>} Colours
 */

const BLOCKS = ' ▁▂▃▄▅▆▇█'

/** @type {Colours} */
const plain = { bold: String, dim: String, red: String, green: String, yellow: String, cyan: String }

/** A duration as a person reads it. @param {number} ms */
function time (ms) {
  if (ms < 0.9995) return `${digits(ms * 1000)} µs`
  if (ms < 999.5) return `${digits(ms)} ms`
  if (ms < 60_000) return `${digits(ms / 1000)} s`
  if (ms < 7_200_000) return `${digits(ms / 60_000)} min`
  return `${digits(ms / 3_600_000)} h`
}

/** Three digits that count, no more. @param {number} value */
function digits (value) {
  if (value === 0) return '0'
  return value >= 99.95 ? String(Math.round(value)) : value >= 9.995 ? value.toFixed(1) : value.toFixed(2)
}

/** A figure in ms in a column of others. @param {number} ms */
function figure (ms) {
  return ms >= 9999.5 ? grouped(ms) : ms >= 999.95 ? ms.toFixed(0) : ms >= 99.995 ? ms.toFixed(1) : ms >= 9.9995 ? ms.toFixed(2) : ms.toFixed(3)
}

/** A count, its thousands apart. @param {number} value */
function grouped (value) {
  return Math.round(value).toLocaleString('en-US')
}

/** @param {number} value @param {string} one @param {string} [many] */
function counted (value, one, many = `${one}s`) {
  return `${grouped(value)} ${Math.round(value) === 1 ? one : many}`
}

/** @param {number | undefined} perSecond */
function rate (perSecond) {
  return perSecond === undefined ? '' : `, ${digits(perSecond)} a second`
}

/** When it was, in UTC. @param {number} unixMs @param {boolean} [short] without the day */
function moment (unixMs, short = false) {
  const iso = new Date(unixMs).toISOString()
  return short ? iso.slice(11, 23) : iso.replace('T', ' ').replace(/Z$/, '')
}

/** @param {string[][]} rows of equal length; all but the first cell to the right @returns {string[]} */
function columns (rows) {
  const widths = rows[0].map((_, i) => Math.max(...rows.map((row) => row[i].length)))
  return rows.map((row) => row.map((cell, i) => i === 0 ? cell.padEnd(widths[i]) : cell.padStart(widths[i])).join('  ').trimEnd())
}

/**
 * The curve as a line of blocks.
 * @param {Density} density
 * @param {Axis} axis
 * @param {number} [highest] of several curves on one axis
 */
function curve (density, axis, highest) {
  const heights = cells(density, axis)
  const top = highest ?? Math.max(...heights)
  return heights.map((y) => BLOCKS[top === 0 || y < top / 100 ? 0 : Math.min(8, Math.max(1, Math.round(y / top * 8)))]).join('').trimEnd()
}

/** The highest point of a curve in each character of a line. @param {Density} density @param {Axis} axis */
function cells ({ x, y }, { from, to, width }) {
  const step = (to - from) / width
  const start = x[0]
  const pitch = x[1] - start
  return Array.from({ length: width }, (_, cell) => {
    const first = (from + cell * step - start) / pitch
    const last = (from + (cell + 1) * step - start) / pitch
    let most = Math.max(between(y, first), between(y, last))
    for (let i = Math.max(0, Math.ceil(first)); i <= Math.min(last, y.length - 1); i++) most = Math.max(most, y[i])
    return most
  })
}

/** @param {number[]} y @param {number} place between two of them */
function between (y, place) {
  const low = Math.floor(place)
  if (low < 0 || low + 1 >= y.length) return 0
  return y[low] + (y[low + 1] - y[low]) * (place - low)
}

/** The box plot as a line; what lies beyond its end is one arrow. @param {Box} box @param {Axis} axis */
function boxLine (box, { from, to, width }) {
  const line = Array(width).fill(' ')
  const at = (/** @type {number} */ value) => Math.round((value - from) / (to - from || 1) * (width - 1))
  const put = (/** @type {number} */ place, /** @type {string} */ mark) => { line[Math.max(0, Math.min(place, width - 1))] = mark }
  for (const outlier of box.outliers) put(at(outlier), at(outlier) >= width ? '›' : '·')
  for (let i = at(box.low); i <= at(box.high); i++) put(i, '─')
  put(at(box.low), '├')
  put(at(box.high), at(box.high) >= width ? '›' : '┤')
  for (let i = at(box.q1); i <= at(box.q3); i++) put(i, '▒')
  put(at(box.median), '┃')
  return line.join('').trimEnd()
}

/** @param {Axis} axis */
function scale ({ from, to, width }) {
  const [low, high] = [time(from), time(to)]
  return low + high.padStart(width - low.length)
}

/** A name or path of somebody else's, fit for a terminal. @param {string} foreign @param {number} [most] */
function word (foreign, most = 120) {
  const shown = clean(foreign)
  return shown.length > most ? `${shown.slice(0, most - 1)}…` : shown
}

/** Lines of somebody else's, fit for a terminal. @param {string} foreign @param {number} most lines @param {string} indent */
function lines (foreign, most, indent) {
  const all = foreign.split(/\r?\n/)
  const shown = all.slice(0, most).map((line) => indent + word(line, 300))
  return all.length > most ? [...shown, `${indent}… ${counted(all.length - most, 'line')} more`] : shown
}

module.exports = { plain, time, figure, grouped, counted, rate, moment, columns, curve, cells, boxLine, scale, word, lines, digits }
