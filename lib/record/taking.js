'use strict'

// Takes entries out of this thread's run log, with the texts they need, and passes them to consumers: the
// recording file (writer.js), spans (live.js). The log runs while there is a consumer.
//
// Entries are taken after 64 KiB or some time, outside callbacks; when a quarter of the ring is unread, even
// within a long callback; at the end of the process; and for an eager consumer, at the end of each iteration
// in which a span has ended.

const process = require('node:process')
const { now } = require('../core/clock')
const loopIterations = require('../core/loop-iterations')
const { on } = require('../core/on')
const runLog = require('../core/run-log')
const { COUNT, ENTRIES, HEADER, WORDS } = require('../core/run-log-words')
const { attempt } = require('../files')
const { spanResource } = require('../spans/outputs')
const { ENTRY_BYTES } = require('./block')
const texts = require('./texts')

const PIECE_BYTES = 1 << 16 // bytes of entries
const MAX_ENTRIES = Math.floor(PIECE_BYTES / ENTRY_BYTES)
const MAX_WAIT_MS = 250
const RETRY_MS = 50 // ms until a retry if a consumer still waits

/**
 * @typedef {object} Piece consecutive entries
 * @property {number} first number of the first entry
 * @property {number} count
 * @property {Uint8Array[]} entries in the ring, in one or two parts: valid until the consumer returns
 * @property {number} lost preceding entries that were overwritten before they could be taken
 * @property {number} spans number of spans and other records in the texts
 * @property {string} texts lines of JSON
 * @property {boolean} repeats includes all texts that these and later entries need
 * @property {number} now ms of the clock
 * @property {boolean} isNewest no newer entry had been logged by then
 * @property {boolean} isWithin a step of the program is running
 * @property {boolean} isAll every span that has ended is needed now
 * @property {boolean} isLast no more pieces follow
 *
 * @typedef {object} Consumer
 * @property {(piece: Piece) => void} take may be terminated
 * @property {(isWithin: boolean) => void} [taken] called after all consumers have taken all pieces
 * @property {() => void} [prepare] called before a piece is created; may call `repeat`
 * @property {number} [within] maximum ms until it gets entries, while callbacks end
 * @property {() => boolean} [isWaiting] whether to call it even without entries
 * @property {boolean} [isEager]
 * @property {Int32Array<ArrayBufferLike>} [memory] for the ring, in place of its own
 * @property {boolean} [isPartial] needs only the spans that span outputs take
 * @property {(span: import('../spans/span').Span) => void} [addSpan] gets ended spans of requests in place of
 *   their texts, while there is no other consumer
 */

/** @type {Consumer[]} */
const consumers = []
/** the ring @type {Int32Array<ArrayBufferLike>} */
let ints
/** number of the last entry taken */
let taken = 0
/** ms of the clock when entries were last taken */
let takenAt = 0
/** whether the next piece includes all texts */
let repeats = true
let isRepeatAsked = false
/** whether entries are being passed on */
let isBusy = false
/** whether that will happen at the end of the iteration */
let isScheduled = false
/** whether the last entries were passed on */
let isOver = false
/** maximum ms until entries are taken */
let within = MAX_WAIT_MS
let removeListener = () => {}

/** Starts passing entries to a consumer. @param {Consumer} consumer */
function add (consumer) {
  if (consumers.length === 0) begin(consumer.memory)
  else takeWithin()
  if (consumer.memory !== undefined) ints = runLog.start(consumer.memory)
  repeats = true
  consumers.push(consumer)
  consumersChanged()
  iterationBegan() // the entries of the main script need it
}

/** Passes the rest on, then removes a consumer. @param {Consumer} consumer */
function remove (consumer) {
  if (!consumers.includes(consumer)) return
  take({ isAll: true, isLast: consumers.length === 1 })
  consumers.splice(consumers.indexOf(consumer), 1)
  consumersChanged()
  if (consumers.length > 0) {
    if (consumer.memory !== undefined) ints = runLog.start(runLog.newRing())
    return runLog.goesOn()
  }
  removeListener()
  texts.end()
  runLog.stop()
}

function consumersChanged () {
  const [first] = consumers
  texts.setDirect(consumers.length === 1 ? first.addSpan : undefined)
  texts.setPartial(consumers.every(({ isPartial }) => isPartial === true))
  within = consumers.reduce((ms, consumer) => Math.min(ms, consumer.within ?? ms), MAX_WAIT_MS)
}

/** @param {Int32Array<ArrayBufferLike>} [memory] */
function begin (memory) {
  ints = runLog.start(memory)
  taken = runLog.lastTaken()
  takenAt = now()
  isOver = false
  const source = { pid: process.pid, node: process.version, threads: poolThreads() }
  texts.begin({ source, resource: spanResource() })
  runLog.onDue((chain) => {
    texts.addChainOfNext(chain)
    take()
  })
  removeListener = on('iteration', iterationBegan)
}

/** @returns {number | undefined} configured size of libuv's thread pool */
const poolThreads = () => attempt(() => Number(process.env.UV_THREADPOOL_SIZE) || undefined)

