'use strict'

// Whose code the event loop ran, and when: every moment belongs to a run of some span, to a run of no span,
// or to the loop's wait in the poll phase. The hooks report runs as they begin; libuv itself counts the time
// in the poll phase (uv_metrics_idle_time), so no clock is read where a run ends, and where one run follows
// another of the same span nothing is done at all.
//
// Hot path: bench/run.js measures it with the subject longstack-spans.

const { performance } = require('node:perf_hooks')
const { now } = require('../core/clock')
const loopIterations = require('../core/loop-iterations')
const { Arrivals, MAX_GAP } = require('../core/arrivals')
const { MIN_SPLIT, OTHERS, OWN_QUESTION, SITE, UNASKED } = require('./critical-path')
const { MIN_SHORT, RecentRuns } = require('./recent-runs')
const { spanAt } = require('./identities')
const { came, sent, settle } = require('./questions')
const { isOfConnection } = require('../core/asks')
const { typeOfStep } = require('../core/context')
const { callerRun, callerSpan } = require('../core/current')
const { connectionTypes, isHandleType } = require('../core/kinds')
const {
  AWAITED, CALLED, CAUSE, CHAIN, DETAIL, FLAGS, MASK, RUN, SETTLED, SETTLED_RUN, SETTLED_SPAN, SHIFT, SPECIAL,
  TRIGGER, findRecord, promises, readWord, resources
} = require('../core/records')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/entry').Entry} Entry
 */

/** Returns ms that the event loop has waited in the poll phase so far; costs some 30 ns. */
const idleTime = () => performance.nodeTiming.idleTime

class LoopTime {
  /**
   * @param {(chain: number, ref: number) => string} typeOf returns the type of a resource, by its chain and
   *   the reference of its record
   * @param {() => number} [clock] returns ms
   */
  constructor (typeOf, clock = now) {
    this.typeOf = typeOf
    this.clock = clock
    /** the span whose code runs, or ran last @type {Span | undefined} */
    this.running = undefined
    /**
     * the number that it was entered by, 0 for none: it may have ended, then `running` is the one around it
     */
    this.spanNumber = 0
    /** what the event loop called: asyncId, and number of its chain */
    this.callbackId = 0
    this.callbackChain = 0
    /** when what it waited for had come */
    this.arrivals = new Arrivals()
    /** the same of the run that begins, see critical-path.js */
    this.cameBy = this.cameAfter = 0
    /** the iteration that began last, as the addon counts them */
    this.iteration = 0
    /** the connection whose data it brought @type {Entry | undefined} */
    this.answered = undefined
    /** the run is accounted for up to here, in ms of the clock */
    this.since = 0
    /** ms in which the loop ran JavaScript, and in which it waited, since `start` */
    this.busy = 0
    this.idle = 0
    /** libuv's count when it was read last */
    this.polled = 0
    /** the loop may have waited since then */
    this.mayHavePolled = true
    this.recent = new RecentRuns()
  }

  /** Type of the resource whose callback runs. */
  get type () {
    return this.callbackId === 0 ? 'process' : this.typeOf(this.callbackChain, this.callbackId << 1)
  }

  /** The time at which the counters began, in ms of the clock. */
  get zero () {
    return this.since - this.busy - this.idle
  }

  /** Whether each poll is known, also those in which the loop did not sleep. */
  get knowsPolls () {
    return loopIterations.areCounted()
  }

  /** @param {number} time now, in ms */
  start (time) {
    this.polled = idleTime()
    this.mayHavePolled = true
    this.since = time
    this.arrivals.start(time - this.zero)
    this.setRunning(0)
  }

  stop () {
    this.setRunning(0)
    this.recent.clear()
  }

  /** Sets the span whose code runs. @param {number} number */
  setRunning (number) {
    this.running = number === 0 ? undefined : spanAt(number)
    this.spanNumber = number
  }

  /**
   * Notes that the event loop calls into JavaScript.
   * @param {number} number of the span
   * @param {number} time now, in ms
   * @param {number} id asyncId of the resource
   * @param {number} chain its number, 0: not known
   * @param {Int32Array} words
   * @param {number} offset of its record
   */
  enterCallback (number, time, id, chain, words, offset) {
    if (this.mayHavePolled) this.notePoll(time)
    if (number !== this.spanNumber) {
      this.charge(time)
      this.setRunning(number)
    } else if (time - this.since >= MIN_SPLIT) {
      this.charge(time) // beginRun decides by it what is a run of its own
    }
    this.callbackId = id
    this.callbackChain = chain
    this.answered = undefined
    this.arrivals.begin(time - this.zero, words, offset, this)
  }

  /** Notes that the loop may have polled before a callback. @param {number} time now, in ms */
  notePoll (time) {
    this.mayHavePolled = false
    const polled = idleTime()
    const slept = polled - this.polled
    const iteration = loopIterations.counters[0]
    const hasPolled = slept > 0 || iteration !== this.iteration
    this.iteration = iteration
    if (slept > 0) this.addWait(time, polled)
    if (hasPolled) this.arrivals.polled(time - this.zero, Math.max(0, slept))
  }

