'use strict'

// The critical path of a request: backwards from its end, from each run to the one that caused it. Between
// the two are the cause's own code, other code of the request, the wait until the awaited event arrived, and
// from then on code of others, which delayed it. The parts of all steps add up to the duration.

const { AWAITED, CALLED, CLIENT, CONNECTION, HELD, TIMER, USED } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')
const { callbackAt } = require('./runs')
const { findAnswer, isAskedByOther, lastWriteBefore, queryEndedBy, writeOf } = require('./queries')
const { busyUntil, findArrival, isSameIteration } = require('./timeline')

const MIN_PART = 1e-6 // ms, more than rounding errors
const MIN_WAIT = 0.001 // ms of a wait whose purpose is reported
const MAX_TICKS = 16 // from the callback of a connection to the code that settles a promise

/**
 * @typedef {import('./queries').Log} Log
 * @typedef {import('./requests').Request} Request
 *
 * @typedef {object} Wait a part of the path in which the request did not run
 * @property {number} begin ms
 * @property {number} until start of the run that ended it
 * @property {number} ms until the awaited event arrived
 * @property {number} delayed ms that others ran from then on
 * @property {number} delayedMax the same for the earliest possible arrival
 * @property {number} cameAfter earliest possible arrival, ms
 * @property {number} cameBy latest possible arrival, ms
 * @property {number} site chain of the waiting place, 0 if unknown
 * @property {boolean} isProven that place caused the run; else it is only known to be the one before
 * @property {number} run number of the run that ended it, 0 if it ended with the request
 * @property {number} callback number of the run that the event loop called, which contains it
 * @property {import('./runs').Callback | undefined} ended that callback
 * @property {number} connection reference of the connection that brought it, 0 if none did
 * @property {number} settler number of another request whose code ended it, 0 if none
 * @property {number} sent 1 if it waited for a response and had sent something for it
 * @property {number} unsent ms before anything was sent for it: a pool had no free connection
 * @property {number} jobs 1 if another request sent it: a queue began its next job
 * @property {number} opening ms until its own HTTP call had a connection, if it opened one
 * @property {number} beside callbacks of the request meanwhile that are off its path
 *
 * @typedef {object} Path
 * @property {Wait[]} waits newest first
 * @property {Array<{ ms: number, site: number }>} ran own code on the path, by the chain that led to it
 * @property {number} own ms of own code
 * @property {number} beside ms of it that is off the path
 * @property {number} unknown ms without log entries
 */

/** The cause of a run, and the event it waited for. */
class Cause {
  /** run that caused it, NONE if unknown */
  run = NONE
  /** chain */
  site = 0
  isProven = false
  /** run in whose callback the wait ended */
  endedBy = NONE
  /** number of another request that ended it */
  settler = 0
  /** arrival time, ms; Infinity if unknown, -Infinity if it came with its cause */
  after = Infinity
  by = Infinity

  /** @param {number} run @param {number} site @param {boolean} isProven */
  set (run, site, isProven) {
    this.run = run
    this.site = site
    this.isProven = isProven
  }

  /** @param {number} endedBy @param {number} [time] Infinity or -Infinity */
  endBy (endedBy, time = Infinity) {
    this.endedBy = endedBy
    this.settler = 0
    this.after = this.by = time
  }
}

/** Walks along the paths of a log. */
class Walk {
  /** @param {Log} log */
  constructor (log) {
    this.log = log
    this.recording = log.recording
    this.cause = new Cause()
    /** @type {Request} */
    this.request = /** @type {any} */ (undefined)
    /** @type {Path} */
    this.path = /** @type {any} */ (undefined)
    /** newest slice of the whole request that has not been fully added */
    this.newest = NONE
    /** newest slice before the last entry that was looked up */
    this.before = NONE
    /** number of the last span that was looked up, and whether it is the request or inside it */
    this.owner = 0
    this.isInside = false
  }

