'use strict'

// Renders a report as text: the verdict, the routes with their figures and waits, failures, blockers, slowest
// and open requests; or a tree of where the time went. For two runs it shows the change of each figure, and
// the waits and blockers that changed most. Data in, string out.

const { runsOf } = require('../aggregate/changes')
const { sum } = require('../aggregate/lists')
const { routeKey, routePattern } = require('../aggregate/route-names')
const {
  changeText, clock, counted, createContext, figure, moment, section, time, word
} = require('./text-parts')
const { amounts, placeText, routeParts, table, title } = require('./text-routes')
const {
  blockers, convoys, experiments, failures, handles, limitLines, open, slowest, verdict
} = require('./text-sections')
const { treeLines } = require('./tree')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/changes').Changes} Changes
 * @typedef {import('../aggregate/changes').SiteChange} SiteChange
 * @typedef {import('../aggregate/changes').BlockerChange} BlockerChange
 * @typedef {import('./text-parts').Context} Context
 * @typedef {import('./text-parts').TextOptions} TextOptions
 */

const COLOURED_CHANGE = 0.05 // smaller changes have no colour
const MAX_LONE = 8 // number of routes that only one run has
/** @type {[number, number]} */
const MAX_ROUTES = [8, 20]
/** @type {[number, number]} */
const MAX_CHANGES = [5, 20]
const MAX_OPEN = 40 // spans and openers of handles, if nothing else is printed
const MIN_CHANGE = 0.02 // share of the largest change, below which a change is left out

/**
 * @param {Model} model
 * @param {TextOptions} [options]
 * @returns {string}
 */
function report (model, options = {}) {
  const { route, tree } = options
  const runs = runsOf(model)
  const parts = route === undefined ? runs : runs.map((run) => ofRoute(run, route))
  const context = createContext(parts, options)
  if (parts.length > 1) return joined(comparison(model, runs, parts, tree, context))
  const [part] = parts
  const head = context.paragraph(headText(model, context))
  if (tree !== undefined) return joined([head, treePart(part, tree, context), notes(model, context)])
  return joined([
    head,
    verdict(part, context),
    ...routeParts(part, context),
    context.isFull && part.tree.ms > 0 ? treePart(part, 'all', context) : [],
    ...[convoys, failures, blockers, slowest, open, handles].map((sectionOf) => sectionOf(part, context)),
    experiments(model, context),
    limitLines(model, context),
    notes(model, context),
    hint(part, context)
  ])
}

/**
 * Renders what is open in the processes of black boxes, and what is wrong with it.
 * @param {Model} model
 * @param {string} hint the last paragraph
 * @param {TextOptions} [options]
 * @returns {string}
 */
function openText (model, hint, options = {}) {
  const context = createContext([model], { ...options, top: MAX_OPEN })
  const hasNone = model.open.length + (model.handles ?? []).length === 0
  return joined([
    model.verdict.length === 0 ? [] : verdict(model, context),
    open(model, context),
    handles(model, context),
    hasNone ? ['Nothing is known to be open.'] : [],
    context.paragraph(hint).map((line) => context.colours.dim(line))
  ])
}

/** Joins the nonempty parts of a report. @param {string[][]} parts */
function joined (parts) {
  return parts.filter((part) => part.length > 0).map((part) => part.join('\n')).join('\n\n') + '\n'
}

/**
 * @param {Model} model
 * @param {Model[]} runs both
 * @param {Model[]} parts the parts of the runs to print
 * @param {TextOptions['tree']} tree
 * @param {Context} context
 * @returns {string[][]}
 */
function comparison (model, runs, [a, b], tree, context) {
  const { colours, isFull, paragraph } = context
  const lettered = (/** @type {number} */ run, /** @type {string[]} */ lines) =>
    lines.map((line, i) => i === 0 ? `${colours.bold('AB'[run])}  ${line}` : line)
  const heads = runs.flatMap((run, i) => {
    const names = run.files.map(({ name }) => glued(word(name))).join(', ')
    return paragraph(`${names}: ${headText(run, context)}`, `${colours.bold('AB'[i])}  `)
  })
  if (tree !== undefined) return [heads, ...[a, b].map((run, i) => lettered(i, treePart(run, tree, context)))]
  const changes = /** @type {Changes} */ (model.changes)
  const pairs = pairsOf(a, b, changes)
  const details = isFull
    ? [a, b].flatMap((run, i) =>
        [failures, blockers, slowest, open].map((part) => lettered(i, part(run, context))))
    : [lettered(1, failures(b, context))]
  return [
    heads,
    lettered(1, verdict(b, context)),
    ...pairParts(pairs, context),
    [...lone('A', a, b, context), ...lone('B', b, a, context)],
    ...changeParts(changes, pairs.map(([{ name }]) => name), context),
    ...details,
    limitLines(model, context),
    ...runs.map((run, i) => lettered(i, notes(run, context)))
  ]
}

