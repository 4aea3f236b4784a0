'use strict'

// The run log: which step ran when, for which request, and why, as fixed-size entries in memory that other
// threads can read (run-log-words.js). Each run has its own number, and later logs do not reuse it. A record
// keeps the run that made it and the run that settled it.
//
// Writing an entry is a fixed number of stores: nothing is allocated, nothing throws. The number of the
// newest entry is stored last. V8 terminates a function only at its entry, or when it calls or loops
// (guard.js), so no reader sees half an entry, and an unfinished one is overwritten.
//
// The `onDue` function takes entries out of the ring. It runs once a quarter of the ring is unread, so a long
// callback overwrites no unread entries, and only before a step begins, when no other work is half done.
//
// Off by default; then it costs only the test of a bit.

const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_REF, CURRENT_SPAN, DEPTH, LOGGED, RETURNS,
  ROOT_ENTRY, callerEntry, current
} = require('./current')
const { now } = require('./clock')
const guard = require('./guard')
const { timeAt } = require('./record-ids')
const records = require('./records')
const layout = require('./run-log-words')
const { attempt } = require('../files')

const {
  AWAITED, CAUSE, CHAIN, FLAGS, MASK, ONE_SHOT, PASSED, REF, ROOT_CHAIN, RUN, SETTLED, SETTLED_RUN, SHIFT,
  SPAN, SPECIAL, TICK, TIMER, TRIGGER, findRecord, promises, resources
} = records
const { COUNT, ENTRIES, HEADER, KIND_BITS, LATEST, WORDS } = layout
const SLOTS = ENTRIES - 1 // mask: slot of an entry number
const DUE = ENTRIES / 4 // entries
const KIND_MASK = (1 << KIND_BITS) - 1
const RECENT = 16 // entries
const NO_RING = new Int32Array(0)
const NO_TIMES = new Float64Array(0)
const TOLD = 1 << 16 // chains, a power of two
const ALL_TOLD = new Uint8Array(1).fill(1)

/** the ring, while runs are logged @type {Int32Array<ArrayBufferLike>} */
let ints = NO_RING
/** @type {Float64Array<ArrayBufferLike>} */
let floats = NO_TIMES
/** run of the callback that brought data, and its last tick */
let answer = 0
let answerTick = 0
/** a poll may have happened since the last logged one */
let mayHavePolled = true
/** by chain, modulo its length: 0 if a black box does not know it */
let told = ALL_TOLD
let areInterruptsExpected = false
/** @type {(() => void) | undefined} */
let onReturn
/** loaded on demand @type {typeof import('./log-time')} */
let logTime
/** the last entry taken */
let takenUpTo = 0
/** takes entries; isBusy: it runs @type {{ work: ((chain: number) => void) | undefined, isBusy: boolean }} */
const taking = { work: undefined, isBusy: false }

/**
 * Writes an entry.
 * @param {number} head kind and flags
 * @param {number} ref
 * @param {number} chain
 * @param {number} request
 * @param {number} registered
 * @param {number} settled
 * @param {number} time
 * @param {number} a
 * @param {number} b
 * @param {number} x
 * @returns {number} its number
 */
function write (head, ref, chain, request, registered, settled, time, a, b, x) {
  const number = (ints[COUNT] + 1) | 0
  const place = HEADER + ((number - 1) & SLOTS) * WORDS
  ints[place] = head
  ints[place + 1] = ref
  ints[place + 2] = chain
  ints[place + 3] = request
  ints[place + 4] = registered
  ints[place + 5] = settled
  floats[(place >> 1) + 3] = time
  ints[place + 8] = a
  ints[place + 9] = b
  floats[(place >> 1) + 5] = x
  ints[COUNT] = number
  return number
}

/** @param {number} number of an entry @returns {number} index of its first word */
const placeOf = (number) => HEADER + ((number - 1) & SLOTS) * WORDS

/** @param {number} flags of a record @returns {number} flags of a run */
const flagsOfRun = (flags) => (flags >> 14 & layout.CALLED) | (flags & AWAITED) >> 1 | (flags & TIMER) >> 4 |
  (flags & (ONE_SHOT | SPECIAL)) | (flags >> 11 & layout.PARSER) | (flags & PASSED) << 5

/** @param {number} ref of a resource or promise @returns {number} the run that settled it, 0: unknown */
function settledIn (ref) {
  if (ref === 0) return 0
  const words = (ref & 1) === 0 ? resources : promises
  const offset = ((ref >> 1) & MASK) << SHIFT
  if (words[offset + REF] !== ref) return settledOlder(ref)
  return (words[offset + FLAGS] & SETTLED) === 0 ? 0 : words[offset + SETTLED_RUN]
}

