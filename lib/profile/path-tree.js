'use strict'

// Chains and CPU samples as one tree, from the route or the start of the program inwards: frames and labels
// of hops, then the waits and runs below them, then the frames of the samples.

const { getOrAdd } = require('../group-by')

const MAX_NODES = 5_000
const SMALLER = '(smaller)'
const SELF = 'self'

/**
 * @typedef {object} PathNode
 * @property {string} name
 * @property {'root' | 'route' | 'frame' | 'ran' | 'waited'} kind
 * @property {number} ms with its children
 * @property {number} count callbacks; for a route its requests; for a frame of CPU samples its samples
 * @property {PathNode[]} children most time first
 *
 * @typedef {object} Path
 * @property {string | undefined} route
 * @property {string} label of its newest hop
 * @property {string[]} names outermost first: frames and labels
 */

class Branch {
  /** @param {string} name @param {PathNode['kind']} kind */
  constructor (name, kind) {
    this.name = name
    this.kind = kind
    this.ms = 0
    this.count = 0
    /** @type {Map<string, Branch>} */
    this.branches = new Map()
  }

  /** @param {string} name @param {PathNode['kind']} kind @returns {Branch} */
  child (name, kind) {
    return getOrAdd(this.branches, `${kind} ${name}`, () => new Branch(name, kind))
  }
}

/**
 * @param {import('./profile').PathChain[]} chains
 * @param {Array<{ chain: object, frames: string[], ms: number, count: number }>} samples
 * @returns {PathNode}
 */
function createTree (chains, samples) {
  const root = new Branch('process', 'root')
  /** @type {Map<object, Branch>} */
  const ranBranches = new Map()
  for (const chain of chains) {
    const { count, ranMs, waitedMs, waits, path } = chain
    const branch = addPath(root, chain)
    if (waits > 0) addTime(branch.child(path.label, 'waited'), waitedMs, waits)
    const ran = branch.child('ran', 'ran')
    addTime(ran, ranMs, count)
    ranBranches.set(chain, ran)
  }
  for (const { chain, frames, ms, count } of samples) {
    let branch = ranBranches.get(chain)
    for (let i = frames.length - 1; i >= 0 && branch !== undefined; i--) {
      branch = branch.child(frames[i], 'frame')
      addTime(branch, ms, count)
    }
    if (frames.length > 0 && branch !== undefined) addTime(branch.child(SELF, 'ran'), ms, count)
  }
  return prune(root)
}

/** @param {{ ms: number, count: number }} branch @param {number} ms @param {number} count */
function addTime (branch, ms, count) {
  branch.ms += ms
  branch.count += count
}

/**
 * Adds the time of a chain to the branches of its path.
 * @param {Branch} root
 * @param {import('./profile').PathChain} chain
 * @returns {Branch} the innermost
 */
function addPath (root, { path: { route, names }, ranMs, waitedMs, count, requests }) {
  const ms = ranMs + waitedMs
  addTime(root, ms, count)
  let branch = root
  if (route !== undefined) {
    branch = root.child(route, 'route')
    addTime(branch, ms, requests)
  }
  for (const name of names) {
    branch = branch.child(name, 'frame')
    addTime(branch, ms, count)
  }
  return branch
}

/**
 * Turns the largest MAX_NODES branches into nodes; smaller ones of one parent are merged.
 * @param {Branch} root
 * @returns {PathNode}
 */
function prune (root) {
  const limit = limitOf(root)

  /** @param {Branch} branch @param {number} scale @returns {PathNode} */
  function nodeOf ({ name, kind, ms, count, branches }, scale) {
    /** @type {PathNode[]} */
    const children = []
    const smaller = { name: SMALLER, kind, ms: 0, count: 0, children: [] }
    const sum = [...branches.values()].reduce((total, child) => total + child.ms, 0)
    // Samples are an estimate: below a run their sum is limited to its time
    const childScale = kind === 'ran' && sum > ms ? ms / sum : scale
    for (const child of branches.values()) {
      if (child.ms >= limit) children.push(nodeOf(child, childScale))
      else addTime(smaller, child.ms * childScale, child.count)
    }
    if (smaller.ms > 0) children.push({ ...smaller, kind: smallerKind(branches) })
    return { name, kind, ms: ms * scale, count, children: children.sort((a, b) => b.ms - a.ms) }
  }

  return nodeOf(root, 1)
}

/** @param {Map<string, Branch>} branches @returns {PathNode['kind']} */
function smallerKind (branches) {
  const [first] = branches.values()
  return first.kind === 'route' ? 'frame' : first.kind
}

/** Returns the ms below which branches are merged. @param {Branch} root */
function limitOf (root) {
  const sizes = []
  const pending = [root]
  for (let branch = pending.pop(); branch !== undefined; branch = pending.pop()) {
    sizes.push(branch.ms)
    pending.push(...branch.branches.values())
  }
  if (sizes.length <= MAX_NODES) return 0
  return sizes.sort((a, b) => b - a)[MAX_NODES]
}

module.exports = { createTree }
