'use strict'

// The critical path of a request: back from its end, from each run to the one that caused it. Between the two
// lie the cause's own code, what else the request ran, the wait until what it waited for had come, and from
// then on what ran for others, which delayed it. The parts of all steps add up to the duration.

const { AWAITED, CALLED, CLIENT, CONNECTION, TIMER } = require('../../lib/core/run-log-words')
const { answerTime, isAskedByOther, queryEndedBy } = require('./queries')
const { isInside, outermostOf, ownTime } = require('./requests')
const { NONE, arrivalOf, busyUntil, countBelow } = require('./timeline')

const MIN_PART = 1e-6 // ms, more than additions lose
const MIN_WAIT = 0.001 // ms of a wait of which it is told what it was for
const MAX_TICKS = 16 // between the callback of a connection and what settles a promise

/**
 * @typedef {import('./entries').Recording} Recording
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
 * @property {number} run that ended it, NONE: it ended with the request
 * @property {number} callback the run of the event loop that this was a part of
 * @property {number} type number of the type of resource of that callback, 0: not known
 * @property {number} connection reference of the connection that brought it, 0: none did
 * @property {number} settler number of another request whose code ended it, 0: none
 * @property {number} sent 1: it waited for an answer, and had sent something for it
 * @property {number} unsent ms before anything was sent for it: a pool had no free connection
 * @property {number} beside callbacks of the request meanwhile that are not on its path
 *
 * @typedef {object} Cause of a run
 * @property {number} run NONE: not known
 * @property {number} site chain
 * @property {boolean} isProven
 * @property {number} endedBy run in whose callback the wait ended
 * @property {{ after: number, by: number }} arrival
 * @property {number} settler
 *
 * @typedef {object} Path
 * @property {Wait[]} waits newest first
 * @property {Array<{ ms: number, site: number }>} ran own code on the path, by the chain that led to it
 * @property {number} beside ms of own code that is not on it
 */

/** @param {Recording} recording @param {Request} request @returns {Path} */
function criticalPath (recording, request) {
  return new Walk(recording, request).walk()
}

class Walk {
  /** @param {Recording} recording @param {Request} request */
  constructor (recording, request) {
    this.recording = recording
    this.request = request
    /** what it ran, and what the whole request did */
    this.own = ownTime(recording, request)
    const whole = request.number === request.outermost
    this.all = whole ? this.own : ownTime(recording, { ...request, number: request.outermost })
    /** @type {Path} */
    this.path = { waits: [], ran: [], beside: 0 }
  }

  walk () {
    const { path, recording, request } = this
    const { chain, flags, timeline: { headOf } } = recording
    const { lastRun } = request
    const isLast = this.isOwn(lastRun)
    let run = isLast ? lastRun : this.runBefore(request.endEntry)
    let until = request.end
    let from = until
    const ended = lastRun === NONE ? this.presentAt(request.endEntry) : lastRun
    const endedBy = isLast || request.isOpen ? NONE : ended
    const arrival = isLast ? ALWAYS : endedBy === NONE ? NEVER : arrivalOf(recording, headOf[endedBy])
    let ending = { ...NO_CAUSE, endedBy, arrival }
    if (run !== NONE) {
      from = this.beginOf(run, until)
      this.addStep(run, from, until, { ...ending, site: chain[run] }, NONE)
      ending = NO_CAUSE
    }
    let awaiter = NONE
    while (run > request.firstRun && from > request.begin) {
      const cause = this.causeOf(run, awaiter)
      if (cause.run === NONE) break
      until = from
      from = this.beginOf(cause.run, until)
      this.addStep(cause.run, from, until, cause, run)
      awaiter = (flags[run] & AWAITED) === 0 ? NONE : run
      run = cause.run
    }
    // What was before the oldest run that is recorded
    this.addWait(request.begin, from, ending, NONE)
    this.addRan(request.begin, from, 0)
    return path
  }

  /** Whether a run is one of the request, from its first on. @param {number} run */
  isOwn (run) {
    const { recording, request } = this
    if (run === NONE || run < request.firstRun || recording.timeline.sliceOf[run] === NONE) return false
    if (run === request.firstRun) return true
    return outermostOf(recording, recording.timeline.ownerOf[run]) === request.outermost
  }

  /** Returns the newest run before an entry, of whatever request. @param {number} entry */
  presentAt (entry) {
    const { slices, slicesBefore } = this.recording.timeline
    return slicesBefore[entry] === 0 ? NONE : slices.run[slicesBefore[entry] - 1]
  }

  /** Returns the newest run of the request before an entry. @param {number} entry */
  runBefore (entry) {
    const { all: { list }, recording: { timeline: { slices, slicesBefore } }, request } = this
    const place = countBelow(list, slicesBefore[entry]) - 1
    const run = place < 0 ? NONE : slices.run[list[place]]
    return run >= request.firstRun ? run : NONE
  }

