'use strict'

// Repeating timers that requests left behind: created in a request that has ended, and still active. Each
// repeating timer is noted when it is made. Its state is checked only when the record is made (at most every
// 10 s, and when the program ends), or after many more were noted.

const { groupBy } = require('../group-by')
const { isClosedTimer } = require('../node-objects')
const { identityAt, spanAt } = require('./identities')
const { siteOf } = require('./path-sites')
const ids = require('../encoding/ids')
const { internalRecord } = require('./span-record')
const { textsOf } = require('../encoding/span-form')
const { unixNano } = require('../encoding/times')
const { originAt } = require('./wall-clock')

const PAUSE_MS = 10_000 // between two records
const MAX_TIMERS = 20_000 // further ones are not counted
const MIN_TIMERS = 256 // timers noted before closed ones are looked for
const MAX_GROUPS = 50 // per record
const MAX_NAMES = 20 // per group
const MAX_DEPTH = 63 // spans around a span
// A trace id that is in every sample: the record represents only itself.
const IN_EVERY_SAMPLE = 'f'.repeat(14) // the end of a trace id, see sinks.js

/**
 * @typedef {object} LeftTimer
 * @property {WeakRef<object>} timer
 * @property {number} chain
 * @property {number} time ms of the clock when it was made
 * @property {number} request number of the request's span
 * @property {string} name of the request
 *
 * @typedef {object} IntervalGroup timers registered at one place in the program
 * @property {string | undefined} at
 * @property {string[]} callers
 * @property {string | undefined} label
 * @property {number} count
 * @property {number} oldest_ms
 * @property {Record<string, number>} requests number of timers, by request name
 */

/** @type {Set<LeftTimer>} */
const timers = new Set()
let fullSize = MIN_TIMERS // size at which to look for closed ones
let nextRecord = 0 // ms of the clock
/** contents of the last record */
let written = ''

/** Returns the timers that outlived their requests, and forgets closed ones. */
function remaining () {
  const alive = []
  for (const noted of timers) {
    const timer = noted.timer.deref()
    if (timer === undefined || isClosedTimer(timer)) timers.delete(noted)
    else if (spanAt(noted.request) === undefined) alive.push(noted)
  }
  fullSize = Math.max(MIN_TIMERS, 2 * timers.size)
  return alive
}

/** @param {number} time ms of the clock @returns {IntervalGroup[]} largest first */
function groups (time) {
  const groups = groupBy(remaining(), ({ chain }) => String(chain)).map((timers) => {
    const { at: site, callers = [], label } = textsOf(siteOf(timers[0].chain))
    /** @type {Record<string, number>} */
    const requests = {}
    for (const { request, name } of timers) countName(requests, identityAt(request)?.name ?? name)
    return {
      at: site,
      callers,
      label,
      count: timers.length,
      oldest_ms: Math.round(time - timers.reduce((oldest, timer) => Math.min(oldest, timer.time), time)),
      requests
    }
  })
  return groups.sort((a, b) => b.count - a.count).slice(0, MAX_GROUPS)
}

/**
 * Notes a repeating timer.
 * @param {import('../core/context').Context} context
 * @param {object} timer
 */
function add ({ chain, spanNumber, time }, timer) {
  if (spanNumber === 0) return
  if (timers.size >= fullSize) remaining()
  if (timers.size >= MAX_TIMERS) return
  const request = outermost(spanNumber)
  const name = identityAt(request)?.name
  if (name === undefined) return
  timers.add({ timer: new WeakRef(timer), chain, time, request, name })
  if (nextRecord === 0) nextRecord = time + PAUSE_MS
}

/** Returns whether a record is due. @param {number} time ms of the clock */
const isDue = (time) => timers.size > 0 && time >= nextRecord

/**
 * Returns the record for the sinks, undefined if nothing changed since the last one.
 * @param {number} time ms of the clock
 */
function take (time) {
  nextRecord = time + PAUSE_MS
  const open = groups(time)
  const state = open.map(({ at: site, count }) => `${site} ${count}`).join('\n')
  if (state === written) return undefined
  written = state
  const present = unixNano(originAt(time), time)
  const identity = { traceId: ids.traceId().slice(0, 18) + IN_EVERY_SAMPLE, spanId: ids.spanId() }
  const attributes = { 'longstack.open_intervals': open }
  return internalRecord('open intervals', identity, present, present, attributes)
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
