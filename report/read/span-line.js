'use strict'

// Parses one line of a file. Its content is not trusted: an invalid value counts as absent or makes the line
// invalid, and never gets into a figure.

const { amount, isRecord, list, parseJson } = require('./values')

/**
 * @typedef {object} Span a valid line
 * @property {Record<string, any>} attributes
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} parentSpanId
 * @property {string} name
 * @property {Kind} kind
 * @property {number} ms duration
 * @property {number} startMs ms since 1970
 * @property {number} weight number of spans that this line represents
 * @property {boolean} open had not ended when the line was written
 * @property {boolean} cancelled a call that the program stopped itself
 * @property {boolean} blocked a blocking callback, not a span
 * @property {boolean} facts not a span, but facts for the verdict, such as open intervals
 * @property {boolean} failed
 * @property {Record<string, any>} record the line itself
 * @property {number} size characters of the line
 *
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL' | 'PRODUCER' | 'CONSUMER'} Kind
 */

const kinds = new Set(['SERVER', 'CLIENT', 'INTERNAL', 'PRODUCER', 'CONSUMER'])
const OTLP_KINDS = ['INTERNAL', 'INTERNAL', 'SERVER', 'CLIENT', 'PRODUCER', 'CONSUMER']
const OTLP_CODES = ['UNSET', 'OK', 'ERROR']
const [Y2000, Y2200] = [946_684_800, 7_258_118_400] // in seconds
const MAX_NAME_CHARS = 300
const BY_SUBSYSTEM = /^(longstack\.wait_ms)\.(.+)$/s
const SPAN_LISTS = ['delayed_by', 'delays', 'runs', 'waits', 'asked', 'asked_more', 'ran', 'wait_ms']
/** Attributes of records that are not spans. */
const FACTS = ['open_intervals', 'handles', 'after', 'tasks', 'background', 'load', 'death', 'waits_for']
  .map((name) => `longstack.${name}`)
const JSON_ATTRIBUTES = new Set([...SPAN_LISTS.map((name) => `longstack.${name}`), ...FACTS])

/** Reasons why a line is not a span. */
const reasons = {
  json: 'not JSON',
  object: 'not a span',
  ids: 'traceId and spanId are not 32 and 16 hexadecimal digits',
  name: 'no name',
  kind: 'unknown kind',
  time: 'times are not decimal strings of nanoseconds',
  century: 'time before 2000 or after 2200',
  negative: 'end before start',
  ratio: 'sample ratio is not between 0 and 1',
  value: 'a value of the wrong kind'
}

/** @typedef {keyof typeof reasons} Reason */

/**
 * @param {any} record
 * @param {number} size of its line
 * @returns {Span | Reason}
 */
function parseSpan (record, size) {
  if (!isRecord(record)) return 'object'
  const { traceId, spanId, name } = record
  if (traceId === undefined && spanId === undefined) return 'object'
  if (!isHex(traceId, 32) || !isHex(spanId, 16)) return 'ids'
  if (typeof name !== 'string' || name === '') return 'name'
  if (!kinds.has(record.kind)) return 'kind'
  const { startTimeUnixNano: start, endTimeUnixNano: end } = record
  const attributes = isRecord(record.attributes) ? record.attributes : {}
  if (!isNanos(start) || !isNanos(end)) return 'time'
  const [startSeconds, endSeconds] = [seconds(start), seconds(end)]
  // Seconds and nanoseconds are subtracted separately: a double cannot hold nanoseconds since 1970.
  const ms = ((endSeconds - startSeconds) * 1e9 + nanos(end) - nanos(start)) / 1e6
  if (ms < 0) return 'negative'
  if (startSeconds < Y2000 || endSeconds > Y2200) return 'century'
  const ratio = attributes['longstack.sample_ratio']
  if (ratio !== undefined && !(typeof ratio === 'number' && ratio >= 1e-9 && ratio <= 1)) return 'ratio'
  return {
    record,
    size,
    attributes,
    traceId,
    spanId,
    parentSpanId: isHex(record.parentSpanId, 16) ? record.parentSpanId : undefined,
    name: name.length > MAX_NAME_CHARS ? `${name.slice(0, MAX_NAME_CHARS)}…` : name,
    kind: record.kind,
    ms,
    startMs: startSeconds * 1000 + nanos(start) / 1e6,
    weight: ratio === undefined ? 1 : 1 / ratio,
    open: attributes['longstack.end'] === 'open',
    cancelled: attributes['longstack.end'] === 'cancelled',
    blocked: amount(attributes['longstack.blocked_ms']) !== undefined,
    facts: FACTS.some((name) => Array.isArray(attributes[name])),
    failed: record.status?.code === 'ERROR'
  }
}