/** Summarizes the input. @param {Model} model @param {Context} context */
function headText ({ files, span }, { colours }) {
  const spans = sum(files, (file) => file.spans)
  const title = colours.bold(glued(`${counted(spans, 'span')} in ${counted(files.length, 'file')}`))
  if (span === undefined) return title
  const { fromUnixMs: start, toUnixMs: end } = span
  const isOneDay = moment(start).slice(0, 10) === moment(end).slice(0, 10)
  const endText = `${(isOneDay ? clock : moment)(end)} UTC (${time(end - start)})`
  return `${title}, ${glued(moment(start))} to ${glued(endText)}`
}

/** @param {Model} model @param {'all' | 'slowest'} which @param {Context} context */
function treePart (model, which, { colours, width, isFull }) {
  const tree = which === 'all' ? model.tree : model.slowTree
  const title = `Where the time ${which === 'all' ? '' : 'of the slowest 1 % of each route '}went`
  if (tree.ms === 0) return [`${colours.bold(title)}  not known: no span has waits with their sites`]
  // If there is only one route, it becomes the root
  const root = tree.children.length === 1 ? tree.children[0] : tree
  return [colours.bold(title), ...treeLines(root, { colours, width, minShare: isFull ? 0.002 : undefined })]
}

/** @param {Model} model @param {Context} context */
function hint ({ tree }, { colours, isFull, paragraph }) {
  if (isFull) return []
  const text = `${glued('--full')} prints quartiles, densities, all waits and stacks` +
    (tree.ms > 0 ? `; ${glued('--tree')} where the time went along chains of calls.` : '.')
  return paragraph(text).map((line) => colours.dim(line))
}

/** Lists problems of the files. @param {Model} model */
function problemsOf ({ files }) {
  return files.flatMap(({ name, problems }) =>
    problems.map((problem) => `${word(name, 200)}: ${word(problem, 300)}`))
}

/** Lists problems of the files, and notes on the figures. @param {Model} model @param {Context} context */
function notes (model, { colours, paragraph }) {
  return [
    ...problemsOf(model).flatMap((text) => paragraph(text)).map((line) => colours.yellow(line)),
    ...model.notes.flatMap((text) => paragraph(word(text, 400)))
  ]
}

/**
 * Reduces a model to the routes that match a pattern.
 * @param {Model} model
 * @param {string} pattern
 * @returns {Model}
 */
function ofRoute (model, pattern) {
  const isSelected = routePattern(pattern)
  const named = (/** @type {{ name: string }} */ { name }) => isSelected(name)
  const treeOf = (/** @type {Model['tree']} */ tree) => {
    const children = tree.children.filter(named)
    const count = sum(children, (child) => child.count)
    return { ...tree, children, ms: sum(children, ({ ms }) => ms), count }
  }
  const open = model.open.filter(named)
  return {
    ...model,
    routes: model.routes.filter(named),
    open,
    openCount: open.length,
    verdict: model.verdict.filter(({ route }) => route !== undefined && isSelected(route)),
    tree: treeOf(model.tree),
    slowTree: treeOf(model.slowTree),
    convoys: model.convoys.filter(({ requests, for: holder }) =>
      isSelected(holder) || requests.some(({ request }) => isSelected(request))),
    failures: model.failures.filter(({ routes }) => routes.some(named)),
    slowest: model.slowest.filter(named),
    blockers: model.blockers.filter(named)
  }
}

/**
 * Pairs the routes that both runs have, largest change first.
 * @param {Model} a
 * @param {Model} b
 * @param {Changes} changes
 */
function pairsOf (a, b, changes) {
  const [first, second] = [a, b].map(({ routes }) => new Map(routes.map((route) => [routeKey(route), route])))
  return changes.routes.flatMap((route) => {
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
  // The short form omits clients: their time is part of the servers'
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
 * @param {Changes} changes
 * @param {string[]} routes printed routes
 * @param {Context} context
 * @returns {string[][]} a section for waits and one for blockers
 */
function changeParts (changes, routes, context) {
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
 * Keeps the changes that are significant next to the largest one, in the same order.
 * @template T
 * @param {T[]} changes
 * @param {(change: T) => number} size
 */
function notable (changes, size) {
  const largest = Math.max(0, ...changes.map((change) => Math.abs(size(change))))
  return changes.filter((change) => Math.abs(size(change)) >= MIN_CHANGE * largest)
}

module.exports = { notable, openText, problemsOf, report }
