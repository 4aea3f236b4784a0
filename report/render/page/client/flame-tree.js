'use strict'

// The tree behind a flame graph, independent of the document: merges two runs, lays out frames, searches
// them, and sums up run and wait times.

const { allOf, lineUp } = require('../../../aggregate/lists')

/**
 * @typedef {object} PathNode see PathNode in report/aggregate/model.js
 * @property {string} name
 * @property {string} kind root, route, frame, ran, waited, delayed or beside
 * @property {number} ms including children
 * @property {number} count requests or waits
 * @property {PathNode[]} [children]
 * @property {string[]} [traceIds] slowest examples
 * @property {number[]} [byBucket] of a leaf, along time: bucket, ms, bucket, ms …
 *
 * @typedef {object} Frame
 * @property {string} name
 * @property {string} kind
 * @property {Array<PathNode | undefined>} runs one, or two to compare; undefined if a run does not have it
 * @property {Frame | undefined} parent
 * @property {Frame[]} children
 * @property {number} depth
 * @property {number} ms width
 * @property {number} start ms from the left end of the root
 */

const LEAVES = /** @type {const} */ (['ran', 'waited', 'delayed', 'beside'])
/** Changes below this share of their route's mean are treated as noise. */
const VISIBLE_CHANGE = 0.02
const STRONG_CHANGE = 0.1

/**
 * Merges the trees of one or two runs: nodes of the same kind and name below the same parent become one
 * frame.
 * @param {Array<PathNode | undefined>} trees
 * @param {Frame} [parent]
 * @returns {Frame}
 */
function mergeTrees (trees, parent) {
  const { name, kind } = /** @type {PathNode} */ (trees.find((tree) => tree !== undefined))
  const depth = parent === undefined ? 0 : parent.depth + 1
  /** @type {Frame} */
  const frame = { name, kind, runs: trees, parent, children: [], depth, ms: 0, start: 0 }
  const nodes = trees.map((tree) => (tree?.children ?? []).map((child, i, siblings) => {
    const isSame = (/** @type {PathNode} */ other) => other.name === child.name && other.kind === child.kind
    return { child, key: `${child.kind} ${child.name} ${siblings.slice(0, i).filter(isSame).length}` }
  }))
  frame.children = lineUp(nodes, ({ key }) => key).map((same) =>
    mergeTrees(same.map((node) => node?.child), frame))
  return frame
}

/**
 * Lays out a frame and its descendants, with the widths of one run.
 * @param {Frame} frame
 * @param {number} run
 * @param {number} [start]
 */
function layOut (frame, run, start = 0) {
  frame.start = start
  let end = start
  for (const child of frame.children) {
    layOut(child, run, end)
    end += child.ms
  }
  frame.ms = Math.max(frame.runs[run]?.ms ?? 0, end - start)
}

/** @param {Frame} frame @returns {Frame[]} its ancestors and itself, outermost first */
function pathOf (frame) {
  const frames = []
  for (let next = /** @type {Frame | undefined} */ (frame); next; next = next.parent) frames.unshift(next)
  return frames
}

/** Returns the frame that means refer to: the route, or the root. @param {Frame} frame */
function baseOf (frame) {
  const frames = pathOf(frame)
  return frames.find(({ kind }) => kind === 'route') ?? frames[0]
}

/**
 * Returns the mean ms of a frame per request of its route, for each run; 0 for a run without it.
 * @param {Frame} frame
 */
function meansOf (frame) {
  const base = baseOf(frame)
  return frame.runs.map((node, i) => (node?.ms ?? 0) / Math.max(1, base.runs[i]?.count ?? 1))
}

/**
 * Returns how the mean of a frame changed from the first run to the second, and whether the change is large
 * for its route.
 * @param {Frame} frame
 * @returns {{ direction: 'grows' | 'shrinks' | 'same', isStrong: boolean }}
 */
function changeOf (frame) {
  const [before, after] = meansOf(frame)
  const base = Math.max(...meansOf(baseOf(frame)))
  const share = base > 0 ? Math.abs(after - before) / base : 0
  const direction = share < VISIBLE_CHANGE ? 'same' : after > before ? 'grows' : 'shrinks'
  return { direction, isStrong: share >= STRONG_CHANGE }
}

/**
 * Sums up the kinds of a frame's leaves.
 * @param {Frame} frame
 * @returns {Record<typeof LEAVES[number], number>} ms
 */
function partsOf (frame) {
  const parts = { ran: 0, waited: 0, delayed: 0, beside: 0 }
  for (const { kind, children, ms } of allOf(frame)) {
    if (children.length === 0 && kind in parts) parts[/** @type {'ran'} */ (kind)] += ms
  }
  return parts
}

/**
 * Finds frames by a part of their names, ignoring case. Matches below another match do not add to the sum.
 * @param {Frame} root
 * @param {string} text
 * @returns {{ frames: Set<Frame>, ms: number }} parents before children
 */
function search (root, text) {
  const part = text.trim().toLowerCase()
  /** @type {Set<Frame>} */
  const frames = new Set()
  if (part === '') return { frames, ms: 0 }
  /** @param {Frame} frame @param {boolean} isInside @returns {number} ms */
  function visit (frame, isInside) {
    const matches = frame.name.toLowerCase().includes(part)
    if (matches) frames.add(frame)
    const below = frame.children.reduce((sum, child) => sum + visit(child, isInside || matches), 0)
    return matches && !isInside ? frame.ms : below
  }
  return { frames, ms: visit(root, false) }
}

/**
 * Follows names down from the root as far as frames match.
 * @param {Frame} root
 * @param {string[]} names without the root's name
 * @returns {Frame}
 */
function descend (root, names) {
  let frame = root
  for (const name of names) {
    const child = frame.children.find((candidate) => candidate.name === name)
    if (child === undefined) break
    frame = child
  }
  return frame
}

/**
 * Returns the frame that an arrow key leads to: up to the parent, down to the largest child, sideways to the
 * next one at the same depth.
 * @param {Frame} frame
 * @param {string} key
 * @param {Frame} top the frame that fills the width
 * @returns {Frame | undefined}
 */
function neighbour (frame, key, top) {
  if (key === 'ArrowUp') return frame.parent
  if (key === 'ArrowDown') return frame.children.toSorted((a, b) => b.ms - a.ms)[0]
  if (key === 'Home') return top
  if (frame.depth <= top.depth) return undefined
  const row = allOf(top).filter(({ depth, ms }) => depth === frame.depth && ms > 0)
  row.sort((a, b) => a.start - b.start)
  return row[row.indexOf(frame) + (key === 'ArrowRight' ? 1 : -1)]
}

module.exports = {
  LEAVES, baseOf, changeOf, descend, layOut, meansOf, mergeTrees, neighbour, partsOf, pathOf, search
}
