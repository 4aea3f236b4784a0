'use strict'

// Takes blockers together that are one: small delays have no frame, and names may have changed meanwhile.
// What runs outside of any request is no one thing: its delays are not those of the one function that is
// known.

/** @typedef {import('./blockers').Blocker} Blocker */

const OUTSIDE = '(outside of any request)'

/**
 * Merges blockers without a frame that have one name; then with the one that has a frame, if only one of that
 * name has it.
 * @template {Omit<Blocker, 'share'>} B
 * @param {B[]} blockers
 * @param {(name: string) => number} delayedBy returns how many spans those of a name delayed
 * @returns {B[]}
 */
function mergedBlockers (blockers, delayedBy) {
  /** @type {Map<string, B[]>} */
  const byName = new Map()
  for (const blocker of blockers) {
    const others = byName.get(blocker.name)
    if (others === undefined) byName.set(blocker.name, [blocker])
    else others.push(blocker)
  }
  return [...byName.values()].flatMap((group) => {
    const framed = group.filter((blocker) => blocker.at !== undefined)
    const frameless = group.filter((blocker) => blocker.at === undefined)
    if (frameless.length === 0) return framed
    const isOne = framed.length === 1 && framed[0].name !== OUTSIDE
    const [first, ...others] = isOne ? [...framed, ...frameless] : frameless
    const sum = others.reduce(joined, first)
    const merged = { ...sum, delayedSpans: Math.min(sum.delayedSpans, delayedBy(sum.name)) }
    return isOne ? [merged] : [...framed, merged]
  })
}

/**
 * @template {Omit<Blocker, 'share'>} B
 * @param {B} a
 * @param {B} b
 * @returns {B}
 */
function joined (a, b) {
  return {
    ...a,
    ...callbacksOf(a, b),
    delayedSpans: a.delayedSpans + b.delayedSpans,
    delayedMs: a.delayedMs + b.delayedMs,
    open: a.open || b.open,
    stack: (b.worstMs > a.worstMs ? b.stack : a.stack) ?? a.stack ?? b.stack,
    byBucket: joinedBuckets(a.byBucket, b.byBucket)
  }
}

/**
 * Joins what is known of callbacks: recorded ones hold, rather than what delays let expect.
 * @param {Omit<Blocker, 'share'>} a
 * @param {Omit<Blocker, 'share'>} b
 */
function callbacksOf (a, b) {
  if (a.known !== b.known) {
    const { count, totalMs, worstMs, known } = a.known === 'runs' ? a : b
    return { count, totalMs, worstMs, known }
  }
  return {
    count: a.count + b.count,
    totalMs: a.totalMs + b.totalMs,
    worstMs: Math.max(a.worstMs, b.worstMs),
    known: a.known
  }
}

/** @param {Blocker['byBucket']} a callbacks and their ms @param {Blocker['byBucket']} b */
function joinedBuckets (a, b) {
  if (a === undefined || b === undefined) return a ?? b
  /** @type {Map<number, [number, number]>} */
  const sums = new Map()
  for (const list of [a, b]) {
    for (let i = 0; i < list.length; i += 3) {
      const [count, ms] = sums.get(list[i]) ?? [0, 0]
      sums.set(list[i], [count + list[i + 1], ms + list[i + 2]])
    }
  }
  return [...sums].sort((x, y) => x[0] - y[0]).flatMap(([bucket, [count, ms]]) => [bucket, count, ms])
}

module.exports = { OUTSIDE, mergedBlockers }