  /**
   * Notes that code of another span runs from now on, in the same callback.
   * @param {number} number of the span
   * @param {number} time now, in ms
   */
  switchTo (number, time) {
    this.accountUntil(time)
    this.setRunning(number)
  }

  /**
   * Notes that a run of the span begins.
   * @param {number} flags of the record
   * @param {Int32Array} words
   * @param {number} offset of the record
   * @param {number} time now, in ms, 0: it was not read
   * @param {boolean} isCallback the event loop calls it: what runs in a microtask is told apart less exactly
   * @returns {number} its number in the log of the span, 0: the span has ended
   */
  beginRun (flags, words, offset, time, isCallback) {
    const { answered, running } = this
    if (running === undefined) return 0
    let settled = 0
    let settler = 0
    let isTurn = false // settled by code that goes on: of another request, or of none
    const awaited = (flags & AWAITED) === 0 ? 0 : words[offset + TRIGGER]
    if (awaited !== 0) {
      const ring = (awaited & 1) === 0 ? resources : promises
      const place = ((awaited >> 1) & MASK) << SHIFT
      const isInRing = ring[place] === awaited
      if (isInRing ? (ring[place + FLAGS] & SETTLED) !== 0 : (readWord(awaited, FLAGS) & SETTLED) !== 0) {
        settler = isInRing ? ring[place + SETTLED_SPAN] : readWord(awaited, SETTLED_SPAN)
        const cause = isInRing ? ring[place + DETAIL] : readWord(awaited, DETAIL)
        if (answered?.questions !== undefined) this.noteAwaited(awaited, cause, answered)
        if (answered !== undefined && isOfConnection(cause, answered.context.ref)) {
          settler = 0 // in a callback of the connection: it ends what was awaited
        } else if (settler !== 0 && (settler === running.seq || spanAt(settler)?.log === running.log)) {
          settled = isInRing ? ring[place + SETTLED_RUN] : readWord(awaited, SETTLED_RUN)
          settler = 0
        } else if (settler !== 0 && this.isAnswer(awaited)) {
          settler = 0
        } else {
          isTurn = settler !== 0 || this.arrivals.isScheduled
        }
      }
    }
    const { log, outermost } = running
    const registered = words[offset + RUN]
    // A resource of the program's or of Node's own (AsyncResource.bind): who called it is its cause
    if (!isCallback && (flags & (AWAITED | CALLED)) === 0) {
      const caller = callerSpan()
      if (caller === running.seq || (caller !== 0 && spanAt(caller)?.log === log)) settled = callerRun()
    }
    const cause = settled > registered ? settled : registered
    // What was registered elsewhere came after the last run: no more is known of it
    const isNext = cause === log.count || cause === 0
    if (settled > registered) log.noteAwaited(settled, registered, words[offset + CHAIN])
    if (isNext && log.continues(log.count, this, outermost.run)) return log.count
    if (time !== 0) this.charge(time)
    else if (isCallback) this.accountUntil(this.clock())
    this.noteArrival(isTurn)
    const isUnasked = isCallback && (flags & SPECIAL) !== 0 && connectionTypes.has(this.type)
    if (isUnasked) settled = UNASKED
    const run = log.add(this, outermost.run, registered, settled, settler, words[offset + CHAIN])
    if (answered !== undefined && settled <= 0 && settler === 0) {
      noteAnswer(answered, log, run, registered)
    }
    return run
  }

  /** Notes the first run of a span, which began within a callback. @returns {number} its number in the log */
  beginFirstRun () {
    const { running } = this
    if (running === undefined) return 0
    this.noteArrival(false)
    return running.log.add(this, running.outermost.run, 0, 0, 0, 0)
  }

  /**
   * Sets when what a run waited for had come.
   * @param {boolean} isTurn other code settled it: after the beginning of the present callback
   */
  noteArrival (isTurn) {
    const { arrivals } = this
    if (!isTurn) {
      this.cameBy = arrivals.cameBy
      this.cameAfter = arrivals.cameAfter
      return
    }
    this.cameBy = this.cameAfter = this.busy + this.idle
    if (this.cameBy - arrivals.begunAt >= MAX_GAP) this.cameAfter = arrivals.begunAt
  }

  /**
   * Notes that a run goes on after code of another span that it called: what it causes from now on was not
   * delayed by that, it was itself.
   * @param {number} number of the span
   * @param {number} run
   * @param {number} time now, in ms
   * @returns {number} the run from here on
   */
  returnTo (number, run, time) {
    this.switchTo(number, time)
    const { running } = this
    if (running === undefined || !running.log.has(run)) return run
    const { log, outermost } = running
    if (this.busy - outermost.run - log.timeAt(run, OTHERS) < MIN_SPLIT) return run
    this.cameBy = this.cameAfter = 0
    return log.add(this, outermost.run, run, 0, 0, log.wordAt(run, SITE))
  }

