'use strict'

// Detects blocking callbacks. A watchdog in another thread notices that the event loop is still in the same
// callback and has a stack sample taken inside it, on the loop's own thread; when the callback ends, its
// length is known and it is reported. One that does not end is reported from inside as well.
//
// A callback is all that happens between two polls of libuv: one JavaScript callback with its ticks and
// microtasks. It begins with the first `before` that is not nested in another (core/index.js). Its end
// is noticed with the next one, or by a function that the watchdog has libuv call.
//
// `sample` runs on top of arbitrary code of the program: it touches nothing of the program's and is brief.
// Expensive work is done when the callback has ended.

const { BlockingCallback, innermostFrame } = require('./blocking-callback')
const { explain } = require('./report-hops')
const { RecentCallbacks } = require('./recent-callbacks')
const { isAttached } = require('./debugger-state')
const { isInGlobalMatch, preserveRegExpStatics } = require('./regexp-statics')
const { linesOf } = require('./samples')
const {
  START, ARMED_START, ASKED, CALLBACKS, ASLEEP, ARMED, DEBUGGABLE
} = require('./shared-memory')
const { now } = require('../core/clock')
const guard = require('../core/guard')
const { currentContext } = require('../core/current-step')
const { safely } = require('../core/faults')
const formatter = require('../stacks/formatter')
const { captureInto } = require('../stacks/trace-limit')

const wallClock = Date.now // programs replace it in their tests
const REPORT_INSIDE_MS = 500 // past the threshold, after which a callback is reported while it still runs
const LATE_MS = 20 // from the request for a sample to the sample: JavaScript code is interrupted sooner
const SAMPLE_FRAMES = 200

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./shared-memory').Watch} Watch
 * @typedef {import('./blocking-callback').BlockedEvent} BlockedEvent
 */

class Detector {
  /** Called when the loop enters JavaScript; undefined while nothing is watched. */
  onCallback = /** @type {((time: number, context: Context) => void) | undefined} */ (undefined)

  #createWatchdog
  #passOn
  #threshold = 0
  /** @type {Watch | undefined} */
  #watch
  /** @type {Float64Array<ArrayBufferLike>} */
  #times = new Float64Array(0)
  /** @type {Uint32Array<ArrayBufferLike>} */
  #words = new Uint32Array(0)
  /** Context in which the current callback began. @type {Context | undefined} */
  #context
  /** The current callback, once it has been sampled. @type {BlockingCallback | undefined} */
  #callback
  /** Ended, to be reported. @type {Array<{ callback: BlockingCallback, ms: number }>} */
  #ended = []
  #isReporting = false
  #recent = new RecentCallbacks()

  /**
   * @param {() => import('./shared-memory').Watchdog | undefined} createWatchdog undefined: there can be
   *   none, and a warning was given
   * @param {(event: BlockedEvent, callback: BlockingCallback) => void} passOn a callback that is reported
   *   from inside is reported again at its end
   */
  constructor (createWatchdog, passOn) {
    this.#createWatchdog = createWatchdog
    this.#passOn = passOn
  }

