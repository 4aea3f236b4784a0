'use strict'

const { BoundedMap, getOrAdd: getOrCreate, groupBy: groupsOf } = require('../../lib/group-by')

/**
 * Sums by key.
 * @template K
 * @extends {BoundedMap<K, number>}
 */
class Sums extends BoundedMap {
  /** @param {K} key @param {number} amount dropped if there is no room for the key */
  add (key, amount) {
    if (this.has(key) || this.size < this.max) this.set(key, (this.get(key) ?? 0) + amount)
  }
}

/**
 * Aligns the items of lists by a key that is unique in each.
 * @template T
 * @param {T[][]} lists
 * @param {(item: T) => string} keyOf
 * @returns {Array<Array<T | undefined>>} for each key, the item of each list, in order of first appearance
 */
function lineUp (lists, keyOf) {
  const all = lists.flatMap((list, number) => list.map((item) => ({ item, number })))
  return groupsOf(all, ({ item }) => keyOf(item)).map((same) =>
    lists.map((_, i) => same.find(({ number }) => number === i)?.item))
}

/**
 * Lists nodes of a tree and all their descendants, parents first.
 * @template {{ children?: N[] }} N
 * @param {...N} roots
 * @returns {N[]}
 */
function allOf (...roots) {
  for (const { children = [] } of roots) for (const child of children) roots.push(child)
  return roots
}

/**
 * Returns the part of a tree with one kind of time.
 * @template {{ kind: string, ms: number, count: number, children?: N[] }} N
 * @param {N} node
 * @param {string} kind
 * @param {(node: N, children: N[]) => number} [countOf] count of a node with only these children
 * @returns {N | undefined} undefined if there is none
 */
function partOf (node, kind, countOf = ({ count }) => count) {
  if (node.kind === kind) return node
  if (node.kind === 'ran' || node.kind === 'waited') return undefined
  const children = (node.children ?? []).flatMap((child) => partOf(child, kind, countOf) ?? [])
  if (children.length === 0) return undefined
  return { ...node, children, ms: sum(children, ({ ms }) => ms), count: countOf(node, children) }
}

/** @template T @param {T[]} list @param {(item: T) => number | undefined} figure */
function sum (list, figure) {
  return list.reduce((total, item) => total + (figure(item) ?? 0), 0)
}

/**
 * Groups intervals that overlap, directly or indirectly.
 * @template {{ start: number, end: number }} T
 * @param {T[]} intervals
 * @returns {T[][]} groups, and the intervals of each, in order of start
 */
function periodsOf (intervals) {
  /** @type {T[][]} */
  const periods = []
  let end = -Infinity
  for (const interval of intervals.sort((a, b) => a.start - b.start)) {
    if (interval.start >= end) periods.push([])
    periods[periods.length - 1].push(interval)
    end = Math.max(end, interval.end)
  }
  return periods
}

/**
 * Returns the maximum number of intervals that overlap, and the time at which they begin to.
 * @param {Iterable<[start: number, end: number]>} intervals
 */
function peakOf (intervals) {
  const changes = [...intervals].flatMap(([start, end]) => [[start, 1], [end, -1]])
  changes.sort((a, b) => a[0] - b[0] || a[1] - b[1])
  const peak = { count: 0, time: -Infinity }
  let open = 0
  for (const [time, change] of changes) {
    open += change
    if (open > peak.count) Object.assign(peak, { count: open, time })
  }
  return peak
}

module.exports = { BoundedMap, Sums, allOf, getOrCreate, groupsOf, lineUp, partOf, peakOf, periodsOf, sum }
