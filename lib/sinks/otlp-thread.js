'use strict'

// The thread that sends: takes lines from its mailbox, some hundred at a time, and has OpenTelemetry's
// exporter send them; a line is a span, or the metrics of a moment. The exporter retries by itself; what it
// gives up on is counted as lost, with the reason in a message that the program's thread reads when it
// writes, flushes or counts (otlp.js).
//
// A collector refuses a whole request for one value that it cannot read, so what OTLP cannot express becomes
// text here: integers past 2^53, halves of surrogate pairs, lists of mixed types, objects.

const channels = require('node:diagnostics_channel')
const { parentPort, workerData } = require('node:worker_threads')
const { ownManifest } = require('../platform')
const { askedSpans } = require('./asked-spans')

const BATCH = 512 // records a request
const LARGE = 4 << 20 // characters a request, unless one record alone has more
const DELAY = 500 // ms that a record waits for others
const MAX_REQUESTS = 4 // at a time
const MAX_ANSWER = 8 << 20 // bytes; exporters that have a limit have 4 MiB
const HOLD = 5000 // ms that an open span waits for its end
const OPEN = '"longstack.end":"open"'
/** ms that the exporter waits for an answer, or for the next part of one, and within which it retries */
const TIMEOUT = Number(process.env[workerData.signal === 'spans'
  ? 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT'
  : 'OTEL_EXPORTER_OTLP_METRICS_TIMEOUT'] ??
  process.env.OTEL_EXPORTER_OTLP_TIMEOUT) || 10_000
const MAX_ANSWER_TIME = 2 * TIMEOUT // ms until a connection is closed whose answer has not ended
const MAX_EXPORT_TIME = 3 * TIMEOUT // ms until spans are given up of which the exporter says nothing

/** @type {Record<string, number>} */
const kinds = { INTERNAL: 0, SERVER: 1, CLIENT: 2 }
/** @type {Record<string, number>} */
const statuses = { UNSET: 0, OK: 1, ERROR: 2 }

// Of @opentelemetry/api (ValueType) and sdk-metrics (DataPointType, AggregationTemporality)
const DOUBLE = 1
const [HISTOGRAM, GAUGE, SUM] = [0, 2, 3]
const CUMULATIVE = 1

const scope = { name: 'longstack', version: ownManifest().version }
const SAMPLED = 1

/**
 * Attributes that are converted to others, by name.
 * @type {Record<string, (value: any) => Array<[string, unknown]>>}
 */
const conversions = {
  'longstack.wait_ms': (waits) =>
    Object.entries(waits).map(([subsystem, ms]) => [`longstack.wait_ms.${subsystem}`, ms]),
  'longstack.waits': (waits) => [['longstack.waits', waits.map(waitText)]],
  'longstack.ran': (runs) => [['longstack.ran', runs.map(waitText)]],
  'longstack.delayed_by': (delays) => [['longstack.delayed_by', delays.map(delayText)]],
  'longstack.asked': () => [], // spans of their own, asked-spans.js
  'longstack.asked_more': ({ count, ms }) =>
    [['longstack.asked_more.count', count], ['longstack.asked_more.ms', ms]],
  'longstack.runs': () => [] // too large for a store of many spans
}

/** The exporter groups spans by the identity of their resource. @type {Map<string, object>} */
const resources = new Map()
const MAX_RESOURCES = 16

/** @type {{ signal: import('./otlp').Signal, exporter: string, url: string, slots: any, news: any }} */
const { signal, exporter: exporterFile, url, slots, news } = workerData
const { className, batch, readable } = {
  spans: {
    className: 'OTLPTraceExporter',
    batch: BATCH,
    readable: (/** @type {any[]} */ records) => records
      .flatMap((record) => [record, ...askedSpans(record)]).map(readableSpan)
  },
  metrics: {
    className: 'OTLPMetricExporter',
    batch: 1,
    readable: (/** @type {any[]} */ [record]) => resourceMetrics(record)
  }
}[signal]
/** @type {BigInt64Array} */
const counts = workerData.counts
const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)

