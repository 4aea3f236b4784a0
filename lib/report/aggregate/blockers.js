'use strict'

// Who held others up. Two sources: the blocked runs that were recorded, with the stack inside of them, and what delayed
// spans say of who delayed them. Both are put together by the function that ran; where no frame was seen, by the request.

const { text } = require('./digest')
const { Ids } = require('./numbers')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Blocker
 * @property {string} name the request that ran, or what stands for code outside of any
 * @property {string | undefined} at innermost frame of the program, the one seen most often: function (file:line:column)
 * @property {number} count blocked runs; where `known` is delays: spans that held others up
 * @property {number} totalMs their time; where `known` is delays, at least this: the longest delay each caused, added up
 * @property {number} worstMs the longest
 * @property {number} delayedSpans spans that waited for it
 * @property {number} delayedMs how long they waited, all together
 * @property {'runs' | 'delays'} known what count, totalMs and worstMs are made of
 * @property {boolean} open one of its runs had not ended when it was written
 * @property {string | undefined} stack of the worst run
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
 */

const OUTSIDE = '(outside of any request)'
const GROUPS = 2000
const VARIANTS = 16 // names and lines told apart in a group
const NAMELESS = 10_000 // requests whose name is yet to come

function createBlockers () {
  /** @type {Map<string, Group>} */
  const groups = new Map()
  /** @type {Map<string, Group[]>} requests that were still under way when a run of theirs was written */
  const nameless = new Map()
  const blamed = new Ids(true)
  let left = 0

  /** @param {string | undefined} at @param {string | undefined} name @returns {Group | undefined} */
  function groupOf (at, name) {
    const key = at === undefined ? `name ${name}` : `at ${placeless(at)}`
    const known = groups.get(key)
    if (known !== undefined) return known
    if (groups.size === GROUPS) {
      left++
      return undefined
    }
    const group = empty(groups.size)
    groups.set(key, group)
    return group
  }

  /** @param {Group} group @param {string} spanId */
  function wait (group, spanId) {
    const waiting = nameless.get(spanId)
    if (waiting !== undefined) waiting.push(group)
    else if (nameless.size < NAMELESS) nameless.set(spanId, [group])
  }

  return {
    /** A blocked run. @param {Span} span */
    run (span) {
      const stack = text(span.attributes['code.stacktrace'], 8000)
      const frame = stack === undefined ? undefined : innermost(stack)
      const group = groupOf(frame, span.parentSpanId ?? OUTSIDE)
      if (group === undefined) return
      const ms = Number(span.attributes['longstack.blocked_ms'])
      group.runs++
      group.runMs += ms
      if (ms >= group.worstRun) [group.worstRun, group.stack] = [ms, stack]
      group.open ||= span.open
      tally(group.frames, frame)
      const name = text(span.attributes['longstack.blocked_by'], 300)
      if (name !== undefined) tally(group.names, name)
      else if (span.parentSpanId === undefined) tally(group.names, OUTSIDE)
      else wait(group, span.parentSpanId)
    },

    /** A request's name is known. @param {string} spanId @param {string} name */
    named (spanId, name) {
      if (nameless.size === 0) return
      for (const group of nameless.get(spanId) ?? []) tally(group.names, name)
      nameless.delete(spanId)
    },

    /** @param {import('./digest').Delayer[]} delayers of a span @param {number} weight of the span */
    delayed (delayers, weight) {
      for (const { name = OUTSIDE, at, ms, spanId } of delayers) {
        const group = groupOf(at, name)
        if (group === undefined) continue
        group.delayedSpans += weight
        group.delayedMs += ms * weight
        group.worstDelay = Math.max(group.worstDelay, ms)
        tally(group.names, name)
        tally(group.frames, at)
        if (spanId !== undefined) blame(group, spanId, ms)
      }
    },

    /** @returns {Blocker[]} worst first */
    list () {
      return [...groups.values()].map(blockerOf).sort((a, b) => cost(b) - cost(a))
    },

    left: () => left
  }

  /** The longest delay that one span caused to another one. @param {Group} group @param {string} spanId @param {number} ms */
  function blame (group, spanId, ms) {
    const low = parseInt(spanId.slice(8), 16) ^ Math.imul(group.number + 1, 0x9e3779b1)
    const before = blamed.raise(parseInt(spanId.slice(0, 8), 16), low, ms)
    if (before === -1) group.spans++
    group.longestMs += Math.max(0, ms - Math.max(0, before))
  }
}

/** @param {number} number @returns {Group} */
function empty (number) {
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
    delayedMs: 0
  }
}

/** @param {Group} group @returns {Blocker} */
function blockerOf (group) {
  const { runs, open, stack, delayedSpans, delayedMs } = group
  const known = runs > 0 ? 'runs' : 'delays'
  const figures = runs > 0
    ? { count: runs, totalMs: group.runMs, worstMs: group.worstRun }
    : { count: group.spans, totalMs: group.longestMs, worstMs: group.worstDelay }
  return { name: commonest(group.names) ?? '(unknown request)', at: commonest(group.frames), ...figures, delayedSpans, delayedMs, known, open, stack }
}

/** @param {Blocker} blocker */
function cost ({ totalMs, delayedMs }) {
  return Math.max(totalMs, delayedMs)
}

/** @param {Map<string, number>} counts @param {string | undefined} word */
function tally (counts, word) {
  if (word === undefined) return
  const before = counts.get(word)
  if (before !== undefined || counts.size < VARIANTS) counts.set(word, (before ?? 0) + 1)
}

/** @param {Map<string, number>} counts */
function commonest (counts) {
  /** @type {string | undefined} */
  let best
  let most = 0
  for (const [word, count] of counts) if (count > most) [best, most] = [word, count]
  return best
}

/** A frame without line and column: one function is sampled at many. @param {string} at */
function placeless (at) {
  return at.replace(/:\d+(:\d+)?(?=\)?$)/, '')
}

/** The innermost frame of the program in a long stack. @param {string} stack @returns {string | undefined} */
function innermost (stack) {
  const inside = stack.split('\n  ── ', 1)[0].split('\n').filter((line) => /^ +at /.test(line)).map((line) => line.replace(/^ +at /, ''))
  return inside.find((frame) => !/\bnode:|[\\/]node_modules[\\/]/.test(frame)) ?? inside[0]
}

module.exports = { createBlockers, OUTSIDE }