  /** @param {Request} request @returns {Path} */
  along (request) {
    const { cause, recording: { chain, flags, head } } = this
    const { begin, end, endEntry, firstRun, lastRun } = request
    this.request = request
    this.path = { waits: [], ran: [], own: 0, beside: 0, unknown: this.lostBetween(begin, end) }
    this.newest = this.before = request.top.slice
    this.owner = request.number
    this.isInside = true
    const isLast = this.isOwn(lastRun)
    let run = isLast ? lastRun : this.runBefore(endEntry)
    const ended = request.isOpen ? NONE : lastRun === NONE ? this.presentAt(endEntry) : lastRun
    cause.set(NONE, run === NONE ? 0 : chain[run], false)
    cause.endBy(ended, isLast ? -Infinity : Infinity)
    if (!isLast && ended !== NONE) findArrival(this.recording, head[ended], cause)
    let from = end
    if (run !== NONE) {
      from = this.beginOf(run, end)
      this.addStep(run, from, end, NONE)
      let awaiter = NONE
      while (run > firstRun && from > begin) {
        this.findCause(run, awaiter)
        const next = cause.run
        if (next === NONE) break
        const until = from
        from = this.beginOf(next, until)
        this.addStep(next, from, until, run)
        awaiter = (flags[run] & AWAITED) === 0 ? NONE : run
        run = next
      }
      cause.set(NONE, 0, false)
      cause.endBy(NONE)
    }
    this.addRest(from)
    return this.path
  }

  /**
   * Returns the ms of lost entries between two times.
   * @param {number} from
   * @param {number} until
   */
  lostBetween (from, until) {
    let ms = 0
    for (const gap of this.recording.gaps) {
      ms += Math.max(0, Math.min(gap.until, until) - Math.max(gap.from, from))
    }
    return ms
  }

  /** Adds the time before the oldest recorded run. @param {number} from start of that run, ms */
  addRest (from) {
    const { path, request: { begin, dropped, droppedUntil }, newest } = this
    const own = this.ownSince(begin, from) + dropped
    path.own += dropped
    if (droppedUntil > begin) path.unknown += Math.max(0, Math.min(from, droppedUntil) - begin - dropped)
    this.addWait(begin, from, own, newest, NONE)
    if (own > MIN_PART) path.ran.push({ ms: own, site: 0 })
  }

  /** Whether a run belongs to the request, from its first run on. @param {number} run */
  isOwn (run) {
    const { recording: { last, outer }, request: { firstRun, outermost } } = this
    if (run === NONE || run < firstRun) return false
    return run === firstRun || outer[last[run]] === outermost
  }

  /** Returns the newest run of any request before an entry. @param {number} entry */
  presentAt (entry) {
    const { placed, run, slice } = this.recording
    const last = placed === 0 || entry === NONE ? NONE : slice[Math.min(entry, placed - 1)]
    return last === NONE ? NONE : run[last]
  }

  /** Returns the newest run of the request before an entry; calls only go back. @param {number} entry */
  runBefore (entry) {
    const { previous, run } = this.recording
    let slice = this.before
    while (slice !== NONE && slice >= entry) slice = previous[slice]
    this.before = slice
    return slice === NONE || run[slice] < this.request.firstRun ? NONE : run[slice]
  }

  /** Returns the start of a run's part in the request. @param {number} run @param {number} until */
  beginOf (run, until) {
    const { begin, firstRun } = this.request
    const at = run === firstRun ? begin : Math.max(begin, this.recording.at[run])
    return Math.min(until, at)
  }

  /**
   * Finds the cause of a run.
   * @param {number} run
   * @param {number} awaiter next run on the path, if it awaited what this one settled
   */
  findCause (run, awaiter) {
    const { cause, recording } = this
    const { caller, came, chain, flags, head, registered, settled } = recording
    if (came[run] !== NONE) return this.findAsker(run, awaiter, run)
    // For unrequested data on a connection, the wait starts at the place that awaits it.
    const isConnection = (flags[run] & CONNECTION) !== 0
    if (isConnection && awaiter !== NONE && registered[awaiter] > registered[run]) {
      return this.findAsker(run, awaiter, run)
    }
    let trigger = NONE
    if ((flags[run] & AWAITED) !== 0) trigger = settled[run]
    else if ((flags[run] & CALLED) === 0) trigger = caller[run]
    cause.endBy(run)
    if (trigger < this.request.firstRun || trigger <= registered[run]) {
      this.findRegistered(run)
      findArrival(recording, head[run], cause)
    } else if (this.isOwn(trigger)) {
      cause.set(trigger, chain[run], true)
      cause.endBy(run, -Infinity)
    } else {
      const answer = this.answerOf(trigger)
      if (answer !== NONE) return this.findAsker(run, run, answer)
      this.findRegistered(run)
      this.findTurn(trigger)
    }
  }

