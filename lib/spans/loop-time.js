'use strict'

// Whose code the event loop ran, and when: every moment belongs to a run of some span, to a run of no span, or to the
// loop's waiting in the poll. hooks/async-hooks.js tells of runs as they begin; libuv itself counts the time in the poll, so
// no clock is read where a run ends, and where one run follows another of the same span nothing is done at all.
//
// A hot room: bench/run.js measures it with the subject longstack-spans.

const { performance } = require('node:perf_hooks')
const { RunLog, Sums } = require('./run-log')
const { spanAt } = require('./identities')
const { MASK, SHIFT, SETTLED, AWAITED, CHAIN, FLAGS, RUN, SETTLED_RUN, SETTLED_SPAN, TRIGGER, promises, readWord, resources } = require('../context/records')

const LONG = 4096 // long runs remembered, for the question who delayed a span; a power of two
const SHORT = 1024 // shorter ones: where many spans are open they are many, and each that ends looks through them
const LEAST_LONG = 2 // ms
const LEAST = 0.2 // ms
const CRUMBS = 20 // ms in which shorter runs of one span are added up, to be remembered as one

/**
 * @typedef {import('./span').Span} Span
 * @typedef {{ crumbs: number, crumbsFrom: number }} Crumbs ms of short runs since a time, in ms
 */

/** ms that the event loop has waited in the poll so far; some 30 ns */
const idleTime = () => performance.nodeTiming.idleTime

class LoopTime {
  /** @param {(chain: number, ref: number) => string} typeOf the type of a resource, by its chain and the reference of its record */
  constructor (typeOf) {
    this.typeOf = typeOf
    /** the span whose code runs, or ran last @type {Span | undefined} */
    this.running = undefined
    /** the number that it was entered by, 0 for none: it may have ended, then `running` is the one around it */
    this.spanNumber = 0
    /** what the event loop called: reference of the record, and number of its chain */
    this.callbackRef = 0
    this.callbackChain = 0
    /** the run is accounted for up to here, in ms of the clock */
    this.since = 0
    /** ms in which the loop ran JavaScript, and in which it waited, since `start` */
    this.busy = 0
    this.idle = 0
    /** libuv's count when it was looked at last */
    this.polled = 0
    /** the loop may have waited since then */
    this.mayHavePolled = true
    this.long = new RunLog(0, true)
    this.short = new RunLog(0, false)
    /** @type {Sums | undefined} */
    this.sums = undefined
    /** short runs of no span @type {Crumbs} */
    this.nobody = { crumbs: 0, crumbsFrom: 0 }
  }

  /** Type of the resource that began the run. */
  get type () {
    return this.callbackRef === 0 ? 'process' : this.typeOf(this.callbackChain, this.callbackRef)
  }

  /** @param {number} time now, in ms */
  start (time) {
    this.long = new RunLog(LONG, true)
    this.short = new RunLog(SHORT, false)
    this.polled = idleTime()
    this.mayHavePolled = true
    this.since = time
    this.become(0)
  }

  stop () {
    this.become(0)
    this.forget()
  }

  /** @param {number} number of a span */
  become (number) {
    this.running = number === 0 ? undefined : spanAt(number)
    this.spanNumber = number
  }

  /**
   * The event loop calls into JavaScript.
   * @param {number} number of the span
   * @param {number} time now, in ms
   */
  enterCallback (number, time) {
    if (this.mayHavePolled) {
      this.mayHavePolled = false
      const polled = idleTime()
      if (polled > this.polled) this.waited(time, polled)
    }
    if (number !== this.spanNumber) {
      this.charge(time)
      this.become(number)
    }
  }

  /**
   * Code of another span runs from now on, without a look at the poll.
   * @param {number} number of the span
   * @param {number} time now, in ms
   */
  switchTo (number, time) {
    this.account(time)
    this.become(number)
  }

