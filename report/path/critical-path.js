'use strict'

// The critical path of a request: back from its end, from each run to the one that caused it. Between the two
// lie the cause's own code, what else the request ran, the wait until what it waited for had come, and from
// then on what ran for others, which delayed it. The parts of all steps add up to the duration.

const { AWAITED, CALLED, CLIENT, CONNECTION, TIMER, USED } = require('../../lib/core/run-log-words')
const { NONE } = require('./entries')
const { callbackAt } = require('./runs')
const { findAnswer, isAskedByOther, lastWriteBefore, queryEndedBy, writeOf } = require('./queries')
const { busyUntil, findArrival, isSameIteration } = require('./timeline')

const MIN_PART = 1e-6 // ms, more than additions lose
const MIN_WAIT = 0.001 // ms of a wait of which it is told what it was for
const MAX_TICKS = 16 // between the callback of a connection and what settles a promise

/**
 * @typedef {import('./queries').Log} Log
 * @typedef {import('./requests').Request} Request
 *
 * @typedef {object} Wait a part of the path in which the request did not run
 * @property {number} begin ms
 * @property {number} until when the run began that ended it
 * @property {number} ms until what it waited for had come
 * @property {number} delayed ms that others ran from then on
 * @property {number} delayedMax the same if that had come as early as possible
 * @property {number} cameAfter ms, when it had come at the earliest
 * @property {number} cameBy at the latest
 * @property {number} site chain of the place that waits, 0: not known
 * @property {boolean} isProven that place caused the run; else it is only known to be the one before
 * @property {number} run number of the run that ended it, 0: it ended with the request
 * @property {number} callback number of the run of the event loop that this was a part of
 * @property {import('./runs').Callback | undefined} ended that callback
 * @property {number} connection reference of the connection that brought it, 0: none did
 * @property {number} settler number of another request whose code ended it, 0: none
 * @property {number} sent 1: it waited for an answer, and had sent something for it
 * @property {number} unsent ms before anything was sent for it: a pool had no free connection
 * @property {number} beside callbacks of the request meanwhile that are not on its path
 *
 * @typedef {object} Path
 * @property {Wait[]} waits newest first
 * @property {Array<{ ms: number, site: number }>} ran own code on the path, by the chain that led to it
 * @property {number} own ms of own code
 * @property {number} beside ms of it that is not on the path
 * @property {number} unknown ms of which the log says nothing
 */

/** What a run waited for. */
class Cause {
  /** the run that caused it, NONE: not known */
  run = NONE
  /** chain */
  site = 0
  isProven = false
  /** the run in whose callback the wait ended */
  endedBy = NONE
  /** number of another request that ended it */
  settler = 0
  /** when that had come, ms; Infinity: that is not known, -Infinity: with its cause */
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
    /** the newest slice of the whole request that has not been added up in full */
    this.newest = NONE
    /** the newest one before the entry that was looked up last */
    this.before = NONE
    /** number of a span, and whether it is the request or inside of it */
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
   * Returns the ms between two times of which entries are lost.
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

  /** Adds what was before the oldest run that is recorded. @param {number} from ms, of that run */
  addRest (from) {
    const { path, request: { begin, dropped, droppedUntil }, newest } = this
    const own = this.ownSince(begin, from) + dropped
    path.own += dropped
    if (droppedUntil > begin) path.unknown += Math.max(0, Math.min(from, droppedUntil) - begin - dropped)
    this.addWait(begin, from, own, newest, NONE)
    if (own > MIN_PART) path.ran.push({ ms: own, site: 0 })
  }

  /** Whether a run is one of the request, from its first on. @param {number} run */
  isOwn (run) {
    const { recording: { last, outer }, request: { firstRun, outermost } } = this
    if (run === NONE || run < firstRun) return false
    return run === firstRun || outer[last[run]] === outermost
  }

  /** Returns the newest run before an entry, of whatever request. @param {number} entry */
  presentAt (entry) {
    const { placed, run, slice } = this.recording
    const last = placed === 0 || entry === NONE ? NONE : slice[Math.min(entry, placed - 1)]
    return last === NONE ? NONE : run[last]
  }

  /** Returns the newest run of the request before an entry; these only go back. @param {number} entry */
  runBefore (entry) {
    const { previous, run } = this.recording
    let slice = this.before
    while (slice !== NONE && slice >= entry) slice = previous[slice]
    this.before = slice
    return slice === NONE || run[slice] < this.request.firstRun ? NONE : run[slice]
  }

  /** When a run began, as far as it is a part of the request. @param {number} run @param {number} until */
  beginOf (run, until) {
    const { begin, firstRun } = this.request
    const at = run === firstRun ? begin : Math.max(begin, this.recording.at[run])
    return Math.min(until, at)
  }

