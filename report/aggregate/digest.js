'use strict'

// Short form of a span that is printed individually: bounded, whatever a line holds.

const { amount, isRecord, list, text } = require('../read/values')
const { askedOf } = require('./asked')
const { entriesOf } = require('./critical-paths')
const { siteTextsOf } = require('./sites')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Split breakdown of a duration, in ms: run, waited and delayed add up to it
 * @property {number} run
 * @property {number} waited
 * @property {number} delayed
 * @property {Record<string, number>} wait ms waited, by the subsystem that ended the wait, or `unknown`
 *
 * @typedef {object} Wait a wait on the critical path
 * @property {number} ms of all waits at this site
 * @property {number} count of these
 * @property {string | undefined} at innermost program frame where it began; absent if unknown
 * @property {string[]} callers program frames that led to it, innermost first
 * @property {string | undefined} until cause of its end
 * @property {string | undefined} label of the awaited operation: `await`, `setTimeout(100)`
 * @property {number | undefined} delayed ms in which the loop ran other code meanwhile
 * @property {number[] | undefined} on asyncIds of the connections whose callbacks ended it
 * @property {number | undefined} sent waits for which the request had sent something on that connection first
 * @property {number | undefined} unsent ms before anything was sent for it
 * @property {number | undefined} opening ms until its connection was open
 * @property {number | undefined} beside own callbacks meanwhile that are off the path
 *
 * @typedef {object} Ran own code on the critical path
 * @property {number} ms
 * @property {number} count callbacks
 * @property {string | undefined} at innermost program frame where they were registered; absent for the first
 *   callback of a request
 * @property {string[]} callers program frames that led to it, innermost first
 * @property {string | undefined} label of the registered operation
 *
 * @typedef {object} Delayer
 * @property {string | undefined} name absent for code outside any span
 * @property {string | undefined} spanId
 * @property {number} ms
 * @property {number | undefined} max upper bound in ms, unless `ms` is exact
 * @property {string | undefined} at innermost program frame, if sampled
 *
 * @typedef {object} Digest short form of a span or a blocking callback
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} parentSpanId
 * @property {number} ms duration; if open, until it was written
 * @property {number} startUnixMs
 * @property {{ code: string, message?: string }} status
 * @property {string | undefined} end see docs/spans.md, or open; absent if it ended normally
 * @property {boolean} blocked a blocking callback
 * @property {string | undefined} blockedBy span that it was part of, if known
 * @property {Split | undefined} split
 * @property {Wait[]} waits worst first
 * @property {Ran[]} ran worst first
 * @property {import('./asked').Asked[]} asked queries on connections
 * @property {number | undefined} besideMs own code that ran while it was open, off its critical path
 * @property {Delayer[]} delayedBy worst first
 * @property {number | undefined} delayedMax upper bound in ms, above the one in `split` unless that is exact
 * @property {Array<[number, number, number]>} delays start in ms after the span's, maximum length, and how
 *   much of its end is certain
 * @property {number | undefined} queuedMs how long the request sat in the socket buffer before Node read it:
 *   its client waited this much longer
 * @property {boolean | undefined} responding of an open request: the head of its response was sent
 * @property {Array<{ what: string, ms: number | undefined }> | undefined} pending what an open request waited
 *   for, if known
 * @property {import('./verdict/idle').LastStep} [stopped] what it started last, if nothing was pending
 * @property {import('./verdict/idle').IdlePeer[]} [idle] idle connections, if it waited in a package
 * @property {string | undefined} stack long stack of its start
 * @property {Array<[number, number, string]>} runs on the loop: start in ms after the span's, length in ms,
 *   resource type
 * @property {Record<string, string | number | boolean>} attributes other short ones of primitive type
 * @property {Array<{ name: string, unixMs: number, stack: string | undefined, message: string | undefined }>}
 *   events
 * @property {string | undefined} service
 */

const MAX_STACK_CHARS = 8000
const MAX_TEXT_CHARS = 500
const MAX_NAME_CHARS = 300
const MAX_ATTRIBUTES = 32
const MAX_KEY_CHARS = 100
const MAX_RUNS = 64
const MAX_EVENTS = 8
const MAX_DELAYERS = 8
const MAX_PENDING = 10
const MAX_DELAYS = 16
const MAX_SUBSYSTEMS = 64
const CODES = new Set(['UNSET', 'OK', 'ERROR'])

/** @param {Span} span @returns {Digest} */
function digest (span) {
  const { record, attributes, name, kind, traceId, spanId, parentSpanId, ms, startMs: startUnixMs } = span
  const facts = { name, kind, traceId, spanId, parentSpanId, ms, startUnixMs }
  return {
    ...facts,
    status: {
      code: CODES.has(record.status?.code) ? record.status.code : 'UNSET',
      message: text(record.status?.message, MAX_TEXT_CHARS)
    },
    end: text(attributes['longstack.end'], 32),
    blocked: span.blocked,
    blockedBy: text(attributes['longstack.blocked_by'], MAX_NAME_CHARS),
    split: splitOf(attributes),
    waits: entriesOf(attributes['longstack.waits'], siteTextsOf)
      .map(({ place, delayed, ...figures }) => ({ ...figures, ...place, delayed: delayed || undefined })),
    ran: entriesOf(attributes['longstack.ran'], siteTextsOf)
      .map(({ ms, count, place: { until, ...place } }) => ({ ms, count, ...place })),
    asked: askedOf(attributes['longstack.asked']),
    besideMs: amount(attributes['longstack.beside_ms']),
    delayedBy: delayersOf(attributes),
    delayedMax: amount(attributes['longstack.delayed_max_ms']),
    delays: spellsOf(attributes['longstack.delays'], MAX_DELAYS)
      .map(([start, ms, certain]) => [start, ms, Math.min(ms, amount(certain) ?? ms)]),
    queuedMs: amount(attributes['longstack.queued_ms']),
    pending: pendingOf(attributes['longstack.pending']),
    responding: attributes['longstack.responding'] === true || undefined,
    stopped: stoppedOf(attributes['longstack.stopped']),
    idle: idleOf(attributes['longstack.idle']),
    stack: text(attributes['code.stacktrace'], MAX_STACK_CHARS),
    runs: spellsOf(attributes['longstack.runs'], MAX_RUNS)
      .map(([start, ms, type]) => [start, ms, text(type, 100) ?? '']),
    attributes: otherAttributes(attributes),
    events: eventsOf(record.events),
    service: text(record.resource?.['service.name'], MAX_TEXT_CHARS)
  }
}

