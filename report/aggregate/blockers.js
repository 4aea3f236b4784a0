'use strict'

// What blocked the event loop. There are two sources: recorded blocking callbacks, with the stack inside
// them, and the delayers that delayed spans name. Both are grouped by the function that ran or, without a
// frame, by the request.

const { text } = require('./digest')
const { innermostFrame } = require('./frames')
const { IdTable } = require('./id-table')
const { OUTSIDE, mergedBlockers } = require('./merged-blockers')
const { TimesBudget, sparse } = require('./times')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Blocker
 * @property {string} name the request that ran, or OUTSIDE
 * @property {string | undefined} at most frequent innermost frame of the program: function (file:line:column)
 * @property {number} count blocking callbacks; if `known` is delays: spans that delayed others
 * @property {number} totalMs their time; if `known` is delays, a lower bound: sum of the longest delay each
 *   caused
 * @property {number} worstMs the longest
 * @property {number} delayedSpans
 * @property {number} delayedMs sum of their delays
 * @property {'runs' | 'delays'} known source of count, totalMs and worstMs
 * @property {boolean} open one of its callbacks had not ended when it was written
 * @property {string | undefined} stack of the longest callback
 * @property {number} share of the time of all blocking callbacks and delays, from 0 to 1
 * @property {import('./times').Sparse | undefined} byBucket callbacks and their ms along time; undefined if
 *   only delays are known
 *
 * @typedef {object} Group
 * @property {number} number
 * @property {Map<string, number>} names
 * @property {Map<string, number>} frames
 * @property {number} runs
 * @property {number} runMs
 * @property {number} worstRun
 * @property {string | undefined} stack
 * @property {boolean} open
 * @property {number} spans
 * @property {number} longestMs
 * @property {number} worstDelay
 * @property {number} delayedSpans
 * @property {number} delayedMs
 * @property {import('./times').Times | undefined} times callbacks and their ms
 */

const MAX_GROUPS = 2000
const MIN_MS = 0.001
const MAX_VARIANTS = 16 // names and frames counted apart in a group
const MAX_UNNAMED = 10_000 // requests whose name is not yet read

/**
 * @param {import('./time-axis').TimeAxis} timeAxis
 * @param {import('./renames').Renames} renames
 */
function createBlockers (timeAxis, renames) {
  const budget = new TimesBudget(timeAxis, 2)
  /** @type {Map<string, Group>} */
  const groups = new Map()
  /**
   * By the id of a request that was not over when a callback of it was recorded.
   * @type {Map<string, Group[]>}
   */
  const unnamed = new Map()
  const longestDelays = new IdTable(true)
  /** spans that were delayed, each once, by the name of the delayer @type {Map<string, number>} */
  const delayedSpans = new Map()
  let omitted = 0

  /** @param {string | undefined} frame @param {string | undefined} name @returns {Group | undefined} */
  function groupOf (frame, name) {
    const key = frame === undefined ? `name ${name}` : `at ${withoutPosition(frame)}`
    const existing = groups.get(key)
    if (existing !== undefined) return existing
    if (groups.size === MAX_GROUPS) {
      omitted++
      return undefined
    }
    const group = createGroup(groups.size)
    groups.set(key, group)
    return group
  }

  /** Names a group later. @param {Group} group @param {string} spanId */
  function awaitName (group, spanId) {
    const waiting = unnamed.get(spanId)
    if (waiting !== undefined) waiting.push(group)
    else if (unnamed.size < MAX_UNNAMED) unnamed.set(spanId, [group])
  }

  return {
    /** Adds a blocking callback. @param {Span} span */
    addCallback (span) {
      const stack = text(span.attributes['code.stacktrace'], 8000)
      const frame = stack === undefined ? undefined : innermostFrame(stack)
      const group = groupOf(frame, span.parentSpanId ?? OUTSIDE)
      if (group === undefined) return
      const ms = Number(span.attributes['longstack.blocked_ms'])
      group.runs++
      group.runMs += ms
      group.times ??= group.runs === 1 ? budget.create() : undefined
      group.times?.add(timeAxis.bucketOf(span.startMs), 1, ms)
      if (ms >= group.worstRun) [group.worstRun, group.stack] = [ms, stack]
      group.open ||= span.open
      tally(group.frames, frame)
      const name = text(span.attributes['longstack.blocked_by'], 300)
      if (name !== undefined) tally(group.names, name)
      else if (span.parentSpanId === undefined) tally(group.names, OUTSIDE)
      else awaitName(group, span.parentSpanId)
    },

    /** Gives the name of a request. @param {string} spanId @param {string} name */
    setName (spanId, name) {
      if (unnamed.size === 0) return
      for (const group of unnamed.get(spanId) ?? []) tally(group.names, name)
      unnamed.delete(spanId)
    },

    /** @param {import('./digest').Delayer[]} delayers of a span @param {number} weight of the span */
    addDelays (delayers, weight) {
      /** groups and names that have counted this span */
      const counted = new Set()
      for (const { name: nameThen = OUTSIDE, at: frame, ms, spanId } of delayers) {
        if (ms < MIN_MS) continue // it only may have been delayed
        const name = renames.nameOf(nameThen, spanId)
        if (!counted.has(name)) delayedSpans.set(name, (delayedSpans.get(name) ?? 0) + weight)
        counted.add(name)
        const group = groupOf(frame, name)
        if (group === undefined) continue
        if (!counted.has(group)) group.delayedSpans += weight
        counted.add(group)
        group.delayedMs += ms * weight
        group.worstDelay = Math.max(group.worstDelay, ms)
        tally(group.names, name)
        tally(group.frames, frame)
        if (spanId !== undefined) addDelay(group, spanId, ms)
      }
    },

    /** @returns {Blocker[]} worst first */
    list () {
      const axis = timeAxis.axis()
      const blockers = mergedBlockers(
        [...groups.values()].map((group) => blockerOf(group, axis, renames)), spansDelayedBy
      )
      blockers.sort((a, b) => cost(b) - cost(a))
      const sum = blockers.reduce((sum, blocker) => sum + lostMs(blocker), 0)
      return blockers.map((blocker) => ({ ...blocker, share: sum > 0 ? lostMs(blocker) / sum : 0 }))
    },

    omitted: () => omitted
  }

  /** Returns how many spans those of a final name delayed. @param {string} name */
  function spansDelayedBy (name) {
    let sum = 0
    for (const [nameThen, count] of delayedSpans) if (renames.nameOf(nameThen) === name) sum += count
    return sum
  }

  /**
   * Counts of each delaying span the longest delay.
   * @param {Group} group
   * @param {string} spanId
   * @param {number} ms
   */
  function addDelay (group, spanId, ms) {
    const low = parseInt(spanId.slice(8), 16) ^ Math.imul(group.number + 1, 0x9e3779b1)
    const previous = longestDelays.raise(parseInt(spanId.slice(0, 8), 16), low, ms)
    if (previous === -1) group.spans++
    group.longestMs += Math.max(0, ms - Math.max(0, previous))
  }
}

