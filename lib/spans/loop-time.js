'use strict'

// Whose code the event loop ran, and when: every moment belongs to a run of some span, to a run of no span, or to the
// loop's waiting in the poll. hooks/async.js tells of runs as they begin; libuv itself counts the time in the poll, so
// no clock is read where a run ends, and where one run follows another of the same span nothing is done at all.
//
// A hot room: bench/run.js measures it with the subject longstack-spans.

const { performance } = require('node:perf_hooks')
const { RunLog } = require('./run-log')
const { sumOf } = require('./span')

const LONG = 4096 // long runs remembered, for the question who delayed a span; a power of two
const SHORT = 1024 // shorter ones: where many spans are open they are many, and each that ends looks through them
const LEAST_LONG = 2 // ms
const LEAST = 0.2 // ms
const SWEEP = 1000 // ms from one look at spans that do not run to the next
const CRUMBS = 20 // ms in which shorter runs of one span are added up, to be remembered as one

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./span').Others} Others
 * @typedef {{ crumbs: number, crumbsFrom: number, sum: Others }} Crumbs ms of short runs since a time, in ms
 */

/** ms that the event loop has waited in the poll so far; some 30 ns */
const idleTime = () => performance.nodeTiming.idleTime

class LoopTime {
  /** @param {(type: string, resource: any) => 0 | 1 | 2} stateOf does a span wait for a timer or handle? See pending.js */
  constructor (stateOf) {
    this.stateOf = stateOf
    /** looks at all spans that are open; spans.js says how */
    this.sweep = () => {}
    this.sweepAt = 0
    /** the span whose code runs, or ran last @type {Span | undefined} */
    this.running = undefined
    /** its number, 0 for none: a number is cheaper to compare */
    this.seq = 0
    /** type of the resource that began the run */
    this.type = 'process'
    /** the run is accounted for up to here, in ms of performance.now() */
    this.since = 0
    /** ms in which the loop ran JavaScript, and in which it waited, since `start` */
    this.busy = 0
    this.idle = 0
    /** libuv's count when it was looked at last */
    this.polled = 0
    /** how many runs are inside of one another */
    this.level = 0
    /** runs inside of a run of another span: the level, and the span to come back to @type {Array<{ level: number, span: Span | undefined, type: string }>} */
    this.inside = []
    this.long = new RunLog(0)
    this.short = this.long
    /** short runs of no span @type {Crumbs} */
    this.nobody = { crumbs: 0, crumbsFrom: 0, sum: sumOf(undefined) }
  }

  /** @param {number} time now, in ms */
  start (time) {
    this.long = new RunLog(LONG)
    this.short = new RunLog(SHORT)
    this.polled = idleTime()
    this.since = time
    this.leave()
    this.level = 1 // the run that asks for it: others may be inside of it, and it goes on after them
  }

  stop () {
    this.leave()
    this.forget()
  }

  /** Nothing is known to run. */
  leave () {
    this.level = 0
    this.inside = []
    this.become(undefined, 'unknown')
  }

  /** @param {Span | undefined} span @param {string} type */
  become (span, type) {
    const owner = span === undefined || span.end === 0 ? span : span.owner
    this.running = owner
    this.seq = owner === undefined ? 0 : owner.seq
    this.type = type
  }

  /**
   * The loop enters JavaScript, or a run begins inside of one.
   * @param {Span | undefined} span
   * @param {number} time now, in ms
   * @param {string} type
   */
  turn (span, time, type) {
    const polled = idleTime()
    const waited = polled - this.polled
    if (time >= this.sweepAt) {
      this.sweepAt = time + SWEEP
      this.sweep()
    }
    if (waited > 0) {
      this.level = 1 // an error may have skipped an `after`; nothing is inside of anything when the loop comes from the poll
      if (this.inside.length > 0) this.inside = []
      this.waited(time, polled)
      if (span !== undefined) span.wakes(this.idle, type)
      this.become(span, type)
    } else if (span !== this.running) {
      this.change(span, time, type)
    }
  }

  /**
   * Code of another span runs from now on, without a look at the poll.
   * @param {Span | undefined} span
   * @param {number} time now, in ms
   * @param {string} type
   */
  change (span, time, type) {
    if (this.level > 1 && this.inside[this.inside.length - 1]?.level !== this.level) {
      this.inside.push({ level: this.level, span: this.running, type: this.type })
    }
    this.account(time)
    if (span !== undefined) span.wakes(this.idle, this.type)
    this.become(span, type)
  }

  /** A run is over. One inside of another gives way to that. @param {() => number} now */
  after (now) {
    const { inside, level } = this
    if (inside.length > 0 && inside[inside.length - 1].level === level) {
      const back = /** @type {{ span: Span | undefined, type: string }} */ (inside.pop())
      this.account(now())
      this.become(back.span, back.type)
    }
    this.level = level > 0 ? level - 1 : 0
  }

  /**
   * The present run is accounted for up to a time, in ms. Not all that enters JavaScript is told of (a WebAssembly module
   * that is compiled, what V8 has to clean up): a long one may be a wait.
   * @param {number} time
   */
  account (time) {
    if (time - this.since >= LEAST) {
      const polled = idleTime()
      if (polled > this.polled) return this.waited(time, polled)
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

  /**
   * Code of this span runs, of which nobody told: where promise hooks are off, what follows an `await` is known only once it
   * does something.
   * @param {Span | undefined} span
   * @param {number} time now, in ms
   */
  sees (span, time) {
    if ((span === undefined || span.end === 0 ? span : span.owner) !== this.running) this.change(span, time, this.type)
  }

  /** No span is open that might ask who delayed it. */
  forget () {
    this.long.clear()
    this.short.clear()
  }

  /** A span ends: what runs on is its heir's. @param {Span} span */
  ends (span) {
    if (this.running === span) this.become(span, this.type)
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
    if (ms >= LEAST_LONG) this.long.add(this.running, start, end, ms)
    else this.short.add(this.running, start, end, ms)
  }

  /**
   * Who ran while a span was open, worst first. Of short runs only the last are known.
   * @param {Span} span
   * @param {number} end of it, in ms
   * @param {number} most
   * @returns {Array<{ span: Span | undefined, ms: number, start: number, longest: number }>} start and length of the longest of its runs, in ms
   */
  delayers (span, end, most) {
    /** @type {Others[]} */
    const found = []
    this.long.sum(span, end, this.nobody.sum, found)
    this.short.sum(span, end, this.nobody.sum, found)
    const worst = []
    for (let i = 0; i < most && i < found.length; i++) worst.push(takeWorst(found, i))
    return worst
  }
}

/** Brings the worst of the rest to a place: there may be thousands, and few are asked for. @param {Others[]} all @param {number} at */
function takeWorst (all, at) {
  let worst = at
  for (let i = at + 1; i < all.length; i++) if (all[i].ms > all[worst].ms) worst = i
  ;[all[at], all[worst]] = [all[worst], all[at]]
  const { span, ms, start, longest } = all[at]
  return { span, ms, start, longest }
}

module.exports = { LoopTime }
