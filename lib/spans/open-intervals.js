'use strict'

// Repeating timers that requests left behind: registered inside of a request that has ended, and still there.
// The registry reports a timer once it is known to stay; what became of it is looked up only when the record
// is made, every 10 s at most and when the program ends.

const { groupBy } = require('../group-by')
const { isClosed } = require('../node-objects')
const { own } = require('../objects')
const { identityAt, spanAt } = require('./identities')
const { siteOf, textsOf } = require('./path-sites')
const ids = require('../encoding/ids')
const { internalRecord } = require('./span-record')
const { originAt, unixNano } = require('./wall-clock')

const PAUSE_MS = 10_000 // between two records
const MAX_TIMERS = 20_000 // more are not counted
const MAX_GROUPS = 50 // of one record
const MAX_NAMES = 20 // of one group
const MAX_DEPTH = 63 // spans around a span
// A trace id that every sample has: the record stands for itself.
const IN_EVERY_SAMPLE = 'f'.repeat(32)

/**
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {{ entry: Entry, request: number, name: string }} LeftTimer request: number of its span
 *
 * @typedef {object} IntervalGroup timers that one place of the program registered
 * @property {string | undefined} at
 * @property {string[]} callers
 * @property {string | undefined} label
 * @property {number} count
 * @property {number} oldest_ms
 * @property {Record<string, number>} requests how many were registered in the requests of each name
 */

/** @type {Set<LeftTimer>} */
const timers = new Set()
let nextRecord = 0 // ms of the clock
/** what the last record told */
let written = ''

/** Returns the timers that are alive after their requests, and forgets those that are gone. */
function remaining () {
  const alive = []
  for (const timer of timers) {
    const { entry, request } = timer
    const object = entry.resource.deref()
    if (object === undefined || isClosed('Timeout', object)) timers.delete(timer)
    else if (spanAt(request) === undefined) alive.push(timer)
  }
  return alive
}

/** @param {number} time ms of the clock @returns {IntervalGroup[]} the most numerous first */
function groups (time) {
  const groups = groupBy(remaining(), ({ entry }) => String(entry.context.chain)).map((timers) => {
    const { at: site, callers = [], label } = textsOf(siteOf(timers[0].entry.context.chain))
    /** @type {Record<string, number>} */
    const requests = {}
    for (const { request, name } of timers) countName(requests, identityAt(request)?.name ?? name)
    return {
      at: site,
      callers,
      label,
      count: timers.length,
      oldest_ms: Math.round(time - Math.min(...timers.map(({ entry }) => entry.context.time))),
      requests
    }
  })
  return groups.sort((a, b) => b.count - a.count).slice(0, MAX_GROUPS)
}

/** Notes a timer that is known to stay. @param {import('../core/entry').Entry} entry */
function add (entry) {
  const { spanNumber } = entry.context
  const timer = entry.resource.deref()
  if (spanNumber === 0 || timer === undefined || timers.size >= MAX_TIMERS) return
  if (typeof own(timer, '_repeat') !== 'number') return
  const request = outermost(spanNumber)
  const name = identityAt(request)?.name
  if (name === undefined) return
  timers.add({ entry, request, name })
  if (nextRecord === 0) nextRecord = entry.context.time + PAUSE_MS
}

/** Returns whether a record is due. @param {number} time ms of the clock */
const isDue = (time) => timers.size > 0 && time >= nextRecord

/**
 * Returns what the sinks are given, undefined if nothing has changed since the last time.
 * @param {number} time ms of the clock
 */
function take (time) {
  nextRecord = time + PAUSE_MS
  const open = groups(time)
  const state = open.map(({ at: site, count }) => `${site} ${count}`).join('\n')
  if (state === written) return undefined
  written = state
  const present = unixNano(originAt(time), time)
  const identity = { traceId: ids.traceId(), spanId: ids.spanId() }
  const attributes = { 'longstack.open_intervals': open }
  const record = internalRecord('open intervals', identity, present, present, attributes)
  return { ms: 0, failed: false, traceId: IN_EVERY_SAMPLE, record: () => record }
}

/** @param {number} number of a span @returns {number} of the outermost span around it */
function outermost (number) {
  let current = number
  for (let i = 0; i < MAX_DEPTH; i++) {
    const identity = identityAt(current)
    const outer = identity === undefined ? 0 : 'outer' in identity ? identity.outer : identity.outermost.seq
    if (outer === 0 || outer === current) return current
    current = outer
  }
  return current
}

/** @param {Record<string, number>} counts @param {string} name */
function countName (counts, name) {
  if (Object.hasOwn(counts, name)) counts[name]++
  else if (Object.keys(counts).length < MAX_NAMES) counts[name] = 1
}

module.exports = { add, isDue, take }
