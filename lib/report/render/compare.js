'use strict'

// Two runs side by side: both curves on one axis, the change of each figure from the first run to the second.
// Data in, string out.

const { boxLine, cells, columns, curve, plain, scale, time, word } = require('./text-parts')
const { amounts, head, joined, notes, table, title, worst } = require('./text')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/summary').Summary} Summary
 * @typedef {import('./text-parts').Colours} Colours
 */

const MATTERS = 0.05 // a change below it has no colour

/**
 * @param {Model} model with `compare`
 * @param {import('./text').Look} [look]
 * @returns {string}
 */
function comparison (model, { colours = plain, width = 80, top = 10 } = {}) {
  const other = /** @type {Model} */ (model.compare)
  const room = Math.max(40, Math.min(width, 100))
  const both = pairs(model, other)
  const shown = both.slice(0, top).map(([a, b]) => pair(a, b, colours, room))
  const rest = both.length > top ? [[`… ${both.length - top} more routes; --top ${both.length} shows all`]] : []
  return joined([
    [...named('A', model, colours), ...named('B', other, colours)],
    ...shown,
    ...rest,
    ...lone(model, other),
    ...half('A', model, colours, top),
    ...half('B', other, colours, top)
  ])
}

/** @param {string} letter @param {Model} model @param {Colours} colours */
function named (letter, model, colours) {
  const names = model.files.map(({ name }) => word(name)).join(', ')
  return [`${colours.bold(letter)}  ${names}: ${head(model, colours).join('')}`]
}

/** @param {string} letter @param {Model} model @param {Colours} colours @param {number} top */
function half (letter, model, colours, top) {
  const parts = [...worst(model, colours, Math.min(top, 5), Math.min(top, 5)), notes(model, colours)].filter((part) => part.length > 0)
  return parts.map(([first, ...others]) => [`${colours.bold(letter)}  ${first}`, ...others])
}

/** Routes of both runs. @param {Model} a @param {Model} b @returns {Array<[Route, Route]>} */
function pairs (a, b) {
  const others = new Map(b.routes.map((route) => [keyOf(route), route]))
  return a.routes.flatMap((route) => {
    const other = others.get(keyOf(route))
    return other === undefined ? [] : [([route, other])]
  })
}

/** @param {Model} a @param {Model} b */
function lone (a, b) {
  /** @param {Model} one @param {Model} other */
  const only = (one, other) => {
    const known = new Set(other.routes.map(keyOf))
    const names = one.routes.filter((route) => !known.has(keyOf(route))).map(title)
    return names.length > 8 ? `${names.slice(0, 8).join(', ')} and ${names.length - 8} more` : names.join(', ')
  }
  const [onlyA, onlyB] = [only(a, b), only(b, a)]
  return [[...(onlyA === '' ? [] : [`only in A: ${onlyA}`]), ...(onlyB === '' ? [] : [`only in B: ${onlyB}`])]]
}

/** @param {Route} route */
function keyOf ({ kind, name }) {
  return `${kind} ${name}`
}

/** @param {Route} a @param {Route} b @param {Colours} colours @param {number} room */
function pair (a, b, colours, room) {
  const part = [colours.bold(title(a)), `  A  ${amounts(a, colours)}`, `  B  ${amounts(b, colours)}`]
  if (a.summary === undefined || b.summary === undefined) return part
  const [titles, first, second] = table([['A', a.summary], ['B', b.summary]], colours)
  return [...part, titles, first, second, changes(a.summary, b.summary, second, colours), ...pictures(a, b, room)]
}

const KEYS = /** @type {const} */ (['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999'])

/** A line of changes, each under its figures. @param {Summary} a @param {Summary} b @param {string} above @param {Colours} colours */
function changes (a, b, above, colours) {
  const ends = [...above.matchAll(/\S+/g)].slice(1).map((match) => match.index + match[0].length)
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
  return `${percent < 0 ? '−' : '+'}${Math.abs(percent) < 9.95 ? Math.abs(percent).toFixed(1) : Math.round(Math.abs(percent))}%`
}

/** @param {string} text @param {number} a @param {number} b @param {Colours} colours */
function tinted (text, a, b, colours) {
  if (Math.abs(b - a) <= MATTERS * a) return text
  return b > a ? colours.red(text) : colours.green(text)
}

/** Both curves on one axis and in one scale. @param {Route} a @param {Route} b @param {number} room */
function pictures (a, b, room) {
  const curves = [a.density, b.density].filter((one) => one !== undefined)
  if (curves.length < 2 || a.box === undefined || b.box === undefined) return []
  const axis = {
    from: Math.min(...curves.map(({ x }) => x[0])),
    to: Math.max(...curves.map(({ x }) => x[x.length - 1])),
    width: room - 13
  }
  const highest = Math.max(...curves.flatMap((one) => cells(one, axis)))
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

module.exports = { comparison, columns, change }