/** Does the same for a record that is no longer in the ring. @param {number} ref */
function settledOlder (ref) {
  const record = findRecord(ref)
  if (record === undefined || (record.words[record.offset + FLAGS] & SETTLED) === 0) return 0
  return record.words[record.offset + SETTLED_RUN]
}

/** @returns {number} lowest bits of the asyncId of the last resource entered, 0: a promise */
const enteredBits = () => (current[CURRENT_REF] & 1) === 0 ? current[CURRENT_REF] >>> 1 : 0

/**
 * Takes all entries: there are many, or their numbers are about to become invalid, or a black box does not
 * know the chain of the next one.
 * @param {number} [chain] of the next entry
 */
function takeNow (chain = 0) {
  const { isBusy, work } = taking
  if (work === undefined || isBusy) return
  taking.isBusy = true
  takenUpTo = ints[COUNT] // also if the work fails
  attempt(() => guard.run(() => work(chain)))
  taking.isBusy = false
}

/**
 * Notes that the event loop calls a callback.
 * @param {number} flags of its record
 * @param {Int32Array} words
 * @param {number} offset of the record
 * @param {number} time ms of the clock
 * @param {number} id asyncId of the resource
 * @param {number} chain number of the resource's chain, 0: unknown
 */
function called (flags, words, offset, time, id, chain) {
  if (mayHavePolled) {
    mayHavePolled = false
    const slept = logTime.polled(time, floats[LATEST])
    if (slept >= 0) polled(time, logTime.last.iteration, slept)
  }
  enteredAt(flags, words, offset, time)
  if (logTime.begun(time, id, chain, words, offset)) arrived(logTime.arrival)
}

/** Notes the entry of a step that the event loop does not call. @type {typeof enteredAt} */
function entered (flags, words, offset, time) {
  accountUntil(time)
  enteredAt(flags, words, offset, time)
}

/**
 * Notes the entry of a step.
 * @param {number} flags of its record
 * @param {Int32Array} words
 * @param {number} offset of the record
 * @param {number} time ms of the clock
 */
function enteredAt (flags, words, offset, time) {
  const chain = current[CURRENT_CHAIN]
  const isDue = ((ints[COUNT] - takenUpTo) | 0) >= DUE || told[chain & (told.length - 1)] === 0
  if (isDue && !guard.inOwnWork) {
    told[chain & (told.length - 1)] = 1
    takeNow(chain)
    time = now()
  }
  const registered = words[offset + RUN]
  const settled = (flags & AWAITED) === 0 ? 0 : settledIn(words[offset + TRIGGER])
  const head = layout.RUN | flagsOfRun(flags) << KIND_BITS
  const cause = current[CURRENT_CAUSE]
  const span = current[CURRENT_SPAN]
  const run = write(head, cause, chain, span, registered, settled, time, callerEntry(), enteredBits(), 0)
  current[CURRENT_ENTRY] = run
  floats[LATEST] = time
  const isTick = (flags & TICK) !== 0 && registered !== 0
  if (isTick && (registered === answer || registered === answerTick)) answerTick = run
}

/**
 * Notes that the rest of a callback belongs to another request. A server's request is known before its span.
 * @param {number} time ms of the clock
 */
function turned (time) {
  accountUntil(time)
  const before = current[CURRENT_ENTRY]
  const place = placeOf(before)
  const head = (before === 0 ? layout.RUN : ints[place]) | layout.TURNED << KIND_BITS
  const cause = current[CURRENT_CAUSE]
  if (before === ints[COUNT] && ints[place] === head && ints[place + layout.REF] === cause) {
    ints[place + layout.REQUEST] = current[CURRENT_SPAN]
    return
  }
  const chain = current[CURRENT_CHAIN]
  const span = current[CURRENT_SPAN]
  const run = write(head, cause, chain, span, before, 0, time, callerEntry(), enteredBits(), 0)
  current[CURRENT_ENTRY] = run
  floats[LATEST] = time
}

/** Notes that the current run continues after a nested one. @param {number} time ms of the clock */
function resumed (time) {
  write(layout.RESUME, current[CURRENT_CAUSE], current[CURRENT_CHAIN], current[CURRENT_SPAN],
    current[CURRENT_ENTRY], 0, time, 0, 0, 0)
  floats[LATEST] = time
}

/** Notes that the current run continues, if one is known; everything before it has been read. */
function goesOn () {
  if (current[CURRENT_ENTRY] !== 0) resumed(now())
}

