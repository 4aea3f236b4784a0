'use strict'

// Section with the async flame graph: selects its requests, and opens its frames for links from elsewhere.

const {
  bucketsOf, current, data, follow, isComparison, labels, noteOf, runs, selectedRoutes, sparseSums
} = require('./data')
const { h, moveTo, radioButtons, section } = require('./dom')
const { Flame } = require('./flame')
const { clock, percent, time } = require('../../format')
const { openRequest } = require('./waterfall')
const { allOf, sum } = require('../../../aggregate/lists')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {'tree' | 'slowTree'} TreeName
 */

const MIN_TIMED = 0.9 // share of a tree's time; with less, the picture would mislead
const ALL = ''
const LEAD = 'The wall time of all requests, along the critical path of each: from the route down through ' +
  'the calls that led to each wait or run. Widths are sums: what is widest took most.'

/** @type {Flame | undefined} */
let flame
/** @type {TreeName} */
let treeName = 'tree'
let routeName = ALL
const routeList = h('select', { on: { change: () => showRoute(routeList.value) } })

/** @returns {any} undefined if no run has a tree */
function pathsSection () {
  const trees = runs.flatMap((run) => run.tree ?? [])
  if (trees.length === 0) return undefined
  const names = new Set(trees.flatMap(({ children = [] }) => children.map(({ name }) => name)))
  const option = (/** @type {string} */ value, text = value) => h('option', { value }, text)
  routeList.append(option(ALL, 'all routes'), ...[...names].map((name) => option(name)))
  const portions = runs.some(({ slowTree }) => slowTree !== undefined) &&
    radioButtons('Requests', 'paths', [['tree', 'all'], ['slowTree', 'slowest 1 %']], (name) => {
      treeName = /** @type {TreeName} */ (name)
      show()
    })
  flame = new Flame(currentTrees(), {
    title: 'Critical paths',
    labels: isComparison ? labels : undefined,
    controls: [h('label', { class: 'choice' }, 'Route ', routeList), portions],
    requests: (id) => {
      const trace = data.traces.find((candidate) => candidate.id === id)
      if (trace === undefined) return undefined
      const text = `${trace.name} · ${time(trace.ms)} · ${clock(trace.startUnixMs)}`
      return { text, open: () => openRequest(id) }
    }
  })
  const note = h('p', { class: 'note unfiltered' })
  const show = () => {
    note.textContent = current().range === undefined ? '' : remark()
    note.hidden = note.textContent === ''
    flame?.show(currentTrees())
  }
  follow(show)
  return section('paths', 'Where the time went', h('p', { class: 'lead' }, LEAD),
    noteOf('The flame graph is', ['status']), note, flame.element)
}

/** @param {string} name route name, or ALL */
function showRoute (name) {
  routeName = routeList.value = name
  flame?.show(currentTrees())
}

/**
 * Returns a function that selects a frame of a route and scrolls to it.
 * @param {string} route
 * @param {string[]} frames outermost first
 * @returns {(() => void) | undefined} undefined if there is no flame graph
 */
function openFlame (route, frames) {
  if (runs.every(({ tree }) => tree === undefined)) return undefined
  return () => {
    showRoute(ALL)
    moveTo('paths')
    flame?.open([route, ...frames])
  }
}

/** Returns the selected trees, one per run. */
function currentTrees () {
  const trees = runs.map((run) => {
    const whole = run[treeName] && selectedTree(/** @type {PathNode} */ (run[treeName]), run)
    return routeName === ALL ? whole : whole?.children?.find(({ name }) => name === routeName)
  })
  const none = { name: routeName || 'all requests', kind: 'route' }
  const { name, kind } = trees.find((tree) => tree !== undefined) ?? none
  return trees.map((tree) => tree ?? { name, kind, ms: 0, count: 0 })
}

/** Returns a note about what a range of time cannot filter; empty if everything is filtered. */
function remark () {
  const shares = runs.flatMap((run) => run[treeName] ?? []).map(timedShare)
  const subject = treeName === 'slowTree' ? 'The slowest 1 % are' : 'The flame graph is'
  const missing = 1 - Math.min(...shares)
  if (1 - missing < MIN_TIMED) return `${subject} not filtered by the range of time.`
  return missing < 0.001 ? '' : `Small frames, ${percent(missing)} of all, are not known along time.`
}

/** Returns the share of a tree's ms that is known along time, from 0 to 1. @param {PathNode} tree */
function timedShare (tree) {
  const leaves = allOf(tree).filter(({ children = [] }) => children.length === 0)
  return tree.ms > 0 ? sum(leaves, ({ byBucket, ms }) => byBucket && ms) / tree.ms : 1
}

/**
 * Returns the selected part of a tree: routes by name, times by the sums of their leaves.
 * @param {PathNode} tree
 * @param {PageRun} run
 * @returns {PathNode}
 */
function selectedTree (tree, run) {
  const routes = new Map(selectedRoutes(run).map((route) => [route.name, route]))
  const isKnown = (/** @type {string} */ name) => run.routes.some((route) => route.name === name)
  const children = (tree.children ?? []).filter(({ name }) => routes.has(name) || !isKnown(name))
  const buckets = bucketsOf(run)
  const isTimed = buckets !== undefined && timedShare(tree) >= MIN_TIMED
  if (!isTimed && children.length === tree.children?.length) return tree
  const countOf = (/** @type {PathNode} */ { name }) => routes.get(name)?.weighted ?? 0
  const timed = isTimed && children.map((child) => ({ ...inBuckets(child, buckets), count: countOf(child) }))
  const selected = timed ? timed.filter(({ ms }) => ms > 0) : children
  return {
    ...tree,
    traceIds: isTimed ? [] : tree.traceIds,
    children: selected,
    ms: sum(selected, ({ ms }) => ms),
    count: sum(selected, ({ count }) => count)
  }
}

/**
 * Returns a node with the times of some buckets. Its count is unknown.
 * @param {PathNode} node
 * @param {[number, number]} buckets
 * @returns {PathNode}
 */
function inBuckets (node, buckets) {
  const { children = [], byBucket = [] } = node
  const parts = children.map((child) => inBuckets(child, buckets)).filter(({ ms }) => ms > 0)
  parts.sort((a, b) => b.ms - a.ms)
  const ms = children.length === 0 ? sparseSums(byBucket, 1, buckets)[0] : sum(parts, (child) => child.ms)
  return { ...node, children: parts, ms, count: NaN, traceIds: [] }
}

module.exports = { openFlame, pathsSection }
