'use strict'

// Takes entries out of this thread's run log, with the texts that they need, and hands them to their
// consumers: the file of a recording (writer.js), spans (live.js). The log runs while there is one.
//
// Entries are taken after 64 KiB or some time, outside of callbacks; when a quarter of the ring is unread,
// also within one long callback; at the end of the process; and for a consumer that is eager, at the end of
// each iteration in which a span has ended.

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

const PIECE_BYTES = 1 << 16 // of entries
const MAX_ENTRIES = Math.floor(PIECE_BYTES / ENTRY_BYTES)
const MAX_WAIT_MS = 250
const RETRY_MS = 50 // where a consumer waits for what time tells

/**
 * @typedef {object} Piece consecutive entries
 * @property {number} first number of the first entry
 * @property {number} count
 * @property {Uint8Array[]} entries in the ring, one piece or two: good until the consumer returns
 * @property {number} lost entries before them that were overwritten before they could be taken
 * @property {number} spans how many spans and other records they tell
 * @property {string} texts lines of JSON
 * @property {boolean} repeats all texts are there that these and later entries need
 * @property {number} now ms of the clock
 * @property {boolean} isNewest no entry had been logged after them by then
 * @property {boolean} isWithin a step of the program's is under way
 * @property {boolean} isAll whatever has ended is wanted now
 * @property {boolean} isLast no more come
 *
 * @typedef {object} Consumer
 * @property {(piece: Piece) => void} take may be terminated
 * @property {(isWithin: boolean) => void} [taken] called when all consumers have what there was
 * @property {() => void} [prepare] called before a piece is made; may call `repeat`
 * @property {number} [within] ms after which it gets entries at the latest, while callbacks end
 * @property {() => boolean} [isWaiting] wants to be called although there are no entries
 * @property {boolean} [isEager]
 * @property {boolean} [isPartial] wants no spans but those that outputs of spans take
 * @property {(span: import('../spans/span').Span) => void} [addSpan] gets spans of requests that have ended,
 *   as long as there is no other consumer: in place of their texts
 */

/** @type {Consumer[]} */
const consumers = []
/** @type {SharedArrayBuffer} */
let ring
/** @type {Int32Array} */
let ints
/** number of the last entry that was taken */
let taken = 0
/** ms of the clock when entries were taken last */
let takenAt = 0
/** the next piece has all texts */
let repeats = true
let isRepeatAsked = false
/** entries are being handed on */
let isBusy = false
/** they will be when the iteration is over */
let isScheduled = false
/** the last entries were handed on */
let isOver = false
/** ms within which entries are taken */
let within = MAX_WAIT_MS
let removeListener = () => {}

/** Hands entries on from now on. @param {Consumer} consumer */
function add (consumer) {
  if (consumers.length === 0) begin()
  else takeWithin()
  repeats = true
  consumers.push(consumer)
  consumersChanged()
  iterationBegan() // for what the main script does
}

/** Hands what there is on, and no more. @param {Consumer} consumer that was added */
function remove (consumer) {
  take({ isAll: true, isLast: consumers.length === 1 })
  consumers.splice(consumers.indexOf(consumer), 1)
  consumersChanged()
  if (consumers.length > 0) return runLog.goesOn()
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

function begin () {
  ring = runLog.start()
  ints = new Int32Array(ring)
  taken = runLog.lastTaken()
  takenAt = now()
  isOver = false
  texts.begin({ source: { pid: process.pid, node: process.version }, resource: spanResource() })
  runLog.onDue(() => take())
  removeListener = on('iteration', iterationBegan)
}

function iterationBegan () {
  isBusy = isScheduled = false // they may have been terminated
  const bytes = ((ints[COUNT] - taken) | 0) * ENTRY_BYTES + texts.size()
  loopIterations.scheduleWithin(takeRest, bytes < PIECE_BYTES ? within : 0)
}

/**
 * Has entries taken when the present iteration of the event loop is over, if a consumer is eager. Where
 * iterations are not counted, it is done at once.
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
 * Hands on all entries that there are, within code of the program that goes on.
 * @param {boolean} [isAll] whatever has ended is wanted now
 */
function takeWithin (isAll = false) {
  if (consumers.length === 0) return
  take({ isAll })
  runLog.goesOn()
}

/** Hands on the last entries: the program ends. */
function finish () {
  if (consumers.length > 0) take({ isLast: true })
}

const isWaiting = () => consumers.some((consumer) => consumer.isWaiting?.() === true)

/**
 * Hands on all entries that there are.
 * @param {Partial<Pick<Piece, 'isWithin' | 'isAll' | 'isLast'>>} [how] as the last piece says
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
  // They may remove consumers, or add some
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
  repeats = true // until this has been handed on: V8 may terminate it
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

/** Has all texts told once more with the next entries. */
function repeat () {
  repeats = isRepeatAsked = true
}

/** @param {number} first @param {number} count @returns {Uint8Array[]} in the ring, in one piece or two */
function entriesOf (first, count) {
  const slot = (first - 1) & (ENTRIES - 1)
  const head = Math.min(count, ENTRIES - slot)
  const start = HEADER * 4
  const pieces = [new Uint8Array(ring, start + slot * WORDS * 4, head * ENTRY_BYTES)]
  if (count > head) pieces.push(new Uint8Array(ring, start, (count - head) * ENTRY_BYTES))
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

  /** @returns {{ ringBytes: number, entries: number }} the ring, and how many entries were written to it */
  ring: () => ({ ringBytes: ring.byteLength, entries: ints[COUNT] >>> 0 })
}