/**
 * Notes a poll of the event loop. Libuv sometimes counts callbacks as sleep (seen under load), so the sleep
 * is capped at the time since LATEST.
 * @param {number} time ms of the clock: the end
 * @param {number} iteration
 * @param {number} slept ms
 */
function polled (time, iteration, slept) {
  const awake = time - floats[LATEST]
  write(layout.POLL, 0, 0, 0, 0, 0, time, iteration, 0, slept < awake ? slept : awake)
  floats[LATEST] = time
}

/**
 * Notes a poll within a run: no hook has reported the callback that the event loop called after it.
 * @param {number} time ms of the clock
 */
function accountUntil (time) {
  const slept = logTime.sleptUnseen(time, floats[LATEST])
  if (slept > 0) polled(time, logTime.last.iteration, slept)
}

/**
 * Notes that longstack does its own work from here on, outside of callbacks; the loop may have slept before.
 * @param {number} time ms of the clock
 */
function leftProgram (time) {
  if (ints === NO_RING) return
  const slept = logTime.sleptBefore(time, floats[LATEST])
  if (slept > 0) polled(time, logTime.last.iteration, slept)
  paused(time)
}

/** Notes that no code of the program runs until the next entry. @param {number} time ms of the clock */
function paused (time) {
  ints[layout.RETURNED] = write(layout.RESUME, 0, 0, 0, 0, 0, time, 0, 0, 0)
  floats[LATEST] = time
}

/** Sets whether returns are noted. */
function noteReturns () {
  if (areInterruptsExpected || told !== ALL_TOLD) current[ATTENTION] |= RETURNS
  else current[ATTENTION] &= ~RETURNS
}

/** Notes that a callback, or longstack's own work, has returned to the event loop. */
function returned () {
  if ((current[ATTENTION] & RETURNS) === 0) return
  if (areInterruptsExpected) logTime.last.returned = now()
  ints[layout.RETURNED] = ints[COUNT]
  if (onReturn !== undefined) guard.runQuietly(onReturn)
}

/** @returns {{ request: number, chain: number, time: number }} the newest run, if it is recent */
function newestRun () {
  for (let i = 0; i < RECENT; i++) {
    const place = placeOf((ints[COUNT] - i) | 0)
    if ((ints[place] & KIND_MASK) !== layout.RUN) continue
    const time = floats[(place >> 1) + layout.TIME]
    return { request: ints[place + layout.REQUEST], chain: ints[place + layout.CHAIN], time }
  }
  return { request: 0, chain: 0, time: 0 }
}

/** Notes when the current run's event arrived. @param {typeof logTime.arrival} arrival */
function arrived ({ how, time, range }) {
  write(layout.ARRIVED, 0, 0, 0, current[CURRENT_ENTRY], 0, time, how, 0, range)
}

/**
 * Notes the begin of a span. If the span has its own first run, that is the current one.
 * @param {number} number
 * @param {number} chain of its place
 * @param {number} time ms of the clock
 * @param {number} kind SERVER, CLIENT or INNER
 * @param {number} parent number of the parent span
 * @param {number} unread ms in the socket buffer before it was read
 */
function began (number, chain, time, kind, parent, unread) {
  const run = current[CURRENT_ENTRY]
  const place = placeOf(run)
  const isOwn = run !== 0 && ints[place + layout.REQUEST] === number
  const made = isOwn ? ints[place + layout.REGISTERED] : run
  write(layout.BEGIN, 0, chain, number, made, isOwn ? run : 0, time, kind, parent, unread)
}

/** @param {number} number of a span @param {number} time ms of the clock @param {number} status */
function ended (number, time, status) {
  write(layout.END, 0, 0, number, current[CURRENT_ENTRY], 0, time, status, 0, 0)
}

/**
 * Logs a write to a connection.
 * @param {number} ref of its record
 * @param {number} chain of the writer
 * @param {number} time ms of the clock
 * @param {number} use HELD, USED and ASKED, or 0
 * @param {number} written bytes before, -1: unknown
 * @param {number} read bytes so far, -1: unknown
 * @returns {number} of the entry
 */
function sent (ref, chain, time, use, written, read) {
  const run = current[CURRENT_ENTRY]
  return write(layout.SENT, ref, chain, current[CURRENT_SPAN], run, 0, time, read, use, written)
}

/**
 * Notes data on a connection, in its own callback.
 * @param {number} ref of its record
 * @param {number} time ms of the clock
 * @param {number} read bytes so far, -1: unknown
 * @param {number} written bytes so far, -1: unknown
 * @returns {boolean} false if more data came in the same run
 */
function came (ref, time, read, written) {
  if (answer === current[CURRENT_ENTRY]) return false
  write(layout.CAME, ref, 0, 0, current[CURRENT_ENTRY], 0, time, written, 0, read)
  answer = answerTick = current[CURRENT_ENTRY]
  return true
}