  /** Finds where a run was registered. @param {number} run */
  findRegistered (run) {
    const { chain, registered } = this.recording
    if (this.isOwn(registered[run])) return this.cause.set(registered[run], chain[run], true)
    const before = this.runBefore(run)
    const site = before === NONE ? 0 : chain[before]
    this.cause.set(before, site, site !== 0 && site === chain[run])
  }

  /**
   * Finds the run that sent the query of a response: the run that made the settled promise, else the run that
   * awaits it, else the run in which the response's run was registered.
   * @param {number} run that the response led to
   * @param {number} awaiter run that awaited it, NONE if unknown
   * @param {number} answer the connection's callback
   */
  findAsker (run, awaiter, answer) {
    const { cause, log, recording, request } = this
    const { came, chain, registered } = recording
    const awaitedIn = awaiter === NONE || registered[awaiter] >= answer ? NONE : registered[awaiter]
    const query = queryEndedBy(log, came[answer], request.outermost, awaitedIn)
    cause.endBy(answer)
    findAnswer(recording, answer, query, cause)
    if (query !== NONE && this.isOwn(registered[query])) {
      const made = registered[query]
      cause.set(made, made === awaitedIn ? chain[awaiter] : chain[query], true)
    } else if (this.isOwn(awaitedIn)) {
      cause.set(awaitedIn, chain[awaiter], true)
    } else {
      this.findRegistered(run)
    }
  }

  /**
   * Returns the connection callback that a run of another request is part of: that request opened the
   * connection, and is unrelated to later data on it.
   * @param {number} run
   */
  answerOf (run) {
    const { at, came, flags, head, last, registered, request } = this.recording
    const isAnswer = (/** @type {number} */ each) => came[each] !== NONE || (flags[each] & CONNECTION) !== 0
    let step = run
    for (let i = 0; i < MAX_TICKS && step !== NONE && head[step] === head[run]; i++) {
      if (isAnswer(step)) return step
      if ((flags[step] & (AWAITED | CALLED)) !== 0) break
      step = registered[step]
    }
    const isOver = this.log.spans.isOver(request[last[run]], at[run])
    return isOver && head[run] !== NONE && isAnswer(head[run]) ? head[run] : NONE
  }

  /**
   * Finds what ended a wait, and when: code of another request, or a timer outside of any request.
   * @param {number} run
   */
  findTurn (run) {
    const { cause, recording } = this
    const { at, end, flags, head, last, outer } = recording
    cause.settler = outer[last[run]]
    const isTurn = cause.settler !== 0 || (flags[head[run]] & TIMER) !== 0
    if (!isTurn) return findArrival(recording, head[run], cause)
    cause.after = at[run]
    cause.by = end[last[run]]
  }

  /**
   * Adds the time between the starts of two runs.
   * @param {number} run the earlier one, which caused the other one
   * @param {number} from
   * @param {number} until
   * @param {number} later the other one, NONE if the request ended
   */
  addStep (run, from, until, later) {
    const { cause, newest, path, recording: { chain, end, last, registered, request } } = this
    // A span waits from its creation on, whatever the enclosing request does then.
    const isOwn = this.log.spans.isInside(request[last[run]], this.request.number)
    const stop = isOwn ? Math.max(from, Math.min(until, end[last[run]])) : from
    const beside = this.ownSince(stop, until)
    path.beside += beside
    this.addWait(stop, until, beside, newest, later)
    if (stop === from) return
    const slices = this.newest
    const own = this.ownSince(from, stop)
    const site = registered[run] === NONE ? 0 : chain[run]
    if (own > MIN_PART) path.ran.push({ ms: own, site })
    // Code of others that it called delayed it.
    cause.set(NONE, site, true)
    cause.endBy(NONE, -Infinity)
    this.addWait(from, stop, own, slices, NONE)
  }

