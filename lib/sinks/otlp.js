'use strict'

// Spans into any OpenTelemetry collector, by OpenTelemetry's own exporter. It works in a
// thread of its own (otlp-thread.js), which shares nothing with the program: no wrapped http, no fake
// clock and no loader of the program's reaches it, its requests make no events here, and loading it,
// turning spans into OTLP and compressing them delay no callback. The program's thread writes a line into
// the thread's mailbox and reads shared counters; it has no timer and no socket, and waits for nothing
// but, for a short time at the very end, the answer to what was still queued.

const { existsSync } = require('node:fs')
const path = require('node:path')
const { performance } = require('node:perf_hooks')
const { MessageChannel, receiveMessageOnPort } = require('node:worker_threads')
const guard = require('../core/guard')
const { pauseWhile } = require('../core/pause')
const { startThread } = require('../own-thread')
const { messageOf } = require('../warnings')
const { lineOf } = require('../encoding/serialize')

const EXPORTER = '@opentelemetry/exporter-trace-otlp-http'
const HEAP = 128 // MiB that the thread may take
const QUEUE = 8 << 20 // characters on their way; what comes while there are more is dropped
const GRACE = 1000 // ms that an ending process waits for the collector
const START = 1000 // ms more where the thread is not ready yet
const POLL = 20 // ms until it checks again for what did not wake it

/**
 * What the threads count: records sent or lost, characters of both, messages in the port, whether it is
 * ready.
 */
const slots = { WRITTEN: 0, LOST: 1, SETTLED: 2, NEWS: 3, READY: 4 }

const now = performance.now.bind(performance)

/**
 * @typedef {{ fault?: string, gone: boolean, fatal: boolean }} News of the thread, see its `report`
 */

/** The thread's mailbox, and the counters that it shares. */
class OtlpSender {
  #task
  #isHere
  #onExit
  #counts = new BigInt64Array(new SharedArrayBuffer(8 * Object.keys(slots).length))
  /** what takes messages @type {{ postMessage: (message: unknown) => void } | undefined} */
  #thread
  /** @type {import('node:worker_threads').MessagePort | undefined} */
  #port
  /** messages of the port that were read */
  #readCount = 0n
  #characters = 0

  /**
   * @param {string} url
   * @param {string | undefined} exporter file of OpenTelemetry's exporter
   * @param {(reason: string | undefined) => void} onExit called when the thread has failed, and when it has
   *   ended
   * @param {boolean} [isHere] this is a thread of longstack's own, which does it
   */
  constructor (url, exporter, onExit, isHere = false) {
    this.#isHere = isHere
    this.#task = { url, exporter, counts: this.#counts, slots }
    this.#onExit = onExit
    /** records that were handed to the thread */
    this.posted = 0
  }

