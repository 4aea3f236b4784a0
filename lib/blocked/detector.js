'use strict'

// Detects blocking callbacks; loaded with the first observer. A watchdog in another thread notices that the
// event loop is still in the same callback, and requests a stack sample, taken inside it on the loop's own
// thread. When the callback ends, its duration is known and it is reported to listeners and spans, or else to
// stderr. A callback that does not end is also reported from inside.
//
// A callback is everything between two polls of libuv: one JavaScript callback with its ticks and microtasks.
// It begins with the first `before` that is not nested in another (core/index.js). Its end is detected with
// the next one, or by a function that the watchdog makes libuv call.
//
// `sample` interrupts arbitrary code of the program: it touches none of the program's state and is short.
// Expensive work waits until the callback has ended.

const fs = require('node:fs')
const { BlockingCallback, frameIn, innermostFrame, linesOf } = require('./blocking-callback')
const { isInGlobalMatch, preserveRegExpStatics } = require('./regexp-statics')
const {
  ARMED, ARMED_START, ASKED, ASLEEP, BYTES, CALLBACKS, DEBUGGABLE, START
} = require('./shared-memory')
const { listeners, observers, recorder } = require('./wanted')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const { updateWatching } = require('../core/index')
const { on } = require('../core/on')
const { currentContext } = require('../core/current-step')
const { safely } = require('../core/faults')
const { BlockingTexts } = require('../format/blocking')
const { paint } = require('../format/paint')
const { attempt } = require('../files')
const { afterChange } = require('../listeners')
const { ownManifest } = require('../platform')
const { settings } = require('../settings')
const { loadBinding } = require('../stacks/binding')
const { captureText } = require('../stacks/formatter')
const { messageOf, printLine, share: shareWarnings, warn, warnOnce } = require('../warnings')

const wallClock = Date.now // programs may replace it in their tests
const { store } = Atomics
const keepsOrder = process.arch === 'x64' // other threads see stores in order: the start before the number
const REPORT_INSIDE_MS = 500 // past the threshold; then a running callback is reported
const LATE_MS = 20 // from request to sample; JavaScript is interrupted sooner
const SAMPLE_FRAMES = 200
const MAX_RECENT = 64 // remembered callbacks

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} Watch a running watchdog
 * @property {() => void} wake called when a callback begins while the watchdog sleeps
 * @property {() => { lostMs: number, stillMs: number }} discount of the armed callback: time that does not
 *   count, and time in which the thread used no CPU
 * @property {() => void} stop
 * @property {() => void} again makes libuv call `callbackEnded` in the next iteration of the event loop
 *
 * @typedef {object} RecentCallback
 * @property {number} start ms of the clock
 * @property {number} end
 * @property {BlockingCallback | undefined} callback until it is reported
 * @property {string | undefined} frame innermost frame of the program, once reported
 */

const texts = new BlockingTexts()
let threshold = 0
/** @type {Watch | undefined} */
let watch
/** @type {(() => void) | undefined} */
let stopListening
/** @type {Float64Array<ArrayBufferLike>} */
let times = new Float64Array(0)
/** @type {Uint32Array<ArrayBufferLike>} */
let words = new Uint32Array(0)
/** Context at the start of the current callback. @type {Context | undefined} */
let startContext
/** The current callback, once it has been sampled. @type {BlockingCallback | undefined} */
let sampled
/** Ended callbacks to report. @type {Array<{ callback: BlockingCallback, ms: number }>} */
const ended = []
let isReporting = false
/** libuv's next call makes a report. */
let isDue = false
/** Latest callbacks, to explain delays of spans. @type {RecentCallback[]} */
let recent = []

/**
 * Starts, changes or stops detection.
 * @param {number | undefined} next ms; undefined to stop
 */
function configure (next) {
  process.removeListener('exit', finish)
  stopListening?.()
  if (next === undefined || watch === undefined || threshold !== next) restart(next)
  stopListening = watch === undefined ? undefined : on('callback', begin)
  updateWatching()
  // First of all listeners, so that the sinks still write a callback detected at exit.
  if (next !== undefined) process.prependListener('exit', finish)
}

/** @param {number | undefined} next threshold */
function restart (next) {
  stop()
  if (next === undefined) return
  threshold = next
  const binding = settings.options.capture === 'js' ? undefined : loadBinding().binding?.watch
  if (binding !== undefined) {
    watch = startWatchdog(binding)
  } else if (settings.options.blocked !== undefined) {
    shareWarnings()
    warnOnce('BLOCKED', 'blocking callbacks cannot be detected without the native engine; ' +
      `${ownManifest().name} doctor explains why.`)
  }
}

