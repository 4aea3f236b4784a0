'use strict'

// Long runs of the event loop: a watchdog in another thread sees that the loop is still in the same run, and has a sample
// taken inside of it, on the loop's own thread; when the run is over its length is known, and it is reported. One that
// goes on and on is reported from inside as well.
//
// A run is all that happens between two looks of libuv: one callback with its ticks and microtasks. It begins with the
// first `before` that is inside of no other (hooks/async-hooks.js); that it is over is known from the next one, or
// from a call that the watchdog has libuv make.
//
// `sample` runs on top of any code of the program: it touches nothing of the program's, and is brief. What is dear is
// done when the run is over.

const { createSamples } = require('./samples')
const { isAttached } = require('./debugger-state')
const { keepingMatches } = require('./regexp-statics')
const { START, BEGAN, ASKED, BEATS, ASLEEP, ARMED, RESTLESS, ATTENDED } = require('./shared-memory')
const guard = require('../context/guard')
const { captureInto } = require('../stacks/trace-limit')
const { frameLines } = require('../stacks/frames')

const wallClock = Date.now // programs replace it in their tests
const STILL = 500 // ms past the threshold, after which a run is reported from inside
const LATE = 20 // ms from asking for a sample to taking it: V8 looks more often, while it runs JavaScript
const FRAMES = 200 // of a sample
const LOG = 64 // reported runs remembered, for the question what delayed a span

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').HopFrame} HopFrame
 * @typedef {import('../context/view').ContextView} ContextView
 *
 * @typedef {object} BlockedEvent a synchronous run that was too long, or still is
 * @property {number} ms how long; a stopped process, a sleeping machine and a debugger's pause do not count
 * @property {boolean} stillRunning it goes on while this is told: listeners are called inside of it
 * @property {number} [sampledLate] ms from asking for the sample to taking it: that long the thread was inside a native call, or collected garbage
 * @property {number} samples taken inside; 0: the run was over when its native call had returned
 * @property {HopFrame[]} frames inside the run, innermost first: those that most of the samples share
 * @property {string} stack these frames as text, then the hops of the running context
 * @property {Hop[]} chain
 * @property {ContextView | undefined} context that ran
 * @property {{ traceId: string, spanId: string, name: string }} [span] that it was part of
 * @property {number} startUnixMs
 *
 * @typedef {object} Run a long one, sampled or to be
 * @property {number} began ms of the clock
 * @property {number} startUnixMs
 * @property {Context | undefined} context in which it began, where that is known
 * @property {ReturnType<typeof createSamples>} samples
 * @property {boolean} told it was reported from inside
 * @property {import('../spans/span').Span | import('../spans/identities').Ended | undefined} span that it was part of, as far as is known
 *
 * @typedef {object} Watch a watchdog at work
 * @property {() => void} wake a run begins, and it is asleep
 * @property {() => { lost: number, still: number, idle: boolean }} lost
 *   of the armed run: ms that do not count, ms in which its thread stood still, and whether the loop waited meanwhile
 * @property {() => void} stop
 * @property {() => void} [leave] the process ends
 * @property {() => number} [queued] ms that the thread has waited for a processor since the last sample was asked for, where that is not taken off already
 * @property {(() => void) | undefined} [beat] a run begins
 * @property {number} above frames of its own on top of every sample
 *
 * @typedef {object} Given what a watchdog needs
 * @property {number} threshold ms
 * @property {() => void} sample to be called inside of a long run
 * @property {() => void} turned to be called after one
 *
 * @typedef {object} Watchdog
 * @property {ArrayBuffer | SharedArrayBuffer} memory
 * @property {(given: Given) => Watch | undefined} start undefined: it cannot, and has said why
 */

/**
 * @param {object} deps
 * @param {() => number} deps.now
 * @param {() => Context | undefined} deps.current
 * @param {(read: () => string) => string} deps.withPlainFormat reads a `stack` with V8's plain format in force
 * @param {(context: Context | undefined, stack: string) => Explained} deps.explain
 * @param {() => Watchdog | undefined} deps.watchdog makes one; undefined: there can be none, and that has been said
 * @param {(event: BlockedEvent, run: Run) => void} deps.report one that is told from inside comes again when it is over
 *
 * @typedef {object} Explained
 * @property {HopFrame[]} frames
 * @property {string} stack
 * @property {Hop[]} chain
 * @property {ContextView | undefined} context
 */
