'use strict'

// Sends spans to any OpenTelemetry collector, with OpenTelemetry's own exporter. The exporter runs in its own
// thread (otlp-thread.js), which shares nothing with the program: no wrapped http, fake clock or loader of
// the program affects it. Its requests cause no events here, and loading it, converting spans to OTLP and
// compressing them delay no callback. The program's thread writes a line to that thread's mailbox and reads
// shared counters; it has no timer and no socket. It waits only at the very end, for a short time, for the
// response to queued records.

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
const HEAP = 128 // MiB that the thread may use
const QUEUE = 8 << 20 // characters pending; records beyond that are dropped
const GRACE = 1000 // ms that an ending process waits for the collector
const START = 1000 // ms more if the thread is not ready yet
const POLL = 20 // ms until the next check for changes that did not wake it

/**
 * Shared counters: records sent or lost, characters of both, messages in the port, whether the thread is
 * ready.
 */
const slots = { WRITTEN: 0, LOST: 1, SETTLED: 2, NEWS: 3, READY: 4 }

const now = performance.now.bind(performance)

/**
 * @typedef {{ fault?: string, gone: boolean, fatal: boolean }} News from the thread, see its `report`
 */

/** Mailbox of the thread, and the counters shared with it. */
class OtlpSender {
  #task
  #isHere
  #onExit
  #counts = new BigInt64Array(new SharedArrayBuffer(8 * Object.keys(slots).length))
  /** receiver of messages @type {{ postMessage: (message: unknown) => void } | undefined} */
  #thread
  /** @type {import('node:worker_threads').MessagePort | undefined} */
  #port
  /** messages read from the port */
  #readCount = 0n
  #characters = 0

  /**
   * @param {string} url
   * @param {string | undefined} exporter file of OpenTelemetry's exporter
   * @param {(reason: string | undefined) => void} onExit called when the thread has failed or ended
   * @param {boolean} [isHere] send from this thread, which is longstack's own
   */
  constructor (url, exporter, onExit, isHere = false) {
    this.#isHere = isHere
    this.#task = { url, exporter, counts: this.#counts, slots }
    this.#onExit = onExit
    /** records passed to the thread */
    this.posted = 0
  }

  get isStarted () { return this.#thread !== undefined }

  /** @param {keyof typeof slots} slot */
  count (slot) {
    return Number(Atomics.load(this.#counts, slots[slot]))
  }

  /** Records passed to the thread, and neither sent nor lost yet. */
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

  /** Starts the thread if necessary, and passes it a record. @param {string} line */
  post (line) {
    this.#thread ??= this.#start()
    this.#thread.postMessage(line)
    this.#characters += line.length
    this.posted++
  }

  /** Makes the thread send pending records. @param {{ flush: true } | { close: true }} command */
  send (command) {
    this.#thread?.postMessage(command)
  }

  /**
   * Reads new reports of the thread. Costs one atomic load if there are none.
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

  /** Waits until the thread has sent or lost records, or reports. @param {number} ms at most */
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
  /** the collector is unreachable: waiting is useless */
  #isGone = false
  /** reason of the last loss @type {string | undefined} */
  #lossReason
  #lost = 0
  /** nothing is sent any more */
  #hasEnded = false
  #dropped = 0
  #onExit = () => this.flush()

  /**
   * @param {{ to: string }} output
   * @param {(code: string, sentence: string) => void} warn warns once per code
   * @param {boolean} [isHere] send from this thread, which is longstack's own; await `settled` after a flush
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
   * Waits until written records are sent, for a bounded time, and only while the collector is reachable.
   * @param {boolean} [goesOn] the program continues: the thread sends by itself, and this does not wait
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

  /** Waits like `flush`, in a thread that must send meanwhile. */
  async settled () {
    for (const ms of this.#waits()) await new Promise((resolve) => setTimeout(resolve, ms / 4))
    if (this.#sender.pending > 0) this.#complain()
  }

  /** Yields maximum waiting times until waiting is useless. */
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

  /** Closes the sink; the thread still sends written records in the background. */
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
 * Finds an exporter as longstack or the program resolves it: longstack may be linked from elsewhere.
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