/** @param {unknown} text @param {number} digits */
function isHex (text, digits) {
  return typeof text === 'string' && text.length === digits && /^[0-9a-f]+$/i.test(text)
}

/** @param {unknown} text */
function isNanos (text) {
  return typeof text === 'string' && text.length <= 20 && /^[0-9]+$/.test(text)
}

/** @param {string} text nanoseconds @returns {number} full seconds */
function seconds (text) {
  return Number(text.slice(0, -9))
}

/** @param {string} text nanoseconds @returns {number} remainder past the last full second */
function nanos (text) {
  return Number(text.slice(-9))
}

/**
 * Converts a line of OpenTelemetry's file exporter, which holds any number of spans.
 * @param {any} line with resourceSpans
 * @returns {any[]} records in longstack's own format
 */
function spansOfOtlp (line) {
  return list(line.resourceSpans).flatMap((resource) => list(resource?.scopeSpans)
    .flatMap((scope) => list(scope?.spans))
    .map((span) => isRecord(span) ? translate(span, resource?.resource) : span))
}

/** @param {Record<string, any>} span @param {any} resource */
function translate (span, resource) {
  const { kind, status } = span
  const { code } = status ?? {}
  return {
    ...span,
    kind: typeof kind === 'number' ? OTLP_KINDS[kind] : wordOf(kind ?? 'INTERNAL').replace('SPAN_KIND_', ''),
    startTimeUnixNano: wordOf(span.startTimeUnixNano),
    endTimeUnixNano: wordOf(span.endTimeUnixNano),
    status: {
      ...status,
      code: typeof code === 'number' ? OTLP_CODES[code] : wordOf(code ?? 'UNSET').replace('STATUS_CODE_', '')
    },
    attributes: attributesOf(span.attributes),
    resource: attributesOf(resource?.attributes)
  }
}

/** OTLP's JSON holds large numbers as strings or numbers. @param {unknown} value @returns {string} */
const wordOf = (value) => typeof value === 'string' || typeof value === 'number' ? String(value) : ''

/** @param {any} attributes OTLP's list of keys and values */
function attributesOf (attributes) {
  const valid = list(attributes).filter((attribute) => typeof attribute?.key === 'string')
  return unflatten(valid.map(({ key, value }) => [key, valueOf(value, 0)]))
}

/** @param {any} value @param {number} depth @returns {any} */
function valueOf (value, depth) {
  if (!isRecord(value) || depth > 8) return undefined
  if (value.intValue !== undefined) return Number(wordOf(value.intValue))
  if (value.arrayValue !== undefined) {
    return list(value.arrayValue?.values).map((item) => valueOf(item, depth + 1))
  }
  if (value.kvlistValue !== undefined) {
    const pairs = list(value.kvlistValue?.values)
    return Object.fromEntries(pairs.map((pair) => [wordOf(pair?.key), valueOf(pair?.value, depth + 1)]))
  }
  return value.stringValue ?? value.doubleValue ?? value.boolValue
}

/**
 * Restores values that OTLP cannot represent: objects may come as longstack.wait_ms.TCP, lists as JSON.
 * @param {Array<[string, any]>} pairs
 */
function unflatten (pairs) {
  /** @type {Map<string, any>} */
  const attributes = new Map()
  for (const [key, value] of pairs) {
    const [, name, subsystem] = BY_SUBSYSTEM.exec(key) ?? []
    const isJson = typeof value === 'string' && JSON_ATTRIBUTES.has(key)
    if (subsystem === undefined) attributes.set(key, isJson ? parseJson(value) : value)
    else attributes.set(name, { ...attributes.get(name), [subsystem]: value })
  }
  return Object.fromEntries(attributes)
}

module.exports = { parseSpan, spansOfOtlp, reasons }