/** @param {number} number @returns {Group} */
function createGroup (number) {
  return {
    number,
    names: new Map(),
    frames: new Map(),
    runs: 0,
    runMs: 0,
    worstRun: 0,
    stack: undefined,
    open: false,
    spans: 0,
    longestMs: 0,
    worstDelay: 0,
    delayedSpans: 0,
    delayedMs: 0,
    times: undefined
  }
}

/**
 * @param {Group} group
 * @param {import('./time-axis').Axis | undefined} axis
 * @param {import('./renames').Renames} renames
 * @returns {Omit<Blocker, 'share'>}
 */
function blockerOf (group, axis, renames) {
  const { runs, open, stack, delayedSpans, delayedMs, times } = group
  const byBucket = axis && times && sparse(times.list(axis, 0), times.list(axis, 1))
  /** @type {Pick<Blocker, 'known' | 'count' | 'totalMs' | 'worstMs'>} */
  const figures = runs > 0
    ? { count: runs, totalMs: group.runMs, worstMs: group.worstRun, known: 'runs' }
    : { count: group.spans, totalMs: group.longestMs, worstMs: group.worstDelay, known: 'delays' }
  const name = mostFrequent(renamed(group.names, renames)) ?? '(unknown request)'
  return { name, at: mostFrequent(group.frames), ...figures, delayedSpans, delayedMs, open, stack, byBucket }
}

/** Returns the time of its callbacks and of the delays. @param {Omit<Blocker, 'share'>} blocker */
function lostMs ({ known, totalMs, delayedMs }) {
  return known === 'runs' ? totalMs + delayedMs : delayedMs
}

/** @param {Omit<Blocker, 'share'>} blocker */
function cost ({ totalMs, delayedMs }) {
  return Math.max(totalMs, delayedMs)
}

/** @param {Map<string, number>} counts @param {string | undefined} text */
function tally (counts, text) {
  if (text === undefined) return
  const count = counts.get(text)
  if (count !== undefined || counts.size < MAX_VARIANTS) counts.set(text, (count ?? 0) + 1)
}

/** @param {Map<string, number>} counts by name @param {import('./renames').Renames} renames */
function renamed (counts, renames) {
  const sums = new Map()
  for (const [name, count] of counts) {
    const final = renames.nameOf(name)
    sums.set(final, (sums.get(final) ?? 0) + count)
  }
  return sums
}

/** @param {Map<string, number>} counts */
function mostFrequent (counts) {
  /** @type {string | undefined} */
  let best
  let max = 0
  for (const [text, count] of counts) if (count > max) [best, max] = [text, count]
  return best
}

/** Removes line and column from a frame: samples of one function differ in them. @param {string} frame */
function withoutPosition (frame) {
  return frame.replace(/:\d+(:\d+)?(?=\)?$)/, '')
}

module.exports = { MAX_GROUPS, createBlockers }
