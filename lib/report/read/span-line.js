'use strict'

// One line of a file, checked. What it says is foreign: a value that is not what it should be makes a line no span, or
// counts as not said, and never gets into a figure.

/**
 * @typedef {object} Span a checked line
 * @property {Record<string, any>} attributes
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} parentSpanId
 * @property {string} name
 * @property {Kind} kind
 * @property {number} ms duration
 * @property {number} startMs since 1970
 * @property {number} weight spans that this line stands for
 * @property {boolean} open it had not ended when it was written
 * @property {boolean} blocked a blocked run of the loop, not a span
 * @property {boolean} failed
 * @property {Record<string, any>} record the line itself
 * @property {number} size characters of the line
 *
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL' | 'PRODUCER' | 'CONSUMER'} Kind
 */

const kinds = new Set(['SERVER', 'CLIENT', 'INTERNAL', 'PRODUCER', 'CONSUMER'])
const NUMBERED = ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']
const CODES = ['UNSET', 'OK', 'ERROR']
const [Y2000, Y2200] = [946_684_800, 7_258_118_400] // in seconds
const LONGEST_NAME = 300
const BY_SUBSYSTEM = /^(longstack\.(?:wait_ms|idle_until))\.(.+)$/s

/** What a line can be instead of a span. */
const reasons = {
  json: 'not JSON',
  object: 'no span',
  ids: 'without a traceId and spanId of 32 and 16 hexadecimal digits',
  name: 'without a name',
  kind: 'of no known kind',
  time: 'without times as decimal strings of nanoseconds',
  century: 'of another century',
  negative: 'ended before they began',
  ratio: 'with a sample ratio that is not between 0 and 1'
}

/** @typedef {keyof typeof reasons} Reason */

/**
 * @param {any} record
 * @param {number} size of its line
 * @returns {Span | Reason}
 */
function check (record, size) {
  if (!isObject(record)) return 'object'
  const { traceId, spanId, name } = record
  if (traceId === undefined && spanId === undefined) return 'object'
  if (!isHex(traceId, 32) || !isHex(spanId, 16)) return 'ids'
  if (typeof name !== 'string' || name === '') return 'name'
  if (!kinds.has(record.kind)) return 'kind'
  return timed(record, isObject(record.attributes) ? record.attributes : {}, size)
}

/** @param {Record<string, any>} record @param {Record<string, any>} attributes @param {number} size @returns {Span | Reason} */
function timed (record, attributes, size) {
  const { startTimeUnixNano: start, endTimeUnixNano: end } = record
  if (!isNanos(start) || !isNanos(end)) return 'time'
  const [startSeconds, endSeconds] = [seconds(start), seconds(end)]
  // The difference by parts: a double holds no nanoseconds since 1970.
  const ms = ((endSeconds - startSeconds) * 1e9 + nanos(end) - nanos(start)) / 1e6
  if (ms < 0) return 'negative'
  if (startSeconds < Y2000 || endSeconds > Y2200) return 'century'
  const ratio = attributes['longstack.sample_ratio']
  if (ratio !== undefined && !(typeof ratio === 'number' && ratio >= 1e-9 && ratio <= 1)) return 'ratio'
  return {
    record,
    size,
    attributes,
    traceId: record.traceId,
    spanId: record.spanId,
    parentSpanId: isHex(record.parentSpanId, 16) ? record.parentSpanId : undefined,
    name: record.name.length > LONGEST_NAME ? `${record.name.slice(0, LONGEST_NAME)}…` : record.name,
    kind: record.kind,
    ms,
    startMs: startSeconds * 1000 + nanos(start) / 1e6,
    weight: ratio === undefined ? 1 : 1 / ratio,
    open: attributes['longstack.end'] === 'open',
    blocked: amount(attributes['longstack.blocked_ms']) !== undefined,
    failed: record.status?.code === 'ERROR'
  }
}

