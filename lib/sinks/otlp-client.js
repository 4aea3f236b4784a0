'use strict'

// Sender: passes lines, one per span and a few hundred at a time, to OpenTelemetry's exporter. It runs in a
// thread of longstack's own. The exporter retries by itself. Records it gives up on are counted as lost; the
// reason is in a message that is read on each write, flush or count (otlp.js).
//
// A collector rejects a whole request for one value that it cannot read. So values that OTLP cannot express
// become text here: integers past 2^53, halves of surrogate pairs, lists of mixed types, objects.

const channels = require('node:diagnostics_channel')
const process = require('node:process')
const { ownManifest } = require('../platform')
const { askedSpans } = require('./asked-spans')

const BATCH = 512 // records per request
const LARGE = 4 << 20 // characters per request, unless a single record has more
const DELAY = 500 // ms that a record waits for others
const MAX_REQUESTS = 4 // requests in flight
const MAX_ANSWER = 8 << 20 // bytes; exporters with a limit use 4 MiB
const HOLD = 5000 // ms that an open span waits for its end
// Multiples of the exporter's timeout: until a connection with an unfinished response is closed, and until
// lines are given up if the exporter does not call back
const MAX_ANSWER_TIME = 2
const MAX_EXPORT_TIME = 3
const OPEN = '"longstack.end":"open"'

/** @type {Record<string, number>} */
const kinds = { INTERNAL: 0, SERVER: 1, CLIENT: 2 }
/** @type {Record<string, number>} */
const statuses = { UNSET: 0, OK: 1, ERROR: 2 }

const scope = { name: 'longstack', version: ownManifest().version }
const SAMPLED = 1

/**
 * Conversions of attributes to others, by name.
 * @type {Record<string, (value: any) => Array<[string, unknown]>>}
 */
const conversions = {
  'longstack.wait_ms': (waits) =>
    Object.entries(waits).map(([subsystem, ms]) => [`longstack.wait_ms.${subsystem}`, ms]),
  'longstack.waits': (waits) => [['longstack.waits', waits.map(waitText)]],
  'longstack.ran': (runs) => [['longstack.ran', runs.map(waitText)]],
  'longstack.delayed_by': (delays) => [['longstack.delayed_by', delays.map(delayText)]],
  'longstack.asked': () => [], // separate spans, asked-spans.js
  'longstack.asked_more': ({ count, ms }) =>
    [['longstack.asked_more.count', count], ['longstack.asked_more.ms', ms]],
  'longstack.runs': () => [] // too large for a store of many spans
}

/** The exporter groups spans by the identity of their resource. @type {Map<string, object>} */
const resources = new Map()
const MAX_RESOURCES = 16

/**
 * @typedef {object} Task
 * @property {string} exporter file of the exporter
 * @property {string} url
 * @property {BigInt64Array} counts
 * @property {typeof import('./otlp').slots} slots
 * @property {import('node:worker_threads').MessagePort} news
 */

class OtlpClient {
  #task
  /** ms that the exporter waits for a response, or for the next part of it, and within which it retries */
  #timeout
  /** @type {any} */
  #exporter
  /** @type {string[]} */
  #queue = []
  /**
   * Lines of spans still open when written, by span id: a collector shows a span twice if it is sent twice.
   * @type {Map<string, string>}
   */
  #heldLines = new Map()
  #requests = 0
  #isClosing = false
  /** @type {NodeJS.Timeout | undefined} */
  #timer
  /** @type {string | undefined} */
  #fault
  #onClosed

  /** @param {Task} task @param {() => void} onClosed called when all lines are sent after closing */
  constructor (task, onClosed) {
    const { slots, counts } = task
    this.#task = task
    this.#onClosed = onClosed
    const { env } = process
    this.#timeout = Number(env.OTEL_EXPORTER_OTLP_TRACES_TIMEOUT ?? env.OTEL_EXPORTER_OTLP_TIMEOUT) || 10_000
    try {
      this.#exporter = this.#createExporter()
      this.#watchConnections()
      this.#limitTimes()
      this.#limitAnswers()
      Atomics.store(counts, slots.READY, 1n)
    } catch (error) {
      const reason = `OpenTelemetry's exporter does not load: ${reasonOf(error)}`
      this.#report({ fault: reason, gone: true, fatal: true })
    }
  }

  /** Whether it can send at all. */
  get isReady () { return this.#exporter !== undefined }

  #createExporter () {
    return new (require(this.#task.exporter).OTLPTraceExporter)({ url: this.#task.url })
  }

  /**
   * Reports a fault, or its end.
   * @param {{ fault?: string, gone?: boolean, fatal?: boolean }} state gone: the collector is unreachable;
   *   fatal: the client cannot send at all
   */
  #report ({ fault: sentence, gone = false, fatal = false }) {
    if (sentence === this.#fault) return
    const { counts, news, slots } = this.#task
    this.#fault = sentence
    news.postMessage({ fault: sentence, gone, fatal })
    Atomics.add(counts, slots.NEWS, 1n)
    Atomics.notify(counts, slots.SETTLED)
  }

  /** @param {'WRITTEN' | 'LOST'} slot @param {string[]} lines */
  #settle (slot, lines) {
    const { counts, slots } = this.#task
    Atomics.add(counts, slots[slot], BigInt(lines.length))
    Atomics.add(counts, slots.SETTLED, BigInt(lines.reduce((sum, { length }) => sum + length, 0)))
    Atomics.notify(counts, slots.SETTLED)
  }

  /** Removes the oldest lines from the queue, as many as fit one request. */
  #takeBatch () {
    const queue = this.#queue
    let size = queue[0].length
    let end = 1
    while (end < queue.length && end < BATCH && size + queue[end].length <= LARGE) {
      size += queue[end++].length
    }
    const lines = queue.slice(0, end)
    this.#queue = queue.slice(end)
    return lines
  }