/** @param {ArrayBuffer} memory of the watchdog to start */
function share (memory) {
  const flags = [...process.execArgv, process.env.NODE_OPTIONS].join(' ')
  times = new Float64Array(memory, 0, 3)
  words = new Uint32Array(memory, 0, 10)
  words[DEBUGGABLE] = Number(/(^|\s)--inspect/.test(flags))
  words[CALLBACKS] = 1 // the current one
  times[START] = now()
  startContext = currentContext()
}

function stop () {
  if (watch === undefined) return
  finish()
  watch.stop()
  watch = startContext = sampled = undefined
  isDue = false
}

/** At exit, reports callbacks that have ended or end now. */
function finish () {
  if (watch === undefined) return
  safely(() => {
    if (words[ARMED] !== 0) end(now())
    reportEnded()
  })
}

/** Returns the frames of blocking callbacks that ended after a time. @param {number} time ms of the clock */
function framesAfter (time) {
  const frames = []
  for (const entry of recent) {
    const text = entry.end > time ? frameOf(entry) : undefined
    if (text !== undefined) frames.push({ start: entry.start, end: entry.end, text })
  }
  return frames
}

/** @param {typeof recent[number]} entry */
const frameOf = ({ callback, frame }) => callback === undefined ? frame : frameIn(callback)

/**
 * Called when the event loop enters JavaScript. On the hot path.
 * @param {number} time
 * @param {Context} context
 */
function begin (time, context) {
  const isArmed = words[ARMED] !== 0
  if (isArmed) end(time)
  count(time, context)
  if (isArmed) watch?.wake() // the watchdog sleeps longer inside a blocking callback
}

/**
 * @param {number} time
 * @param {Context | undefined} context
 */
function count (time, context) {
  const present = /** @type {Watch} */ (watch)
  times[START] = time
  if (keepsOrder) words[CALLBACKS]++
  else store(words, CALLBACKS, words[CALLBACKS] + 1)
  startContext = context
  if (words[ASLEEP] !== 0) present.wake()
}

function createCallback () {
  const start = times[ARMED_START]
  const startUnixMs = wallClock() - (now() - start)
  return new BlockingCallback(start, startUnixMs, isCurrentArmed() ? startContext : undefined)
}

const isCurrentArmed = () => words[ARMED] === words[CALLBACKS]

/**
 * Samples the current callback, on top of its stack. Exceptions, mostly from a full stack, go to the
 * watchdog.
 */
function sample () {
  if (watch === undefined || isReporting || words[ARMED] === 0) return
  if (!isCurrentArmed()) { // the callback to sample has ended
    words[ARMED] = 0
    sampled = undefined
    return
  }
  const isOwn = guard.inOwnWork
  guard.run(() => {
    const time = now()
    const stack = captureText(sample, SAMPLE_FRAMES)
    const late = Math.max(0, time - times[ASKED])
    const text = linesOf(stack)
    if (text === '') return // nothing below: the callback has ended
    const callback = sampled ??= createCallback()
    const weight = 1 + late / threshold
    const lateMs = late > LATE_MS ? late : undefined
    callback.addSample({ text, context: currentContext(), late: lateMs, weight, isOwn })
    const isDue = time - callback.start >= threshold + REPORT_INSIDE_MS
    if (isDue && !callback.isReported && !isInGlobalMatch(text)) reportInside(callback, time)
  })
}

/**
 * Reports a running callback from inside, once.
 * @param {BlockingCallback} callback
 * @param {number} time
 */
function reportInside (callback, time) {
  const length = countedMs(callback, time, threshold + REPORT_INSIDE_MS)
  if (length === undefined) return
  preserveRegExpStatics(() => {
    if (isPaused(length)) return
    callback.isReported = true
    guard.callInHook(() => report(callback, length.ms, true))
  })
}

/**
 * Handles the end of the armed callback.
 * @param {number} time
 */
function end (time) {
  const callback = sampled ?? createCallback()
  const isCurrent = isCurrentArmed()
  sampled = undefined
  words[ARMED] = 0
  if (!isCurrent) return // ended before the watchdog armed it
  const length = countedMs(callback, time, threshold)
  if (length === undefined || isPaused(length)) return
  ended.push({ callback, ms: length.ms })
  recent = [...recent, { start: callback.start, end: time, callback, frame: undefined }].slice(-MAX_RECENT)
}

/**
 * Returns the duration of the armed callback so far, or undefined if less than `min` counts.
 * @param {BlockingCallback} callback
 * @param {number} time
 * @param {number} min ms
 * @returns {{ ms: number, stillMs: number } | undefined}
 */