function createDetector ({ now, current, withPlainFormat, explain, watchdog, report }) {
  let threshold = 0
  /** @type {Watch | undefined} */
  let watch
  /** @type {Float64Array<ArrayBufferLike>} */
  let times = new Float64Array(0)
  /** @type {Uint32Array<ArrayBufferLike>} */
  let words = new Uint32Array(0)
  /** the context that the present run began in @type {Context | undefined} */
  let running
  /** the present run, once it has been sampled @type {Run | undefined} */
  let run
  /** those that are over and not reported yet @type {Array<{ run: Run, ms: number }>} */
  let finished = []
  let telling = false
  /** those that were too long, the text of the innermost frame once somebody asked @type {Array<{ start: number, end: number, run: Run | undefined, at: string | undefined }>} */
  let log = []

  /** The loop enters JavaScript. A hot room. @param {number} time @param {Context} context */
  function began (time, context) {
    const long = words[ARMED] !== 0
    if (long) over(time)
    beat(time, context)
    if (long) watch?.wake() // it sleeps longer within a long run
  }

  /** @param {number} time @param {Context | undefined} context */
  function beat (time, context) {
    const awake = /** @type {Watch} */ (watch)
    times[START] = time
    words[BEATS]++
    running = context
    if (awake.beat !== undefined) awake.beat()
    if (words[ASLEEP] !== 0) awake.wake()
  }

  /** @returns {Run} */
  function sampled () {
    const start = times[BEGAN]
    return {
      began: start,
      startUnixMs: wallClock() - (now() - start),
      context: words[ARMED] === words[BEATS] ? running : undefined,
      samples: createSamples(),
      told: false,
      span: undefined
    }
  }

  /** The run goes on. Called on top of it; what is thrown, a full stack mostly, goes to the watchdog. */
  function sample () {
    if (watch === undefined || telling || words[ARMED] === 0) return
    if (words[ARMED] !== words[BEATS]) { // the one that was meant is over
      words[ARMED] = 0
      run = undefined
      return
    }
    const { above } = watch
    guard.run(() => {
      const time = now()
      const holder = /** @type {any} */ ({ __proto__: null })
      captureInto(holder, sample, FRAMES)
      const text = withPlainFormat(() => holder.stack)
      const late = latenessOf(time)
      const inside = linesOf(text, above)
      if (inside === '') return // nothing is below: it was over
      run ??= sampled()
      run.samples.add({ text: inside, context: current(), late: late > LATE ? late : undefined, weight: 1 + late / threshold })
      if (!run.told && time - run.began >= threshold + STILL) lasts(run, time)
    })
  }

  /** ms from asking for a sample to taking it, in which nobody but the thread itself was to blame. @param {number} time */
  function latenessOf (time) {
    const late = time - times[ASKED]
    return Math.max(0, late > LATE ? late - (watch?.queued?.() ?? 0) : late)
  }

  /** It is reported from inside, once. @param {Run} present @param {number} time */
  function lasts (present, time) {
    const { lost, still, idle } = /** @type {Watch} */ (watch).lost()
    const ms = time - present.began - lost
    if (ms < threshold + STILL || idle) return
    keepingMatches(() => {
      if (ms - still < threshold && isAttached()) return
      present.told = true
      tell(present, ms, true)
    })
  }

  /** The armed run is over. @param {number} time */
  function over (time) {
    const ended = run ?? sampled()
    const stale = words[ARMED] !== words[BEATS]
    run = undefined
    words[ARMED] = 0
    if (stale) return // it was over before the watchdog said so
    const { lost, still, idle } = /** @type {Watch} */ (watch).lost()
    const ms = time - ended.began - lost
    if (ms < threshold || idle) return
    if (ms - still < threshold && isAttached()) return
    finished.push({ run: ended, ms })
    log.push({ start: ended.began, end: time, run: ended, at: undefined })
    if (log.length > LOG) log = log.slice(-LOG / 2)
  }

  /** libuv's turn: the run is over, and the program's code is not disturbed. */
  function turned () {
    if (watch === undefined) return
    guard.run(() => {
      if (words[ARMED] !== 0) over(now())
      watch?.wake()
      if (finished.length === 0) return
      telling = true
      try {
        beat(now(), undefined)
        deliver()
        beat(now(), undefined) // what takes long here is no run of the program's
      } finally {
        telling = false
      }
    })
  }

  function deliver () {
    const all = finished
    finished = []
    for (const { run, ms } of all) tell(run, ms, false)
  }

  /** @param {Run} run @param {number} ms @param {boolean} stillRunning */
  function tell (run, ms, stillRunning) {
    const { count, text, context = run.context, late } = run.samples.best()
    const { frames, stack, chain, context: view } = explain(context, text)
    const span = run.span = context?.spanIdentity
    /** @type {BlockedEvent} */
    const event = {
      ms: round(ms),
      stillRunning,
      ...(late === undefined ? {} : { sampledLate: round(late) }),
      samples: count,
      frames,
      stack,
      chain,
      context: view,
      ...(span === undefined ? {} : { span: { traceId: span.traceId, spanId: span.spanId, name: span.name } }),
      startUnixMs: run.startUnixMs
    }
    if (!stillRunning) forget(run, stack)
    report(event, run)
  }

  /** What the log keeps of a run is text. @param {Run} run @param {string} stack */
  function forget (run, stack) {
    const entry = log.find((one) => one.run === run)
    if (entry !== undefined) [entry.run, entry.at] = [undefined, innermost(stack)]
  }

  const room = {
    /** A run of the loop begins; undefined while nobody watches. @type {((time: number, context: Context) => void) | undefined} */
    began: undefined,

    /**
     * Watches from now on, or no longer.
     * @param {number | undefined} ms the threshold
     * @param {boolean} restless not every run is told to `began`
     */
    use (ms, restless) {
      if (ms === undefined) return room.stop()
      if (watch !== undefined && threshold === ms) {
        words[RESTLESS] = Number(restless)
        return
      }
      room.stop()
      threshold = ms
      const made = watchdog()
      if (made === undefined) return
      times = new Float64Array(made.memory, 0, 3)
      words = new Uint32Array(made.memory, 0, 12)
      words[RESTLESS] = Number(restless)
      words[ATTENDED] = Number(/(^|\s)--inspect/.test([...process.execArgv, process.env.NODE_OPTIONS].join(' ')))
      words[BEATS] = 1 // the run that this is part of
      times[START] = now()
      running = current()
      watch = made.start({ threshold, sample, turned })
      if (watch !== undefined) room.began = began
    },

    /** The program ends: what is over, or ends now, is reported. */
    finish () {
      if (watch === undefined) return
      guard.run(() => {
        if (words[ARMED] !== 0) over(now())
        deliver()
        watch?.leave?.()
      })
    },

    stop () {
      if (watch === undefined) return
      room.finish()
      watch.stop()
      watch = room.began = running = run = undefined
    },

    /** The innermost frame of the program's in the longest reported run within a time, in ms of the clock. @param {number} start @param {number} end */
    at (start, end) {
      const inside = log.filter((one) => one.end > start && one.start < end)
      if (inside.length === 0) return undefined
      const { run, at } = inside.reduce((longest, one) => one.end - one.start > longest.end - longest.start ? one : longest)
      return run === undefined ? at : innermost(explain(undefined, run.samples.best().text).stack)
    }
  }
  return room
}

/** @param {unknown} text @param {number} above */
function linesOf (text, above) {
  const lines = typeof text === 'string' ? frameLines(text, true) : ''
  return above === 0 ? lines : lines.split('\n').slice(above).join('\n')
}

/** @param {string} stack @returns {string | undefined} its first frame */
function innermost (stack) {
  return /^ {4}at (.*)/.exec(stack)?.[1]
}

/** @param {number} ms */
function round (ms) {
  return Math.round(ms * 10) / 10
}

module.exports = { createDetector }