  #send = () => {
    clearTimeout(this.#timer)
    this.#timer = undefined
    while (this.#queue.length > 0 && this.#requests < MAX_REQUESTS) this.#request(this.#takeBatch())
    if (this.#isClosing && this.#requests === 0) this.#onClosed()
  }

  #sendLater () {
    this.#timer ??= setTimeout(this.#send, DELAY)
  }

  /**
   * Sends lines. Exporters never call back if a collector switches to another protocol (101), and stop
   * sending after thirty such responses. So an exporter that does not call back in time is replaced.
   * @param {string[]} lines
   */
  #request (lines) {
    this.#requests++
    const records = readableSpans(lines.map((line) => JSON.parse(line)))
    let isSettled = false
    const end = (/** @type {{ code: number, error?: Error }} */ { code, error }) => {
      if (isSettled) return
      isSettled = true
      clearTimeout(deadline)
      this.#requests--
      this.#report(code === 0 ? {} : { fault: reasonOf(error), gone: statusOf(error) === undefined })
      this.#settle(code === 0 ? 'WRITTEN' : 'LOST', lines)
      if (this.#isClosing || this.#queue.length >= BATCH) this.#send()
      else if (this.#queue.length > 0) this.#sendLater()
    }
    const deadline = setTimeout(() => {
      this.#exporter = this.#createExporter()
      end({ code: 1, error: new Error('no answer in time') })
    }, MAX_EXPORT_TIME * this.#timeout)
    this.#exporter.export(records, end)
  }

  /** @param {any} message a line, or a command */
  receive (message) {
    if (typeof message === 'string') return this.#add(message)
    this.#isClosing ||= message.close === true
    for (const id of this.#heldLines.keys()) this.#release(id)
    this.#send()
  }

  /** @param {string} line */
  #add (line) {
    if (this.#heldLines.size > 0 || line.includes(OPEN)) return this.#addOpen(line, JSON.parse(line))
    this.#queue.push(line)
    if (this.#queue.length >= BATCH) this.#send()
    else this.#sendLater()
  }

  /** @param {string} line @param {{ spanId: string, attributes: Record<string, unknown> }} record */
  #addOpen (line, { spanId, attributes }) {
    const before = this.#heldLines.get(spanId)
    this.#heldLines.set(spanId, line)
    if (before !== undefined) this.#settle('WRITTEN', [before])
    if (attributes['longstack.end'] !== 'open') return this.#release(spanId)
    if (before === undefined) setTimeout(() => this.#release(spanId), HOLD)
  }

  /** @param {string} spanId */
  #release (spanId) {
    const line = this.#heldLines.get(spanId)
    if (line === undefined) return
    this.#heldLines.delete(spanId)
    this.#queue.push(line)
    this.#sendLater()
  }

  /**
   * Reports failed connections: the exporter retries silently, and an ending process must not wait for a
   * collector that is down.
   */
  #watchConnections () {
    channels.subscribe('net.client.socket', (/** @type {any} */ { socket }) => {
      socket.once('error', (/** @type {unknown} */ error) => {
        this.#report({ fault: reasonOf(error), gone: true })
      })
    })
  }

  /** Ends endless responses: older exporters keep a whole response in memory. */
  #limitAnswers () {
    channels.subscribe('http.client.response.finish', (/** @type {any} */ { response }) => {
      let size = 0
      response.on('data', (/** @type {Buffer} */ chunk) => {
        size += chunk.length
        if (size <= MAX_ANSWER) return
        this.#report({ fault: 'its answer is too long' })
        response.destroy()
      })
    })
  }

  /** Closes connections whose response trickles in forever. */
  #limitTimes () {
    channels.subscribe('http.client.request.start', (/** @type {any} */ { request: sent }) => {
      const limit = setTimeout(() => sent.destroy(), MAX_ANSWER_TIME * this.#timeout)
      sent.once('close', () => clearTimeout(limit))
    })
  }
}

/** @param {any} error @returns {number | undefined} HTTP status; undefined without a response */
function statusOf (error) {
  return typeof error?.code === 'number' ? error.code : undefined
}

/** Describes an error of the exporter in one line. @param {any} error */
function reasonOf (error) {
  const status = statusOf(error)
  const message = String(error?.message || error?.code || error)
  return ((status === undefined ? '' : `HTTP ${status} `) + message).split('\n', 1)[0].slice(0, 200)
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

/**
 * Returns spans in the exporter's form, with a span for each query.
 * @param {any[]} records
 */
function readableSpans (records) {
  return records.flatMap((record) => [record, ...askedSpans(record)]).map(readableSpan)
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

/**
 * Returns seconds and nanoseconds, which do not fit into one double.
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
  // toWellFormed() is not in the types of es2023, but Node 20 has it.
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

module.exports = { OtlpClient }