function iterationBegan () {
  isBusy = isScheduled = false // V8 may have terminated that code
  const bytes = ((ints[COUNT] - taken) | 0) * ENTRY_BYTES + texts.size()
  loopIterations.scheduleWithin(takeRest, bytes < PIECE_BYTES ? within : 0)
}

/**
 * Takes entries at the end of the current event-loop iteration, if a consumer is eager, or at once if
 * iterations are not counted.
 */
function takeSoon () {
  if (!consumers.some(({ isEager }) => isEager)) return
  if (!loopIterations.batching()) return takeWithin()
  if (isScheduled) return
  isScheduled = true
  loopIterations.schedule(takeRest)
}

function takeRest () {
  isScheduled = false
  if (consumers.length > 0) take({ isWithin: false })
}

/**
 * Passes on all entries while code of the program is running.
 * @param {boolean} [isAll] all spans that have ended are needed now
 */
function takeWithin (isAll = false) {
  if (consumers.length === 0) return
  take({ isAll })
  runLog.goesOn()
}

/** Passes on the last entries at the end of the program. */
function finish () {
  if (consumers.length > 0) take({ isLast: true })
}

const isWaiting = () => consumers.some((consumer) => consumer.isWaiting?.() === true)

/**
 * Passes on all entries.
 * @param {Partial<Pick<Piece, 'isWithin' | 'isAll' | 'isLast'>>} [how] for the last piece
 */
function take ({ isWithin = true, isAll = false, isLast = false } = {}) {
  if (isBusy) return
  isBusy = true
  let isTaken = false
  try {
    isTaken = takeAll({ isWithin, isAll, isLast })
  } finally { // the stack may be full
    isBusy = false
  }
  if (!isTaken) return
  // A callback may add or remove consumers
  for (const consumer of [...consumers]) attempt(() => consumer.taken?.(isWithin))
  if (isWaiting() && !isLast) loopIterations.scheduleWithin(takeRest, RETRY_MS)
}

/** @param {Pick<Piece, 'isWithin' | 'isAll' | 'isLast'>} how @returns {boolean} whether there was anything */
function takeAll ({ isWithin, isAll, isLast }) {
  takenAt = now()
  texts.prepare()
  if (ints[COUNT] === taken && texts.size() === 0 && (!isLast || isOver) && !isWaiting()) return false
  if (isWithin) runLog.paused(takenAt)
  const newest = ints[COUNT]
  let unread = (newest - taken) | 0
  isOver = isLast
  let lost = Math.max(0, unread - ENTRIES)
  taken = (taken + lost) | 0
  unread -= lost
  do {
    const count = Math.min(unread, MAX_ENTRIES)
    unread -= count
    const isNewest = unread === 0
    handOn(count, lost, { isNewest, isWithin, isAll: isAll && isNewest, isLast: isLast && isNewest })
    lost = 0
  } while (unread > 0)
  runLog.taken(newest)
  return true
}

/**
 * @param {number} count of entries
 * @param {number} lost before them
 * @param {Pick<Piece, 'isNewest' | 'isWithin' | 'isAll' | 'isLast'>} how
 */
function handOn (count, lost, how) {
  const first = (taken + 1) | 0
  const last = (taken + count) | 0
  for (const consumer of consumers) consumer.prepare?.()
  const isRepeating = repeats
  repeats = true // until this piece is passed on: V8 may terminate this code
  isRepeatAsked = false
  const piece = {
    first,
    count,
    entries: entriesOf(first, count),
    lost,
    spans: texts.spans(),
    texts: (isRepeating ? texts.all() : '') + texts.takeNew(first, last),
    repeats: isRepeating,
    now: takenAt,
    ...how
  }
  taken = last
  let isWhole = true
  for (const consumer of consumers) {
    const isTaken = attempt(() => {
      consumer.take(piece)
      return true
    })
    isWhole &&= isTaken === true
  }
  repeats = isRepeatAsked || !isWhole
}

/** Repeats all texts with the next entries. */
function repeat () {
  repeats = isRepeatAsked = true
}

/** @param {number} first @param {number} count @returns {Uint8Array[]} in the ring, in one or two parts */
function entriesOf (first, count) {
  const slot = (first - 1) & (ENTRIES - 1)
  const head = Math.min(count, ENTRIES - slot)
  const start = ints.byteOffset + HEADER * 4
  const pieces = [new Uint8Array(ints.buffer, start + slot * WORDS * 4, head * ENTRY_BYTES)]
  if (count > head) pieces.push(new Uint8Array(ints.buffer, start, (count - head) * ENTRY_BYTES))
  return pieces
}

module.exports = {
  add,
  finish,
  remove,
  repeat,
  take,
  takeSoon,
  takeWithin,

  /** @returns {{ ringBytes: number, entries: number }} size of the ring, and entries written to it */
  ring: () => ({ ringBytes: ints.byteLength, entries: ints[COUNT] >>> 0 })
}
