'use strict'

// The thread that sends: takes lines from its mailbox, some hundred at a time, and has OpenTelemetry's exporter send
// them. The exporter retries by itself; what it gives up on is counted as lost, and why is told to the program's
// thread, which looks when it has a reason to.

const channels = require('node:diagnostics_channel')
const { parentPort, workerData } = require('node:worker_threads')
const { readable } = require('./otlp-spans')

const BATCH = 512 // records a request
const LARGE = 4 << 20 // characters a request, unless one record alone has more
const DELAY = 500 // ms that a record waits for others
const REQUESTS = 4 // at a time
const HOLD = 5000 // ms that what is still open waits for its end
const OPEN = '"longstack.end":"open"'

const { exporter: file, url, slots, news } = workerData
/** @type {BigInt64Array} */
const counts = workerData.counts
const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)

/** @type {any} */
let exporter
/** @type {string[]} */
let queue = []
/** What was still open when it was written, by its id: an engine would show a span twice that is sent twice. @type {Map<string, string>} */
const held = new Map()
let requests = 0
let closing = false
/** @type {NodeJS.Timeout | undefined} */
let timer
/** @type {string | undefined} */
let fault

/** @param {{ fault?: string, gone?: boolean, fatal?: boolean }} state gone: there is nobody to wait for */
function tell ({ fault: sentence, gone = false, fatal = false }) {
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

/** The oldest lines, as many as one request carries. */
function take () {
  let size = queue[0].length
  let end = 1
  while (end < queue.length && end < BATCH && size + queue[end].length <= LARGE) size += queue[end++].length
  const lines = queue.slice(0, end)
  queue = queue.slice(end)
  return lines
}

function send () {
  clearTimeout(timer)
  timer = undefined
  while (queue.length > 0 && requests < REQUESTS) request(take())
  if (closing && requests === 0) port.close()
}

/** @param {string[]} lines */
function request (lines) {
  requests++
  exporter.export(lines.map((line) => readable(JSON.parse(line))), (/** @type {{ code: number, error?: Error }} */ { code, error }) => {
    requests--
    tell(code === 0 ? {} : { fault: why(error), gone: statusOf(error) === undefined })
    settle(code === 0 ? 'WRITTEN' : 'LOST', lines)
    if (closing || queue.length >= BATCH) send()
    else if (queue.length > 0) timer ??= setTimeout(send, DELAY)
  })
}

/** Of an answer; without one nobody answered. @param {any} error @returns {number | undefined} */
function statusOf (error) {
  return typeof error?.code === 'number' ? error.code : undefined
}

/** An error of the exporter in a line. @param {any} error */
function why (error) {
  const status = statusOf(error)
  return ((status === undefined ? '' : `HTTP ${status} `) + String(error?.message || error?.code || error)).split('\n', 1)[0].slice(0, 200)
}

/** @param {any} message */
function receive (message) {
  if (typeof message === 'string') return add(message)
  closing ||= message.close === true
  for (const id of held.keys()) release(id)
  send()
}

/** @param {string} line */
function add (line) {
  if (held.size > 0 || line.includes(OPEN)) return addOpen(line, JSON.parse(line))
  queue.push(line)
  if (queue.length >= BATCH) send()
  else timer ??= setTimeout(send, DELAY)
}

/** @param {string} line @param {{ spanId: string, attributes: Record<string, unknown> }} record */
function addOpen (line, { spanId, attributes }) {
  const before = held.get(spanId)
  held.set(spanId, line)
  if (before !== undefined) settle('WRITTEN', [before])
  if (attributes['longstack.end'] !== 'open') return release(spanId)
  if (before === undefined) setTimeout(release, HOLD, spanId)
}

/** @param {string} spanId */
function release (spanId) {
  const line = held.get(spanId)
  if (line === undefined) return
  held.delete(spanId)
  queue.push(line)
  timer ??= setTimeout(send, DELAY)
}

/** The exporter hides that it tries again; a process that ends is not to wait for a collector that is not there. */
function watchConnections () {
  channels.subscribe('net.client.socket', (/** @type {any} */ { socket }) => {
    socket.once('error', (/** @type {unknown} */ error) => tell({ fault: why(error), gone: true }))
  })
}

try {
  const { OTLPTraceExporter } = require(file)
  exporter = new OTLPTraceExporter({ url })
  watchConnections()
  port.on('message', receive)
  Atomics.store(counts, slots.READY, 1n)
} catch (error) {
  tell({ fault: `OpenTelemetry's exporter does not load: ${why(error)}`, gone: true, fatal: true })
}