/** @param {unknown} pending @returns {Digest['pending']} */
function pendingOf (pending) {
  if (pending === undefined) return undefined
  return list(pending, MAX_PENDING).filter(isRecord).flatMap(({ what, ms }) => {
    const name = text(what, MAX_TEXT_CHARS)
    return name === undefined ? [] : [{ what: name, ms: amount(ms) }]
  })
}

/** @param {unknown} stopped @returns {Digest['stopped']} */
function stoppedOf (stopped) {
  if (!isRecord(stopped)) return undefined
  return { at: text(stopped.at, MAX_TEXT_CHARS), label: text(stopped.label, MAX_NAME_CHARS) }
}

/** @param {unknown} idle @returns {Digest['idle']} */
function idleOf (idle) {
  if (idle === undefined) return undefined
  return list(idle, MAX_PENDING).filter(isRecord).flatMap(({ peer, open, idle, leastMs, users }) => {
    const name = text(peer, MAX_TEXT_CHARS)
    const figures = { open: amount(open) ?? 0, idle: amount(idle) ?? NaN, leastMs: amount(leastMs) ?? 0 }
    const known = list(users, MAX_PENDING).filter(isRecord).map((user) => ({
      request: text(user.request, MAX_NAME_CHARS),
      at: text(user.at, MAX_TEXT_CHARS),
      count: amount(user.count) ?? 0
    }))
    return name === undefined ? [] : [{ peer: name, ...figures, users: known }]
  })
}

/** @param {Record<string, any>} attributes @returns {Delayer[]} */
function delayersOf (attributes) {
  const first = list(attributes['longstack.delayed_by'], MAX_DELAYERS)
  const valid = first.filter((delayer) => isRecord(delayer) && amount(delayer.ms) !== undefined)
  return valid.map(({ name, spanId, ms, max, at: frame }) => ({
    name: text(name, MAX_NAME_CHARS),
    spanId: typeof spanId === 'string' && /^[0-9a-f]{16}$/i.test(spanId) ? spanId : undefined,
    ms,
    max: amount(max),
    at: text(frame, MAX_TEXT_CHARS)
  }))
}

/**
 * Returns spells in their order, and only the longest if there are too many.
 * @param {unknown} spells start and ms of each
 * @param {number} max
 */
function spellsOf (spells, max) {
  const valid = list(spells).filter((spell) =>
    Array.isArray(spell) && amount(spell[0]) !== undefined && amount(spell[1]) !== undefined)
  if (valid.length <= max) return valid
  const longest = new Set([...valid].sort((a, b) => b[1] - a[1]).slice(0, max))
  return valid.filter((spell) => longest.has(spell))
}

/**
 * Returns attributes that longstack itself does not read, except those with too long a name.
 * @param {Record<string, any>} attributes
 * @returns {Digest['attributes']}
 */
function otherAttributes (attributes) {
  const entries = Object.entries(attributes).filter(([key, value]) =>
    !key.startsWith('longstack.') && key !== 'code.stacktrace' && key.length <= MAX_KEY_CHARS &&
    /^(?:string|number|boolean)$/.test(typeof value))
  const limited = entries.slice(0, MAX_ATTRIBUTES)
  return Object.fromEntries(limited.map(([key, value]) => [key, text(value, MAX_TEXT_CHARS) ?? value]))
}

/** @param {unknown} events @returns {Digest['events']} */
function eventsOf (events) {
  return list(events, MAX_EVENTS).filter((event) => typeof event?.name === 'string').map((event) => ({
    name: String(text(event.name, 100)),
    unixMs: Number(event.timeUnixNano) / 1e6 || 0,
    stack: text(event.attributes?.['exception.stacktrace'], MAX_STACK_CHARS),
    message: text(event.attributes?.['exception.message'], MAX_TEXT_CHARS)
  }))
}

/**
 * Reads the breakdown of a span's duration.
 * @param {Record<string, any>} attributes
 * @returns {Split | undefined} undefined if any part is unknown
 */
function splitOf (attributes) {
  const run = amount(attributes['longstack.run_ms'])
  const waited = amount(attributes['longstack.waited_ms'])
  const delayed = amount(attributes['longstack.delayed_ms'])
  if (run === undefined || waited === undefined || delayed === undefined) return undefined
  const times = attributes['longstack.wait_ms']
  const valid = Object.entries(isRecord(times) ? times : {}).filter(([name, ms]) =>
    amount(ms) !== undefined && /^[A-Z][\w.:-]{0,63}$/i.test(name))
  return { run, waited, delayed, wait: Object.fromEntries(valid.slice(0, MAX_SUBSYSTEMS)) }
}

module.exports = { delayersOf, digest, spellsOf, splitOf }
