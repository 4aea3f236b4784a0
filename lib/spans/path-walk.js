'use strict'

// The parts of a critical path: back from the end of a span, from each run to the one that caused it. Between
// the beginnings of two runs lie the cause's own code, what else the request ran (beside the path), the wait
// until what it waited for had come, and from then on what the loop ran for others, which delayed it. The
// parts of all steps add up to the duration.

const { CALLBACK_CHAIN, OWN_QUESTION, REGISTERED, SETTLED, SETTLER, SITE } = require('./critical-path')

const MIN_PART = 0.001 // ms of a part that is reported

/**
 * @typedef {object} Wait a step of the path that was not own code
 * @property {number} ms until what it waited for had come
 * @property {number} delayed ms of others from then on
 * @property {number} delayedMax the same if it had come as early as may be: only polls of the loop are known
 * @property {number} cameAfter when it had come at the earliest, in ms since the counters began
 * @property {number} cameBy at the latest
 * @property {number} until when the run began
 * @property {number} own ms that the request ran meanwhile
 * @property {number} ownLate of these after it had come
 * @property {number} site number of the chain that was registered, 0: not known
 * @property {boolean} proven the run that ended it was registered there; else only that it came next is known
 * @property {number} callback asyncId of the resource whose callback ended it
 * @property {number} callbackChain
 * @property {number} settler number of the span of another request, in whose run it was settled
 * @property {number} sent 1: the request had sent something on the connection that ended it
 * @property {number} unsent ms before anything was sent for it on that connection
 * @property {number} beside the request's runs meanwhile that are not on the path
 *
 * @typedef {object} Counters at one moment, in ms
 * @property {number} idle the loop waited
 * @property {number} others it ran the code of others
 * @property {number} own it ran the request
 *
 * @typedef {object} Ending what ended a wait
 * @property {number} callback
 * @property {number} callbackChain
 * @property {number} cameBy
 * @property {number} cameAfter
 *
 * @typedef {object} Walked what of a span is read
 * @property {import('./critical-path').PathLog} log
 * @property {number} firstRun
 * @property {number} lastRun in which it ended, 0: it ended in none of its own
 * @property {number} runCount of the log by then
 * @property {number} idleAtStart
 * @property {number} busyAtStart
 * @property {number} ownAtStart
 * @property {Counters & Ending} endState and what the loop ran then
 * @property {number} run ms of the request's runs that are the span's
 */

/**
 * The parts of one path, in objects that serve one span after another: a span that is written makes no object
 * that its line does not need (bench/run.js, longstack-spans). Newest first.
 */
class Parts {
  constructor () {
    /** @type {Wait[]} */
    this.waits = []
    this.waitCount = 0
    /**
     * own code on the path: ms, and number of the chain whose registration led to it, 0: none, or not known
     * @type {Array<{ ms: number, site: number }>}
     */
    this.ran = []
    this.ranCount = 0
    /** ms of what ran beside the path */
    this.beside = 0
  }

  clear () {
    this.waitCount = this.ranCount = this.beside = 0
  }

  /** @returns {Wait} a further one, all of whose figures are to be set */
  nextWait () {
    if (this.waitCount === this.waits.length) this.waits.push({ ...NO_WAIT })
    return this.waits[this.waitCount++]
  }

  /** @param {number} ms @param {number} site */
  addRan (ms, site) {
    if (ms < MIN_PART) return
    if (this.ranCount === this.ran.length) this.ran.push({ ms, site })
    const ran = this.ran[this.ranCount++]
    ran.ms = ms
    ran.site = site
  }
}

/** @type {Wait} */
const NO_WAIT = {
  ms: 0,
  delayed: 0,
  delayedMax: 0,
  cameAfter: 0,
  cameBy: 0,
  until: 0,
  own: 0,
  ownLate: 0,
  site: 0,
  proven: false,
  callback: 0,
  callbackChain: 0,
  settler: 0,
  sent: 0,
  unsent: 0,
  beside: 0
}
const NO_ENDING = { callback: 0, callbackChain: 0, cameBy: 0, cameAfter: 0 }