  /**
   * Returns the ms of own code between two times; calls only go back.
   * @param {number} from
   * @param {number} until
   */
  ownSince (from, until) {
    const { recording: { at, end, previous }, request } = this
    const isWhole = request.number === request.outermost
    let ms = 0
    let i = this.newest
    while (i !== NONE) {
      const begin = at[i]
      if (begin < until) {
        const overlap = Math.min(end[i], until) - Math.max(begin, from)
        if (overlap > 0 && (isWhole || this.isOwnSlice(i))) ms += overlap
        if (begin < from) break
      }
      i = previous[i]
    }
    this.newest = i
    this.path.own += ms
    return ms
  }

  /** Whether a slice of the whole request belongs to the span. @param {number} slice */
  isOwnSlice (slice) {
    const owner = this.recording.request[slice]
    if (owner !== this.owner) {
      this.owner = owner
      this.isInside = this.log.spans.isInside(owner, this.request.number)
    }
    return this.isInside
  }

  /**
   * Returns the ms in which code of others ran.
   * @param {number} from
   * @param {number} until
   * @param {number} newest slice of the request before then
   * @param {number} hint entry that is not earlier
   */
  othersBetween (from, until, newest, hint) {
    if (from >= until) return 0
    const all = busyUntil(this.recording, until, hint) - busyUntil(this.recording, from, hint)
    return Math.max(0, all - this.requestBetween(from, until, newest))
  }

  /**
   * Returns the ms in which code of the whole request ran.
   * @param {number} from
   * @param {number} until
   * @param {number} newest slice of the request before then
   */
  requestBetween (from, until, newest) {
    const { at, end, previous } = this.recording
    let ms = 0
    for (let i = newest; i !== NONE && end[i] > from; i = previous[i]) {
      if (at[i] < until) ms += Math.min(end[i], until) - Math.max(at[i], from)
    }
    return ms
  }

  /**
   * Adds the time that was not own code between two times.
   * @param {number} begin
   * @param {number} until
   * @param {number} own ms of own code
   * @param {number} newest slice of the whole request before then
   * @param {number} run that began then, NONE if the request ended
   */
  addWait (begin, until, own, newest, run) {
    const { cause, path, recording, request } = this
    const all = until - begin - own
    if (all <= MIN_PART) return
    // Own code is unknown for dropped entries: no delay is certain there.
    const known = Math.max(begin, Math.min(request.droppedUntil, until))
    const cameBy = Math.max(known, Math.min(cause.by, until))
    const cameAfter = Math.max(begin, Math.min(cause.after, cameBy))
    const hint = run === NONE ? recording.placed - 1 : run
    const delayed = Math.min(all, this.othersBetween(cameBy, until, newest, hint))
    let most = delayed
    if (cameAfter < cameBy) most = Math.min(all, this.othersBetween(cameAfter, until, newest, hint))
    const ms = all - delayed
    const callback = cause.endedBy === NONE ? NONE : recording.head[cause.endedBy]
    const data = callback === NONE || cause.settler !== 0 ? NONE : recording.came[callback]
    const wait = {
      begin,
      until,
      ms,
      delayed,
      delayedMax: Math.min(all, Math.max(delayed, most) + this.lostBetween(cameAfter, until)),
      cameAfter,
      cameBy,
      site: cause.site || (request.kind === CLIENT ? request.chain : 0), // the call was made there
      isProven: cause.isProven,
      run: run === NONE ? 0 : recording.number[run],
      callback: callback === NONE ? 0 : recording.number[callback],
      ended: callbackAt(recording, callback),
      connection: data === NONE ? 0 : recording.ref[data],
      settler: cause.settler,
      sent: 0,
      unsent: 0,
      jobs: 0,
      opening: 0,
      beside: run === NONE ? 0 : this.callbacksBeside(cause.run, run, begin)
    }
    if (data !== NONE && ms >= MIN_WAIT) this.addQuestion(wait, data, newest)
    path.waits.push(wait)
  }