function countedMs ({ start }, time, min) {
  const { lostMs, stillMs } = /** @type {Watch} */ (watch).discount()
  const ms = time - start - lostMs
  return ms < min ? undefined : { ms, stillMs }
}

/** Returns whether a debugger paused it. @param {{ ms: number, stillMs: number }} length */
function isPaused ({ ms, stillMs }) {
  return ms - stillMs < threshold && isAttached()
}

/**
 * Called by libuv, so that it interrupts no code of the program. A report takes 1 to 4 ms. Since the program
 * was delayed already, each iteration of the event loop makes at most one.
 */
function callbackEnded () {
  if (watch === undefined) return
  safely(() => {
    if (words[ARMED] !== 0) end(now())
    watch?.wake()
    const wasDue = isDue
    isDue = ended.length > (wasDue ? 1 : 0)
    if (isDue) watch?.again()
    if (ended.length === 0 || (isDue && !wasDue)) return
    isReporting = true
    try {
      count(now(), undefined)
      reportEnded(1)
      if (watch === undefined) return // a listener has turned detection off
      count(now(), undefined) // time spent here belongs to no callback of the program
    } finally {
      isReporting = false
    }
  })
}

/** Reports ended callbacks, oldest first. @param {number} [count] of callbacks */
function reportEnded (count = Infinity) {
  for (const { callback, ms } of ended.splice(0, count)) report(callback, ms, false)
}

/**
 * @param {BlockingCallback} callback reported again at its end if it was reported from inside
 * @param {number} ms
 * @param {boolean} stillRunning
 */
function report (callback, ms, stillRunning) {
  const event = callback.createEvent(ms, stillRunning)
  const entry = stillRunning ? undefined : recent.find((other) => other.callback === callback)
  // Its samples and context are no longer needed
  if (entry !== undefined) {
    Object.assign(entry, { callback: undefined, frame: event && innermostFrame(event.stack) })
  }
  if (event === undefined) return
  observers.listeners.emit(event)
  recorder.record?.(event, callback)
  if (settings.options.blocked === undefined) return
  if (listeners.size === 0) printLine(paint(`longstack: ${texts.format(event, callback.span)}`))
  afterChange(() => listeners.emit(event, warnOf))
}

/** @param {unknown} thrown */
function warnOf (thrown) {
  warn('BLOCKED_LISTENER', `a listener of 'blocked' threw: ${messageOf(thrown)}`)
}

// Debugger detection: a callback that a debugger paused does not count as blocking. Node does not report an
// attached debugger, and an open port proves little, so this searches the kernel's tables for a connection to
// the inspector's port. Called only if a thread used no CPU inside a blocking callback.

const LISTENING = '0A' // other states: a client is or was just connected (include/net/tcp_states.h)

function isAttached () {
  try {
    const url = require('node:inspector').url()
    return url !== undefined && isConnected(Number(new URL(url).port))
  } catch {
    return false // Node without inspector, or --permission
  }
}

/**
 * Returns whether a client is connected to a local port; true if the kernel does not report it.
 * @param {number} port
 */
function isConnected (port) {
  const suffix = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const tables = ['/proc/self/net/tcp', '/proc/self/net/tcp6']
    .map((file) => attempt(() => fs.readFileSync(file, 'latin1')))
  if (tables.every((table) => table === undefined)) return true
  return tables.some((table) => table?.split('\n').some((line) => {
    const [, local, , state] = line.trim().split(/\s+/)
    return state !== LISTENING && local?.endsWith(suffix)
  }))
}

// The watchdog: a thread inside the addon, see native/watchdog.cc.

/**
 * @typedef {object} WatchBinding
 * @property {(threshold: number, now: number, memory: ArrayBuffer, sample: () => void,
 *   callbackEnded: () => void) => boolean} start returns false without a thread or memory
 * @property {() => void} stop
 * @property {() => void} wake
 * @property {() => void} again makes libuv call callbackEnded in its next iteration
 * @property {(out: Float64Array) => void} lost
 */

/**
 * @param {WatchBinding} binding
 * @returns {Watch | undefined} undefined, after a warning, if it cannot start
 */
function startWatchdog (binding) {
  const memory = new ArrayBuffer(BYTES)
  const out = new Float64Array(2)
  share(memory)
  shareWarnings()
  if (!binding.start(threshold, now(), memory, sample, callbackEnded)) {
    warnOnce('BLOCKED', 'blocking callbacks cannot be detected: no thread for that, or no memory.')
    return undefined
  }
  return {
    wake: binding.wake,
    stop: binding.stop,
    again: binding.again,
    discount () {
      binding.lost(out)
      return { lostMs: out[0], stillMs: out[1] }
    }
  }
}

module.exports = { configure, framesAfter }