  /**
   * Accounts for the present run up to a time. Not all that enters JavaScript is reported by hooks (the end
   * of a WebAssembly compilation, V8's cleanup of FinalizationRegistry): a long run may be a wait.
   * @param {number} time ms
   */
  accountUntil (time) {
    if (time - this.since >= MIN_SHORT) {
      const polled = idleTime()
      if (polled > this.polled) {
        this.callbackId = this.callbackChain = 0 // no hook reported what it called
        return this.addWait(time, polled)
      }
    }
    this.charge(time)
  }

  /**
   * Accounts for a run, and a wait of the loop after it.
   * @param {number} time now, in ms
   * @param {number} polled libuv's count
   */
  addWait (time, polled) {
    this.charge(time - (polled - this.polled))
    this.polled = polled
    this.idle += time - this.since // what libuv did besides counts as waiting, too
    this.since = time
  }

  /** Charges the time up to now to the present run. @param {number} time ms */
  charge (time) {
    const { running, since } = this
    const ms = time - since
    if (ms <= 0) return
    this.since = time
    this.busy += ms
    if (running !== undefined) running.addRun(since, ms, this)
    this.recent.add(running, since, time)
  }

  /**
   * Returns whether what another request settled came on a connection. A pooled connection runs its callbacks
   * as part of the request that opened it, which has nothing to do with what comes on it later: it settled
   * the promise in the connection's own callback, or in no step of its own, for it has ended.
   * @param {number} promise reference
   */
  isAnswer (promise) {
    const step = readWord(promise, DETAIL)
    if (step !== 0 && isHandleType(this.typeOf(readWord(step, CHAIN), step))) return true
    return readWord(promise, SETTLED_RUN) === 0 && isHandleType(this.type)
  }

  /**
   * Notes data on a connection. What comes first in a callback of its own has come in, the answer to the
   * question before; all else goes out, and is a question.
   * @param {Entry} entry of the connection
   * @param {number} ref of the step that runs
   * @param {number} span number
   * @param {number} run of it
   */
  noteTraffic (entry, ref, span, run) {
    const isOwnCallback = ref === entry.context.ref
    const { running } = this
    if (isOwnCallback && this.answered === undefined) {
      this.answered = entry
      entry.answeredIdle = entry.sentIdle
      entry.answeredSpan = entry.sentSpan
      if (run !== 0 && running !== undefined) noteAnswer(entry, running.log, run, 0)
      if (entry.questions !== undefined) came(entry, this)
      return
    }
    sent(entry, this.clock())
    entry.sentIdle = this.idle
    entry.sentSpan = isOwnCallback || spanAt(span) === undefined ? 0 : span
    if (!isOwnCallback && run !== 0 && span === this.spanNumber) running?.log.noteSent(entry.context.ref, run)
  }

  /** When the event loop called the present callback, in ms of the clock. */
  get begunAt () {
    return this.zero + this.arrivals.begunAt
  }

  /**
   * Returns when the answer that the present callback brings had come, in ms of the clock.
   * @param {number} asked when it was asked for
   */
  answeredAt (asked) {
    const { arrivals, zero } = this
    const time = zero + arrivals.cameBy
    return time > asked ? time : Math.max(asked, zero + arrivals.polledAt)
  }

  /**
   * Notes that an answer has settled a promise.
   * @param {Int32Array} words of its record
   * @param {number} offset
   */
  noteSettled (words, offset) {
    if (this.answered?.questions === undefined) return
    settle(this.answered, words, offset, this)
  }

  /**
   * The same of a promise that is awaited, where the hook does not tell: a tick of the answer settled it.
   * @param {number} promise reference
   * @param {number} cause reference of the step that settled it
   * @param {Entry} entry of the connection
   */
  noteAwaited (promise, cause, { context: { ref } }) {
    const record = findRecord(promise)
    const isAnswer = isOfConnection(cause, ref) || isOfConnection(readWord(cause, CAUSE), ref)
    if (record !== undefined && isAnswer) this.noteSettled(record.words, record.offset)
  }

  /** Notes that a span has ended: what runs on belongs to the one around it. @param {Span} span */
  leave (span) {
    if (this.running === span) this.setRunning(span.seq)
  }
}

/**
 * Notes whose question was answered by the data that a run began with.
 * @param {Entry} entry of the connection
 * @param {import('./critical-path').PathLog} log
 * @param {number} run
 * @param {number} registered run in which the wait began
 */
function noteAnswer ({ context, answeredIdle, answeredSpan }, log, run, registered) {
  if (log.hasSent(context.ref, registered)) log.setSent(run, OWN_QUESTION)
  else if (answeredSpan === 0) log.setSent(run, answeredIdle ?? NaN)
  // The request asked before this wait: rows come one after another, or it has done something else meanwhile
  else if (spanAt(answeredSpan)?.log !== log) log.setSent(run, Infinity)
}

/** Whose code the event loop of this thread ran, and when. */
const loop = new LoopTime(typeOfStep)

module.exports = { LoopTime, loop }