  /**
   * A run of the span begins.
   * @param {number} flags of the record
   * @param {Int32Array} words
   * @param {number} at
   * @returns {number} its number in the log of the span, 0: there is no span any more
   */
  beginRun (flags, words, at) {
    const { running } = this
    if (running === undefined) return 0
    let settled = 0
    let settler = 0
    const awaited = (flags & AWAITED) === 0 ? 0 : words[at + TRIGGER]
    if (awaited !== 0) {
      const ring = (awaited & 1) === 0 ? resources : promises
      const place = ((awaited >> 1) & MASK) << SHIFT
      const isThere = ring[place] === awaited
      if (isThere ? (ring[place + FLAGS] & SETTLED) !== 0 : (readWord(awaited, FLAGS) & SETTLED) !== 0) {
        settler = isThere ? ring[place + SETTLED_SPAN] : readWord(awaited, SETTLED_SPAN)
        if (settler !== 0 && (settler === running.seq || spanAt(settler)?.log === running.log)) {
          settled = isThere ? ring[place + SETTLED_RUN] : readWord(awaited, SETTLED_RUN)
          settler = 0
        }
      }
    }
    const { log } = running
    const registered = words[at + RUN]
    // What the last run caused while the loop did not wait goes on with that run.
    if (log.count > 0 && (settled > registered ? settled : registered) === log.count && log.idleAt(log.count) === this.idle) return log.count
    return log.add(this.idle, registered, settled, settler, words[at + CHAIN], this.callbackRef, this.callbackChain)
  }

  /** The first run of a span, which began in the midst of another one. @returns {number} */
  beginFirstRun () {
    const { running } = this
    return running === undefined ? 0 : running.log.add(this.idle, 0, 0, 0, 0, this.callbackRef, this.callbackChain)
  }

  /**
   * In light mode: what follows an await runs, of which nothing was told. If the loop has waited since the run that the
   * await was in, as far as is known, this is another run, and where it was registered is not known.
   * @param {number} run
   * @returns {number}
   */
  resumeRun (run) {
    const { running } = this
    if (running === undefined) return 0
    const { log } = running
    if (log.knows(run) && log.idleAt(run) === this.idle) return run
    return log.add(this.idle, run, 0, 0, 0, this.callbackRef, this.callbackChain)
  }

  /**
   * The present run is accounted for up to a time, in ms. Not all that enters JavaScript is told of (a WebAssembly module
   * that is compiled, what V8 has to clean up): a long one may be a wait.
   * @param {number} time
   */
  account (time) {
    if (time - this.since >= LEAST) {
      const polled = idleTime()
      if (polled > this.polled) {
        this.callbackRef = this.callbackChain = 0 // it called what nobody tells of
        return this.waited(time, polled)
      }
    }
    this.charge(time)
  }

  /** The loop ran, and then it waited. @param {number} time now, in ms @param {number} polled what libuv counts */
  waited (time, polled) {
    this.charge(time - (polled - this.polled))
    this.polled = polled
    this.idle += time - this.since // what libuv did besides is waiting as well
    this.since = time
  }

  /** The present run lasted up to a time, in ms. @param {number} time */
  charge (time) {
    const { running, since } = this
    const ms = time - since
    if (ms <= 0) return
    this.since = time
    this.busy += ms
    if (running !== undefined) running.ran(since, ms, this)
    if (ms >= LEAST) this.log(since, time, ms)
    else this.crumb(running ?? this.nobody, since, time)
  }

  /** No span is open that might ask who delayed it. */
  forget () {
    this.long.clear()
    this.short.clear()
  }

  /** A span ends: what runs on belongs to the one around it. @param {Span} span */
  ends (span) {
    if (this.running === span) this.become(span.seq)
  }

  /** Many short runs delay others as one long run does. @param {Crumbs} of @param {number} start @param {number} end */
  crumb (of, start, end) {
    if (start - of.crumbsFrom > CRUMBS) {
      of.crumbsFrom = start
      of.crumbs = 0
    }
    of.crumbs += end - start
    if (of.crumbs < LEAST) return
    this.log(of.crumbsFrom, end, of.crumbs)
    of.crumbsFrom = -CRUMBS
  }

  /** @param {number} start @param {number} end @param {number} ms of it, that the span ran */
  log (start, end, ms) {
    const number = this.running === undefined ? 0 : this.running.seq
    if (ms >= LEAST_LONG) this.long.add(number, start, end, ms)
    else this.short.add(number, start, end, ms)
  }

  /**
   * Who ran while a span was open, worst first. Of short runs only the last are known.
   * @param {Span} span
   * @param {number} end of it, in ms
   * @param {number} most
   * @returns {NonNullable<ReturnType<Sums['take']>>[]} start and length of the longest of its runs, in ms
   */
  delayers (span, end, most) {
    const sums = this.sums ??= new Sums()
    this.long.sum(span.seq, span.start, end, sums)
    this.short.sum(span.seq, span.start, end, sums)
    const worst = []
    for (let i = 0; i < most; i++) {
      const one = sums.take()
      if (one === undefined) break
      worst.push(one)
    }
    sums.clear()
    return worst
  }
}

module.exports = { LoopTime }
