'use strict'

// Renders the comparison of two runs as text: the change of each figure from the first run to the second, the
// waits and blockers that changed most; in full, both curves on one axis. Data in, string out.

const { changeLines } = require('./compare-changes')
const { ofRoute } = require('./route-filter')
const { headText, notes, treePart } = require('./text')
const { createContext, joined } = require('./text-context')
const { blockers, failures, verdict } = require('./text-findings')
const { changeText, limitLines } = require('./text-limits')
const { boxLine, cells, counted, curve, figure, scale, time, word } = require('./text-parts')
const { open, slowest } = require('./text-requests')
const { amounts, table, title } = require('./text-routes')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('./text-context').Context} Context
 * @typedef {import('./text-context').TextOptions} TextOptions
 */

const COLOURED_CHANGE = 0.05 // smaller ones have no colour
const MAX_LONE = 8 // routes of one run only
const [SHORT_ROUTES, FULL_ROUTES] = [8, 20]

/**
 * @param {Model} model with `compare` and `changes`
 * @param {TextOptions} [options]
 * @returns {string}
 */
function comparison (model, options = {}) {
  const runs = [model, /** @type {Model} */ (model.compare)]
  const { route, tree } = options
  const [a, b] = route === undefined ? runs : runs.map((run) => ofRoute(run, route))
  const context = createContext([a, b], options)
  const heads = runs.flatMap((run, i) => named('AB'[i], run, context))
  if (tree !== undefined) {
    const trees = [a, b].map((run, i) => lettered('AB'[i], treePart(run, tree, context), context))
    return joined([heads, ...trees])
  }
  const both = pairs(a, b, model.changes)
  return joined([
    heads,
    lettered('B', verdict(b, context), context),
    ...pairParts(both, context),
    lone(a, b, context),
    ...changeLines(model.changes, both.map(([{ name }]) => name), context),
    ...details(a, b, context),
    limitLines(model, context),
    ...runs.map((run, i) => lettered('AB'[i], notes(run, context), context))
  ])
}

/** @param {string} letter @param {Model} model @param {Context} context */
function named (letter, model, context) {
  const names = model.files.map(({ name }) => glued(word(name))).join(', ')
  return context.paragraph(`${names}: ${headText(model, context)}`, `${context.colours.bold(letter)}  `)
}

/** Marks the section of a run. @param {string} letter @param {string[]} lines @param {Context} context */
function lettered (letter, lines, { colours }) {
  return lines.map((line, i) => i === 0 ? `${colours.bold(letter)}  ${line}` : line)
}

/** @param {Model} a @param {Model} b @param {Context} context */
function details (a, b, context) {
  if (!context.isFull) return [lettered('B', failures(b, context), context)]
  return [a, b].flatMap((run, i) => [failures, blockers, slowest, open].map((section) =>
    lettered('AB'[i], section(run, context), context)))
}

/**
 * Pairs the routes that both runs have, worst change first.
 * @param {Model} a
 * @param {Model} b
 * @param {Model['changes']} changes
 */
function pairs (a, b, changes) {
  const [first, second] = [a, b].map(({ routes }) => new Map(routes.map((route) => [keyOf(route), route])))
  const order = changes === undefined ? a.routes : changes.routes
  return order.flatMap((route) => {
    const pair = [first.get(keyOf(route)), second.get(keyOf(route))]
    return pair.includes(undefined) ? [] : [/** @type {[Route, Route]} */(pair)]
  })
}

/** @param {{ kind: string, name: string }} route */
function keyOf ({ kind, name }) {
  return `${kind} ${name}`
}

/** Lists the routes that only one run has. @param {Model} a @param {Model} b @param {Context} context */
function lone (a, b, { paragraph }) {
  const [onlyA, onlyB] = [routesOnlyIn(a, b), routesOnlyIn(b, a)]
  return [
    ...(onlyA === '' ? [] : paragraph(`only in A: ${onlyA}`, '', '  ')),
    ...(onlyB === '' ? [] : paragraph(`only in B: ${onlyB}`, '', '  '))
  ]
}

/** @param {Model} model @param {Model} other */
function routesOnlyIn (model, other) {
  const keys = new Set(other.routes.map(keyOf))
  const names = model.routes.filter((route) => !keys.has(keyOf(route))).map((route) => glued(title(route)))
  const more = names.length > MAX_LONE ? ` and ${names.length - MAX_LONE} more` : ''
  return names.slice(0, MAX_LONE).join(', ') + more
}

/** @param {Array<[Route, Route]>} both @param {Context} context @returns {string[][]} */
function pairParts (both, context) {
  const { isFull, top = isFull ? FULL_ROUTES : SHORT_ROUTES } = context
  // In short without clients: their time is part of the servers'.
  const isLong = isFull || context.top !== undefined
  const printed = both.filter(([{ kind }]) => isLong || kind === both[0][0].kind).slice(0, top)
  const parts = printed.map(([a, b]) => pairPart(a, b, context))
  if (both.length === printed.length) return parts
  const more = counted(both.length - printed.length, 'more route')
  return [...parts, [`… ${more}; --top ${both.length} prints all`]]
}

/** @param {Route} a @param {Route} b @param {Context} context */
function pairPart (a, b, { colours, isFull, paragraph, width }) {
  const part = paragraph(
    `${colours.bold(glued(`${title(a)} `))} A ${amounts(a, colours)}; B ${amounts(b, colours)}`, '', '  ')
  const [first, second] = [a.summary, b.summary]
  if (first === undefined || second === undefined) return part
  const means = meanParts(a, b)
  return [
    ...part,
    ...table([
      ['A', (key) => figure(first[key])],
      ['B', (key) => figure(second[key])],
      ['', (key) => tinted(change(first[key], second[key]), first[key], second[key], colours)]
    ], colours, width),
    ...(isFull ? plots(a, b, width) : []),
    ...(means === '' ? [] : paragraph(means, '  means  '))
  ]
}

/** Formats a change for a column. @param {number} a @param {number} b */
function change (a, b) {
  return changeText(a, b).replace(' ', '')
}

/** @param {string} text @param {number} a @param {number} b @param {Context['colours']} colours */
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
    `             ${scale(axis)}`
  ]
}

/** @param {Route} a @param {Route} b */
function meanParts ({ split: a }, { split: b }) {
  if (a === undefined || b === undefined) return ''
  const parts = /** @type {const} */ ([['run', 'run'], ['wait', 'waited'], ['delayed', 'delayed']])
  return parts.map(([name, key]) => glued(`${name} ${time(a[key])} → ${time(b[key])}`)).join(' · ')
}

module.exports = { comparison, change }
