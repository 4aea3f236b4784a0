'use strict'

// The trees of critical paths, packed: each node is an array, each name and trace id once in a table.

const { prune } = require('../../aggregate/path-tree')
const { KINDS } = require('./client/flame-tree')
const { sparse } = require('./series')
const { isRecord, number, records, roundMs, text } = require('./values')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 *
 * @typedef {Array<number | number[] | PackedNode[]>} PackedNode name, kind, ms, count, trace ids,
 *   children, and of a leaf sums of ms by bucket
 * @typedef {import('../../aggregate/path-tree').PathNode} Node
 */

const MAX_DEPTH = 200
const MAX_TRACE_IDS = 3

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
  const tree = prune(root, thinning.limits.nodes)
  if (tree !== root) thinning.note('The smallest frames of the flame graph are merged; the sums count all.')
  return pack(tree, buckets, thinning)
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
    (node.traceIds ?? []).map((id) => thinning.addName(id)),
    node.children.map((child) => pack(child, buckets, thinning)),
    ...(times === undefined ? [] : [times])
  ]
}

module.exports = { createTree }
