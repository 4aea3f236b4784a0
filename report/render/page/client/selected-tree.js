'use strict'

// What of a tree of critical paths is selected: its routes by name, its times by the sums of its leaves.

const { bucketsOf, sparseSums } = require('./filter')
const { selectedRoutes } = require('./selected')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {import('./filter').Selection} Selection
 * @typedef {import('../data').PageRun} PageRun
 */

const MIN_SHARE = 0.9 // of a tree's time; with less the picture would be another one

/** Returns the part of a tree's ms that is known along time, from 0 to 1. @param {PathNode} tree */
function timedShare (tree) {
  return tree.ms > 0 ? timedMs(tree) / tree.ms : 1
}

/** @param {PathNode} node @returns {number} */
function timedMs ({ children = [], byBucket, ms }) {
  if (children.length === 0) return byBucket === undefined ? 0 : ms
  return children.reduce((sum, child) => sum + timedMs(child), 0)
}

/** Returns whether a tree can be filtered by time. @param {PathNode} tree */
function hasTimes (tree) {
  return timedShare(tree) >= MIN_SHARE
}

/**
 * @param {PathNode} tree
 * @param {PageRun} run
 * @param {Selection} selection
 * @returns {PathNode}
 */
function selectedTree (tree, run, selection) {
  const routes = new Map(selectedRoutes(run, selection).map((route) => [route.name, route]))
  const isKnown = (/** @type {string} */ name) => run.routes.some((route) => route.name === name)
  const children = (tree.children ?? []).filter(({ name }) => routes.has(name) || !isKnown(name))
  const buckets = bucketsOf(selection, run)
  if (buckets === undefined || !hasTimes(tree)) {
    return children.length === tree.children?.length ? tree : sumUp({ ...tree, children })
  }
  const timed = children.map((child) => {
    const count = routes.get(child.name)?.figures.weighted ?? 0
    return { ...inBuckets(child, buckets), count }
  })
  return sumUp({ ...tree, traceIds: [], children: timed.filter(({ ms }) => ms > 0) })
}

/** @param {PathNode} root @returns {PathNode} */
function sumUp (root) {
  const sum = (/** @type {'ms' | 'count'} */ name) =>
    (root.children ?? []).reduce((total, child) => total + child[name], 0)
  return { ...root, ms: sum('ms'), count: sum('count') }
}

/**
 * Returns a node with the times of some buckets; its count is not known.
 * @param {PathNode} node
 * @param {[number, number]} buckets
 * @returns {PathNode}
 */
function inBuckets (node, buckets) {
  const { children = [], byBucket = [] } = node
  if (children.length === 0) {
    const [ms] = sparseSums(byBucket, 1, buckets)
    return { ...node, ms, count: NaN, traceIds: [] }
  }
  const inside = children.map((child) => inBuckets(child, buckets)).filter(({ ms }) => ms > 0)
  inside.sort((a, b) => b.ms - a.ms)
  const ms = inside.reduce((sum, child) => sum + child.ms, 0)
  return { ...node, children: inside, ms, count: NaN, traceIds: [] }
}

module.exports = { hasTimes, selectedTree, timedShare }