  /**
   * Starts, changes or stops detection.
   * @param {number | undefined} threshold ms; undefined: stop
   */
  configure (threshold) {
    if (threshold === undefined) return this.#stop()
    if (this.#watch !== undefined && this.#threshold === threshold) return
    this.#stop()
    const watchdog = this.#createWatchdog()
    if (watchdog !== undefined) this.#start(watchdog, threshold)
  }

  /**
   * @param {import('./shared-memory').Watchdog} watchdog
   * @param {number} threshold
   */
  #start ({ memory, start }, threshold) {
    const flags = [...process.execArgv, process.env.NODE_OPTIONS].join(' ')
    this.#threshold = threshold
    this.#times = new Float64Array(memory, 0, 3)
    this.#words = new Uint32Array(memory, 0, 10)
    this.#words[DEBUGGABLE] = Number(/(^|\s)--inspect/.test(flags))
    this.#words[CALLBACKS] = 1 // the current one
    this.#times[START] = now()
    this.#context = currentContext()
    this.#watch = start({ threshold, sample: this.#sample, callbackEnded: this.#callbackEnded })
    if (this.#watch !== undefined) this.onCallback = this.#begin
  }

  #stop () {
    if (this.#watch === undefined) return
    this.finish()
    this.#watch.stop()
    this.#watch = this.onCallback = this.#context = this.#callback = undefined
  }

  /** Reports, at the end of the process, what has ended or ends now. */
  finish = () => {
    if (this.#watch === undefined) return
    safely(() => {
      if (this.#words[ARMED] !== 0) this.#end(now())
      this.#reportEnded()
      this.#watch?.leave?.()
    })
  }

  /**
   * Returns the innermost frame of the program in the longest blocking callback of an interval.
   * @param {number} start ms of the clock
   * @param {number} end
   * @returns {string | undefined}
   */
  frameDuring = (start, end) => {
    const entry = this.#recent.longestDuring(start, end)
    if (entry?.callback === undefined) return entry?.frame
    return innermostFrame(explain(undefined, entry.callback.samples.best().text).stack)
  }

  /**
   * The loop enters JavaScript. On the hot path.
   * @param {number} time
   * @param {Context} context
   */
  #begin = (time, context) => {
    const isArmed = this.#words[ARMED] !== 0
    if (isArmed) this.#end(time)
    this.#count(time, context)
    if (isArmed) this.#watch?.wake() // the watchdog sleeps longer inside a blocking callback
  }

  /**
   * @param {number} time
   * @param {Context | undefined} context
   */
  #count (time, context) {
    const watch = /** @type {Watch} */ (this.#watch)
    const words = this.#words
    this.#times[START] = time
    words[CALLBACKS]++
    this.#context = context
    if (watch.callbackBegan !== undefined) watch.callbackBegan()
    if (words[ASLEEP] !== 0) watch.wake()
  }

  #createCallback () {
    const start = this.#times[ARMED_START]
    const startUnixMs = wallClock() - (now() - start)
    return new BlockingCallback(start, startUnixMs, this.#isCurrentArmed() ? this.#context : undefined)
  }

  #isCurrentArmed () {
    return this.#words[ARMED] === this.#words[CALLBACKS]
  }

  /**
   * Takes a sample of the current callback, on top of its stack. What is thrown, mostly by a full stack, goes
   * to the watchdog.
   */
  #sample = () => {
    if (this.#watch === undefined || this.#isReporting || this.#words[ARMED] === 0) return
    if (!this.#isCurrentArmed()) { // the callback to be sampled has ended
      this.#words[ARMED] = 0
      this.#callback = undefined
      return
    }
    const { ownFrames } = this.#watch
    guard.run(() => {
      const time = now()
      const holder = /** @type {any} */ ({ __proto__: null })
      captureInto(holder, this.#sample, SAMPLE_FRAMES)
      const stack = formatter.withPlainFormat(holder)
      const late = this.#latenessAt(time)
      const text = linesOf(stack, ownFrames)
      if (text === '') return // nothing below: the callback has ended
      const callback = this.#callback ??= this.#createCallback()
      const weight = 1 + late / this.#threshold
      const lateMs = late > LATE_MS ? late : undefined
      callback.samples.add({ text, context: currentContext(), late: lateMs, weight })
      const isDue = time - callback.start >= this.#threshold + REPORT_INSIDE_MS
      if (isDue && !callback.isReported && !isInGlobalMatch(text)) this.#reportInside(callback, time)
    })
  }

  /**
   * Returns the ms from the request for a sample to the sample, without those in which the thread waited for
   * a CPU.
   * @param {number} time
   */
  #latenessAt (time) {
    const late = time - this.#times[ASKED]
    return Math.max(0, late > LATE_MS ? late - (this.#watch?.queuedMs?.() ?? 0) : late)
  }

  /**
   * Reports a callback from inside, once.
   * @param {BlockingCallback} callback
   * @param {number} time
   */
  #reportInside (callback, time) {
    const length = this.#countedMs(callback, time, this.#threshold + REPORT_INSIDE_MS)
    if (length === undefined) return
    preserveRegExpStatics(() => {
      if (this.#isPaused(length)) return
      callback.isReported = true
      guard.callInHook(() => this.#report(callback, length.ms, true))
    })
  }

  /**
   * The armed callback has ended.
   * @param {number} time
   */
  #end (time) {
    const callback = this.#callback ?? this.#createCallback()
    const isCurrent = this.#isCurrentArmed()
    this.#callback = undefined
    this.#words[ARMED] = 0
    if (!isCurrent) return // it had ended before the watchdog armed it
    const length = this.#countedMs(callback, time, this.#threshold)
    if (length === undefined || this.#isPaused(length)) return
    this.#ended.push({ callback, ms: length.ms })
    this.#recent.add(callback, time)
  }

  /**
   * Returns the length of the armed callback so far; undefined where less than `min` counts.
   * @param {BlockingCallback} callback
   * @param {number} time
   * @param {number} min ms
   * @returns {{ ms: number, stillMs: number } | undefined}
   */
  #countedMs ({ start }, time, min) {
    const { lostMs, stillMs, isIdle } = /** @type {Watch} */ (this.#watch).discount()
    const ms = time - start - lostMs
    return ms < min || isIdle ? undefined : { ms, stillMs }
  }

  /** Returns whether a debugger caused the pause. @param {{ ms: number, stillMs: number }} length */
  #isPaused ({ ms, stillMs }) {
    return ms - stillMs < this.#threshold && isAttached()
  }

  /** Reports what has ended. Called by libuv, so that no code of the program is interrupted. */
  #callbackEnded = () => {
    if (this.#watch === undefined) return
    safely(() => {
      if (this.#words[ARMED] !== 0) this.#end(now())
      this.#watch?.wake()
      if (this.#ended.length === 0) return
      this.#isReporting = true
      try {
        this.#count(now(), undefined)
        this.#reportEnded()
        if (this.#watch === undefined) return // a listener has turned detection off
        this.#count(now(), undefined) // the time spent here belongs to no callback of the program
      } finally {
        this.#isReporting = false
      }
    })
  }

  #reportEnded () {
    const ended = this.#ended
    this.#ended = []
    for (let i = 0; i < ended.length; i++) this.#report(ended[i].callback, ended[i].ms, false)
  }

  /**
   * @param {BlockingCallback} callback
   * @param {number} ms
   * @param {boolean} stillRunning
   */
  #report (callback, ms, stillRunning) {
    const event = callback.createEvent(ms, stillRunning, explain)
    if (!stillRunning) this.#recent.setFrame(callback, innermostFrame(event.stack))
    this.#passOn(event, callback)
  }
}

module.exports = { Detector }