  /**
   * When a run began, as far as it is a part of the request.
   * @param {number} run
   * @param {number} until
   */
  beginOf (run, until) {
    const { recording: { timeline: { sliceOf, slices } }, request } = this
    const begin = run === request.firstRun ? request.begin : slices.start[sliceOf[run]]
    return Math.min(until, Math.max(request.begin, begin))
  }

  /**
   * Returns what caused a run.
   * @param {number} run
   * @param {number} awaiter the run after it on the path, if that awaited what this one settled
   * @returns {Cause}
   */
  causeOf (run, awaiter) {
    const { recording, request } = this
    const { caller, chain, flags, registered, settled, timeline: { cameIn, headOf } } = recording
    if (cameIn[run] !== NONE) return this.askedBy(run, awaiter, run)
    let trigger = NONE
    if ((flags[run] & AWAITED) !== 0) trigger = settled[run]
    else if ((flags[run] & CALLED) === 0) trigger = caller[run]
    const arrival = arrivalOf(recording, headOf[run])
    if (trigger < request.firstRun || trigger <= registered[run]) {
      return { ...this.registeredBy(run), endedBy: run, arrival, settler: 0 }
    }
    if (this.isOwn(trigger)) {
      return { run: trigger, site: chain[run], isProven: true, endedBy: run, arrival: ALWAYS, settler: 0 }
    }
    const answer = this.answerOf(trigger)
    if (answer !== NONE) return this.askedBy(run, run, answer)
    return { ...this.registeredBy(run), endedBy: run, ...this.turnOf(trigger) }
  }

  /** Returns where a run was registered. @param {number} run */
  registeredBy (run) {
    const { chain, registered } = this.recording
    if (this.isOwn(registered[run])) return { run: registered[run], site: chain[run], isProven: true }
    const before = this.runBefore(run)
    const site = before === NONE ? 0 : chain[before]
    return { run: before, site, isProven: site !== 0 && site === chain[run] }
  }

  /**
   * Returns the run that asked for an answer: the one that made the promise that it settled, else the one
   * that awaits it, else the one whose write the connection's callback is a part of.
   * @param {number} run that the answer led to
   * @param {number} awaiter the run that awaited it, NONE: not known
   * @param {number} answer the connection's callback
   * @returns {Cause}
   */
  askedBy (run, awaiter, answer) {
    const { recording, request } = this
    const { chain, registered } = recording
    const awaitedIn = awaiter === NONE || registered[awaiter] >= answer ? NONE : registered[awaiter]
    const query = queryEndedBy(recording, answer, request.outermost, awaitedIn)
    const arrival = answerTime(recording, answer, query)
    const cause = { isProven: true, endedBy: answer, arrival, settler: 0 }
    if (query !== undefined && this.isOwn(query.made)) {
      return { ...cause, run: query.made, site: query.made === awaitedIn ? chain[awaiter] : query.chain }
    }
    if (this.isOwn(awaitedIn)) return { ...cause, run: awaitedIn, site: chain[awaiter] }
    return { ...cause, ...this.registeredBy(run) }
  }

  /**
   * Returns the callback of a connection that a run of another request is part of: the connection was opened
   * by that request, which has nothing to do with what comes on it later.
   * @param {number} run
   */
  answerOf (run) {
    const { flags, registered, spans, timeline } = this.recording
    const { cameIn, headOf, ownerOf, slices, sliceOf } = timeline
    const isAnswer = (/** @type {number} */ each) => cameIn[each] !== NONE || (flags[each] & CONNECTION) !== 0
    let step = run
    for (let i = 0; i < MAX_TICKS && step !== NONE && headOf[step] === headOf[run]; i++) {
      if (isAnswer(step)) return step
      if ((flags[step] & (AWAITED | CALLED)) !== 0) break
      step = registered[step]
    }
    const end = spans.byNumber.get(ownerOf[run])?.end ?? Infinity
    const isOver = ownerOf[run] === 0 || end <= slices.start[sliceOf[run]]
    return isOver && isAnswer(headOf[run]) ? headOf[run] : NONE
  }

  /**
   * Returns who ended a wait, and when: code of another request, or of none that goes on by itself.
   * @param {number} run
   */
  turnOf (run) {
    const { recording } = this
    const { flags, timeline: { endOf, headOf, ownerOf, slices, sliceOf } } = recording
    const settler = outermostOf(recording, ownerOf[run])
    const isTurn = settler !== 0 || (flags[headOf[run]] & TIMER) !== 0
    const turn = { after: slices.start[sliceOf[run]], by: endOf[run] }
    return { settler, arrival: isTurn ? turn : arrivalOf(recording, headOf[run]) }
  }

