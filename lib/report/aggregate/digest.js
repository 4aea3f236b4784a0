'use strict'

// What is kept of a span that is shown by itself: little enough to keep some hundred, whatever a line holds.

const { amount, isObject } = require('../read/span-line')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Split ms: where the time went; run, waited and delayed add up to the duration
 * @property {number} run
 * @property {number} waited
 * @property {number} delayed
 * @property {Record<string, number>} wait waited, by the subsystem that ended it, `unknown` where that is not known;
 *   in files with idle time they are what was pending, and may add up to more
 *
 * @typedef {object} Wait of the critical path
 * @property {number} ms of all waits at this site
 * @property {number} count of these
 * @property {string | undefined} at innermost frame of the program where it began; absent where that is not known
 * @property {string | undefined} until what ended it
 * @property {string | undefined} label of what was waited for: `await`, `setTimeout(100)`
 *
 * @typedef {object} Delayer
 * @property {string | undefined} name absent for code outside of any span
 * @property {string | undefined} spanId
 * @property {number} ms
 * @property {string | undefined} at innermost frame of the program, where that was seen
 *
 * @typedef {object} Digest a span, or a blocked run, in short
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} parentSpanId
 * @property {number} ms duration; of an open one: until it was written
 * @property {number} startUnixMs
 * @property {{ code: string, message?: string }} status
 * @property {string | undefined} end aborted, timeout, upgraded or open; absent where it ended as it should
 * @property {boolean} blocked a blocked run of the loop
 * @property {string | undefined} blockedBy the span that it was part of, where that is known
 * @property {Split | undefined} split
 * @property {Wait[]} waits worst first
 * @property {Delayer[]} delayedBy worst first
 * @property {string | undefined} stack the long stack of the place that made it
 * @property {Array<[number, number, string]>} runs on the loop: start in ms since the span's, length in ms, what ran
 * @property {Record<string, string | number | boolean>} attributes the others, as far as they are plain and short
 * @property {Array<{ name: string, unixMs: number, stack: string | undefined, message: string | undefined }>} events
 * @property {string | undefined} service
 */

const STACK = 8000
const TEXT = 500
const ATTRIBUTES = 32
const RUNS = 64
const EVENTS = 8
const WAITS = 10
const SUBSYSTEMS = 64
const ROUNDING = 0.0005 // ms, of times with three decimals

/** @param {Span} span @returns {Digest} */
function digest (span) {
  const { record, attributes } = span
  return {
    name: span.name,
    kind: span.kind,
    traceId: span.traceId,
    spanId: span.spanId,
    parentSpanId: span.parentSpanId,
    ms: span.ms,
    startUnixMs: span.startMs,
    status: statusOf(record.status),
    end: text(attributes['longstack.end'], 32),
    blocked: span.blocked,
    blockedBy: text(attributes['longstack.blocked_by'], 300),
    split: splitOf(attributes),
    waits: waitsOf(attributes['longstack.waits']),
    delayedBy: delayersOf(attributes),
    stack: text(attributes['code.stacktrace'], STACK),
    runs: runsOf(attributes['longstack.runs']),
    attributes: othersOf(attributes),
    events: eventsOf(record.events),
    service: text(record.resource?.['service.name'], TEXT)
  }
}

/** @param {unknown} value @param {number} most characters @returns {string | undefined} */
function text (value, most) {
  if (typeof value !== 'string') return undefined
  return value.length > most ? `${value.slice(0, most)}… (${value.length - most} characters more)` : value
}

/** @param {any} status @returns {Digest['status']} */
function statusOf (status) {
  const code = /^(UNSET|OK|ERROR)$/.test(status?.code) ? status.code : 'UNSET'
  const message = text(status?.message, TEXT)
  return message === undefined ? { code } : { code, message }
}

/**
 * Reads where the time of a span went. Idle time, which older files have, was waited for somebody else.
 * @param {Record<string, any>} attributes
 * @returns {Split | undefined} nothing where any part is not known
 */
