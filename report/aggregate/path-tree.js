'use strict'

// The calling-context tree of critical paths: route, frames from the outermost caller to the site, and the
// time spent there. The children of a root, route or frame add up to it.

const { FIGURES, addExample } = require('./critical-paths')
const { BESIDE } = require('./sites')
const { Sums, allOf, getOrCreate, sum } = require('./lists')
const { sparse } = require('./time-axis')

/**
 * @typedef {import('./critical-paths').SiteSums} SiteSums
 * @typedef {import('./time-axis').Sparse} Sparse
 *
 * @typedef {object} PathNode
 * @property {string} name
 * @property {'root' | 'route' | 'frame' | 'ran' | 'waited' | 'delayed' | 'beside'} kind
 * @property {number} ms including its children, weighted
 * @property {number} count requests for a root or route, else waits and callbacks; weighted
 * @property {PathNode[]} children worst first
 * @property {string[]} [traceIds] traces that spent most there, at most three
 * @property {Sparse} [byBucket] ms of a leaf over time; absent if unknown
 *
 * @typedef {Pick<PathNode, 'name' | 'kind' | 'ms' | 'count' | 'byBucket'>
 *   & { children: Map<string, Growing>, examples: SiteSums['examples'] }} Growing
 */

const MAX_NODES = 5000
const SMALLER = '(smaller)'
const LEAVES = /** @type {const} */ (['ran', 'waited', 'delayed', 'beside'])

class PathTree {
  #root = node('all requests', 'root')
  #axis

  /** @param {import('./time-axis').Axis} [axis] no sums over time without it */
  constructor (axis) {
    this.#axis = axis
  }

  /**
   * Adds the time of a route's requests.
   * @param {string} name of the route
   * @param {number} count requests, weighted
   * @param {SiteSums[]} sums
   */
  add (name, count, sums) {
    const route = childOf(this.#root, name, 'route')
    this.#root.count += count
    route.count += count
    for (const site of sums) this.#addSite(route, site)
  }

  /** @param {Growing} route @param {SiteSums} sums */
  #addSite (route, { place, waited, waits, delayed, delays, ran, callbacks, examples, times }) {
    const { at: frame, callers, until, label } = place
    const path = [this.#root, route]
    const frames = frame === undefined ? callers : [frame, ...callers]
    for (let i = frames.length - 1; i >= 0; i--) {
      const last = path[path.length - 1]
      if (last.kind !== 'frame' || last.name !== frames[i]) path.push(childOf(last, frames[i], 'frame'))
    }
    const isBeside = place === BESIDE
    /** @type {Array<[string, PathNode['kind'], number, number, typeof FIGURES[number]]>} */
    const leaves = [
      [until ?? label ?? 'unknown', 'waited', waited, waits, 'waited'],
      ['delayed by others', 'delayed', delayed, delays, 'delayed'],
      [isBeside ? 'ran beside' : 'ran', isBeside ? 'beside' : 'ran', ran, callbacks, 'ran']
    ]
    for (const [name, kind, ms, count, figure] of leaves) {
      if (ms <= 0) continue
      const byBucket = sparse(this.#axis, [times], FIGURES.indexOf(figure))
      addLeaf(path, name, kind, { ms, count, examples, byBucket })
    }
  }

  /** @returns {PathNode} */
  build () {
    return prune(nodeOf(this.#root), MAX_NODES)
  }
}

/** @param {string} name @param {PathNode['kind']} kind @returns {Growing} */
function node (name, kind) {
  return { name, kind, ms: 0, count: 0, children: new Map(), examples: [] }
}

/** @param {Growing} parent @param {string} name @param {PathNode['kind']} kind */
function childOf (parent, name, kind) {
  return getOrCreate(parent.children, `${kind} ${name}`, () => node(name, kind))
}

/**
 * @param {Growing[]} path to the parent
 * @param {string} name
 * @param {PathNode['kind']} kind
 * @param {Pick<Growing, 'ms' | 'count' | 'examples' | 'byBucket'>} sums
 */
function addLeaf (path, name, kind, { ms, count, examples, byBucket }) {
  const leaf = childOf(path[path.length - 1], name, kind)
  leaf.byBucket = leaf.ms === 0 ? byBucket : joinedTimes([leaf.byBucket, byBucket])
  for (const step of [...path, leaf]) {
    step.ms += ms
    if (step.kind !== 'root' && step.kind !== 'route') step.count += count
    for (const example of examples) addExample(step.examples, example.ms, example.traceId)
  }
}

/** Sums ms over time; undefined if any of them is unknown. @param {Array<Sparse | undefined>} lists */
function joinedTimes (lists) {
  /** @type {Sums<number>} */
  const sums = new Sums()
  for (const list of lists) {
    if (!Array.isArray(list)) return undefined
    for (let i = 0; i < list.length; i += 2) sums.add(list[i], list[i + 1])
  }
  const sorted = [...sums].sort((a, b) => a[0] - b[0])
  return sorted.flatMap(([bucket, ms]) => [bucket, Math.round(ms * 1000) / 1000])
}

/** @param {Growing} growing @returns {PathNode} */
function nodeOf ({ name, kind, ms, count, children, examples, byBucket }) {
  return {
    name,
    kind,
    ms,
    count,
    children: [...children.values()].map(nodeOf).sort((a, b) => b.ms - a.ms),
    ...(examples.length > 0 ? { traceIds: examples.map(({ traceId }) => traceId) } : {}),
    ...(byBucket === undefined ? {} : { byBucket })
  }
}

/**
 * Merges the smallest nodes of a tree with their siblings into one leaf per kind: at most `max` are left, and
 * all sums stay the same. A leaf without a sibling of its kind keeps its name.
 * @param {PathNode} root
 * @param {number} max
 * @returns {PathNode} the same tree if it is small enough
 */
function prune (root, max) {
  const nodes = allOf(root)
  if (nodes.length <= max) return root
  nodes.sort((a, b) => b.ms - a.ms) // a parent stays before a child of equal size
  for (let size = max; ; size = Math.floor(size * 0.8)) {
    const tree = keep(root, new Set(nodes.slice(0, size)))
    if (size <= 1 || allOf(tree).length <= max) return tree
  }
}

/** @param {PathNode} node @param {Set<PathNode>} kept @returns {PathNode} */
function keep (node, kept) {
  const large = node.children.filter((child) => kept.has(child)).map((child) => keep(child, kept))
  const small = node.children.filter((child) => !kept.has(child))
  const children = [...large, ...LEAVES.flatMap((kind) => mergedLeaf(small, kind))]
  return { ...node, children: children.sort((a, b) => b.ms - a.ms) }
}

/** @param {PathNode[]} small @param {PathNode['kind']} kind @returns {PathNode[]} one leaf, or none */
function mergedLeaf (small, kind) {
  const leaves = allOf(...small).filter((leaf) =>
    leaf.kind === kind && leaf.children.length === 0 && leaf.ms > 0)
  if (leaves.length === 0 || (leaves.length === 1 && small.includes(leaves[0]))) return leaves
  const byBucket = joinedTimes(leaves.map(({ byBucket }) => byBucket))
  return [{
    name: SMALLER,
    kind,
    ms: sum(leaves, ({ ms }) => ms),
    count: sum(leaves, ({ count }) => count),
    children: [],
    ...(byBucket === undefined ? {} : { byBucket })
  }]
}

module.exports = { PathTree, prune }