const parts = new Parts()
/** the two moments between which a wait is, and what ended it */
const from = { idle: 0, others: 0, own: 0 }
const to = { idle: 0, others: 0, own: 0 }
const ending = { ...NO_ENDING }

/**
 * Returns the parts of a span's path, until the next one is walked.
 * @param {Walked} span that has ended
 * @returns {Parts}
 */
function walkPath (span) {
  parts.clear()
  walk(span)
  addOutside(span.endState.own - span.ownAtStart - span.run)
  return parts
}

/** @param {Walked} span */
function walk (span) {
  const { log, firstRun: first, lastRun: last, runCount: count, endState: end } = span
  let run = last === 0 ? count : last
  if (!log.has(run)) {
    setToStart(span)
    copy(end, to)
    addWait(log, 0, end, 0, false, 0)
    parts.addRan(end.own - span.ownAtStart, 0)
    return
  }
  if (last === 0 || end.idle - log.idleAt(run) >= MIN_PART) {
    setCounters(from, log, run)
    copy(end, to)
    addWait(log, 0, end, siteOf(log, run), false, 0)
  }
  addOwn(span, run, end.own)
  while (run > first) {
    const offset = log.offsetOf(run)
    const settled = log.words[offset + SETTLED]
    const registered = log.words[offset + REGISTERED]
    let cause = settled > registered && settled < run && settled >= first && log.has(settled) ? settled : 0
    const isContinuation = cause !== 0
    if (!isContinuation) cause = registered
    const proven = isContinuation || (cause >= first && cause < run && log.has(cause))
    if (!proven) cause = Math.max(first, run - 1)
    if (!log.has(cause)) break
    const site = siteOf(log, proven ? run : cause)
    const isOwnSite = proven || site === log.words[offset + SITE]
    ending.callback = log.callbackAt(run)
    ending.callbackChain = log.words[offset + CALLBACK_CHAIN]
    ending.cameBy = isContinuation ? 0 : log.cameBy(run)
    ending.cameAfter = isContinuation ? 0 : log.cameAfter(run)
    setCounters(from, log, cause)
    setCounters(to, log, run)
    const wait = addWait(log, run, ending, site, isOwnSite, log.words[offset + SETTLER])
    if (wait !== undefined && wait.ms >= MIN_PART && !isContinuation) addQuestion(wait, log, run, cause)
    addOwn(span, cause, to.own)
    run = cause
  }
  // What was before the oldest run that is still recorded.
  setToStart(span)
  setCounters(to, log, run)
  addWait(log, 0, NO_ENDING, 0, false, 0)
  parts.addRan(to.own - span.ownAtStart, 0)
}

/** @param {Counters} counters @param {Counters} target */
function copy ({ idle, others, own }, target) {
  target.idle = idle
  target.others = others
  target.own = own
}

/** @param {Walked} span */
function setToStart ({ idleAtStart, busyAtStart, ownAtStart }) {
  from.idle = idleAtStart
  from.others = busyAtStart - ownAtStart
  from.own = ownAtStart
}

/** @param {Counters} counters @param {import('./critical-path').PathLog} log @param {number} run its begin */
function setCounters (counters, log, run) {
  counters.idle = log.idleAt(run)
  counters.others = log.othersAt(run)
  counters.own = log.ownAt(run)
}

/**
 * Adds what was not own code between the two moments.
 * @param {import('./critical-path').PathLog} log
 * @param {number} run that began then, 0: none
 * @param {Ending} end
 * @param {number} site
 * @param {boolean} proven
 * @param {number} settler
 * @returns {Wait | undefined} undefined if there was none
 */
