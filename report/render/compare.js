'use strict'

// Renders the comparison of two runs as text: the change of each figure from the first run to the second, the
// waits and blockers that changed most. Data in, string out.

const { routeKey } = require('../aggregate/route-names')
const { headText, notes, ofRoute, treePart } = require('./text')
const { createContext, joined, section } = require('./text-context')
const { changeText, limitLines } = require('./text-limits')
const { counted, figure, time, word } = require('./text-parts')
const { amounts, placeText, table, title } = require('./text-routes')
const { blockers, failures, open, slowest, verdict } = require('./text-sections')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/changes').Changes} Changes
 * @typedef {import('../aggregate/changes').SiteChange} SiteChange
 * @typedef {import('../aggregate/changes').BlockerChange} BlockerChange
 * @typedef {import('./text-context').Context} Context
 * @typedef {import('./text-context').TextOptions} TextOptions
 */

const COLOURED_CHANGE = 0.05 // smaller ones have no colour
const MAX_LONE = 8 // routes of one run only
/** @type {[number, number]} */
const MAX_ROUTES = [8, 20]
/** @type {[number, number]} */
const MAX_CHANGES = [5, 20]
const MIN_CHANGE = 0.02 // of the largest change, below which one is left out

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
  const { colours, isFull, paragraph } = context
  const lettered = (/** @type {number} */ run, /** @type {string[]} */ lines) =>
    lines.map((line, i) => i === 0 ? `${colours.bold('AB'[run])}  ${line}` : line)
  const heads = runs.flatMap((run, i) => {
    const names = run.files.map(({ name }) => glued(word(name))).join(', ')
    return paragraph(`${names}: ${headText(run, context)}`, `${colours.bold('AB'[i])}  `)
  })
  if (tree !== undefined) {
    return joined([heads, ...[a, b].map((run, i) => lettered(i, treePart(run, tree, context)))])
  }
  const pairs = pairsOf(a, b, model.changes)
  const details = isFull
    ? [a, b].flatMap((run, i) =>
        [failures, blockers, slowest, open].map((part) => lettered(i, part(run, context))))
    : [lettered(1, failures(b, context))]
  return joined([
    heads,
    lettered(1, verdict(b, context)),
    ...pairParts(pairs, context),
    [...lone('A', a, b, context), ...lone('B', b, a, context)],
    ...changeParts(model.changes, pairs.map(([{ name }]) => name), context),
    ...details,
    limitLines(model, context),
    ...runs.map((run, i) => lettered(i, notes(run, context)))
  ])
}

/**
 * Pairs the routes that both runs have, worst change first.
 * @param {Model} a
 * @param {Model} b
 * @param {Model['changes']} changes
 */
function pairsOf (a, b, changes) {
  const [first, second] = [a, b].map(({ routes }) => new Map(routes.map((route) => [routeKey(route), route])))
  const order = changes === undefined ? a.routes : changes.routes
  return order.flatMap((route) => {
    const pair = [first.get(routeKey(route)), second.get(routeKey(route))]
    return pair.includes(undefined) ? [] : [/** @type {[Route, Route]} */(pair)]
  })
}

/**
 * Lists the routes that only one run has.
 * @param {string} letter
 * @param {Model} model
 * @param {Model} other
 * @param {Context} context
 */
function lone (letter, model, other, { paragraph }) {
  const keys = new Set(other.routes.map(routeKey))
  const names = model.routes.filter((route) => !keys.has(routeKey(route))).map((route) => glued(title(route)))
  if (names.length === 0) return []
  const more = names.length > MAX_LONE ? ` and ${names.length - MAX_LONE} more` : ''
  return paragraph(`only in ${letter}: ${names.slice(0, MAX_LONE).join(', ')}${more}`, '', '  ')
}

/** @param {Array<[Route, Route]>} pairs @param {Context} context @returns {string[][]} */
function pairParts (pairs, context) {
  const { isFull, top } = context
  // In short without clients: their time is part of the servers'.
  const isLong = isFull || top !== undefined
  const printed = pairs.filter(([{ kind }]) => isLong || kind === pairs[0][0].kind)
    .slice(0, context.max(MAX_ROUTES))
  const parts = printed.map(([a, b]) => pairPart(a, b, context))
  if (pairs.length === printed.length) return parts
  const more = counted(pairs.length - printed.length, 'more route')
  return [...parts, [`… ${more}; --top ${pairs.length} prints all`]]
}

/** @param {Route} a @param {Route} b @param {Context} context */
function pairPart (a, b, { colours, paragraph, width }) {
  const part = paragraph(
    `${colours.bold(glued(`${title(a)} `))} A ${amounts(a, colours)}; B ${amounts(b, colours)}`, '', '  ')
  const [first, second] = [a.summary, b.summary]
  if (first === undefined || second === undefined) return part
  const rows = table([
    ['A', (key) => figure(first[key])],
    ['B', (key) => figure(second[key])],
    ['', (key) => tinted(first[key], second[key], colours)]
  ], colours, width)
  const [before, after] = [a.split, b.split]
  if (before === undefined || after === undefined) return [...part, ...rows]
  const means = /** @type {const} */ ([['run', 'run'], ['wait', 'waited'], ['delayed', 'delayed']])
    .map(([name, key]) => glued(`${name} ${time(before[key])} → ${time(after[key])}`))
  return [...part, ...rows, ...paragraph(means.join(' · '), '  means  ')]
}

/** Formats a change for a column. @param {number} a @param {number} b @param {Context['colours']} colours */
function tinted (a, b, colours) {
  const text = changeText(a, b).replace(' ', '')
  if (Math.abs(b - a) <= COLOURED_CHANGE * a) return text
  return b > a ? colours.red(text) : colours.green(text)
}

/**
 * @param {Changes | undefined} changes
 * @param {string[]} routes that are printed
 * @param {Context} context
 * @returns {string[][]} a section for waits, one for blockers
 */
function changeParts (changes, routes, context) {
  if (changes === undefined) return []
  const { colours, max: maxOf, paragraph } = context
  const max = maxOf(MAX_CHANGES)
  const printed = changes.sites.filter(({ route }) => routes.includes(route))
  const sites = notable(printed, ({ changeMs }) => changeMs)
  const blockers = notable(changes.blockers, ({ change }) => change)
  const linesOf = (/** @type {SiteChange | BlockerChange} */ change) => {
    const { beforeMs, afterMs, change: ms } = change
    const name = glued(word('route' in change ? change.route : change.name))
    const isKnown = 'route' in change || change.at !== undefined
    const place = isKnown ? ` ${placeText(change, context)}` : ''
    const difference = glued(`${ms < 0 ? '−' : '+'}${time(Math.abs(ms))}`.padStart(9))
    const figures = glued(`(${time(beforeMs)} → ${time(afterMs)}, ${changeText(beforeMs, afterMs)})`)
    const colour = ms > 0 ? colours.red : colours.green
    return paragraph(`${colour(difference)} ${name}${place} ${figures}`, ' ', '    ')
  }
  return [
    section(`${colours.bold('Waits that changed most')}  per request`, sites, max, linesOf),
    section(`${colours.bold('Blockers that changed most')}  per request`, blockers, max, linesOf)
  ]
}

/**
 * Keeps the changes that matter beside the largest, in their order.
 * @template T
 * @param {T[]} changes
 * @param {(change: T) => number} size
 */
function notable (changes, size) {
  const largest = Math.max(0, ...changes.map((change) => Math.abs(size(change))))
  return changes.filter((change) => Math.abs(size(change)) >= MIN_CHANGE * largest)
}

module.exports = { comparison, notable }
