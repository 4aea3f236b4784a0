'use strict'

// Renders a report as text: the verdict, the routes with their figures and waits, what failed, blockers, the
// slowest requests and the open ones; or where the time went as a tree. Data in, string out.

const { routePattern } = require('../aggregate/route-names')
const { createContext, joined } = require('./text-context')
const { limitLines } = require('./text-limits')
const { counted, moment, time, word } = require('./text-parts')
const { routeParts } = require('./text-routes')
const { blockers, failures, open, slowest, verdict } = require('./text-sections')
const { treeLines } = require('./tree')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('./text-context').Context} Context
 * @typedef {import('./text-context').TextOptions} TextOptions
 */

/**
 * @param {Model} model
 * @param {TextOptions} [options]
 * @returns {string}
 */
function report (model, options = {}) {
  const part = options.route === undefined ? model : ofRoute(model, options.route)
  const context = createContext([part], options)
  if (options.tree !== undefined) {
    return joined([head(model, context), treePart(part, options.tree, context), notes(model, context)])
  }
  const isTreePart = context.isFull && part.tree.ms > 0
  return joined([
    head(model, context),
    verdict(part, context),
    ...routeParts(part, context),
    ...(isTreePart ? [treePart(part, 'all', context)] : []),
    failures(part, context),
    blockers(part, context),
    slowest(part, context),
    open(part, context),
    limitLines(model, context),
    notes(model, context),
    hint(part, context)
  ])
}

/** @param {Model} model @param {Context} context */
function head (model, context) {
  return context.paragraph(headText(model, context))
}

/** Says what was read. @param {Model} model @param {Context} context */
function headText ({ files, span }, { colours }) {
  const spans = files.reduce((sum, file) => sum + file.spans, 0)
  const title = colours.bold(glued(`${counted(spans, 'span')} in ${counted(files.length, 'file')}`))
  if (span === undefined) return title
  const { fromUnixMs: start, toUnixMs: end } = span
  const isOneDay = moment(start).slice(0, 10) === moment(end).slice(0, 10)
  const times = `${glued(moment(start))} to ${glued(`${moment(end, isOneDay)} UTC (${time(end - start)})`)}`
  return `${title}, ${times}`
}

/** @param {Model} model @param {'all' | 'slowest'} which @param {Context} context */
function treePart (model, which, { colours, width, isFull }) {
  const tree = which === 'all' ? model.tree : model.slowTree
  const title = `Where the time ${which === 'all' ? '' : 'of the slowest 1 % of each route '}went`
  if (tree.ms === 0) return [`${colours.bold(title)}  not known: no span has waits with their sites`]
  // The only route of a part is its root.
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

/** Lists problems of the files, and notes on the figures. @param {Model} model @param {Context} context */
function notes (model, { colours, paragraph }) {
  const problems = model.files.flatMap(({ name, problems }) =>
    problems.map((problem) => `${word(name, 200)}: ${word(problem, 300)}`))
  return [
    ...problems.flatMap((text) => paragraph(text)).map((line) => colours.yellow(line)),
    ...model.notes.flatMap((text) => paragraph(word(text, 400)))
  ]
}

/**
 * Reduces a model to the routes that a pattern selects.
 * @param {Model} model
 * @param {string} pattern
 * @returns {Model}
 */
function ofRoute (model, pattern) {
  const isSelected = routePattern(pattern)
  const named = (/** @type {{ name: string }} */ { name }) => isSelected(name)
  const treeOf = (/** @type {Model['tree']} */ tree) => {
    const children = tree.children.filter(named)
    const [ms, count] = /** @type {const} */ (['ms', 'count']).map((key) =>
      children.reduce((total, child) => total + child[key], 0))
    return { ...tree, children, ms, count }
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
    failures: model.failures.filter(({ routes }) => routes.some(named)),
    slowest: model.slowest.filter(named),
    blockers: model.blockers.filter(named)
  }
}

module.exports = { headText, notes, ofRoute, report, treePart }