function splitOf (attributes) {
  const run = amount(attributes['longstack.run_ms'])
  const waited = amount(attributes['longstack.waited_ms'])
  const delayed = amount(attributes['longstack.delayed_ms'])
  const idle = amount(attributes['longstack.idle_ms'] ?? 0)
  if (run === undefined || waited === undefined || delayed === undefined || idle === undefined) return undefined
  const wait = subsystemsOf(attributes['longstack.wait_ms'])
  if (idle > 0) addIdle(wait, idle, subsystemsOf(attributes['longstack.idle_until']))
  return { run, waited: waited + idle, delayed, wait: Object.fromEntries(wait) }
}

/**
 * Reads times by subsystem.
 * @param {unknown} times
 * @returns {Map<string, number>} ms
 */
function subsystemsOf (times) {
  if (!isObject(times)) return new Map()
  const named = Object.entries(times).filter(([name]) => /^[A-Z][\w.:-]{0,63}$/i.test(name))
  return new Map(named.filter(([, ms]) => amount(ms) !== undefined).slice(0, SUBSYSTEMS))
}

/**
 * Adds idle time to the waits for what ended it, as far as that is known.
 * @param {Map<string, number>} wait
 * @param {number} idle ms
 * @param {Map<string, number>} ends
 */
function addIdle (wait, idle, ends) {
  let rest = idle
  for (const [name, ms] of ends) {
    const part = Math.min(ms, rest)
    wait.set(name, (wait.get(name) ?? 0) + part)
    rest -= part
  }
  if (rest > ROUNDING) wait.set('unknown', (wait.get('unknown') ?? 0) + rest)
}

/**
 * Reads the waits of a critical path.
 * @param {unknown} waits
 * @returns {Wait[]}
 */
function waitsOf (waits) {
  if (!Array.isArray(waits)) return []
  const valid = waits.slice(0, WAITS).filter((wait) => isObject(wait) && amount(wait.ms) !== undefined)
  return valid.map((wait) => ({
    ms: wait.ms,
    count: Number.isSafeInteger(wait.count) && wait.count > 0 ? wait.count : 1,
    at: text(wait.at, TEXT),
    until: text(wait.until, 300),
    label: text(wait.label, 100)
  }))
}

/** @param {Record<string, any>} attributes @returns {Delayer[]} */
function delayersOf (attributes) {
  const list = attributes['longstack.delayed_by']
  if (!Array.isArray(list)) return []
  return list.slice(0, 8).filter((one) => isObject(one) && amount(one.ms) !== undefined).map((one) => ({
    name: text(one.name, 300),
    spanId: typeof one.spanId === 'string' && /^[0-9a-f]{16}$/i.test(one.spanId) ? one.spanId : undefined,
    ms: one.ms,
    at: text(one.at, TEXT)
  }))
}

/** @param {unknown} runs @returns {Digest['runs']} */
function runsOf (runs) {
  if (!Array.isArray(runs)) return []
  return runs.slice(0, RUNS)
    .filter((run) => Array.isArray(run) && amount(run[0]) !== undefined && amount(run[1]) !== undefined)
    .map(([start, ms, type]) => [start, ms, text(type, 100) ?? ''])
}

/** @param {Record<string, any>} attributes @returns {Digest['attributes']} */
function othersOf (attributes) {
  const plain = Object.entries(attributes)
    .filter(([key, value]) => !key.startsWith('longstack.') && key !== 'code.stacktrace' && key.length <= 100 && /^(string|number|boolean)$/.test(typeof value))
  return Object.fromEntries(plain.slice(0, ATTRIBUTES).map(([key, value]) => [key, typeof value === 'string' ? String(text(value, TEXT)) : value]))
}

/** @param {unknown} events @returns {Digest['events']} */
function eventsOf (events) {
  if (!Array.isArray(events)) return []
  return events.slice(0, EVENTS).filter((event) => typeof event?.name === 'string').map((event) => ({
    name: String(text(event.name, 100)),
    unixMs: Number(event.timeUnixNano) / 1e6 || 0,
    stack: text(event.attributes?.['exception.stacktrace'], STACK),
    message: text(event.attributes?.['exception.message'], TEXT)
  }))
}

module.exports = { digest, delayersOf, splitOf, text }
