'use strict'

// Spans into any OpenTelemetry collector, by OpenTelemetry's own exporter. It works in a thread of its own, which knows
// nothing of the program: no wrapped http, no fake clock and no loader of the program's meets it, its requests make no
// events here, and loading it, turning spans into OTLP and compressing them delay nobody. The program's thread writes a
// line into the thread's mailbox and reads shared counters; it has no timer and no socket, and waits for nothing but, for
// a short time at the very end, the answer to what was still queued.

const { existsSync } = require('node:fs')
const path = require('node:path')
const { performance } = require('node:perf_hooks')
const { MessageChannel, Worker, receiveMessageOnPort } = require('node:worker_threads')
const guard = require('../context/guard')
const { brief } = require('../warnings')
const { lineOf } = require('./serialize')

const EXPORTER = '@opentelemetry/exporter-trace-otlp-http'
const QUEUE = 8 << 20 // characters on their way; what comes while there are more is dropped
const GRACE = 1000 // ms that an ending process waits for the collector
const START = 1000 // ms more where the thread has not got ready yet
const TURN = 20 // ms until it looks again for what it was not woken for
const HEAP = 128 // MiB that the thread may take

const now = performance.now.bind(performance)

/** Where the two threads count: records that arrived or were lost, characters of both, news in the port, readiness. */
const slots = { WRITTEN: 0, LOST: 1, SETTLED: 2, NEWS: 3, READY: 4 }

/**
 * @typedef {object} Sink
 * @property {(record: object) => void} write
 * @property {(goesOn?: boolean) => void} flush waits until what was written has arrived, for a short time, unless the program goes on
 * @property {() => void} close sends what was written, in its own time
 * @property {() => Stats} stats
 *
 * @typedef {{ written: number, dropped: number, fault?: string }} Stats
 */

/**
 * @param {{ to: string }} output an http: or https: address
 * @param {object} deps
 * @param {(code: string, sentence: string) => void} deps.warn
 * @returns {Sink}
 */
