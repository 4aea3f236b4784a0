'use strict'

// The calling-context tree of critical paths: route, frames from the outermost caller to the site, and what
// was spent there. The children of a root, route or frame add up to it.

const { BESIDE } = require('./sites')

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
 *
 * @typedef {Pick<PathNode, 'name' | 'kind' | 'ms' | 'count'>
 *   & { children: Map<string, Growing>, examples: SiteSums['examples'] }} Growing
 */

const MAX_NODES = 5000
const MAX_EXAMPLES = 3
const SMALLER = '(smaller)'

class PathTree {
  #root = node('all requests', 'root')

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
  #addSite (route, { place, waited, waits, delayed, ran, callbacks, examples }) {
    const { at: frame, callers, until, label } = place
    const path = [this.#root, route]
    const frames = frame === undefined ? callers : [frame, ...callers]
    for (let i = frames.length - 1; i >= 0; i--) {
      const last = path[path.length - 1]
      if (last.kind !== 'frame' || last.name !== frames[i]) path.push(childOf(last, frames[i], 'frame'))
    }
    const isBeside = place === BESIDE
    addLeaf(path, until ?? label ?? 'unknown', 'waited', waited, waits, examples)
    addLeaf(path, 'delayed by others', 'delayed', delayed, waits, examples)
    addLeaf(path, isBeside ? 'ran beside' : 'ran', isBeside ? 'beside' : 'ran', ran, callbacks, examples)
  }

  /** @returns {PathNode} */
  build () {
    return listed(this.#root, minimumOf(this.#root))
  }
}

/** @param {string} name @param {PathNode['kind']} kind @returns {Growing} */
function node (name, kind) {
  return { name, kind, ms: 0, count: 0, children: new Map(), examples: [] }
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
 * @param {number} ms
 * @param {number} count
 * @param {SiteSums['examples']} examples
 */
function addLeaf (path, name, kind, ms, count, examples) {
  if (ms <= 0) return
  const leaf = childOf(path[path.length - 1], name, kind)
  for (const step of [...path, leaf]) {
    step.ms += ms
    if (step.kind !== 'root' && step.kind !== 'route') step.count += count
    step.examples = [...step.examples, ...examples].sort((a, b) => b.ms - a.ms).slice(0, MAX_EXAMPLES)
  }
}

/** Returns the least time of a node that is listed. @param {Growing} root */
function minimumOf (root) {
  /** @type {Growing[]} */
  const nodes = [root]
  for (const { children } of nodes) nodes.push(...children.values())
  if (nodes.length <= MAX_NODES) return 0
  const times = Float64Array.from(nodes, ({ ms }) => ms).sort()
  return times[times.length - Math.floor(MAX_NODES / 5)]
}

/** @param {Growing} growing @param {number} min ms @returns {PathNode} */
function listed ({ name, kind, ms, count, children, examples }, min) {
  const [large, small] = [[], []].map(() => /** @type {Growing[]} */ ([]))
  for (const child of children.values()) (child.ms >= min ? large : small).push(child)
  const nodes = [...large.map((child) => listed(child, min)), ...merged(small)].sort((a, b) => b.ms - a.ms)
  const traceIds = [...new Set(examples.map(({ traceId }) => traceId))]
  return { name, kind, ms, count, children: nodes, ...(traceIds.length > 0 ? { traceIds } : {}) }
}

/** Merges nodes into one leaf of each kind. @param {Growing[]} small @returns {PathNode[]} */
function merged (small) {
  /** @type {Map<PathNode['kind'], PathNode>} */
  const leaves = new Map()
  const pending = [...small]
  for (const { kind, ms, count, children } of pending) {
    pending.push(...children.values())
    if (children.size > 0) continue
    const leaf = leaves.get(kind) ?? { name: SMALLER, kind, ms: 0, count: 0, children: [] }
    leaf.ms += ms
    leaf.count += count
    leaves.set(kind, leaf)
  }
  return [...leaves.values()]
}

module.exports = { PathTree }
