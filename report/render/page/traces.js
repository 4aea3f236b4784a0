'use strict'

// The traces of the page: trees of spans, times in ms from the start of the trace.

const { count } = require('./client/format')
const { waitGapsOf } = require('../wait-gaps')
const { createDelays, createSplit, createWaits } = require('./rows')
const {
  NAME_CHARS, array, isRecord, number, optionalText, records, roundMs, text
} = require('./values')

/**
 * @typedef {import('./thinning').Thinning} Thinning
 * @typedef {{ name: string, message: string, at?: number, stack?: number }} Event
 *
 * @typedef {object} PageSpan
 * @property {string} id
 * @property {string} [parent]
 * @property {string} name
 * @property {string} kind
 * @property {boolean} [blocked] a blocking callback
 * @property {number} start ms from the start of its trace
 * @property {number} ms
 * @property {string} status UNSET, OK or ERROR
 * @property {string} [message]
 * @property {string} [end] why it did not end normally, or "open"
 * @property {import('./rows').Split} [split]
 * @property {import('./rows').Wait[]} waits worst first
 * @property {import('./rows').Wait[]} ran of the critical path, worst first
 * @property {Array<[start: number, ms: number, wait: number]>} gaps between callbacks that are certain to be
 *   one wait: start from the span's own, length, index in waits
 * @property {import('./rows').Delay[]} delayedBy
 * @property {Array<[number, number, number]>} delays start, ms at most, ms of its end that are certain
 * @property {Array<[number, number, string]>} runs start from the span's own start, ms, what ran
 * @property {number} [stack] index in stacks
 * @property {Event[]} events
 * @property {Array<[string, string]>} attributes
 * @property {string} [where] its service
 *
 * @typedef {object} PageTrace
 * @property {string} id
 * @property {string} name
 * @property {number} [startUnixMs]
 * @property {number} ms
 * @property {PageSpan[]} spans
 * @property {number} more spans that are not on the page
 */

const SPAN_WAITS = 10
const MAX_EVENTS = 20
const MAX_SPELLS = 16 // in which a span was delayed
const MAX_RUNS = 64
const MAX_ATTRIBUTES = 60

/**
 * Makes the trees of the slowest requests, in their order.
 * @param {any} model
 * @param {Thinning} thinning
 * @returns {PageTrace[]}
 */
function createTraces (model, thinning) {
  const { limits } = thinning
  const entries = Object.entries(isRecord(model.traces) ? model.traces : {})
  const valid = entries.filter(([, spans]) => Array.isArray(spans) && spans.length > 0)
  const ranks = new Map()
  records(model.slowest).forEach(({ traceId }, rank) => { if (!ranks.has(traceId)) ranks.set(traceId, rank) })
  valid.sort(([a], [b]) => (ranks.get(a) ?? Infinity) - (ranks.get(b) ?? Infinity) || 0)
  if (valid.length > limits.traces) {
    thinning.note(`Only the slowest ${limits.traces} of ${count(valid.length)} traces can be opened.`)
  }
  const traces = valid.slice(0, limits.traces).map(([id, spans]) => createTrace(id, spans, thinning))
  return traces.filter(({ spans }) => spans.length > 0)
}

/** @param {string} id @param {any[]} digests @param {Thinning} thinning @returns {PageTrace} */
function createTrace (id, digests, thinning) {
  const valid = records(digests).filter(({ startUnixMs }) => number(startUnixMs) !== undefined)
  valid.sort((a, b) => a.startUnixMs - b.startUnixMs || b.ms - a.ms)
  const start = valid[0]?.startUnixMs ?? 0
  const end = valid.reduce((max, span) => Math.max(max, span.startUnixMs + (number(span.ms) ?? 0)), start)
  const spans = valid.slice(0, thinning.limits.spans).map((span) => createSpan(span, start, thinning))
  const ids = new Set(spans.map((span) => span.id))
  const root = spans.find((span) => span.parent === undefined || !ids.has(span.parent)) ?? spans[0]
  return {
    id: text(id, 32),
    name: root?.name ?? '',
    startUnixMs: start,
    ms: roundMs(end - start),
    spans,
    more: valid.length - spans.length
  }
}

/** @param {any} source @param {number} start of the trace @param {Thinning} thinning @returns {PageSpan} */
function createSpan (source, start, thinning) {
  const { limits } = thinning
  const events = records(source.events).slice(0, MAX_EVENTS)
  const runs = createRuns(source.runs)
  const waits = createWaits(source.waits, SPAN_WAITS)
  return {
    id: text(source.spanId ?? '', 16),
    parent: optionalText(source.parentSpanId, 16),
    name: text(source.name ?? ''),
    kind: text(source.kind ?? 'INTERNAL', 20),
    blocked: source.blocked === true || undefined,
    start: roundMs(source.startUnixMs - start),
    ms: Math.max(0, number(source.ms) ?? 0),
    status: text(source.status?.code ?? 'UNSET', 20),
    message: optionalText(source.status?.message, limits.value),
    end: optionalText(source.end, 40),
    split: createSplit(source.split),
    waits,
    ran: createWaits(source.ran, SPAN_WAITS),
    gaps: createGaps(runs, waits),
    delayedBy: createDelays(source.delayedBy, thinning),
    delays: createSpells(source.delays),
    runs,
    stack: thinning.addStack(source.stack),
    events: events.map((event) => createEvent(event, source.startUnixMs, thinning)),
    attributes: createAttributes(source.attributes, limits.value),
    where: optionalText(source.service, NAME_CHARS)
  }
}

/** @param {unknown} list @returns {PageSpan['runs']} */
function createRuns (list) {
  const valid = array(list).filter((run) =>
    Array.isArray(run) && number(run[0]) !== undefined && number(run[1]) !== undefined)
  return valid.slice(0, MAX_RUNS).map(([start, ms, type]) =>
    [roundMs(start), roundMs(ms), text(type ?? '', 60)])
}

/** @param {unknown} list @returns {PageSpan['delays']} */
function createSpells (list) {
  const valid = array(list).filter((spell) => {
    return Array.isArray(spell) && spell.length === 3 && spell.every(isAmount)
  })
  return valid.slice(0, MAX_SPELLS).map(([start, ms, certain]) => {
    return [roundMs(start), roundMs(ms), roundMs(certain)]
  })
}

/** @param {unknown} value */
const isAmount = (value) => number(value) !== undefined

/** @param {PageSpan['runs']} runs @param {import('./rows').Wait[]} waits @returns {PageSpan['gaps']} */
function createGaps (runs, waits) {
  const gaps = waitGapsOf({ runs, waits: /** @type {any} */ (waits) })
  const indexOf = (/** @type {any} */ wait) => waits.indexOf(wait)
  return gaps.map(({ start, end, wait }) => [start, roundMs(end - start), indexOf(wait)])
}

/** @param {any} source @param {number} spanStart @param {Thinning} thinning @returns {Event} */
function createEvent ({ name, message, unixMs, stack }, spanStart, thinning) {
  const time = number(unixMs)
  return {
    name: text(name ?? ''),
    message: text(message ?? '', thinning.limits.value),
    at: time ? roundMs(time - spanStart) : undefined,
    stack: thinning.addStack(stack)
  }
}

/** @param {any} source @param {number} maxChars of a value @returns {Array<[string, string]>} */
function createAttributes (source, maxChars) {
  if (!isRecord(source)) return []
  return Object.entries(source).slice(0, MAX_ATTRIBUTES).map(([name, value]) =>
    [text(name), text(typeof value === 'object' ? JSON.stringify(value) : value, maxChars)])
}

module.exports = { createTraces }
