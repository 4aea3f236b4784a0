'use strict'

// Renders the comparison of two runs as text: both curves on one axis, the change of each figure from the
// first run to the second. Data in, string out.

const { boxLine, cells, curve, noColours, scale, time, word } = require('./text-parts')
const { MAX_WIDTH, MIN_WIDTH, amounts, head, joined, notes, table, title, worst } = require('./text')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/summary').Summary} Summary
 * @typedef {import('./text-parts').Colours} Colours
 */

const COLOURED_CHANGE = 0.05 // smaller ones have no colour
const MAX_LONE = 8 // routes of one run only
const MAX_WORST = 5

/**
 * @param {Model} model with `compare`
 * @param {import('./text').TextOptions} [options]
 * @returns {string}
 */
function comparison (model, { colours = noColours, width = 80, top = 10 } = {}) {
  const other = /** @type {Model} */ (model.compare)
  const bounded = Math.max(MIN_WIDTH, Math.min(width, MAX_WIDTH))
  const both = pairs(model, other)
  const parts = both.slice(0, top).map(([a, b]) => pair(a, b, colours, bounded))
  const { length } = both
  const more = length > top ? [[`… ${length - top} more routes; use --top ${length} to print all`]] : []
  return joined([
    [...named('A', model, colours), ...named('B', other, colours)],
    ...parts,
    ...more,
    ...lone(model, other),
    ...details('A', model, colours, top),
    ...details('B', other, colours, top)
  ])
}

/** @param {string} letter @param {Model} model @param {Colours} colours */
function named (letter, model, colours) {
  const names = model.files.map(({ name }) => word(name)).join(', ')
  return [`${colours.bold(letter)}  ${names}: ${head(model, colours).join('')}`]
}

/** @param {string} letter @param {Model} model @param {Colours} colours @param {number} top */
function details (letter, model, colours, top) {
  const max = Math.min(top, MAX_WORST)
  const parts = [...worst(model, colours, max, max), notes(model, colours)].filter((part) => part.length > 0)
  return parts.map(([first, ...others]) => [`${colours.bold(letter)}  ${first}`, ...others])
}

/**
 * Pairs the routes that both runs have.
 * @param {Model} a
 * @param {Model} b
 * @returns {Array<[Route, Route]>}
 */
function pairs (a, b) {
  const others = new Map(b.routes.map((route) => [keyOf(route), route]))
  return a.routes.flatMap((route) => {
    const other = others.get(keyOf(route))
    return other === undefined ? [] : [([route, other])]
  })
}

/** Lists the routes that only one run has. @param {Model} a @param {Model} b */
function lone (a, b) {
  const [onlyA, onlyB] = [routesOnlyIn(a, b), routesOnlyIn(b, a)]
  return [[
    ...(onlyA === '' ? [] : [`only in A: ${onlyA}`]),
    ...(onlyB === '' ? [] : [`only in B: ${onlyB}`])
  ]]
}

/** @param {Model} model @param {Model} other */
function routesOnlyIn (model, other) {
  const keys = new Set(other.routes.map(keyOf))
  const names = model.routes.filter((route) => !keys.has(keyOf(route))).map(title)
  const more = names.length > MAX_LONE ? ` and ${names.length - MAX_LONE} more` : ''
  return names.slice(0, MAX_LONE).join(', ') + more
}

/** @param {Route} route */
function keyOf ({ kind, name }) {
  return `${kind} ${name}`
}

/** @param {Route} a @param {Route} b @param {Colours} colours @param {number} width */
function pair (a, b, colours, width) {
  const part = [colours.bold(title(a)), `  A  ${amounts(a, colours)}`, `  B  ${amounts(b, colours)}`]
  if (a.summary === undefined || b.summary === undefined) return part
  const [titles, first, second] = table([['A', a.summary], ['B', b.summary]], colours)
  const changed = changes(a.summary, b.summary, second, colours)
  return [...part, titles, first, second, changed, ...plots(a, b, width)]
}

const KEYS = /** @type {const} */ (['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999'])

/**
 * Renders changes, each below its figure in another line.
 * @param {Summary} a
 * @param {Summary} b
 * @param {string} figures
 * @param {Colours} colours
 */
function changes (a, b, figures, colours) {
  const ends = [...figures.matchAll(/\S+/g)].slice(1).map((match) => match.index + match[0].length)
  let line = '  '
  let length = 2
  KEYS.forEach((key, i) => {
    const text = change(a[key], b[key])
    const padding = ' '.repeat(Math.max(1, ends[i] - length - text.length))
    length += padding.length + text.length
    line += padding + tinted(text, a[key], b[key], colours)
  })
  return line
}

/** @param {number} a @param {number} b */
function change (a, b) {
  if (a === b) return '='
  if (a === 0) return 'new'
  const ratio = b / a
  if (ratio >= 10) return `×${ratio >= 1e4 ? ratio.toExponential(0) : Math.round(ratio)}`
  const percent = (ratio - 1) * 100
  const size = Math.abs(percent)
  return `${percent < 0 ? '−' : '+'}${size < 9.95 ? size.toFixed(1) : Math.round(size)}%`
}

/** @param {string} text @param {number} a @param {number} b @param {Colours} colours */
function tinted (text, a, b, colours) {
  if (Math.abs(b - a) <= COLOURED_CHANGE * a) return text
  return b > a ? colours.red(text) : colours.green(text)
}

/** Draws both curves on one axis and in one scale. @param {Route} a @param {Route} b @param {number} width */
function plots (a, b, width) {
  const curves = [a.density, b.density].filter((density) => density !== undefined)
  if (curves.length < 2 || a.box === undefined || b.box === undefined) return []
  const axis = {
    from: Math.min(...curves.map(({ x }) => x[0])),
    to: Math.max(...curves.map(({ x }) => x[x.length - 1])),
    width: width - 13
  }
  const highest = Math.max(...curves.flatMap((density) => cells(density, axis)))
  return [
    `  A density  ${curve(curves[0], axis, highest)}`,
    `  B density  ${curve(curves[1], axis, highest)}`,
    `  A box      ${boxLine(a.box, axis)}`,
    `  B box      ${boxLine(b.box, axis)}`,
    `             ${scale(axis)}`,
    `  means      ${meanParts(a, b)}`
  ].filter((line) => !line.endsWith('  '))
}

/** @param {Route} a @param {Route} b */
function meanParts ({ split: a }, { split: b }) {
  if (a === undefined || b === undefined) return ''
  const parts = /** @type {const} */ ([['run', 'run'], ['wait', 'waited'], ['delayed', 'delayed']])
  return parts.map(([name, key]) => `${name} ${time(a[key])} → ${time(b[key])}`).join(' · ')
}

module.exports = { comparison, change }
