'use strict'

// Spans for files and one collector, built and written by longstack's own thread (apart-thread.js). The
// program's thread copies entries of the run log and their texts, and posts them every 50 ms. It waits for
// that thread only when the program ends, turns spans off or reads counts.
//
// The thread starts when the first span ends, so a program without spans has none. The program's thread
// builds the spans itself if the program ends before its loop runs, or if the thread does not start or fails.
// Posted batches are also kept here until the thread begins to work, so nothing is lost if it cannot start.

const process = require('node:process')
const path = require('node:path')
const { MessageChannel, receiveMessageOnPort } = require('node:worker_threads')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const loopIterations = require('../core/loop-iterations')
const { pauseWhile } = require('../core/pause')
const { keptOpen } = require('../files')
const { startThread } = require('../own-thread')
const { safe, targetOf } = require('../sinks/outputs')
const { createIfMissing, faultOf } = require('../sinks/output-file')
const { createSinks, isWantedBy } = require('../sinks/sinks')
const { messageOf, warn } = require('../warnings')
const { hasOpenSpans } = require('./texts')
const { Pieces } = require('./pieces')
const { SpanSource } = require('./span-source')
const taking = require('./taking')

const HEAP = 128 // limit of the thread in MiB: at V8's own limit, Node 26 hangs for minutes
const MAX_BATCH = 1 << 20 // bytes waiting to be posted
const MAX_WITHIN = 1 << 24 // limit on top of the program's code, where starting a thread is avoided
const MAX_POSTED = 1 << 26 // bytes in flight; beyond that, spans are dropped
const PATIENCE = 5000 // ms without progress of the thread
const POLL = 20 // ms between checks, whether woken or not

/**
 * Words shared by both threads: number of the last processed message, bytes of all of these, spans not yet
 * built, spans built, whether the thread has ended, a progress counter, whether it has begun.
 */
const slots = { DONE: 0, BYTES: 1, WAITING: 2, MADE: 3, HAS_ENDED: 4, TICKS: 5, STATE: 6 }
/** values of STATE: both threads try to replace NEW, and the first one wins */
const states = { NEW: 0, BEGUN: 1, REPLACED: 2 }

/**
 * @typedef {import('../sinks/outputs').Output} Output
 * @typedef {Output & { target: import('../sinks/outputs').Target }} PlacedOutput
 * @typedef {import('../sinks/sinks').SinkStats} SinkStats
 * @typedef {import('./span-source').Batch} Batch
 *
 * @typedef {object} News reports of the thread
 * @property {[code: string, sentence: string]} [warning]
 * @property {SinkStats} [stats]
 * @property {Array<[fd: number, file: { dev: bigint, ino: bigint }]>} [kept]
 */

/** Builds spans and writes them in this thread. */
class Here {
  source = new SpanSource()
  sinks
  /** whether the last batch was read completely: V8 may terminate the code that reads it */
  #isWhole = true

  /** @param {Output[]} outputs */
  constructor (outputs) {
    this.sinks = createSinks(outputs, { warn })
  }

  /** @param {Batch} batch */
  take (batch) {
    if (!this.#isWhole) {
      this.source = new SpanSource()
      taking.repeat()
    }
    this.#isWhole = false
    const made = this.source.take(batch)
    this.#isWhole = true
    for (const span of made) this.sinks.write(span)
  }
}

/** Spans for outputs that another thread can write to. A consumer of taking.js. */
class Apart {
  /** @type {PlacedOutput[]} */
  #outputs
  #pieces = new Pieces()
  #words = new Int32Array(new SharedArrayBuffer(4 * Object.keys(slots).length))
  /** @type {import('node:worker_threads').Worker | undefined} */
  #thread
  /** @type {import('node:worker_threads').MessagePort | undefined} */
  #news
  /** replaces the thread @type {Here | undefined} */
  #here
  /** number of the last posted message, and bytes of all */
  #posted = 0
  #postedBytes = 0
  /** spans and other records in all posted messages */
  #postedSpans = 0
  /** ms of the clock */
  #postedAt = -Infinity
  /** the thread's words after PATIENCE ran out, or NaN */
  #silentAt = { done: NaN, ticks: NaN }
  /** false while a batch is being sent, and after V8 has terminated the sending code */
  #isWhole = true
  /** batches posted before the thread began, or to process in its place @type {Batch[]} */
  #unbegun = []
  /** descriptors of the thread @type {number[]} */
  #kept = []
  /** whether a span has ended, or there are other records */
  #isWanted = false
  /** the loop has ended, or no more batches come: no thread is started, and everything is written at once */
  #isOver = false
  #isClosed = false
  #dropped = 0
  /** the thread's last report @type {SinkStats} */
  #stats

