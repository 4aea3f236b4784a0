'use strict'

// Converts a record of longstack's to the span that OpenTelemetry's exporters accept. A collector refuses a
// whole request for one value that it cannot read, so what OTLP cannot express becomes text here: integers
// past 2^53, halves of surrogate pairs, lists of mixed types, objects.

const { version } = require('../../package.json')

/** @type {Record<string, number>} */
const kinds = { INTERNAL: 0, SERVER: 1, CLIENT: 2 }
/** @type {Record<string, number>} */
const statuses = { UNSET: 0, OK: 1, ERROR: 2 }

const scope = { name: 'longstack', version }
const SAMPLED = 1

/**
 * Attributes that are converted to others, by name.
 * @type {Record<string, (value: any) => Array<[string, unknown]>>}
 */
const conversions = {
  'longstack.wait_ms': (waits) => bySubsystem('longstack.wait_ms', waits),
  'longstack.waits': (waits) => [['longstack.waits', waits.map(waitText)]],
  'longstack.ran': (runs) => [['longstack.ran', runs.map(waitText)]],
  'longstack.delayed_by': (delays) => [['longstack.delayed_by', delays.map(delayText)]],
  'longstack.runs': () => [] // too large for a store of many spans
}

/** @param {string} name @param {Record<string, number>} times @returns {Array<[string, number]>} */
function bySubsystem (name, times) {
  return Object.entries(times).map(([subsystem, ms]) => [`${name}.${subsystem}`, ms])
}

/**
 * @param {{ ms: number, count: number, delayed?: number, at?: string, until?: string, label?: string }} part
 */
function waitText ({ ms, count, delayed, at: site, until, label }) {
  const time = `${ms} ms${count === 1 ? '' : ` in ${count}`}`
  const delay = delayed === undefined ? undefined : `delayed ${delayed} ms`
  return [time, delay, label, until, site].filter((part) => part !== undefined).join(', ')
}

/** @param {{ name?: string, ms: number, at?: string }} delayed */
function delayText ({ name = 'outside of spans', ms, at: frame }) {
  return `${name} ${ms} ms${frame === undefined ? '' : `, ${frame}`}`
}

/** @param {any} record @returns {object} a ReadableSpan of @opentelemetry/sdk-trace */
function readableSpan (record) {
  const { traceId, spanId, parentSpanId, name, kind, status, attributes, events, links, resource } = record
  const start = hrTime(record.startTimeUnixNano)
  const end = hrTime(record.endTimeUnixNano)
  return {
    name: otlpScalar(name),
    kind: kinds[kind] ?? 0,
    spanContext: () => spanContext(traceId, spanId),
    parentSpanContext: parentSpanId === undefined ? undefined : spanContext(traceId, parentSpanId),
    startTime: start,
    endTime: end,
    duration: elapsed(start, end),
    ended: true,
    status: { code: statuses[status?.code] ?? 0, message: otlpScalar(status?.message) },
    attributes: attributesOf(attributes),
    events: (events ?? []).map(eventOf),
    links: (links ?? []).map(linkOf),
    resource: resourceOf(resource),
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0
  }
}

/** @param {string} traceId @param {string} spanId */
function spanContext (traceId, spanId) {
  return { traceId, spanId, traceFlags: SAMPLED }
}

/** @param {any} link */
function linkOf ({ traceId, spanId, attributes }) {
  return { context: spanContext(traceId, spanId), attributes: attributesOf(attributes) }
}

/** @param {any} event */
function eventOf ({ name, timeUnixNano, attributes }) {
  return { name: otlpScalar(name), time: hrTime(timeUnixNano), attributes: attributesOf(attributes) }
}

/**
 * Returns seconds and nanoseconds, which no double holds at once.
 * @param {string} nanos
 * @returns {[number, number]}
 */
function hrTime (nanos) {
  return [Number(nanos.slice(0, -9)), Number(nanos.slice(-9))]
}

/** @param {[number, number]} start @param {[number, number]} end @returns {[number, number]} */
function elapsed (start, end) {
  const nanos = end[1] - start[1]
  return nanos < 0 ? [end[0] - start[0] - 1, nanos + 1e9] : [end[0] - start[0], nanos]
}

/** @param {Record<string, unknown>} [attributes] as in the record */
function attributesOf (attributes = {}) {
  const converted = Object.create(null)
  for (const [name, value] of Object.entries(attributes)) {
    const members = Object.hasOwn(conversions, name) ? conversions[name](value) : [[name, value]]
    for (const [key, part] of members) {
      if (part !== null && part !== undefined) converted[otlpScalar(key)] = otlpValue(part)
    }
  }
  return converted
}

/** @param {unknown} value */
function otlpValue (value) {
  if (typeof value !== 'object' || value === null) return otlpScalar(value)
  const isListOfOneType = Array.isArray(value) &&
    value.every((item) => typeof item === typeof value[0] && typeof item !== 'object')
  return isListOfOneType ? value.map(otlpScalar) : otlpScalar(JSON.stringify(value))
}

/** @param {any} value */
function otlpScalar (value) {
  // toWellFormed() is not in the types of es2023, but in Node 20.
  if (typeof value === 'string') return /** @type {any} */ (value).toWellFormed()
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(value) : value
}

/** The exporter groups spans by the identity of their resource. @type {Map<string, object>} */
const resources = new Map()
const MAX_RESOURCES = 16

/** @param {Record<string, unknown>} [attributes] */
function resourceOf (attributes = {}) {
  const key = JSON.stringify(attributes)
  let resource = resources.get(key)
  if (resource === undefined) {
    if (resources.size >= MAX_RESOURCES) resources.clear()
    const defaults = { 'service.name': 'unknown_service:node', 'telemetry.sdk.language': 'nodejs' }
    resource = { attributes: attributesOf({ ...defaults, ...attributes }) }
    resources.set(key, resource)
  }
  return resource
}

module.exports = { readableSpan }
