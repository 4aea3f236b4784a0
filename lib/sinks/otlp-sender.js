'use strict'

// The program's side of the thread that sends spans (otlp-thread.js): its mailbox, and the counters that both
// share.

const path = require('node:path')
const { MessageChannel, Worker, receiveMessageOnPort } = require('node:worker_threads')
const { messageOf } = require('../warnings')

const HEAP = 128 // MiB that the thread may take

/**
 * What the threads count: records sent or lost, characters of both, messages in the port, whether it is
 * ready.
 */
const slots = { WRITTEN: 0, LOST: 1, SETTLED: 2, NEWS: 3, READY: 4 }

/** @typedef {{ fault?: string, gone: boolean, fatal: boolean }} News of the thread, see its `report` */

class OtlpSender {
  #url
  #exporter
  #onExit
  #counts = new BigInt64Array(new SharedArrayBuffer(8 * Object.keys(slots).length))
  /** @type {Worker | undefined} */
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
   */
  constructor (url, exporter, onExit) {
    this.#url = url
    this.#exporter = exporter
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
    const channel = new MessageChannel()
    this.#port = channel.port1
    const thread = this.#thread = new Worker(path.join(__dirname, 'otlp-thread.js'), {
      name: 'longstack spans',
      workerData: {
        exporter: this.#exporter,
        url: this.#url,
        counts: this.#counts,
        slots,
        news: channel.port2
      },
      transferList: [channel.port2],
      execArgv: [], // no preload of the program's, nor longstack
      env: environment(),
      stdout: true,
      stderr: true,
      resourceLimits: { maxOldGenerationSizeMb: HEAP }
    })
    thread.unref()
    thread.on('error', (error) => this.#onExit(messageOf(error)))
    thread.on('exit', () => this.#onExit(undefined))
  }

  /** Starts the thread if need be, and hands it a record. @param {string} line */
  post (line) {
    if (this.#thread === undefined) this.#start()
    this.#thread?.postMessage(line)
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
    Atomics.wait(this.#counts, slots.SETTLED, Atomics.load(this.#counts, slots.SETTLED), ms)
  }
}

/** The program's, but for what would preload something into the thread. */
function environment () {
  const isPreload = (/** @type {string} */ name) => name === 'NODE_OPTIONS' || name.startsWith('LONGSTACK')
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isPreload(name)))
}

module.exports = { OtlpSender }