  /**
   * Adds what lies between the beginnings of two runs.
   * @param {number} cause the earlier one
   * @param {number} from
   * @param {number} until
   * @param {Cause} ending
   * @param {number} run the later one, NONE: the request ended
   */
  addStep (cause, from, until, ending, run) {
    const { chain, registered, timeline: { endOf, ownerOf } } = this.recording
    // A span waits from where it was made, whatever the request around it does then.
    const isOwn = isInside(this.recording, ownerOf[cause], this.request.number)
    const end = isOwn ? Math.max(from, Math.min(until, endOf[cause])) : from
    const site = registered[cause] === NONE ? 0 : chain[cause]
    this.path.beside += this.own.between(end, until)
    this.addWait(end, until, ending, run)
    // What it called of others delayed it.
    this.addWait(from, end, { ...NO_CAUSE, site, isProven: true, arrival: ALWAYS }, NONE)
    this.addRan(from, end, site)
  }

  /** Returns the ms in which code of others ran. @param {number} from @param {number} until */
  othersBetween (from, until) {
    const { all, recording: { timeline: { slices } } } = this
    if (from >= until) return 0
    return Math.max(0, busyUntil(slices, until) - busyUntil(slices, from) - all.between(from, until))
  }

  /** @param {number} from @param {number} until @param {number} site */
  addRan (from, until, site) {
    const ms = this.own.between(from, until)
    if (ms > MIN_PART) this.path.ran.push({ ms, site })
  }

  /**
   * Adds what was not own code between two times.
   * @param {number} begin
   * @param {number} until
   * @param {Cause} cause
   * @param {number} run that began then, NONE: the request ended
   */
  addWait (begin, until, { run: from, site, isProven, endedBy, arrival, settler }, run) {
    const { own, recording, request } = this
    const origin = request.kind === CLIENT ? request.chain : 0 // what it waits for was asked there
    const all = until - begin - own.between(begin, until)
    if (all <= MIN_PART) return
    const cameBy = Math.max(begin, Math.min(arrival.by, until))
    const cameAfter = Math.max(begin, Math.min(arrival.after, cameBy))
    const delayed = Math.min(all, this.othersBetween(cameBy, until))
    const delayedMax = Math.max(delayed, Math.min(all, this.othersBetween(cameAfter, until)))
    const ms = all - delayed
    const callback = endedBy === NONE ? NONE : recording.timeline.headOf[endedBy]
    const isAnswer = callback !== NONE && settler === 0
    const came = isAnswer ? recording.timeline.cameIn[callback] : NONE
    const connection = came === NONE ? 0 : recording.ref[came]
    const isQuestion = connection !== 0 && ms >= MIN_WAIT
    const { sent, unsent } = isQuestion ? this.questionOf(from, callback, begin, ms) : NO_QUESTION
    this.path.waits.push({
      begin,
      until,
      ms,
      delayed,
      delayedMax,
      cameAfter,
      cameBy,
      site: site || origin,
      isProven,
      run,
      callback,
      type: callback === NONE ? 0 : recording.type[callback],
      connection,
      settler,
      sent,
      unsent,
      beside: run === NONE ? 0 : this.callbacksBeside(from, run, begin)
    })
  }

  /**
   * Returns whether a wait was one for an answer, and how long nothing had been sent for it.
   * @param {number} from run in which it began
   * @param {number} callback that ended it
   * @param {number} begin
   * @param {number} ms
   */
  questionOf (from, callback, begin, ms) {
    const { recording, request } = this
    const query = queryEndedBy(recording, callback, request.outermost, from)
    if (query === undefined) {
      return { sent: 0, unsent: isAskedByOther(recording, callback, request.outermost) ? ms : 0 }
    }
    const unsent = Math.max(0, Math.min(ms, query.start - begin))
    return { sent: query.sent > from ? 1 : 0, unsent }
  }

  /**
   * Counts callbacks of the request between two runs.
   * @param {number} from
   * @param {number} run
   * @param {number} begin ms
   */
  callbacksBeside (from, run, begin) {
    const { all: { list }, recording: { timeline: { headOf, slices, sliceOf } } } = this
    const last = sliceOf[run]
    let count = 0
    let head = from === NONE ? NONE : headOf[from]
    let i = countBelow(list, from === NONE ? 0 : sliceOf[from])
    for (; i < list.length && list[i] < last; i++) {
      const each = headOf[slices.run[list[i]]]
      if (each !== head && each !== headOf[run] && slices.start[list[i]] >= begin) count++
      head = each
    }
    return count
  }
}

/** it had come with its cause */
const ALWAYS = { after: -Infinity, by: -Infinity }
/** it is not known to have come */
const NEVER = { after: Infinity, by: Infinity }
/** @type {Cause} */
const NO_CAUSE = { run: NONE, site: 0, isProven: false, endedBy: NONE, arrival: NEVER, settler: 0 }
const NO_QUESTION = { sent: 0, unsent: 0 }

module.exports = { criticalPath }
