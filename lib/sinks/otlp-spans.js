'use strict'

// A record of longstack's as the span that OpenTelemetry's exporters take. A collector refuses a whole request for one
// value that it cannot read, so what OTLP has no place for becomes text here: numbers past 2^53, halves of surrogate
// pairs, lists of mixed types, objects.

const { version } = require('../../package.json')

/** @type {Record<string, number>} */
const kinds = { INTERNAL: 0, SERVER: 1, CLIENT: 2 }
/** @type {Record<string, number>} */
const statuses = { UNSET: 0, OK: 1, ERROR: 2 }

const scope = { name: 'longstack', version }
const SAMPLED = 1

/** What has a form of its own in OTLP. @type {Record<string, (value: any) => Array<[string, unknown]>>} */
const forms = {
  'longstack.wait_ms': (waits) => bySubsystem('longstack.wait_ms', waits),
  'longstack.waits': (waits) => [['longstack.waits', waits.map(wait)]],
  'longstack.delayed_by': (delays) => [['longstack.delayed_by', delays.map(delay)]],
  'longstack.runs': () => [] // a picture of one span; too much for what stores many
}

/** @param {string} name @param {Record<string, number>} times @returns {Array<[string, number]>} */
function bySubsystem (name, times) {
  return Object.entries(times).map(([subsystem, ms]) => [`${name}.${subsystem}`, ms])
}

/** @param {{ ms: number, count: number, at?: string, until?: string, label?: string }} waited */
function wait ({ ms, count, at, until, label }) {
  return [`${ms} ms${count === 1 ? '' : ` in ${count}`}`, label, until, at].filter((part) => part !== undefined).join(', ')
}

/** @param {{ name?: string, ms: number, at?: string }} delayed */
function delay ({ name = 'outside of spans', ms, at }) {
  return `${name} ${ms} ms${at === undefined ? '' : `, ${at}`}`
}

/** @param {any} record @returns {object} a ReadableSpan of @opentelemetry/sdk-trace */
function readable ({ traceId, spanId, parentSpanId, name, kind, startTimeUnixNano, endTimeUnixNano, status, attributes, events, links, resource }) {
  const start = time(startTimeUnixNano)
  const end = time(endTimeUnixNano)
  return {
    name: plain(name),
    kind: kinds[kind] ?? 0,
    spanContext: () => place(traceId, spanId),
    parentSpanContext: parentSpanId === undefined ? undefined : place(traceId, parentSpanId),
    startTime: start,
    endTime: end,
    duration: between(start, end),
    ended: true,
    status: { code: statuses[status?.code] ?? 0, message: plain(status?.message) },
    attributes: attributesOf(attributes),
    events: (events ?? []).map(eventOf),
    links: (links ?? []).map((/** @type {any} */ link) => ({ context: place(link.traceId, link.spanId), attributes: attributesOf(link.attributes) })),
    resource: resourceOf(resource),
    instrumentationScope: scope,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0
  }
}

/** @param {string} traceId @param {string} spanId */
function place (traceId, spanId) {
  return { traceId, spanId, traceFlags: SAMPLED }
}

/** @param {any} event */
function eventOf ({ name, timeUnixNano, attributes }) {
  return { name: plain(name), time: time(timeUnixNano), attributes: attributesOf(attributes) }
}

/** Seconds and nanoseconds, which no number holds at once. @param {string} nanos @returns {[number, number]} */
function time (nanos) {
  return [Number(nanos.slice(0, -9)), Number(nanos.slice(-9))]
}

/** @param {[number, number]} start @param {[number, number]} end @returns {[number, number]} */
function between (start, end) {
  const nanos = end[1] - start[1]
  return nanos < 0 ? [end[0] - start[0] - 1, nanos + 1e9] : [end[0] - start[0], nanos]
}

/** @param {Record<string, unknown>} [given] */
function attributesOf (given = {}) {
  const attributes = Object.create(null)
  for (const [name, value] of Object.entries(given)) {
    const form = Object.hasOwn(forms, name) ? forms[name](value) : [[name, value]]
    for (const [key, part] of form) if (part !== null && part !== undefined) attributes[plain(key)] = valueOf(part)
  }
  return attributes
}

/** @param {unknown} value */
function valueOf (value) {
  if (typeof value !== 'object' || value === null) return plain(value)
  if (Array.isArray(value) && value.every((one) => typeof one === typeof value[0] && typeof one !== 'object')) return value.map(plain)
  return plain(JSON.stringify(value))
}

/** @param {any} value */
function plain (value) {
  if (typeof value === 'string') return /** @type {any} */ (value).toWellFormed() // the types of es2023 do not know it, Node 20 does
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(value) : value
}

/** The exporter groups spans by the identity of their resource. @type {Map<string, object>} */
const resources = new Map()
const RESOURCES = 16

/** @param {Record<string, unknown>} [given] */
function resourceOf (given = {}) {
  const key = JSON.stringify(given)
  let resource = resources.get(key)
  if (resource === undefined) {
    if (resources.size >= RESOURCES) resources.clear()
    resource = { attributes: attributesOf({ 'service.name': 'unknown_service:node', 'telemetry.sdk.language': 'nodejs', ...given }) }
    resources.set(key, resource)
  }
  return resource
}

module.exports = { readable }