/** @type {any} */
let exporter
/** @type {string[]} */
let queue = []
/**
 * Lines of spans that were open when they were written, by span id: a collector shows a span twice that is
 * sent twice.
 * @type {Map<string, string>}
 */
const heldLines = new Map()
let requests = 0
let closing = false
/** @type {NodeJS.Timeout | undefined} */
let timer
/** @type {string | undefined} */
let fault

/**
 * Reports a fault, or that there is none any more, to the program's thread.
 * @param {{ fault?: string, gone?: boolean, fatal?: boolean }} state gone: the collector cannot be reached;
 *   fatal: the thread cannot send at all
 */
function report ({ fault: sentence, gone = false, fatal = false }) {
  if (sentence === fault) return
  fault = sentence
  news.postMessage({ fault, gone, fatal })
  Atomics.add(counts, slots.NEWS, 1n)
  Atomics.notify(counts, slots.SETTLED)
}

/** @param {'WRITTEN' | 'LOST'} slot @param {string[]} lines */
function settle (slot, lines) {
  Atomics.add(counts, slots[slot], BigInt(lines.length))
  Atomics.add(counts, slots.SETTLED, BigInt(lines.reduce((sum, { length }) => sum + length, 0)))
  Atomics.notify(counts, slots.SETTLED)
}

/** Removes the oldest lines from the queue, as many as one request carries. */
function takeBatch () {
  let size = queue[0].length
  let end = 1
  while (end < queue.length && end < batch && size + queue[end].length <= LARGE) size += queue[end++].length
  const lines = queue.slice(0, end)
  queue = queue.slice(end)
  return lines
}

function send () {
  clearTimeout(timer)
  timer = undefined
  while (queue.length > 0 && requests < MAX_REQUESTS) request(takeBatch())
  if (closing && requests === 0) port.close()
}

/**
 * Has lines sent. Exporters never call back where a collector answers with another protocol (101), and then
 * refuse to send once there are thirty of these: one that does not call back in time is replaced.
 * @param {string[]} lines
 */
function request (lines) {
  requests++
  const records = readable(lines.map((line) => JSON.parse(line)))
  let isSettled = false
  const end = (/** @type {{ code: number, error?: Error }} */ { code, error }) => {
    if (isSettled) return
    isSettled = true
    clearTimeout(deadline)
    requests--
    report(code === 0 ? {} : { fault: reasonOf(error), gone: statusOf(error) === undefined })
    settle(code === 0 ? 'WRITTEN' : 'LOST', lines)
    if (closing || queue.length >= batch) send()
    else if (queue.length > 0) timer ??= setTimeout(send, DELAY)
  }
  const deadline = setTimeout(() => {
    exporter = createExporter()
    end({ code: 1, error: new Error('no answer in time') })
  }, MAX_EXPORT_TIME)
  exporter.export(records, end)
}

/** @param {any} error @returns {number | undefined} the HTTP status, undefined where there was no response */
function statusOf (error) {
  return typeof error?.code === 'number' ? error.code : undefined
}

/** Describes an error of the exporter in one line. @param {any} error */
function reasonOf (error) {
  const status = statusOf(error)
  const message = String(error?.message || error?.code || error)
  return ((status === undefined ? '' : `HTTP ${status} `) + message).split('\n', 1)[0].slice(0, 200)
}

/** @param {any} message */
function receive (message) {
  if (typeof message === 'string') return add(message)
  closing ||= message.close === true
  for (const id of heldLines.keys()) release(id)
  send()
}

/** @param {string} line */
function add (line) {
  if (heldLines.size > 0 || line.includes(OPEN)) return addOpen(line, JSON.parse(line))
  queue.push(line)
  if (queue.length >= batch) send()
  else timer ??= setTimeout(send, DELAY)
}

/** @param {string} line @param {{ spanId: string, attributes: Record<string, unknown> }} record */
function addOpen (line, { spanId, attributes }) {
  const before = heldLines.get(spanId)
  heldLines.set(spanId, line)
  if (before !== undefined) settle('WRITTEN', [before])
  if (attributes['longstack.end'] !== 'open') return release(spanId)
  if (before === undefined) setTimeout(release, HOLD, spanId)
}