  /**
   * Finds what caused a run.
   * @param {number} run
   * @param {number} awaiter the run after it on the path, if that awaited what this one settled
   */
  findCause (run, awaiter) {
    const { cause, recording } = this
    const { caller, came, chain, flags, head, registered, settled } = recording
    if (came[run] !== NONE) return this.findAsker(run, awaiter, run)
    // What comes on a connection without being asked is waited for from where it is awaited.
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
   * Finds the run that asked for an answer: the one that made the promise that it settled, else the one that
   * awaits it, else the one whose write the connection's callback is a part of.
   * @param {number} run that the answer led to
   * @param {number} awaiter the run that awaited it, NONE: not known
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
   * Returns the callback of a connection that a run of another request is part of: the connection was opened
   * by that request, which has nothing to do with what comes on it later.
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
   * Finds who ended a wait, and when: code of another request, or of none that goes on by itself.
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
   * Adds what lies between the beginnings of two runs.
   * @param {number} run the earlier one, of which the other one is known to be caused
   * @param {number} from
   * @param {number} until
   * @param {number} later NONE: the request ended
   */
  addStep (run, from, until, later) {
    const { cause, newest, path, recording: { chain, end, last, registered, request } } = this
    // A span waits from where it was made, whatever the request around it does then.
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
    // What it called of others delayed it.
    cause.set(NONE, site, true)
    cause.endBy(NONE, -Infinity)
    this.addWait(from, stop, own, slices, NONE)
  }

  /**
   * Returns the ms of own code between two times; these only go back.
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

  /** Whether a slice of the whole request is one of the span. @param {number} slice */
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
   * Adds what was not own code between two times.
   * @param {number} begin
   * @param {number} until
   * @param {number} own ms of own code
   * @param {number} newest slice of the whole request before then
   * @param {number} run that began then, NONE: the request ended
   */
  addWait (begin, until, own, newest, run) {
    const { cause, path, recording, request } = this
    const all = until - begin - own
    if (all <= MIN_PART) return
    // Of what was dropped it is not known what was own code: no delay is certain there.
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
      site: cause.site || (request.kind === CLIENT ? request.chain : 0), // what it waits for was asked there
      isProven: cause.isProven,
      run: run === NONE ? 0 : recording.number[run],
      callback: callback === NONE ? 0 : recording.number[callback],
      ended: callbackAt(recording, callback),
      connection: data === NONE ? 0 : recording.ref[data],
      settler: cause.settler,
      sent: 0,
      unsent: 0,
      beside: run === NONE ? 0 : this.callbacksBeside(cause.run, run, begin)
    }
    if (data !== NONE && ms >= MIN_WAIT) this.addQuestion(wait, data, newest)
    path.waits.push(wait)
  }

  /**
   * Notes whether a wait was one for an answer, and how long nothing had been sent for it.
   * @param {Wait} wait
   * @param {number} data that ended it
   * @param {number} newest slice of the whole request before then
   */
  addQuestion (wait, data, newest) {
    const { cause: { run }, log, recording, request: { outermost } } = this
    const query = queryEndedBy(log, data, outermost, run)
    const write = query === NONE ? lastWriteBefore(log, data, outermost) : writeOf(recording, query)
    if (write === NONE) {
      if (!isAskedByOther(log, data, outermost)) return
      wait.unsent = wait.ms
      return this.addQueued(wait, recording.asked[data], newest)
    }
    wait.sent = write > run ? 1 : 0
    // Its own request of HTTP waited for the connection, not for one of a pool.
    if (query === NONE && log.spans.outermostOf(recording.request[write]) === outermost) return
    const sentAt = log.traffic.timeOf(write)
    const isHeld = sentAt > recording.time[write]
    if (sentAt <= wait.begin) return
    if (!isHeld && isSameIteration(recording, run, recording.registered[write])) return
    const unsent = sentAt - wait.begin - this.requestBetween(wait.begin, sentAt, newest)
    wait.unsent = Math.max(0, Math.min(wait.ms, unsent))
  }

  /**
   * Notes that a wait was one for the answer to a call by HTTP that another request wrote: a pool had it in
   * its queue until that was done with the connection (undici).
   * @param {Wait} wait
   * @param {number} write by the other request
   * @param {number} newest slice of the whole request before then
   */
  addQueued (wait, write, newest) {
    const { recording: { b, time }, request: { top } } = this
    const sentAt = time[write]
    const call = (b[write] & USED) === 0
      ? undefined
      : top.queued.find(({ begin, end }) => begin >= wait.begin && begin <= sentAt && end >= wait.cameBy)
    if (call === undefined) return
    const unsent = sentAt - wait.begin - this.requestBetween(wait.begin, sentAt, newest)
    wait.unsent = Math.max(0, Math.min(wait.ms, unsent))
    wait.sent = 1
    wait.site = call.chain
    wait.isProven = true
  }

  /**
   * Counts callbacks of the request between two runs.
   * @param {number} from
   * @param {number} run
   * @param {number} begin ms
   */
  callbacksBeside (from, run, begin) {
    const { at, head, outer, previous, run: runOf } = this.recording
    // What runs before the loop polls is a part of the cause: ticks, the end of a request without a body.
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

module.exports = { Walk }