function addWait (log, run, end, site, proven, settler) {
  const idle = to.idle - from.idle
  const others = Math.max(0, to.others - from.others)
  if (idle < MIN_PART && others < MIN_PART) return undefined
  const begin = from.idle + from.others + from.own
  const until = to.idle + to.others + to.own
  const cameBy = Math.max(begin, Math.min(end.cameBy, until))
  const cameAfter = Math.max(begin, Math.min(end.cameAfter, cameBy))
  const own = to.own - from.own
  const ownLate = others < MIN_PART ? 0 : ownSince(log, run, cameBy, own)
  const delayed = Math.max(0, Math.min(others, until - cameBy - ownLate))
  const isExact = cameAfter === cameBy || others < MIN_PART
  const earliest = isExact ? delayed : until - cameAfter - ownSince(log, run, cameAfter, own)
  const wait = parts.nextWait()
  wait.ms = idle + others - delayed
  wait.delayed = delayed
  wait.delayedMax = Math.max(delayed, Math.min(others, earliest))
  wait.cameAfter = cameAfter
  wait.cameBy = cameBy
  wait.until = until
  wait.own = own
  wait.ownLate = ownLate
  wait.site = site
  wait.proven = proven
  wait.callback = end.callback
  wait.callbackChain = end.callbackChain
  wait.settler = settler
  wait.sent = wait.unsent = wait.beside = 0
  return wait
}

/**
 * Returns for how long the request ran between a moment and the beginning of a run. A run goes on from its
 * beginning; what it counts until the next one begins is its own.
 * @param {import('./critical-path').PathLog} log
 * @param {number} run 0: none
 * @param {number} since ms
 * @param {number} max ms
 */
function ownSince (log, run, since, max) {
  let own = 0
  for (let other = run - 1; own < max && log.has(other); other--) {
    const end = log.beginOf(other) + log.ownAt(other + 1) - log.ownAt(other)
    if (end > since) own += end - Math.max(since, log.beginOf(other))
    if (log.beginOf(other) <= since) break
  }
  return Math.min(own, max)
}

/** Adds what the request ran outside of a span inside of it, to its waits meanwhile. @param {number} ms */
function addOutside (ms) {
  if (ms < MIN_PART) return
  const { waits, waitCount } = parts
  let total = 0
  for (let i = 0; i < waitCount; i++) total += waits[i].own
  if (total < MIN_PART) {
    Object.assign(parts.nextWait(), NO_WAIT).ms = ms
    return
  }
  for (let i = 0; i < waitCount; i++) {
    const wait = waits[i]
    const late = wait.ownLate * ms / total
    wait.ms += wait.own * ms / total - late
    wait.delayed += late
    wait.delayedMax += late
  }
}

/**
 * Adds whether a wait was one for an answer, and how long nothing had been asked for it: a pool had no free
 * connection.
 * @param {Wait} wait
 * @param {import('./critical-path').PathLog} log
 * @param {number} run that ended it
 * @param {number} cause the run in which it began
 */
function addQuestion (wait, log, run, cause) {
  const sent = log.sentAt(run)
  const callback = log.callbackAt(run)
  // What runs before the loop waits is a part of the cause: ticks, the end of a request that has no body.
  for (let other = cause + 1; other < run; other++) {
    const isLater = log.idleAt(other) >= log.idleAt(cause) + MIN_PART
    if (isLater && log.callbackAt(other) !== callback) wait.beside++
  }
  if (sent === OWN_QUESTION) {
    wait.sent = 1
  } else if (sent === Infinity) {
    wait.unsent = wait.ms
  } else if (sent > log.idleAt(cause)) {
    wait.unsent = wait.ms * Math.min(1, (sent - log.idleAt(cause)) / (log.idleAt(run) - log.idleAt(cause)))
    wait.sent = 1
  }
}

/**
 * Adds what a run took, and what else the request ran until another moment.
 * @param {Walked} span
 * @param {number} run
 * @param {number} own ms that the request had run by then
 */
function addOwn ({ log, runCount }, run, own) {
  const following = run < runCount ? Math.min(log.ownAt(run + 1), own) : own
  parts.beside += own - following
  const offset = log.offsetOf(run)
  const isOwnSite = log.words[offset + REGISTERED] !== 0
  parts.addRan(following - log.ownAt(run), isOwnSite ? log.words[offset + SITE] : 0)
}

/** @param {import('./critical-path').PathLog} log @param {number} run @returns {number} number of a chain */
function siteOf (log, run) {
  return log.words[log.offsetOf(run) + SITE]
}

module.exports = { walkPath }
