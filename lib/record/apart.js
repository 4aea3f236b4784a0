'use strict'

// Spans to files and to one collector, made and written by a thread of longstack's own (apart-thread.js). The
// program's thread copies entries of the run log and their texts, and posts them every 50 ms. It waits for
// the thread only when the program ends, turns spans off or asks for counts.
//
// The thread starts when the first span has ended, so a program without spans has none. The program's thread
// makes the spans itself if the program is over before its loop runs, and if the thread does not start or has
// failed. Until the thread begins to work, batches that were posted to it are kept here as well, so that
// nothing is lost if it cannot start.

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

const HEAP = 128 // MiB that the thread may take: at the limit of V8's, Node 26 hangs for minutes
const MAX_BATCH = 1 << 20 // bytes that wait to be posted
const MAX_WITHIN = 1 << 24 // the same on top of the program's code, where no thread is started if it can wait
const MAX_POSTED = 1 << 26 // on their way; what comes while there are more is dropped
const PATIENCE = 5000 // ms without any progress of the thread
const POLL = 20 // ms after which it looks again, woken or not

/**
 * Words that both threads share: the number of the last message that is done, bytes of all, spans that are
 * to be made, spans that are made, whether the thread has ended, signs of progress, whether it has begun.
 */
const slots = { DONE: 0, BYTES: 1, WAITING: 2, MADE: 3, HAS_ENDED: 4, TICKS: 5, STATE: 6 }
/** values of STATE: the thread and the program's thread each try to replace NEW, and the first one wins */
const states = { NEW: 0, BEGUN: 1, REPLACED: 2 }

/**
 * @typedef {import('../sinks/outputs').Output} Output
 * @typedef {Output & { target: import('../sinks/outputs').Target }} PlacedOutput
 * @typedef {import('../sinks/sinks').SinkStats} SinkStats
 * @typedef {import('./span-source').Batch} Batch
 *
 * @typedef {object} News of the thread
 * @property {[code: string, sentence: string]} [warning]
 * @property {SinkStats} [stats]
 * @property {Array<[fd: number, file: { dev: bigint, ino: bigint }]>} [kept]
 */

/** Makes spans and writes them in this thread. */
class Here {
  source = new SpanSource()
  sinks
  /** what came was read in full: V8 may terminate the code that it is read in */
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

/** Spans to outputs that a thread can write to. A consumer of taking.js. */
class Apart {
  /** @type {PlacedOutput[]} */
  #outputs
  #pieces = new Pieces()
  #words = new Int32Array(new SharedArrayBuffer(4 * Object.keys(slots).length))
  /** @type {import('node:worker_threads').Worker | undefined} */
  #thread
  /** @type {import('node:worker_threads').MessagePort | undefined} */
  #news
  /** in place of the thread @type {Here | undefined} */
  #here
  /** number of the last message that was posted, and bytes of all */
  #posted = 0
  #postedBytes = 0
  /** spans and other records in all that was posted */
  #postedSpans = 0
  /** ms of the clock */
  #postedAt = -Infinity
  /** words of the thread when it had shown no sign of progress for long, NaN: it has not */
  #silentAt = { done: NaN, ticks: NaN }
  /** false while a batch is being sent, and after V8 has terminated the code that sends it */
  #isWhole = true
  /** what was posted before the thread has begun, or is to be made in its place @type {Batch[]} */
  #unbegun = []
  /** descriptors of the thread @type {number[]} */
  #kept = []
  /** a span has ended, or there are other records */
  #isWanted = false
  /** the loop has ended, or nothing more comes: no thread is started, and all is written at once */
  #isOver = false
  #isClosed = false
  #dropped = 0
  /** of the thread, as it has told last @type {SinkStats} */
  #stats

  /** ms after which entries are taken */
  within = 50

  isPartial = true

  /** @param {Output[]} outputs */
  constructor (outputs) {
    this.#outputs = placed(outputs)
    this.#stats = noStats(outputs)
    taking.add(this)
  }

  /**
   * Writes to others from now on. What is known of spans that are open stays.
   * @param {Output[]} outputs
   * @returns {boolean} false if one of them is a collector: a thread serves one, until all is sent
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

  /** At the end of the program nothing may wait, nor what is made in its thread. */
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
    // If it can wait, no thread is started on top of the program's code
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

  /** Whether neither the thread nor what replaces it is there. */
  get #isIdle () { return this.#thread === undefined && this.#here === undefined }

  /** Has what there is made and written. */
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
    const number = this.#posted = (this.#posted + 1) | 0 // V8 may terminate it before it is sent
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

  /** Spans that the thread got and has not made yet. */
  get #unmade () { return (this.#postedSpans - this.#read('MADE')) | 0 }

  /** Counts spans as dropped that the thread got and did not write. */
  #countLost () {
    const { waiting, outputs } = this.#stats
    this.#dropped += waiting + Math.max(0, this.#unmade)
    this.#stats = { ...this.#stats, waiting: 0, outputs: outputs.map((one) => ({ ...one, waiting: 0 })) }
  }

  /** Does the work of the thread, if that has not begun. @returns {boolean} whether it does */
  #replaceUnbegun () {
    if (this.#thread === undefined) return false
    const state = Atomics.compareExchange(this.#words, slots.STATE, states.NEW, states.REPLACED)
    if (state !== states.NEW) return false
    this.#forgetThread()
    this.#makeHere(this.#here = new Here(this.#outputs))
    return true
  }

  /** From now on no thread is started, and one that has not begun is not waited for. */
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
   * Waits until all is done that was posted: not again for a thread that has shown no sign of progress since.
   * @returns {boolean} whether it is
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

  /** Has all made and written, now. What a collector has not confirmed is waited for, a bounded time. */
  #finish () {
    this.#replaceAbsent()
    this.#post()
    this.#here?.sinks.flush()
    if (this.#thread === undefined || this.#order({ flush: true })) return
    warn('SPANS_THREAD', 'spans may be missing: the thread that makes them gives no answer.')
  }

  /** Has what has come made, and handed to the sinks. */
  #sync () {
    this.#post()
    if (this.#thread !== undefined && !this.#order({ sync: true })) this.#replaceUnbegun()
  }

  /** Has what has come written while a callback of the program's runs on. */
  writeNow () {
    this.#sync()
    this.#here?.sinks.flush(true)
  }

  /** The program ends, and all has come. */
  finish () {
    this.#isOver = true
    this.#finish()
  }

  /** Has all written that has come: a signal may end the program now. */
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
    // The thread stays until the collector has answered
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

  /** Spans that have ended and are not made yet. */
  waiting () {
    if (this.#here !== undefined) return this.#pieces.spans + this.#here.source.waiting
    const isDone = this.#read('DONE') === this.#posted
    return this.#pieces.spans + (isDone ? this.#read('WAITING') : this.#unmade)
  }
}

/**
 * Returns outputs with their places: the program may change its directory. Files are created.
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
 * Creates the file of an output: if that is impossible, the warning comes when the output is set.
 * @param {PlacedOutput} output
 */
function createFile ({ to, target: { path: name } }) {
  const error = name === undefined ? undefined : createIfMissing(name)
  if (error === undefined) return
  const { code, reason } = faultOf(error)
  warn(`SPANS_${code}`, `spans cannot be written to ${to}: ${reason}. It is tried again when there are some.`)
}

module.exports = { Apart, slots, states }
