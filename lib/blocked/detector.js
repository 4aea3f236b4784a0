'use strict'

// Detects blocking callbacks; loaded when somebody first wants it. A watchdog in another thread notices that
// the event loop is still in the same callback and has a stack sample taken inside it, on the loop's own
// thread; when the callback ends, its length is known and it is reported: to listeners, to the spans, or else
// to stderr. One that does not end is reported from inside as well.
//
// A callback is all that happens between two polls of libuv: one JavaScript callback with its ticks and
// microtasks. It begins with the first `before` that is not nested in another (core/index.js). Its end
// is noticed with the next one, or by a function that the watchdog has libuv call.
//
// `sample` runs on top of arbitrary code of the program: it touches nothing of the program's and is brief.
// Expensive work is done when the callback has ended.

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

const wallClock = Date.now // programs replace it in their tests
const { store } = Atomics
const keepsOrder = process.arch === 'x64' // another thread sees stores in order: the start before its number
const REPORT_INSIDE_MS = 500 // past the threshold, after which a callback is reported while it still runs
const LATE_MS = 20 // from the request for a sample to the sample: JavaScript code is interrupted sooner
const SAMPLE_FRAMES = 200
const MAX_RECENT = 64 // callbacks that are remembered

/**
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} Watch a running watchdog
 * @property {() => void} wake to be called when a callback begins while the watchdog sleeps
 * @property {() => { lostMs: number, stillMs: number }} discount of the armed callback: time that does not
 *   count, and time during which the thread used no CPU
 * @property {() => void} stop
 * @property {() => void} again has `callbackEnded` called in the next iteration of the event loop
 *
 * @typedef {object} RecentCallback
 * @property {number} start ms of the clock
 * @property {number} end
 * @property {BlockingCallback | undefined} callback until it is reported
 * @property {string | undefined} frame innermost frame of the program, once it is reported
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
/** Context in which the current callback began. @type {Context | undefined} */
let startContext
/** The current callback, once it has been sampled. @type {BlockingCallback | undefined} */
let sampled
/** Ended, to be reported. @type {Array<{ callback: BlockingCallback, ms: number }>} */
const ended = []
let isReporting = false
/** The next call of libuv is for a report. */
let isDue = false
/** The latest ones, for the question what delayed a span. @type {RecentCallback[]} */
let recent = []

/**
 * Starts, changes or stops detection.
 * @param {number | undefined} next ms; undefined: stop
 */
function configure (next) {
  process.removeListener('exit', finish)
  stopListening?.()
  if (next === undefined || watch === undefined || threshold !== next) restart(next)
  stopListening = watch === undefined ? undefined : on('callback', begin)
  updateWatching()
  // First of all listeners: what is detected then is still to be written by the sinks.
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

/** @param {ArrayBuffer} memory of the watchdog that is about to start */
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

/** Reports, at the end of the process, what has ended or ends now. */
function finish () {
  if (watch === undefined) return
  safely(() => {
    if (words[ARMED] !== 0) end(now())
    reportEnded()
  })
}

/**
 * Returns the innermost frame of the program in the longest blocking callback of an interval.
 * @param {number} start ms of the clock
 * @param {number} end
 * @returns {string | undefined}
 */
function frameDuring (start, end) {
  const [longest] = recent.filter((entry) => entry.end > start && entry.start < end)
    .sort((a, b) => b.end - b.start - (a.end - a.start))
  return longest === undefined ? undefined : frameOf(longest)
}

/** Returns the same of each that has ended after a time. @param {number} time ms of the clock */
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
 * The loop enters JavaScript. On the hot path.
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
 * Takes a sample of the current callback, on top of its stack. What is thrown, mostly by a full stack, goes
 * to the watchdog.
 */
function sample () {
  if (watch === undefined || isReporting || words[ARMED] === 0) return
  if (!isCurrentArmed()) { // the callback to be sampled has ended
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
 * Reports a callback from inside, once.
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
 * The armed callback has ended.
 * @param {number} time
 */
function end (time) {
  const callback = sampled ?? createCallback()
  const isCurrent = isCurrentArmed()
  sampled = undefined
  words[ARMED] = 0
  if (!isCurrent) return // it had ended before the watchdog armed it
  const length = countedMs(callback, time, threshold)
  if (length === undefined || isPaused(length)) return
  ended.push({ callback, ms: length.ms })
  recent = [...recent, { start: callback.start, end: time, callback, frame: undefined }].slice(-MAX_RECENT)
}

/**
 * Returns the length of the armed callback so far; undefined where less than `min` counts.
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

/** Returns whether a debugger caused the pause. @param {{ ms: number, stillMs: number }} length */
function isPaused ({ ms, stillMs }) {
  return ms - stillMs < threshold && isAttached()
}

/**
 * Called by libuv, so that no code of the program is interrupted. A report takes 1 to 4 ms. The program waits
 * already, so it is made in a later iteration of the event loop, one in each.
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
      count(now(), undefined) // the time spent here belongs to no callback of the program
    } finally {
      isReporting = false
    }
  })
}

/** Reports what has ended, the first first. @param {number} [count] of callbacks */
function reportEnded (count = Infinity) {
  for (const { callback, ms } of ended.splice(0, count)) report(callback, ms, false)
}

/**
 * @param {BlockingCallback} callback that is reported again at its end if it was from inside
 * @param {number} ms
 * @param {boolean} stillRunning
 */
function report (callback, ms, stillRunning) {
  const event = callback.createEvent(ms, stillRunning)
  const entry = stillRunning ? undefined : recent.find((other) => other.callback === callback)
  // Its samples and its context are needed no more
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

// Whether a debugger is attached: a callback that it paused does not count as blocking. Node does not report
// it, and an open port proves little, so the kernel's tables are searched for a connection to that port.
// Called only where a thread used no CPU inside a blocking callback.

const LISTENING = '0A' // other states: a client is connected, or was a moment ago (include/net/tcp_states.h)

function isAttached () {
  try {
    const url = require('node:inspector').url()
    return url !== undefined && isConnected(Number(new URL(url).port))
  } catch {
    return false // a Node without inspector, or --permission
  }
}

/**
 * Returns whether a client is connected to a port of this machine; true where the kernel does not report it.
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
 *   callbackEnded: () => void) => boolean} start false: no thread, or no memory
 * @property {() => void} stop
 * @property {() => void} wake
 * @property {() => void} again has libuv call callbackEnded in its next iteration
 * @property {(out: Float64Array) => void} lost
 */

/**
 * @param {WatchBinding} binding
 * @returns {Watch | undefined} undefined: it cannot start, and has warned
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

module.exports = { configure, frameDuring, framesAfter }
