'use strict'

// The calling-context tree of critical paths: route, frames from the outermost caller to the site, and what
// was spent there. The children of a root, route or frame add up to it.

const { BESIDE } = require('./sites')
const { sparse } = require('./times')

/**
 * @typedef {import('./sites').SiteSums} SiteSums
 *
 * @typedef {object} PathNode
 * @property {string} name
 * @property {'root' | 'route' | 'frame' | 'ran' | 'waited' | 'delayed' | 'beside'} kind
 * @property {number} ms with that of its children, weighted
 * @property {number} count of a root or route requests, else waits and callbacks, weighted
 * @property {PathNode[]} children worst first
 * @property {string[]} [traceIds] of those that spent most there, at most three
 * @property {import('./times').Sparse} [byBucket] of a leaf: ms along time; absent if not known
 *
 * @typedef {{ examples: SiteSums['examples'], times: number[] | undefined }} Facts times: ms in each bucket
 * @typedef {Pick<PathNode, 'name' | 'kind' | 'ms' | 'count'> & Facts & { children: Map<string, Growing> }}
 *   Growing
 */

const MAX_NODES = 5000
const MAX_EXAMPLES = 3
const SMALLER = '(smaller)'
const RAN_LEAF = /** @type {const} */ (['ran', 'ran'])
const BESIDE_LEAF = /** @type {const} */ (['ran beside', 'beside'])

class PathTree {
  #root = node('all requests', 'root')
  #axis

  /** @param {import('./time-axis').Axis} [axis] without it there are no sums along time */
  constructor (axis) {
    this.#axis = axis
  }

  /**
   * Adds what the requests of a route spent.
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
    const list = (/** @type {number} */ figure) => this.#axis && times?.list(this.#axis, figure)
    const end = until ?? label ?? 'unknown'
    addLeaf(path, end, 'waited', { ms: waited, count: waits, examples, times: list(0) })
    addLeaf(path, 'delayed by others', 'delayed', { ms: delayed, count: delays, examples, times: list(2) })
    const [name, kind] = isBeside ? BESIDE_LEAF : RAN_LEAF
    addLeaf(path, name, kind, { ms: ran, count: callbacks, examples, times: list(3) })
  }

  /** @returns {PathNode} */
  build () {
    return listed(this.#root, keptNodes(this.#root))
  }
}

/** @param {string} name @param {PathNode['kind']} kind @returns {Growing} */
function node (name, kind) {
  return { name, kind, ms: 0, count: 0, children: new Map(), examples: [], times: undefined }
}

/** @param {Growing} parent @param {string} name @param {PathNode['kind']} kind */
function childOf (parent, name, kind) {
  const key = `${kind} ${name}`
  let child = parent.children.get(key)
  if (child === undefined) parent.children.set(key, child = node(name, kind))
  return child
}

/**
 * @param {Growing[]} path to the parent
 * @param {string} name
 * @param {PathNode['kind']} kind
 * @param {Pick<Growing, 'ms' | 'count' | 'examples' | 'times'>} sums
 */
function addLeaf (path, name, kind, { ms, count, examples, times }) {
  if (ms <= 0) return
  const leaf = childOf(path[path.length - 1], name, kind)
  leaf.times = leaf.ms === 0 ? times : addedTimes(leaf.times, times)
  for (const step of [...path, leaf]) {
    step.ms += ms
    if (step.kind !== 'root' && step.kind !== 'route') step.count += count
    step.examples = joinedExamples(step.examples, examples)
  }
}

/** @param {SiteSums['examples']} a @param {SiteSums['examples']} b @returns {SiteSums['examples']} */
function joinedExamples (a, b) {
  const sorted = [...a, ...b].sort((x, y) => y.ms - x.ms)
  const firsts = new Set()
  return sorted.filter(({ traceId }) => !firsts.has(traceId) && firsts.add(traceId)).slice(0, MAX_EXAMPLES)
}

/** @param {number[] | undefined} a @param {number[] | undefined} b */
function addedTimes (a, b) {
  return a && b && a.map((ms, bucket) => ms + b[bucket])
}

/**
 * Selects the largest nodes, so that with what stands for the others there are at most MAX_NODES.
 * @param {Growing} root
 * @returns {Set<Growing>}
 */
function keptNodes (root) {
  const nodes = [root]
  for (const { children } of nodes) for (const child of children.values()) nodes.push(child)
  if (nodes.length <= MAX_NODES) return new Set(nodes)
  nodes.sort((a, b) => b.ms - a.ms) // of equal ones the parent stays first
  for (let size = MAX_NODES; ; size = Math.floor(size * 0.8)) {
    const kept = new Set(nodes.slice(0, size))
    let count = size
    for (const { children } of kept) {
      const smaller = [...children.values()].filter((child) => !kept.has(child))
      if (smaller.length > 0) count += merged(smaller).length
    }
    if (count <= MAX_NODES || size <= 1) return kept
  }
}

/** @param {Growing} growing @param {Set<Growing>} [kept] default: all @returns {PathNode} */
function listed ({ name, kind, ms, count, children, examples, times }, kept) {
  const [large, small] = [[], []].map(() => /** @type {Growing[]} */ ([]))
  for (const child of children.values()) (kept?.has(child) === false ? small : large).push(child)
  const nodes = [...large.map((child) => listed(child, kept)), ...merged(small)].sort((a, b) => b.ms - a.ms)
  const traceIds = [...new Set(examples.map(({ traceId }) => traceId))]
  return {
    name,
    kind,
    ms,
    count,
    children: nodes,
    ...(traceIds.length > 0 ? { traceIds } : {}),
    ...(times === undefined ? {} : { byBucket: sparse(times) })
  }
}

/** Merges nodes into one leaf of each kind. @param {Growing[]} small @returns {PathNode[]} */
function merged (small) {
  /** @type {Map<PathNode['kind'], Growing>} */
  const leaves = new Map()
  const pending = [...small]
  for (const { kind, ms, count, children, times } of pending) {
    pending.push(...children.values())
    if (children.size > 0) continue
    const leaf = leaves.get(kind) ?? node(SMALLER, kind)
    leaf.times = leaf.ms === 0 ? times : addedTimes(leaf.times, times)
    leaf.ms += ms
    leaf.count += count
    leaves.set(kind, leaf)
  }
  return [...leaves.values()].map((leaf) => listed(leaf))
}

module.exports = { PathTree }