function createOtlpSink ({ to }, { warn }) {
  const url = endpoint(to)
  const shown = withoutSecrets(url)
  const counts = new BigInt64Array(new SharedArrayBuffer(8 * Object.keys(slots).length))
  const exporter = find()
  /** @type {Worker | undefined} */
  let thread
  /** @type {import('node:worker_threads').MessagePort | undefined} */
  let news
  /** what the thread said last @type {string | undefined} */
  let fault
  /** nobody is there to wait for */
  let gone = false
  /** of the last loss @type {string | undefined} */
  let reason
  let lost = 0
  let heard = 0n
  let complained = false
  let ended = false
  let posted = 0
  let characters = 0
  let dropped = 0

  if (exporter === undefined) {
    end(`${EXPORTER} is not installed`)
    warn('SPANS_NO_EXPORTER', `spans cannot go to ${shown}: ${fault}; npm install ${EXPORTER}`)
  }

  /** @param {keyof typeof slots} slot */
  const count = (slot) => Number(Atomics.load(counts, slots[slot]))
  const pending = () => posted - count('WRITTEN') - count('LOST')

  /** Nothing more is sent. @param {string} why */
  function end (why) {
    ended = true
    fault = why
  }

  function start () {
    const channel = new MessageChannel()
    news = channel.port1
    thread = new Worker(path.join(__dirname, 'otlp-thread.js'), {
      name: 'longstack spans',
      workerData: { exporter, url, counts, slots, news: channel.port2 },
      transferList: [channel.port2],
      execArgv: [], // no preload of the program's, nor longstack
      env: environment(),
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP }
    })
    thread.unref()
    thread.on('error', (error) => lose(brief(error)))
    thread.on('exit', () => lose(undefined))
  }

  /** The thread has ended, with what it had. @param {string | undefined} why */
  function lose (why) {
    hear()
    end(why ?? fault ?? 'it was closed')
    const left = pending()
    dropped += left
    posted -= left
    process.off('exit', flush)
    if (left > 0) complain(why)
  }

  /** Takes what the thread has to say, at no cost where that is nothing. */
  function hear () {
    const told = Atomics.load(counts, slots.NEWS)
    if (told !== heard && news !== undefined) {
      heard = told
      for (let one = receiveMessageOnPort(news); one !== undefined; one = receiveMessageOnPort(news)) take(one.message)
    }
    const losses = count('LOST')
    if (losses !== lost) complain(reason)
    lost = losses
  }

  /** @param {{ fault?: string, gone: boolean, fatal: boolean }} message */
  function take (message) {
    fault = message.fault
    gone = message.gone
    reason = fault ?? reason
    if (message.fatal) ended = true
  }

  function complain (why = fault ?? 'no answer in time') {
    if (complained) return
    complained = true
    warn('SPANS_UNSENT', `spans do not reach ${shown}: ${why}. The program goes on, trace.stats().spans counts what is dropped.`)
  }

  /** @param {object} record */
  function post (record) {
    const line = lineOf(record, () => {})
    if (characters - count('SETTLED') + line.length > QUEUE) return full()
    if (thread === undefined) start()
    thread?.postMessage(line)
    characters += line.length
    posted++
  }

  function drop () {
    dropped++
  }

  function full () {
    drop()
    complain(fault ?? 'it takes them too slowly')
  }

  /** @param {object} record */
  function write (record) {
    if (ended) return drop()
    try {
      guard.run(() => {
        hear()
        post(record)
      })
    } catch (error) {
      if (thread === undefined) end(`its thread does not start: ${brief(error)}`)
      drop()
      if (ended) guard.run(() => complain())
    }
  }

  /** Waits only where there is hope: not for a collector that could not be reached just now. @param {unknown} [goesOn] */
  function flush (goesOn) {
    if (goesOn === true) return // the thread works on, whatever the program does
    guard.run(() => {
      hear()
      if (hopeful()) {
        thread?.postMessage({ flush: true })
        wait()
      }
      if (pending() > 0) complain()
    })
  }

  function wait () {
    let ready = count('READY')
    let deadline = now() + GRACE + (ready === 0 ? START : 0)
    for (let left = deadline - now(); left > 0 && hopeful(); left = deadline - now()) {
      Atomics.wait(counts, slots.SETTLED, Atomics.load(counts, slots.SETTLED), Math.min(left, TURN))
      hear()
      if (ready !== count('READY')) deadline = Math.min(deadline, now() + GRACE)
      ready = count('READY')
    }
  }

  function hopeful () {
    return pending() > 0 && !ended && !gone
  }

  function close () {
    if (thread === undefined || ended) return end('it was closed')
    guard.run(() => {
      thread?.postMessage({ close: true })
      process.once('exit', flush)
    })
  }

  /** @returns {Stats} */
  function stats () {
    guard.run(hear)
    return { written: count('WRITTEN'), dropped: dropped + count('LOST'), ...(fault === undefined ? {} : { fault }) }
  }

  return { write, flush, close, stats }
}

/** An address without a path gets OTLP's. @param {string} to */
function endpoint (to) {
  const url = new URL(to)
  if (url.pathname === '/') url.pathname = '/v1/traces'
  return url.href
}

/** @param {string} address */
function withoutSecrets (address) {
  const { origin, pathname } = new URL(address)
  return origin + pathname
}

/** The exporter as longstack finds it, or the program; longstack may be linked from elsewhere. */
function find () {
  const main = process.argv[1]
  const paths = [__dirname, ...(main !== undefined && existsSync(main) ? [path.dirname(path.resolve(main))] : [])]
  try {
    return require.resolve(EXPORTER, { paths })
  } catch {}
}

/** The program's, but for what would preload something into the thread. */
function environment () {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => name !== 'NODE_OPTIONS' && !name.startsWith('LONGSTACK')))
}

module.exports = { createOtlpSink }
