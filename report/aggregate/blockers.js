'use strict'

// Blockers of the event loop. There are two sources: recorded blocking callbacks, with the stack inside them,
// and the delayers that delayed spans name. Both are grouped by the function that ran or, without a frame, by
// the request.

const { text } = require('../read/values')
const { functionOf, innermostFrame } = require('./frames')
const { IdTable } = require('./id-table')
const { BoundedMap, Sums, groupsOf, sum } = require('./lists')
const { sparse, timesBudget } = require('./time-axis')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Blocker
 * @property {string} name the request that ran, or OUTSIDE
 * @property {string | undefined} at most frequent innermost program frame: function (file:line:column)
 * @property {number} count blocking callbacks; if `known` is delays: spans that delayed others
 * @property {number} totalMs their time; if `known` is delays, a lower bound: sum of the longest delay each
 *   caused
 * @property {number} worstMs the longest
 * @property {number} delayedSpans
 * @property {number} delayedMs sum of their delays
 * @property {'runs' | 'delays'} known source of count, totalMs and worstMs
 * @property {boolean} open one of its callbacks was still running when it was written
 * @property {string | undefined} stack of the longest callback
 * @property {number} share of the time of all blocking callbacks and delays, from 0 to 1
 * @property {import('./time-axis').Sparse | undefined} byBucket callbacks and their ms over time;
 *   undefined if only delays are known
 */

const OUTSIDE = '(outside of any request)'
const MAX_GROUPS = 2000
const MIN_MS = 0.001
const MAX_VARIANTS = 16 // names and frames counted separately per group
const MAX_UNNAMED = 10_000 // requests whose name is not yet read

const SUMS = /** @type {const} */ (['runs', 'runMs', 'spans', 'longestMs', 'delayedSpans', 'delayedMs'])

/** Callbacks and delays of one function or, without a frame, of one request. */
class Group {
  /** @type {Sums<string>} */
  names = new Sums(MAX_VARIANTS)
  /** @type {Sums<string>} */
  frames = new Sums(MAX_VARIANTS)
  runs = 0
  runMs = 0
  worstRun = 0
  /** stack of the longest callback @type {string | undefined} */
  stack
  open = false
  spans = 0 // spans that delayed others
  longestMs = 0 // sum of the longest delay that each of them caused
  worstDelay = 0
  delayedSpans = 0
  delayedMs = 0
  /** callbacks and their ms @type {import('./time-axis').Times[]} */
  times = []

  /** @param {number} number */
  constructor (number) {
    this.number = number
  }

  /** Adds the figures of another group. @param {Group} other */
  join (other) {
    if (other.worstRun > this.worstRun || this.stack === undefined) this.stack = other.stack ?? this.stack
    for (const name of SUMS) this[name] += other[name]
    this.worstRun = Math.max(this.worstRun, other.worstRun)
    this.worstDelay = Math.max(this.worstDelay, other.worstDelay)
    this.open ||= other.open
    this.times.push(...other.times)
  }
}

class Blockers {
  #axis
  #renames
  #createTimes
  /** @type {BoundedMap<string, Group>} */
  #groups = new BoundedMap(MAX_GROUPS)
  /**
   * by id of a request that had not ended when its callback was recorded
   * @type {BoundedMap<string, Group[]>}
   */
  #unnamed = new BoundedMap(MAX_UNNAMED)
  #longestDelays = new IdTable(true)
  /** delayed spans, each once, by name of the delayer @type {Sums<string>} */
  #delayedSpans = new Sums()

  /** @param {import('./time-axis').TimeAxis} axis @param {import('./route-names').Renames} renames */
  constructor (axis, renames) {
    this.#axis = axis
    this.#renames = renames
    this.#createTimes = timesBudget(axis, 2)
  }