/** Notes that the current run settles a promise. @param {Int32Array} words @param {number} offset */
function settled (words, offset) {
  const run = current[DEPTH] === 0 ? 0 : current[CURRENT_ENTRY]
  words[offset + SETTLED_RUN] = run
  if (run === 0 || (run !== answer && run !== answerTick)) return
  const madeAt = timeAt(words, offset)
  write(layout.SETTLED_BY_ANSWER, words[offset + REF], words[offset + CHAIN], words[offset + SPAN],
    words[offset + RUN], run, 0, words[offset + CAUSE], 0, madeAt)
}

const newRing = () => new Int32Array(new SharedArrayBuffer(layout.BYTES))

/**
 * Starts logging runs, or moves the log.
 * @param {Int32Array<ArrayBufferLike>} [memory] for the ring
 * @returns {Int32Array<ArrayBufferLike>} the ring
 */
function start (memory) {
  const before = ints
  if (before !== NO_RING && memory === undefined) return before
  ints = memory ?? newRing()
  floats = new Float64Array(ints.buffer, ints.byteOffset, ints.length / 2)
  ints.set(before) // a new one is empty
  if (before !== NO_RING) return ints
  logTime ??= require('./log-time')
  ints[COUNT] = takenUpTo
  answer = answerTick = 0
  mayHavePolled = true
  const chain = current[DEPTH] === 0 ? ROOT_CHAIN : current[CURRENT_CHAIN]
  const cause = current[DEPTH] === 0 ? 0 : current[CURRENT_CAUSE]
  const time = now()
  // Code that is already running, usually the main script
  current[CURRENT_ENTRY] = write(layout.RUN, cause, chain, 0, 0, 0, time, 0, 0, 0)
  current[ROOT_ENTRY] = current[DEPTH] === 0 ? current[CURRENT_ENTRY] : 0
  floats[LATEST] = time
  logTime.start(time)
  current[ATTENTION] |= LOGGED
  return ints
}

/** Stops logging. Readers that have the ring keep it. */
function stop () {
  current[ATTENTION] &= ~(LOGGED | RETURNS)
  current[CURRENT_ENTRY] = current[ROOT_ENTRY] = 0
  if (ints !== NO_RING) takenUpTo = ints[COUNT] // the next log continues from there
  taking.work = undefined
  ints = NO_RING
  floats = NO_TIMES
  told = ALL_TOLD
  onReturn = undefined
  areInterruptsExpected = false
}

const runLog = {
  accountUntil,
  began,
  called,
  came,
  ended,
  entered,
  goesOn,
  leftProgram,
  newRing,
  newestRun,
  paused,
  resumed,
  returned,
  sent,
  settled,
  start,
  stop,
  takeNow,
  turned,

  /** @returns {Int32Array<ArrayBufferLike>} the ring, while runs are logged */
  ring: () => ints,

  /** @returns {boolean} whether runs are logged */
  isOn: () => (current[ATTENTION] & LOGGED) !== 0,

  /** Begins an iteration of the event loop. */
  startIteration () {
    mayHavePolled = true
    taking.isBusy = false // V8 may have terminated it
  },

  /** @returns {number} begin of the current run, ms of the clock */
  since: () => floats[LATEST],

  /** @type {typeof logTime.queueTime} how long a request sat unread before Node read it */
  queueTime: (socket, isNew, time) => logTime.queueTime(socket, isNew, time),

  /** @param {boolean} isOn signals interrupt polls, and libuv then does not count all of their sleep */
  expectInterrupts (isOn) {
    areInterruptsExpected = isOn
    noteReturns()
  },

  /**
   * For a black box: takes each chain before its first step begins, and notes returns to the loop, so a
   * reader of the ring knows what is running.
   * @param {boolean} isOn
   */
  tellAll (isOn) {
    told = isOn ? new Uint8Array(TOLD) : ALL_TOLD
    noteReturns()
  },

  /** Emits all chains again: their texts may be gone. */
  forgetTold () {
    if (told !== ALL_TOLD) told.fill(0)
  },

  /** Sets the function that a black box calls when a callback has returned. @param {() => void} [work] */
  onReturn (work) { onReturn = work },

  /** Sets the function that takes entries. @param {(chain: number) => void} work guarded; may throw */
  onDue (work) { taking.work = work },

  /** @returns {number} the last entry taken, or the last of an earlier log */
  lastTaken: () => takenUpTo,

  /** Notes that entries were taken. @param {number} number of the last one */
  taken (number) { takenUpTo = number }
}

module.exports = runLog