  get isStarted () { return this.#thread !== undefined }

  /** @param {keyof typeof slots} slot */
  count (slot) {
    return Number(Atomics.load(this.#counts, slots[slot]))
  }

  /** Records that were handed to the thread, and are neither sent nor lost. */
  get pending () { return this.posted - this.count('WRITTEN') - this.count('LOST') }

  /** Characters of those records. */
  get pendingCharacters () { return this.#characters - this.count('SETTLED') }

  #start () {
    const { port1, port2: news } = new MessageChannel()
    this.#port = port1
    if (this.#isHere) return this.#startHere(news)
    return startThread(path.join(__dirname, 'otlp-thread.js'), {
      name: 'spans',
      workerData: { ...this.#task, news },
      transferList: [news],
      heap: HEAP
    }, (error) => this.#onExit(error === undefined ? undefined : messageOf(error)))
  }

  /** @param {import('node:worker_threads').MessagePort} news */
  #startHere (news) {
    news.unref()
    const { OtlpClient } = require('./otlp-client')
    const client = new OtlpClient(/** @type {any} */ ({ ...this.#task, news }), () => {})
    return {
      postMessage (/** @type {unknown} */ message) {
        if (client.isReady) client.receive(message)
      }
    }
  }

  /** Starts the thread if need be, and hands it a record. @param {string} line */
  post (line) {
    this.#thread ??= this.#start()
    this.#thread.postMessage(line)
    this.#characters += line.length
    this.posted++
  }

  /** Has the thread send what it holds back. @param {{ flush: true } | { close: true }} command */
  send (command) {
    this.#thread?.postMessage(command)
  }

  /**
   * Reads what the thread has reported since; costs one atomic load where that is nothing.
   * @returns {News[]}
   */
  readNews () {
    const port = this.#port
    const reported = Atomics.load(this.#counts, slots.NEWS)
    if (reported === this.#readCount || port === undefined) return []
    this.#readCount = reported
    const news = []
    for (let entry = receiveMessageOnPort(port); entry !== undefined; entry = receiveMessageOnPort(port)) {
      news.push(entry.message)
    }
    return news
  }

  /** Waits until the thread has sent or lost something, or reports. @param {number} ms at most */
  wait (ms) {
    const words = new Int32Array(this.#counts.buffer)
    const settled = 2 * slots.SETTLED // its lower half
    pauseWhile(words, settled, Atomics.load(words, settled), ms)
  }
}

class OtlpSink {
  #address
  #warn
  #isHere
  #sender
  /** the last fault of the thread @type {string | undefined} */
  #fault
  /** the collector cannot be reached: waiting is of no use */
  #isGone = false
  /** of the last loss @type {string | undefined} */
  #lossReason
  #lost = 0
  /** nothing more is sent */
  #hasEnded = false
  #dropped = 0
  #onExit = () => this.flush()

  /**
   * @param {{ to: string }} output
   * @param {(code: string, sentence: string) => void} warn gives a warning once a code
   * @param {boolean} [isHere] this is a thread of longstack's own, which does it; who flushes it awaits
   *   `settled` then
   */
  constructor ({ to }, warn, isHere = false) {
    const url = new URL(to)
    if (url.pathname === '/') url.pathname = '/v1/traces' // OTLP's
    this.#address = url.origin + url.pathname // without secrets
    this.#warn = warn
    this.#isHere = isHere
    const exporter = findPackage(EXPORTER)
    this.#sender = new OtlpSender(url.href, exporter, (reason) => this.#threadEnded(reason), isHere)
    if (exporter !== undefined) return
    this.#end(`${EXPORTER} is not installed`)
    warn('SPANS_NO_EXPORTER',
      `spans cannot go to ${this.#address}: ${this.#fault}; npm install ${EXPORTER}`)
  }

  /** @param {string} reason */
  #end (reason) {
    this.#hasEnded = true
    this.#fault = reason
  }

  /** @param {string | undefined} reason */
  #threadEnded (reason) {
    this.#readNews()
    this.#end(reason ?? this.#fault ?? 'it was closed')
    const { pending } = this.#sender
    this.#dropped += pending
    this.#sender.posted -= pending
    process.off('exit', this.#onExit)
    if (pending > 0) this.#complain(reason)
  }

  #readNews () {
    for (const { fault, gone, fatal } of this.#sender.readNews()) {
      this.#fault = fault
      this.#isGone = gone
      this.#lossReason = fault ?? this.#lossReason
      if (fatal) this.#hasEnded = true
    }
    const lost = this.#sender.count('LOST')
    if (lost !== this.#lost) this.#complain(this.#lossReason)
    this.#lost = lost
  }

  /** @param {string} [reason] */
  #complain (reason = this.#fault ?? 'no answer in time') {
    this.#warn('SPANS_UNSENT', `spans do not reach ${this.#address}: ${reason}. The program goes on, ` +
      'trace.stats().spans counts what is dropped.')
  }

  /** @param {object | string} record */
  #post (record) {
    const line = typeof record === 'string' ? record : lineOf(record, () => {})
    if (this.#sender.pendingCharacters + line.length <= QUEUE) return this.#sender.post(line)
    this.#dropped++
    this.#complain(this.#fault ?? 'it accepts them too slowly')
  }

  /** @param {object | string} record or its line */
  write (record) {
    if (this.#hasEnded) {
      this.#dropped++
      return
    }
    try {
      guard.run(() => {
        this.#readNews()
        this.#post(record)
      })
    } catch (error) {
      if (!this.#sender.isStarted) this.#end(`its thread does not start: ${messageOf(error)}`)
      this.#dropped++
      if (this.#hasEnded) guard.run(() => this.#complain())
    }
  }

  /**
   * Waits until what was written has been sent, for a bounded time, and only while the collector can be
   * reached.
   * @param {boolean} [goesOn] the program does not end: the thread sends by itself, nothing is waited for
   */
  flush (goesOn = false) {
    if (goesOn) return
    guard.run(() => {
      this.#readNews()
      if (this.#canSend()) {
        this.#sender.send({ flush: true })
        if (this.#isHere) return
        for (const ms of this.#waits()) this.#sender.wait(ms)
      }
      if (this.#sender.pending > 0) this.#complain()
    })
  }

  /** Waits as `flush` does, in a thread that has to send meanwhile. */
  async settled () {
    for (const ms of this.#waits()) await new Promise((resolve) => setTimeout(resolve, ms / 4))
    if (this.#sender.pending > 0) this.#complain()
  }

  /** Yields for how long to wait at most, again and again, until that is of no use. */
  * #waits () {
    const sender = this.#sender
    let ready = sender.count('READY')
    let deadline = now() + GRACE + (ready === 0 ? START : 0)
    for (let ms = deadline - now(); ms > 0 && this.#canSend(); ms = deadline - now()) {
      yield Math.min(ms, POLL)
      this.#readNews()
      if (ready !== sender.count('READY')) deadline = Math.min(deadline, now() + GRACE)
      ready = sender.count('READY')
    }
  }

  #canSend () {
    return this.#sender.pending > 0 && !this.#hasEnded && !this.#isGone
  }

  /** The thread sends what was written, in its own time. */
  close () {
    if (!this.#sender.isStarted || this.#hasEnded) return this.#end('it was closed')
    guard.run(() => {
      this.#sender.send({ close: true })
      if (!this.#isHere) process.once('exit', this.#onExit)
    })
  }

  stats () {
    guard.run(() => this.#readNews())
    return {
      written: this.#sender.count('WRITTEN'),
      waiting: this.#sender.pending,
      dropped: this.#dropped + this.#sender.count('LOST'),
      fault: this.#fault
    }
  }
}

/**
 * Finds an exporter as longstack resolves it, or the program: longstack may be linked from elsewhere.
 * @param {string} name
 */
function findPackage (name) {
  const main = process.argv[1]
  const paths = [__dirname]
  if (main !== undefined && existsSync(main)) paths.push(path.dirname(path.resolve(main)))
  try {
    return require.resolve(name, { paths })
  } catch {}
}

module.exports = { OtlpSender, OtlpSink, slots }