/** @param {string} spanId */
function release (spanId) {
  const line = heldLines.get(spanId)
  if (line === undefined) return
  heldLines.delete(spanId)
  queue.push(line)
  timer ??= setTimeout(send, DELAY)
}

/**
 * Reports connections that fail: the exporter retries without a message, and a process that ends is not to
 * wait for a collector that is not there.
 */
function watchConnections () {
  channels.subscribe('net.client.socket', (/** @type {any} */ { socket }) => {
    socket.once('error', (/** @type {unknown} */ error) => report({ fault: reasonOf(error), gone: true }))
  })
}

/** Ends answers without end: older exporters keep all of an answer in memory. */
function limitAnswers () {
  channels.subscribe('http.client.response.finish', (/** @type {any} */ { response }) => {
    let size = 0
    response.on('data', (/** @type {Buffer} */ chunk) => {
      size += chunk.length
      if (size <= MAX_ANSWER) return
      report({ fault: 'its answer is too long' })
      response.destroy()
    })
  })
}

/** Closes connections on which an answer comes for ever, part by part. */
function limitTimes () {
  channels.subscribe('http.client.request.start', (/** @type {any} */ { request: sent }) => {
    const limit = setTimeout(() => sent.destroy(), MAX_ANSWER_TIME)
    sent.once('close', () => clearTimeout(limit))
  })
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
  const { startTimeUnixNano: start, endTimeUnixNano: end } = record
  return {
    name: otlpScalar(name),
    kind: kinds[kind] ?? 0,
    spanContext: () => spanContext(traceId, spanId),
    parentSpanContext: parentSpanId === undefined ? undefined : spanContext(traceId, parentSpanId),
    startTime: hrTime(start),
    endTime: hrTime(end),
    duration: hrTime(String(BigInt(end) - BigInt(start))),
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

/** @param {import('../metrics/figures').Metrics} metrics @returns {object} ResourceMetrics of sdk-metrics */
function resourceMetrics ({ resource, sinceUnixMs, unixMs, metrics }) {
  const times = { startTime: hrTimeOfMs(sinceUnixMs), endTime: hrTimeOfMs(unixMs) }
  const list = Object.entries(metrics).filter(([, { points }]) => points.length > 0)
  return {
    resource: resourceOf(resource),
    scopeMetrics: [{ scope, metrics: list.map(([name, metric]) => metricData(name, metric, times)) }]
  }
}

/** @param {string} name @param {import('../metrics/figures').Metric} metric @param {object} times */
function metricData (name, { type, unit, description, points }, times) {
  return {
    descriptor: { name, unit, description, valueType: DOUBLE },
    aggregationTemporality: CUMULATIVE,
    dataPointType: type === 'histogram' ? HISTOGRAM : type === 'gauge' ? GAUGE : SUM,
    isMonotonic: type === 'counter',
    dataPoints: points.map(({ attributes, value, histogram }) =>
      ({ ...times, attributes: attributesOf(attributes), value: value ?? histogramOf(histogram) }))
  }
}

/** @param {import('../metrics/figures').MetricHistogram} [histogram] */
function histogramOf (histogram) {
  if (histogram === undefined) return undefined
  const { count, sum, bounds, counts } = histogram
  return { count, sum, hasMinMax: false, buckets: { boundaries: bounds, counts } }
}

/** @param {number} ms @returns {[number, number]} */
const hrTimeOfMs = (ms) => [Math.floor(ms / 1000), Math.round(ms % 1000 * 1e6)]

/**
 * Returns seconds and nanoseconds, which no double holds at once.
 * @param {string} nanos
 * @returns {[number, number]}
 */
function hrTime (nanos) {
  return [Number(nanos.slice(0, -9)), Number(nanos.slice(-9))]
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

function createExporter () {
  return new (require(exporterFile)[className])({ url })
}

try {
  exporter = createExporter()
  watchConnections()
  limitTimes()
  limitAnswers()
  port.on('message', receive)
  Atomics.store(counts, slots.READY, 1n)
} catch (error) {
  report({ fault: `OpenTelemetry's exporter does not load: ${reasonOf(error)}`, gone: true, fatal: true })
}
