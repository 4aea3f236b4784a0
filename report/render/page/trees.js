'use strict'

// The trees of critical paths, packed: each node is an array, each name and trace id once in a table. Small
// nodes of a tree that is too large are merged with their siblings, so that all sums stay.

const { KINDS } = require('./client/path-trees')
const { sparse } = require('./series')
const { isRecord, number, records, roundMs, text } = require('./values')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {Array<number | number[] | PackedNode[]>} PackedNode name, kind, ms, count, trace ids,
 *   children, and of a leaf sums of ms by bucket
 *
 * @typedef {object} Node
 * @property {string} name
 * @property {string} kind
 * @property {number} ms
 * @property {number} count
 * @property {string[]} traceIds
 * @property {Node[]} children
 * @property {unknown} byBucket
 */

const LEAVES = ['ran', 'waited', 'delayed', 'beside']
const MAX_DEPTH = 200
const MAX_TRACE_IDS = 3
const SMALLER = '(smaller)'

/**
 * @param {any} source PathNode of report/aggregate/model.js
 * @param {number} buckets of the sums along time; 0 for none
 * @param {Thinning} thinning
 * @returns {PackedNode | undefined}
 */
function createTree (source, buckets, thinning) {
  if (!isRecord(source)) return undefined
  const root = read(source, 0)
  if (root === undefined || root.children.length === 0) return undefined
  const minMs = smallestOf(root, thinning.limits.nodes)
  if (minMs > 0) {
    thinning.note('The smallest frames of the flame graph are merged; the sums count all.')
    mergeSmaller(root, minMs)
  }
  return pack(root, buckets, thinning)
}

/** @param {any} source @param {number} depth @returns {Node | undefined} */
function read (source, depth) {
  const [ms, count] = [number(source.ms), number(source.count)]
  if (ms === undefined || ms < 0 || !KINDS.includes(source.kind) || depth > MAX_DEPTH) return undefined
  const traceIds = Array.isArray(source.traceIds) ? source.traceIds.slice(0, MAX_TRACE_IDS) : []
  const children = records(source.children).map((child) => read(child, depth + 1))
  return {
    name: text(source.name ?? ''),
    kind: source.kind,
    ms,
    count: count ?? 1,
    traceIds: traceIds.map((/** @type {unknown} */ id) => text(id, 32)),
    children: children.filter((child) => child !== undefined),
    byBucket: source.byBucket
  }
}

/** @param {Node} node @returns {Node[]} it and all below it */
function allOf (node) {
  const nodes = [node]
  for (let i = 0; i < nodes.length; i++) nodes.push(...nodes[i].children)
  return nodes
}

/**
 * Returns the ms below which nodes are merged, so that about `max` remain; 0 for none.
 * @param {Node} root
 * @param {number} max
 */
function smallestOf (root, max) {
  const nodes = allOf(root)
  if (nodes.length <= max) return 0
  return nodes.map(({ ms }) => ms).sort((a, b) => b - a)[max >> 1]
}

/** @param {Node} node @param {number} minMs */
function mergeSmaller (node, minMs) {
  const small = node.children.filter((child) => child.ms < minMs)
  node.children = node.children.filter((child) => child.ms >= minMs)
  for (const kind of LEAVES) {
    const leaves = small.flatMap(allOf).filter((leaf) => leaf.kind === kind && leaf.children.length === 0)
    const ms = leaves.reduce((sum, leaf) => sum + leaf.ms, 0)
    const count = leaves.reduce((sum, leaf) => sum + leaf.count, 0)
    if (ms === 0) continue
    if (leaves.length === 1 && small.includes(leaves[0])) {
      node.children.push(leaves[0]) // as it is: merging would only hide its name
      continue
    }
    const byBucket = mergedBuckets(leaves)
    node.children.push({ name: SMALLER, kind, ms, count, traceIds: [], children: [], byBucket })
  }
  for (const child of node.children) mergeSmaller(child, minMs)
}

/** Adds up sums by bucket; undefined if any leaf has none. @param {Node[]} leaves */
function mergedBuckets (leaves) {
  /** @type {Map<number, number>} */
  const sums = new Map()
  for (const { byBucket } of leaves) {
    if (!Array.isArray(byBucket)) return undefined
    for (let i = 0; i < byBucket.length; i += 2) {
      sums.set(byBucket[i], (sums.get(byBucket[i]) ?? 0) + byBucket[i + 1])
    }
  }
  return [...sums].sort((a, b) => a[0] - b[0]).flat()
}

/** @param {Node} node @param {number} buckets @param {Thinning} thinning @returns {PackedNode} */
function pack (node, buckets, thinning) {
  const times = buckets > 0 && node.children.length === 0
    ? sparse(node.byBucket, 1, buckets, thinning, 'treeSums')
    : undefined
  return [
    thinning.addName(node.name),
    KINDS.indexOf(node.kind),
    roundMs(node.ms),
    roundMs(node.count),
    node.traceIds.map((id) => thinning.addName(id)),
    node.children.map((child) => pack(child, buckets, thinning)),
    ...(times === undefined ? [] : [times])
  ]
}

module.exports = { createTree }
