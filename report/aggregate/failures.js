'use strict'

// Failures: errors of spans, grouped by type, message and innermost program frame. Numbers, ids and addresses
// in a message do not split groups.

const { isRecord, list, text } = require('../read/values')
const { innermostOwnFrame } = require('./frames')
const { BoundedMap, getOrCreate } = require('./lists')
const { sparse, timesBudget } = require('./time-axis')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Failure
 * @property {string} type of the error, or the status of a response
 * @property {string} message with `*` for variable parts
 * @property {string | undefined} at innermost program frame
 * @property {number} count weighted
 * @property {Array<{ name: string, count: number }>} routes most frequent first
 * @property {number} firstUnixMs
 * @property {number} lastUnixMs
 * @property {string | undefined} stack full chain of one of them
 * @property {boolean} isOfClient a client closed its connection before the response was finished
 * @property {string} traceId of that one
 * @property {string} spanId
 * @property {import('./time-axis').Sparse | undefined} byBucket count over time, by the start of the span
 *
 * @typedef {Omit<Failure, 'routes' | 'byBucket'>
 *   & { routes: Map<string, number>, times: import('./time-axis').Times | undefined }} Group
 */

const MAX_GROUPS = 1000
const MAX_FAILURES = 100
const MAX_ROUTES = 20
const MAX_EVENTS = 32
const MAX_INNER = 10_000 // spans
const MAX_STACK_CHARS = 8000
const MAX_MESSAGE_CHARS = 500
const VARIABLE = new RegExp([
  '[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}', // UUID
  '0x[0-9a-f]+',
  '(?:\\d{1,3}\\.){3}\\d{1,3}(?::\\d+)?',
  '\\b(?=[a-f]*\\d)[0-9a-f]{8,}\\b',
  '\\d+(?:\\.\\d+)?'
].join('|'), 'gi')

class Failures {
  /** @type {BoundedMap<string, Group>} */
  #groups = new BoundedMap(MAX_GROUPS)
  /**
   * Errors of inner spans with the routes that they count for, by id of the enclosing span.
   * @type {Map<string, Map<Group, string>>}
   */
  #inner = new Map()
  #axis
  #createTimes

  /** @param {import('./time-axis').TimeAxis} axis */
  constructor (axis) {
    this.#axis = axis
    this.#createTimes = timesBudget(axis, 1)
  }

  get omitted () {
    return this.#groups.omitted
  }

  /** Adds a span that ended. @param {Span} span @param {string} route */
  add (span, route) {
    const { record, failed, cancelled } = span
    const inner = this.#inner.get(span.spanId)
    this.#inner.delete(span.spanId)
    const unixMs = span.startMs + span.ms
    const errors = cancelled ? [] : exceptionsOf(span) // the program has caused that error itself
    if (errors.length === 0 && failed) {
      const status = span.attributes['error.type'] ?? span.attributes['http.response.status_code'] ?? 'error'
      const type = String(text(String(status), 100))
      const isOfClient = span.kind === 'SERVER' && span.attributes['longstack.end'] === 'aborted'
      errors.push({ type, message: record.status?.message, stack: undefined, unixMs, isOfClient })
    }
    for (const error of errors) this.#count(span, route, inner, error)
  }

  /**
   * @param {Span} span
   * @param {string} route
   * @param {Map<Group, string> | undefined} inner errors of inner spans, already counted
   * @param {ReturnType<typeof exceptionsOf>[number]} failure
   */
  #count (span, route, inner, { type, message: written, stack, unixMs, isOfClient }) {
    const message = text(written, MAX_MESSAGE_CHARS) ?? ''
    const { weight, kind, traceId, spanId, parentSpanId, startMs } = span
    const frame = stack === undefined ? undefined : innermostOwnFrame(stack)
    const general = message.replace(VARIABLE, '*')
    const group = this.#groups.find(`${type}\n${frame ?? ''}\n${general}`, () => {
      const moments = { firstUnixMs: unixMs, lastUnixMs: unixMs, times: this.#createTimes() }
      const ids = { traceId, spanId }
      return { type, message, at: frame, count: 0, routes: new Map(), ...moments, stack, isOfClient, ...ids }
    })
    if (group === undefined) return
    const innerRoute = inner?.get(group)
    if (innerRoute !== undefined) {
      addRoute(group, innerRoute, -weight)
    } else {
      group.count += weight
      group.times?.add(this.#axis.bucketOf(startMs), weight)
      group.firstUnixMs = Math.min(group.firstUnixMs, unixMs)
      group.lastUnixMs = Math.max(group.lastUnixMs, unixMs)
      if (group.message !== message) group.message = general
    }
    addRoute(group, route, weight)
    if (kind === 'SERVER' || parentSpanId === undefined) return
    getOrCreate(this.#inner, parentSpanId, () => new Map()).set(group, route) // which may have the same error
    if (this.#inner.size > MAX_INNER) this.#inner.delete(String(this.#inner.keys().next().value))
  }

  /** @returns {Failure[]} most frequent first */
  list () {
    const sorted = [...this.#groups.values()].sort((a, b) => b.count - a.count)
    const axis = this.#axis.axis()
    return sorted.slice(0, MAX_FAILURES).map(({ times, routes, ...facts }) => ({
      ...facts,
      routes: [...routes].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count),
      byBucket: sparse(axis, [times], 0)
    }))
  }
}

/** @param {Span} span */
function exceptionsOf ({ record, startMs, ms }) {
  const exceptions = list(record.events, MAX_EVENTS).filter((event) =>
    event?.name === 'exception' && isRecord(event.attributes))
  return exceptions.map(({ attributes, timeUnixNano }) => ({
    type: text(attributes['exception.type'], 100) ?? 'Error',
    message: attributes['exception.message'],
    stack: text(attributes['exception.stacktrace'], MAX_STACK_CHARS),
    unixMs: momentOf(timeUnixNano) ?? startMs + ms,
    isOfClient: false
  }))
}

/** @param {Group} group @param {string} route @param {number} count */
function addRoute ({ routes }, route, count) {
  const sum = (routes.get(route) ?? 0) + count
  if (sum <= 0) routes.delete(route)
  else if (routes.has(route) || routes.size < MAX_ROUTES) routes.set(route, sum)
}

/** @param {unknown} nanos @returns {number | undefined} ms since 1970 */
function momentOf (nanos) {
  if (typeof nanos !== 'string' || !/^\d{10,20}$/.test(nanos)) return undefined
  return Number(nanos.slice(0, -6)) + Number(nanos.slice(-6)) / 1e6
}

module.exports = { Failures, exceptionsOf }