  /** ms until entries are taken */
  within = 50

  isPartial = true

  /** @param {Output[]} outputs */
  constructor (outputs) {
    this.#outputs = placed(outputs)
    this.#stats = noStats(outputs)
    taking.add(this)
  }

  /**
   * Switches to other outputs. Open spans are kept.
   * @param {Output[]} outputs
   * @returns {boolean} false if a collector is involved: a thread serves only one until everything is sent
   */
  setOutputs (outputs) {
    if (this.#hasCollector || outputs.some(({ to }) => targetOf(to).url !== undefined)) return false
    const next = placed(outputs)
    this.#replaceAbsent()
    this.#sync()
    this.#here?.sinks.close()
    if (this.#thread !== undefined) this.#order({ setOutputs: next })
    this.#outputs = next
    this.#stats = noStats(outputs)
    this.#dropped = 0
    if (this.#here !== undefined) this.#here.sinks = createSinks(next, { warn })
    return true
  }

  get #hasCollector () { return this.#outputs.some(({ target }) => target.url !== undefined) }

  /** Whether an output takes a span. @param {import('../sinks/sinks').Candidate} span */
  wants (span) { return isWantedBy(this.#outputs, span) }

  /** Nothing may wait at the end of the program, or if its own thread builds the spans. */
  get isEager () { return this.#isOver || this.#here !== undefined }

  /** @param {keyof typeof slots} slot */
  #read (slot) { return Atomics.load(this.#words, slots[slot]) }

  isWaiting () {
    if (this.#isWanted && !this.#pieces.isEmpty) return true
    if (this.#here !== undefined) return this.#here.source.isWaiting
    const isDone = this.#read('DONE') === this.#posted
    return !isDone || this.#read('WAITING') > 0
  }

  /** @param {taking.Piece} piece */
  take (piece) {
    const pieces = this.#pieces
    pieces.add(piece)
    this.#isOver ||= piece.isLast
    this.#isWanted ||= pieces.spans > 0 || (pieces.size >= MAX_BATCH && hasOpenSpans())
    if (this.#isOver) return this.#sync()
    if (this.#here !== undefined) return this.#post()
    if (!this.#isWanted) {
      if (pieces.size >= MAX_BATCH) this.#forgetPieces()
      return
    }
    // Avoids starting a thread on top of the program's code
    const mayStart = !(piece.isWithin && this.#isIdle)
    const isTime = piece.isNewest && mayStart
    const isMuch = pieces.size >= (mayStart ? MAX_BATCH : MAX_WITHIN)
    if (isMuch || (isTime && piece.now - this.#postedAt >= this.within)) this.#post()
    else if (isTime) loopIterations.scheduleWithin(this.#post, this.within)
  }

  #forgetPieces () {
    this.#pieces.clear()
    taking.repeat()
  }

  /** Whether neither the thread nor its replacement exists. */
  get #isIdle () { return this.#thread === undefined && this.#here === undefined }

  /** Posts everything taken so far to be built and written. */
  #post = () => {
    this.#receive()
    this.#postedAt = now()
    if (this.#pieces.isEmpty || !this.#isWanted) return
    if (this.#isOver) this.#replaceAbsent()
    else if (this.#isIdle) this.#start()
    if (!this.#isWhole) taking.repeat()
    this.#isWhole = false
    this.#handOn()
    this.#isWhole = true
  }

  #handOn () {
    const pieces = this.#pieces
    if (this.#here !== undefined) {
      this.#unbegun.push(pieces.take())
      return this.#makeHere(this.#here)
    }
    const { size, spans } = pieces
    const isTooMuch = () => {
      const waiting = (this.#postedBytes - this.#read('BYTES')) | 0
      return waiting + size > MAX_POSTED
    }
    if (isTooMuch() && this.#isOver) this.#settle()
    if (isTooMuch()) return this.#drop()
    const { buffer, ...batch } = pieces.take()
    const hasBegun = this.#read('STATE') === states.BEGUN
    if (hasBegun) this.#unbegun = []
    else this.#unbegun.push(batch)
    this.#send({ take: batch }, hasBegun ? [buffer] : undefined)
    this.#postedBytes = (this.#postedBytes + size) | 0
    this.#postedSpans += spans
  }

  /** @param {Here} here */
  #makeHere (here) {
    const batches = this.#unbegun
    for (let one = batches.shift(); one !== undefined; one = batches.shift()) here.take(one)
  }

  /** @param {Record<string, unknown>} message @param {ArrayBuffer[]} [transferList] */
  #send (message, transferList) {
    const number = this.#posted = (this.#posted + 1) | 0 // first: V8 may terminate this code before it sends
    this.#thread?.postMessage({ number, ...message }, transferList)
  }

  #drop () {
    this.#dropped += this.#pieces.spans
    this.#forgetPieces()
    warn('SPANS_THREAD', 'spans are dropped, and counted in trace.stats().spans: ' +
      'the thread that makes them gets too little of the CPU.')
  }

  #start () {
    const { port1, port2: news } = new MessageChannel()
    try {
      this.#thread = startThread(path.join(__dirname, 'apart-thread.js'), {
        name: 'spans',
        workerData: {
          outputs: this.#outputs, main: process.argv[1], words: this.#words, slots, states, heap: HEAP, news
        },
        transferList: [news],
        heap: 2 * HEAP
      }, this.#threadEnded)
    } catch {
      this.#here = new Here(this.#outputs)
      return
    }
    this.#news = port1
    port1.unref()
  }

  /** @param {unknown} error */
  #threadEnded = (error) => {
    if (this.#thread === undefined) return
    guard.run(() => {
      this.#receive()
      if (this.#replaceUnbegun()) return
      this.#forgetThread()
      this.#unbegun = []
      if (this.#isClosed) return
      this.#countLost()
      const reason = error === undefined ? 'it was ended' : messageOf(error)
      warn('SPANS_THREAD', `some spans are lost: the thread that makes them has failed: ${reason}. ` +
        "The next ones are made in the program's thread.")
      this.#here = new Here(this.#outputs)
      taking.repeat()
    })
  }

  /** Spans that the thread received and has not built yet. */
  get #unmade () { return (this.#postedSpans - this.#read('MADE')) | 0 }

  /** Counts spans that the thread received but did not write as dropped. */
  #countLost () {
    const { waiting, outputs } = this.#stats
    this.#dropped += waiting + Math.max(0, this.#unmade)
    this.#stats = { ...this.#stats, waiting: 0, outputs: outputs.map((one) => ({ ...one, waiting: 0 })) }
  }

  /** Takes over the thread's work if the thread has not begun. @returns {boolean} whether it did */
  #replaceUnbegun () {
    if (this.#thread === undefined) return false
    const state = Atomics.compareExchange(this.#words, slots.STATE, states.NEW, states.REPLACED)
    if (state !== states.NEW) return false
    this.#forgetThread()
    this.#makeHere(this.#here = new Here(this.#outputs))
    return true
  }

  /** Ensures that no thread is started or waited for from now on unless it has already begun. */
  #replaceAbsent () {
    if (!this.#replaceUnbegun() && this.#isIdle && this.#isWanted) this.#here = new Here(this.#outputs)
  }

  #forgetThread () {
    process.removeListener('exit', this.#awaitThread)
    this.#hear({ kept: [] })
    this.#news?.close()
    this.#thread = this.#news = undefined
  }

  /** @param {News} news */
  #hear ({ warning, stats = this.#stats, kept }) {
    this.#stats = stats
    if (kept !== undefined) {
      for (const fd of this.#kept) keptOpen.delete(fd)
      for (const [fd, file] of kept) keptOpen.set(fd, file)
      this.#kept = kept.map(([fd]) => fd)
    }
    if (warning !== undefined) warn(...warning)
  }

  #receive () {
    const port = this.#news
    if (port === undefined) return
    for (let news = receiveMessageOnPort(port); news !== undefined; news = receiveMessageOnPort(port)) {
      this.#hear(news.message)
    }
  }

  /**
   * Waits until all posted messages are processed. Does not wait again for a thread without progress since.
   * @returns {boolean} whether they are processed
   */
  #settle () {
    let done = this.#read('DONE')
    let ticks = this.#read('TICKS')
    const { done: silentDone, ticks: silentTicks } = this.#silentAt
    const isSilent = done === silentDone && ticks === silentTicks
    let deadline = isSilent ? -Infinity : now() + PATIENCE
    while (done !== this.#posted && this.#read('HAS_ENDED') === 0 && now() < deadline) {
      pauseWhile(this.#words, slots.DONE, done, POLL)
      if (this.#read('DONE') !== done || this.#read('TICKS') !== ticks) deadline = now() + PATIENCE
      done = this.#read('DONE')
      ticks = this.#read('TICKS')
    }
    this.#receive()
    const isDone = done === this.#posted
    if (!isDone) this.#silentAt = { done, ticks }
    return isDone
  }

  /** @param {Record<string, unknown>} command @returns {boolean} whether it was carried out */
  #order (command) {
    this.#send(command)
    return this.#settle()
  }

  /** Builds and writes everything now. Waits for a collector's confirmation, for a bounded time. */
  #finish () {
    this.#replaceAbsent()
    this.#post()
    this.#here?.sinks.flush()
    if (this.#thread === undefined || this.#order({ flush: true })) return
    warn('SPANS_THREAD', 'spans may be missing: the thread that makes them gives no answer.')
  }

  /** Builds all spans received so far and passes them to the sinks. */
  #sync () {
    this.#post()
    if (this.#thread !== undefined && !this.#order({ sync: true })) this.#replaceUnbegun()
  }

  /** Writes everything received so far while a callback of the program continues. */
  writeNow () {
    this.#sync()
    this.#here?.sinks.flush(true)
  }

  /** The program ends, and everything has been received. */
  finish () {
    this.#isOver = true
    this.#finish()
  }

  /** Writes everything received so far: a signal may end the program now. */
  flush () { this.#finish() }

  close () {
    this.#isOver = this.#isClosed = true
    this.#replaceAbsent()
    taking.remove(this)
    this.#pieces.end()
    this.#post()
    this.#here?.sinks.close()
    if (this.#thread === undefined) return
    this.#order({ close: true })
    // The thread stays until the collector has responded
    if (this.#hasCollector) process.once('exit', this.#awaitThread)
    else this.#forgetThread()
  }

  #awaitThread = () => {
    guard.run(() => this.#order({ flush: true }))
  }

  /** @returns {SinkStats} */
  stats () {
    this.#sync()
    const all = [this.#stats, ...(this.#here === undefined ? [] : [this.#here.sinks.stats()])]
    const sum = (/** @type {'written' | 'waiting' | 'dropped' | 'replaced'} */ key) =>
      all.reduce((total, stats) => total + stats[key], 0)
    const last = all[all.length - 1]
    return {
      written: sum('written'),
      waiting: last.waiting,
      dropped: sum('dropped') + this.#dropped,
      replaced: sum('replaced'),
      outputs: all.length === 1
        ? last.outputs
        : last.outputs.map((output, i) => ({
          ...output,
          written: output.written + all[0].outputs[i].written,
          dropped: output.dropped + all[0].outputs[i].dropped
        }))
    }
  }

  /** Spans that have ended and are not built yet. */
  waiting () {
    if (this.#here !== undefined) return this.#pieces.spans + this.#here.source.waiting
    const isDone = this.#read('DONE') === this.#posted
    return this.#pieces.spans + (isDone ? this.#read('WAITING') : this.#unmade)
  }
}

/**
 * Resolves the targets of outputs, since the program may change its directory. Creates files.
 * @param {Output[]} outputs
 * @returns {PlacedOutput[]}
 */
function placed (outputs) {
  const list = outputs.map((output) => ({ ...output, target: targetOf(output.to) }))
  for (const output of list) createFile(output)
  return list
}

/** @param {Output[]} outputs @returns {SinkStats} */
function noStats (outputs) {
  const list = outputs.map(({ to }) => ({ to: safe(to), written: 0, waiting: 0, dropped: 0 }))
  return { written: 0, waiting: 0, dropped: 0, replaced: 0, outputs: list }
}

/**
 * Creates the file of an output, so that a failure is reported when the output is set.
 * @param {PlacedOutput} output
 */
function createFile ({ to, target: { path: name } }) {
  const error = name === undefined ? undefined : createIfMissing(name)
  if (error === undefined) return
  const { code, reason } = faultOf(error)
  warn(`SPANS_${code}`, `spans cannot be written to ${to}: ${reason}. It is tried again when there are some.`)
}

module.exports = { Apart, slots, states }
