'use strict'

// Shared parts of the text outputs: figures, columns, sections, colours, width, short frame names, and how
// much to print. Data in, string out.

const format = require('./format')
const { columnsOf, glued, wrap } = require('./wrap')
const { createRunFrameNames } = require('../aggregate/frames')
const { ratio } = require('../aggregate/limits')
const { allOf } = require('../aggregate/lists')
const { clean } = require('../../lib/text')

const { counted, digits, grouped, percent, time } = format

/**
 * @typedef {import('../aggregate/model').Model} Model
 *
 * @typedef {(text: string) => string} Colour
 * @typedef {Record<'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan', Colour>} Colours
 *
 * @typedef {object} TextOptions
 * @property {Colours} [colours]
 * @property {number} [width] of the terminal; default 80
 * @property {number} [top] max number of routes, sites, blockers, failures and requests
 * @property {boolean} [full] print quartiles, densities, boxes, all waits, and stacks
 * @property {'all' | 'slowest'} [tree] print the tree of chains instead: for all requests, or for the slowest
 *   1 %
 * @property {string} [route] print only this route; `*` matches anything
 *
 * @typedef {object} Context
 * @property {Colours} colours
 * @property {number} width
 * @property {boolean} isFull
 * @property {number | undefined} top
 * @property {(lengths: [short: number, full: number]) => number} max number of items to print
 * @property {(frame: string) => string} frame short name of a frame, glued into one piece
 * @property {(text: string, indent?: string, hanging?: string) => string[]} paragraph wraps words
 */

const BLOCKS = ' ▁▂▃▄▅▆▇█'
const MAX_WORD_CHARS = 120
const MAX_LINE_CHARS = 300
const [MIN_WIDTH, MAX_WIDTH] = [40, 120]
const MAX_FRAME_CHARS = 200

/** @type {Colours} */
const noColours = { bold: String, dim: String, red: String, green: String, yellow: String, cyan: String }

/** Formats ms for a column. @param {number} ms */
function figure (ms) {
  if (ms >= 9999.5) return grouped(ms)
  if (ms >= 99.995) return ms.toFixed(ms >= 999.95 ? 0 : 1)
  return ms.toFixed(ms >= 9.9995 ? 2 : 3)
}

/**
 * Aligns columns, all but the first one to the right.
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

/** Draws figures next to each other as blocks. @param {number[]} values */
function blockLine (values) {
  const top = Math.max(0, ...values)
  return values.map((value) => {
    const isFlat = top === 0 || value < top / 100
    return BLOCKS[isFlat ? 0 : Math.min(8, Math.max(1, Math.round(value / top * 8)))]
  }).join('')
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

/**
 * @param {Model[]} models
 * @param {TextOptions} options
 * @returns {Context}
 */
function createContext (models, { colours = noColours, width = 80, full: isFull = false, top }) {
  const bounded = Math.max(MIN_WIDTH, Math.min(width, MAX_WIDTH))
  const names = createRunFrameNames(models.map(framesOf))
  return {
    colours,
    width: bounded,
    isFull,
    top,
    max: ([short, whole]) => top ?? (isFull ? whole : short),
    frame: (frame) => glued(word(names(frame), MAX_FRAME_CHARS)),
    paragraph: (text, indent, hanging) => wrap(text, bounded, indent, hanging)
  }
}

/** @param {Model} model @returns {string[]} */
function framesOf ({ routes, slowest, failures, verdict, blockers, tree, slowTree }) {
  const sites = routes.flatMap((route) => route.sites)
  const waits = slowest.flatMap(({ waits, delayedBy }) => [...waits, ...delayedBy])
  const places = [...sites, ...waits, ...failures, ...verdict, ...blockers]
  const frames = [...sites.flatMap(({ callers }) => callers), ...places.map(({ at: frame }) => frame)]
  return [
    ...frames.filter((frame) => frame !== undefined),
    ...allOf(tree, slowTree).filter(({ kind }) => kind === 'frame').map(({ name }) => name)
  ]
}

/**
 * Lists items below a title, with the number of items not printed.
 * @template T
 * @param {string} title
 * @param {T[]} items
 * @param {number} max
 * @param {(item: T, index: number) => string[]} linesOf
 * @param {number} [count] total number of items
 */
function section (title, items, max, linesOf, count = items.length) {
  if (items.length === 0) return []
  const hidden = count - Math.min(max, items.length)
  const more = hidden > 0 ? [`  … ${grouped(hidden)} more`] : []
  return [title, ...items.slice(0, max).flatMap(linesOf), ...more]
}

/** @param {number} amount @param {import('../aggregate/limits').Unit} unit */
function value (amount, unit) {
  if (unit === 'ms') return time(amount)
  if (unit === 'share') return percent(amount)
  return unit === 'rate' ? `${digits(amount)}/s` : grouped(amount)
}

/** Formats a relative change: `+12.5 %`, `×10`, `=`. @param {number} before @param {number} after */
function changeText (before, after) {
  const change = ratio(before, after)
  if (change === 0) return '='
  if (!Number.isFinite(change)) return 'new'
  if (change >= 9) return `×${change >= 1e4 ? (change + 1).toExponential(0) : Math.round(change + 1)}`
  const size = Math.abs(change * 100)
  return `${change < 0 ? '−' : '+'}${size < 9.95 ? size.toFixed(1) : Math.round(size)} %`
}

module.exports = {
  ...format, blockLine, changeText, columns, createContext, figure, lines, noColours, section, value, word
}