  /** @param {string | undefined} frame @param {string | undefined} name @returns {Group | undefined} */
  #groupOf (frame, name) {
    const key = frame === undefined ? `name ${name}` : `at ${functionOf(frame)}`
    return this.#groups.find(key, () => new Group(this.#groups.size))
  }

  /** Returns how many delays and callbacks are left out. */
  get omitted () {
    return this.#groups.omitted
  }

  /** Adds a blocking callback. @param {Span} span */
  addCallback ({ attributes, parentSpanId, startMs, open }) {
    const stack = text(attributes['code.stacktrace'], 8000)
    const frame = stack === undefined ? undefined : innermostFrame(stack)
    const group = this.#groupOf(frame, parentSpanId ?? OUTSIDE)
    if (group === undefined) return
    const ms = Number(attributes['longstack.blocked_ms'])
    const times = group.runs === 0 ? this.#createTimes() : undefined
    if (times !== undefined) group.times.push(times)
    group.runs++
    group.runMs += ms
    group.times[0]?.add(this.#axis.bucketOf(startMs), 1, ms)
    if (ms >= group.worstRun) [group.worstRun, group.stack] = [ms, stack]
    group.open ||= open
    if (frame !== undefined) group.frames.add(frame, 1)
    const name = text(attributes['longstack.blocked_by'], 300)
    if (name === undefined && parentSpanId !== undefined) {
      this.#unnamed.find(parentSpanId, () => [])?.push(group) // is named later
    } else {
      group.names.add(name ?? OUTSIDE, 1)
    }
  }

  /** Sets the name of a request. @param {string} spanId @param {string} name */
  setName (spanId, name) {
    if (this.#unnamed.size === 0) return
    for (const group of this.#unnamed.get(spanId) ?? []) group.names.add(name, 1)
    this.#unnamed.delete(spanId)
  }

  /** @param {import('./digest').Delayer[]} delayers of a span @param {number} weight of the span */
  addDelays (delayers, weight) {
    /** groups and names that have counted this span */
    const counted = new Set()
    for (const { name: nameThen = OUTSIDE, at: frame, ms, spanId } of delayers) {
      if (ms < MIN_MS) continue // no certain delay
      const name = this.#renames.nameOf(nameThen, spanId)
      if (!counted.has(name)) this.#delayedSpans.add(name, weight)
      counted.add(name)
      const group = this.#groupOf(frame, name)
      if (group === undefined) continue
      if (!counted.has(group)) group.delayedSpans += weight
      counted.add(group)
      group.delayedMs += ms * weight
      group.worstDelay = Math.max(group.worstDelay, ms)
      group.names.add(name, 1)
      if (frame !== undefined) group.frames.add(frame, 1)
      if (spanId !== undefined) this.#addDelay(group, spanId, ms)
    }
  }

  /**
   * Counts the longest delay of each delaying span.
   * @param {Group} group
   * @param {string} spanId
   * @param {number} ms
   */
  #addDelay (group, spanId, ms) {
    const low = parseInt(spanId.slice(8), 16) ^ Math.imul(group.number + 1, 0x9e3779b1)
    const previous = this.#longestDelays.raise(parseInt(spanId.slice(0, 8), 16), low, ms)
    if (previous === -1) group.spans++
    group.longestMs += Math.max(0, ms - Math.max(0, previous))
  }

  /** @returns {Blocker[]} worst first */
  list () {
    const axis = this.#axis.axis()
    const blockers = this.#merged().map((named) => blockerOf(named, axis))
    blockers.sort((a, b) => Math.max(b.totalMs, b.delayedMs) - Math.max(a.totalMs, a.delayedMs))
    const lostMs = (/** @type {Omit<Blocker, 'share'>} */ { known, totalMs, delayedMs }) =>
      known === 'runs' ? totalMs + delayedMs : delayedMs
    const total = sum(blockers, lostMs)
    return blockers.map((blocker) => ({ ...blocker, share: total > 0 ? lostMs(blocker) / total : 0 }))
  }

  /**
   * Merges groups of one blocker: small delays have no frame, and names may have changed meanwhile. Groups
   * without a frame belong to the only group of their name that has one, except for code outside of any
   * request, which has no single source.
   * @returns {NamedGroup[]}
   */
  #merged () {
    const all = [...this.#groups.values()].map((group) => ({
      group,
      name: mostFrequent(group.names, this.#renames.nameOf) ?? '(unknown request)',
      frame: mostFrequent(group.frames)
    }))
    return groupsOf(all, ({ name }) => name).flatMap((blockers) => {
      const framed = blockers.filter(({ frame }) => frame !== undefined)
      const frameless = blockers.filter(({ frame }) => frame === undefined)
      if (frameless.length === 0) return framed
      const isOne = framed.length === 1 && blockers[0].name !== OUTSIDE
      const [{ group, name }, ...others] = isOne ? [...framed, ...frameless] : frameless
      for (const other of others) group.join(other.group)
      group.delayedSpans = Math.min(group.delayedSpans, this.#spansDelayedBy(name))
      return isOne ? framed : [...framed, frameless[0]]
    })
  }

  /** Returns how many spans were delayed by requests of a final name. @param {string} name */
  #spansDelayedBy (name) {
    return sum([...this.#delayedSpans], ([nameThen, count]) =>
      this.#renames.nameOf(nameThen) === name ? count : 0)
  }
}

/** @typedef {{ group: Group, name: string, frame: string | undefined }} NamedGroup */

/**
 * @param {NamedGroup} named
 * @param {import('./time-axis').Axis | undefined} axis
 * @returns {Omit<Blocker, 'share'>}
 */
function blockerOf ({ group, name, frame }, axis) {
  const { runs, open, stack, delayedSpans, delayedMs, times } = group
  /** @type {Pick<Blocker, 'known' | 'count' | 'totalMs' | 'worstMs'>} */
  const figures = runs > 0
    ? { count: runs, totalMs: group.runMs, worstMs: group.worstRun, known: 'runs' }
    : { count: group.spans, totalMs: group.longestMs, worstMs: group.worstDelay, known: 'delays' }
  const byBucket = times.length === 0 ? undefined : sparse(axis, times, 0, 1)
  return { name, at: frame, ...figures, delayedSpans, delayedMs, open, stack, byBucket }
}

/** @param {Sums<string>} counts @param {(text: string) => string} [nameOf] maps variants to one text */
function mostFrequent (counts, nameOf = String) {
  /** @type {Sums<string>} */
  const sums = new Sums()
  for (const [text, count] of counts) sums.add(nameOf(text), count)
  const max = Math.max(...sums.values())
  return [...sums.keys()].find((text) => sums.get(text) === max)
}

module.exports = { Blockers, MAX_GROUPS, OUTSIDE }