/** @param {unknown} value @returns {value is Record<string, any>} */
function isObject (value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** @param {unknown} text @param {number} digits */
function isHex (text, digits) {
  return typeof text === 'string' && text.length === digits && /^[0-9a-f]+$/i.test(text)
}

/** @param {unknown} text */
function isNanos (text) {
  return typeof text === 'string' && text.length <= 20 && /^[0-9]+$/.test(text)
}

/** @param {string} text nanoseconds @returns {number} whole seconds */
function seconds (text) {
  return Number(text.slice(0, -9))
}

/** @param {string} text nanoseconds @returns {number} those past the last whole second */
function nanos (text) {
  return Number(text.slice(-9))
}

/** A number that a figure can be made of, in ms or whatever; else undefined. @param {unknown} value */
function amount (value) {
  return typeof value === 'number' && value >= 0 && value < 1e15 ? value : undefined
}

/**
 * What OpenTelemetry's file exporter writes, one or many spans a line, as records of ours.
 * @param {any} line with resourceSpans
 * @returns {any[]}
 */
function fromOtlp (line) {
  const found = []
  for (const resource of list(line.resourceSpans)) {
    for (const scope of list(resource?.scopeSpans)) {
      for (const span of list(scope?.spans)) found.push(isObject(span) ? translated(span, resource?.resource) : span)
    }
  }
  return found
}

/** @param {Record<string, any>} span @param {any} resource */
function translated (span, resource) {
  const { kind, status } = span
  return {
    ...span,
    kind: typeof kind === 'number' ? NUMBERED[kind] : String(kind ?? 'INTERNAL').replace('SPAN_KIND_', ''),
    startTimeUnixNano: String(span.startTimeUnixNano),
    endTimeUnixNano: String(span.endTimeUnixNano),
    status: { ...status, code: typeof status?.code === 'number' ? CODES[status.code] : String(status?.code ?? 'UNSET').replace('STATUS_CODE_', '') },
    attributes: entries(span.attributes),
    resource: entries(resource?.attributes)
  }
}

/** @param {any} attributes OTLP's array of keys and values */
function entries (attributes) {
  return unflattened(list(attributes).filter((one) => typeof one?.key === 'string').map((one) => [one.key, plain(one.value, 0)]))
}

/** @param {any} value @param {number} depth @returns {any} */
function plain (value, depth) {
  if (!isObject(value) || depth > 8) return undefined
  if (value.intValue !== undefined) return Number(value.intValue)
  if (value.arrayValue !== undefined) return list(value.arrayValue?.values).map((one) => plain(one, depth + 1))
  if (value.kvlistValue !== undefined) {
    return Object.fromEntries(list(value.kvlistValue?.values).map((one) => [String(one?.key), plain(one?.value, depth + 1)]))
  }
  return value.stringValue ?? value.doubleValue ?? value.boolValue
}

/**
 * Puts back what OTLP has no form for: objects may come as longstack.wait_ms.TCP, lists as JSON.
 * @param {Array<[string, any]>} pairs
 */
function unflattened (pairs) {
  /** @type {Map<string, any>} */
  const attributes = new Map()
  for (const [key, value] of pairs) {
    const [, name, subsystem] = BY_SUBSYSTEM.exec(key) ?? []
    if (subsystem === undefined) attributes.set(key, own(key, value))
    else attributes.set(name, { ...attributes.get(name), [subsystem]: value })
  }
  return Object.fromEntries(attributes)
}

/** @param {string} key @param {any} value */
function own (key, value) {
  if (!/^longstack\.(delayed_by|runs|waits|wait_ms|idle_until)$/.test(key) || typeof value !== 'string') return value
  try {
    return JSON.parse(value)
  } catch {
    return undefined
  }
}

/** @param {any} value @returns {any[]} */
function list (value) {
  return Array.isArray(value) ? value : []
}

module.exports = { check, fromOtlp, amount, isObject, reasons }