  /**
   * Notes whether a wait was for a response, and how long nothing had been sent for it.
   * @param {Wait} wait
   * @param {number} data that ended it
   * @param {number} newest slice of the whole request before then
   */
  addQuestion (wait, data, newest) {
    const { cause: { run }, log, recording, request: { outermost } } = this
    const query = queryEndedBy(log, data, outermost, run)
    const write = query === NONE ? lastWriteBefore(log, data, outermost) : writeOf(recording, query)
    if (write === NONE) {
      if (isAskedByOther(log, data, outermost)) this.addQueued(wait, recording.asked[data], newest)
      return
    }
    wait.sent = write > run ? 1 : 0
    const sentAt = log.traffic.timeOf(write)
    const isHeld = sentAt > recording.time[write]
    if (sentAt <= wait.begin) return
    if (!isHeld && isSameIteration(recording, run, recording.registered[write])) return
    if (query !== NONE || log.spans.outermostOf(recording.request[write]) !== outermost) {
      wait.unsent = this.waitedUntil(sentAt, wait, newest)
      if (query === NONE && this.isOfEnded(write)) wait.jobs = 1
    } else if (isHeld || isFirst(recording, write)) {
      wait.opening = this.waitedUntil(sentAt, wait, newest) // its own HTTP call
    }
  }

  /**
   * Returns the ms of a wait until something was sent.
   * @param {number} sentAt
   * @param {Wait} wait
   * @param {number} newest slice of the whole request before then
   */
  waitedUntil (sentAt, { begin, ms }, newest) {
    return Math.max(0, Math.min(ms, sentAt - begin - this.requestBetween(begin, sentAt, newest)))
  }

  /**
   * Notes that another request wrote what a wait was for. A pool kept an HTTP call in its queue until that
   * request released the connection (undici), or a queue began the next job in the code of a request that was
   * over before the response came (fastq, p-queue). Otherwise nothing is known to be sent for it.
   * @param {Wait} wait
   * @param {number} write by the other request
   * @param {number} newest slice of the whole request before then
   */
  addQueued (wait, write, newest) {
    const { recording: { b, time }, request: { top } } = this
    const sentAt = time[write]
    wait.unsent = wait.ms
    const call = (b[write] & USED) === 0
      ? undefined
      : top.queued.find(({ begin, end }) => begin >= wait.begin && begin <= sentAt && end >= wait.cameBy)
    if (call !== undefined) {
      if (!wait.isProven) wait.site = call.chain
      wait.isProven = true
    } else if (sentAt <= wait.begin || !this.isOfEnded(write)) {
      return
    } else if ((b[write] & USED) === 0) {
      wait.jobs = 1
    }
    wait.unsent = this.waitedUntil(sentAt, wait, newest)
    wait.sent = 1
  }

  /**
   * Whether something was written by a request that had ended when the response came, or by no known one: a
   * queue may have begun its chain of jobs before the recording.
   * @param {number} write
   */
  isOfEnded (write) {
    const { cause, log: { spans }, recording: { at, request } } = this
    return request[write] === 0 || spans.isOver(request[write], at[cause.endedBy])
  }

  /**
   * Counts callbacks of the request between two runs.
   * @param {number} from
   * @param {number} run
   * @param {number} begin ms
   */
  callbacksBeside (from, run, begin) {
    const { at, head, outer, previous, run: runOf } = this.recording
    // Code that runs before the loop polls is part of the cause: ticks, the end of a request without a body.
    const first = from === NONE ? NONE : head[from]
    let slice = outer[run] === this.request.outermost ? previous[run] : this.before
    let count = 0
    while (slice >= run) slice = previous[slice]
    while (slice >= from && slice !== NONE && at[slice] >= begin) {
      const older = previous[slice]
      const present = head[runOf[slice]]
      const before = older === NONE || older < from ? first : head[runOf[older]]
      const isLater = !isSameIteration(this.recording, first, present)
      if (isLater && present !== before && present !== head[run]) count++
      slice = older
    }
    return count
  }
}

/**
 * Whether a write is the first on its connection, or went out with the first one, which was held.
 * @param {import('./entries').Recording} recording
 * @param {number} write
 */
function isFirst ({ b, previous }, write) {
  const before = previous[write]
  return before === NONE || ((b[before] & HELD) !== 0 && previous[before] === NONE)
}

module.exports = { Walk }
