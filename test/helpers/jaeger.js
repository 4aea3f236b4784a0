'use strict'

// A real Jaeger, started by a test on its own ports and ended after it: spans are sent by OTLP, and read back
// from its query API. Built by test/helpers/build-server.sh jaeger.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const { root } = require('./run')
const { skip } = require('./skip')

const binary = path.join(root, '.cache', 'jaeger', 'all-in-one')
const READY_MS = 30_000

/**
 * @param {import('ava').ExecutionContext} t
 * @returns {boolean} true if Jaeger is missing, and may be
 */
function missing (t) {
  if (fs.existsSync(binary)) return false
  skip(t, 'there is no Jaeger; test/helpers/build-server.sh jaeger builds it (needs Go)')
  return true
}

/** Returns different ports that are free now. @param {number} count */
async function freePorts (count) {
  const servers = Array.from({ length: count }, () => net.createServer().listen(0, '127.0.0.1'))
  await Promise.all(servers.map((server) => once(server, 'listening')))
  const ports = servers.map((server) => /** @type {import('node:net').AddressInfo} */ (server.address()).port)
  await Promise.all(servers.map((server) => once(server.close(), 'close')))
  return ports
}

const listeners = [
  'collector.otlp.http.host-port', 'query.http-server.host-port', 'collector.otlp.grpc.host-port', 'collector.grpc-server.host-port',
  'collector.http-server.host-port', 'query.grpc-server.host-port', 'admin.http.host-port', 'http-server.host-port',
  'processor.jaeger-binary.server-host-port', 'processor.jaeger-compact.server-host-port', 'processor.zipkin-compact.server-host-port'
]

/**
 * @param {import('ava').ExecutionContext} t test that ends it
 * @returns {Promise<Jaeger>}
 */
async function jaeger (t) {
  const engine = new Jaeger(await freePorts(listeners.length))
  t.teardown(() => engine.stop())
  await engine.start()
  return engine
}

class Jaeger {
  /** @param {number[]} ports ports of the listeners, in order */
  constructor (ports) {
    // By default, Jaeger silently drops spans beyond 2000 in its queue.
    this.flags = ['--collector.queue-size=100000', ...listeners.map((name, i) => `--${name}=127.0.0.1:${ports[i]}`)]
    this.url = `http://127.0.0.1:${ports[0]}`
    this.query = `http://127.0.0.1:${ports[1]}`
    /** @type {import('node:child_process').ChildProcess | undefined} */
    this.child = undefined
  }

  async start () {
    const child = this.child = spawn(binary, this.flags, { env: { ...process.env, SPAN_STORAGE_TYPE: 'memory' }, stdio: ['ignore', 'ignore', 'pipe'] })
    let said = ''
    child.stderr?.setEncoding('utf8').on('data', (text) => { said = (said + text).slice(-4000) })
    for (const end = Date.now() + READY_MS; Date.now() < end; await sleep(50)) {
      if (child.exitCode !== null) break
      if (await answers(`${this.query}/api/services`) && await answers(this.url)) return
    }
    throw new Error(`Jaeger does not start:\n${said}`)
  }

  async stop () {
    const { child } = this
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    child.kill('SIGKILL')
    await once(child, 'exit')
  }

  /** While it is paused, it accepts connections but sends no response. */
  pause () { this.child?.kill('SIGSTOP') }
  resume () { this.child?.kill('SIGCONT') }

  /** @param {string} path @returns {Promise<any>} */
  async ask (path) {
    const response = await fetch(this.query + path)
    const { data } = await response.json()
    return data
  }

  /**
   * Returns the spans of a trace, once there are that many.
   * @param {string} traceId
   * @param {number} count
   * @returns {Promise<Span[]>}
   */
  async trace (traceId, count, ms = 20_000) {
    let spans = []
    for (const end = Date.now() + ms; Date.now() < end && spans.length < count; await sleep(100)) {
      const [found] = await this.ask(`/api/traces/${traceId}`) ?? []
      spans = (found?.spans ?? []).map((/** @type {any} */ span) => tidy(span, found.processes))
    }
    return spans
  }

  /** Returns the traces of a service. @param {string} service @returns {Promise<Span[][]>} */
  async traces (service, limit = 1000) {
    const found = await this.ask(`/api/traces?service=${encodeURIComponent(service)}&limit=${limit}`)
    return (found ?? []).map((/** @type {any} */ { spans, processes }) =>
      spans.map((/** @type {any} */ span) => tidy(span, processes))
    )
  }
}

/**
 * @typedef {object} Span in the form that tests read
 * @property {string} traceId
 * @property {string} spanId
 * @property {string | undefined} parentSpanId
 * @property {string} name
 * @property {string} service
 * @property {number} start µs
 * @property {number} duration µs
 * @property {Record<string, any>} tags
 * @property {Record<string, any>} resource
 * @property {Array<Record<string, any>>} logs
 * @property {Array<{ refType: string, traceID: string, spanID: string }>} references
 * @property {string[]} warnings
 */

/** @param {any} span @param {any} processes @returns {Span} */
function tidy (span, processes) {
  const { serviceName, tags } = processes[span.processID]
  return {
    traceId: span.traceID,
    spanId: span.spanID,
    parentSpanId: span.references.find((/** @type {any} */ { refType }) => refType === 'CHILD_OF')?.spanID,
    name: span.operationName,
    service: serviceName,
    start: span.startTime,
    duration: span.duration,
    tags: flat(span.tags),
    resource: flat(tags),
    logs: span.logs.map((/** @type {any} */ { fields }) => flat(fields)),
    references: span.references,
    warnings: span.warnings ?? []
  }
}

/** @param {Array<{ key: string, value: any }>} pairs */
function flat (pairs) {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, value]))
}

/** @param {string} url */
async function answers (url) {
  try {
    await (await fetch(url)).arrayBuffer()
    return true
  } catch {
    return false
  }
}

module.exports = { jaeger, missing, freePorts }
