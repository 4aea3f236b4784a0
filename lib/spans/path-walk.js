'use strict'

// The parts of a critical path: back from the end of a span, from each run to the one that caused it. Between
// the beginnings of two runs lie the cause's own code, what else the request ran (beside the path), the wait
// until what it waited for had come, and from then on what the loop ran for others, which delayed it. The
// parts of all steps add up to the duration.

const {
  CALLBACK, CALLBACK_CHAIN, CAME_AFTER, CAME_BY, IDLE, OTHERS, OWN, OWN_QUESTION, REGISTERED, SENT, SETTLED,
  SETTLER, SITE
} = require('./critical-path')

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

const NO_ENDING = { callback: 0, callbackChain: 0, cameBy: 0, cameAfter: 0 }
const NO_QUESTION = { sent: 0, unsent: 0, beside: 0 }
const NOTHING = { idle: 0, others: 0, own: 0 }

/** of the path that is walked, newest first @type {Wait[]} */
let waits = []
/**
 * own code on the path: ms, and number of the chain whose registration led to it, 0: none, or not known
 * @type {Array<{ ms: number, site: number }>}
 */
let ran = []
/** ms of what ran beside the path */
let beside = 0
/** the two moments between which a wait is @type {Counters} */
let from = NOTHING
/** @type {Counters} */
let to = NOTHING

/** Returns the parts of a span's path. @param {Walked} span that has ended */
function walkPath (span) {
  waits = []
  ran = []
  beside = 0
  walk(span)
  addOutside(span)
  return { waits, ran, beside }
}

/** @param {Walked} span */
function walk (span) {
  const { log, firstRun: first, lastRun: last, runCount: count, endState: end } = span
  const start = { idle: span.idleAtStart, others: span.busyAtStart - span.ownAtStart, own: span.ownAtStart }
  let run = last === 0 ? count : last
  to = end
  if (!log.has(run)) {
    from = start
    addWait(log, 0, end, 0, false, 0)
    addRan(end.own - start.own, 0)
    return
  }
  from = countersAt(log, run)
  if (last === 0 || end.idle - from.idle >= MIN_PART) addWait(log, 0, end, log.wordAt(run, SITE), false, 0)
  addOwn(span, run, end.own)
  while (run > first) {
    to = from
    const settled = log.wordAt(run, SETTLED)
    const registered = log.wordAt(run, REGISTERED)
    let cause = settled > registered && settled < run && settled >= first && log.has(settled) ? settled : 0
    const isContinuation = cause !== 0
    if (!isContinuation) cause = registered
    const proven = isContinuation || (cause >= first && cause < run && log.has(cause))
    if (!proven) cause = Math.max(first, run - 1)
    if (!log.has(cause)) break
    const site = log.wordAt(proven ? run : cause, SITE)
    const isOwnSite = proven || site === log.wordAt(run, SITE)
    const ending = {
      callback: log.timeAt(run, CALLBACK),
      callbackChain: log.wordAt(run, CALLBACK_CHAIN),
      cameBy: isContinuation ? 0 : log.timeAt(run, CAME_BY),
      cameAfter: isContinuation ? 0 : log.timeAt(run, CAME_AFTER)
    }
    from = countersAt(log, cause)
    addWait(log, run, ending, site, isOwnSite, log.wordAt(run, SETTLER), isContinuation ? 0 : cause)
    addOwn(span, cause, to.own)
    run = cause
  }
  // What was before the oldest run that is still recorded.
  to = from
  from = start
  addWait(log, 0, NO_ENDING, 0, false, 0)
  addRan(to.own - start.own, 0)
}

/** @param {import('./critical-path').PathLog} log @param {number} run @returns {Counters} at its begin */
const countersAt = (log, run) =>
  ({ idle: log.timeAt(run, IDLE), others: log.timeAt(run, OTHERS), own: log.timeAt(run, OWN) })

/** @param {number} ms @param {number} site */
function addRan (ms, site) {
  if (ms >= MIN_PART) ran.push({ ms, site })
}

/**
 * Adds what was not own code between the two moments.
 * @param {import('./critical-path').PathLog} log
 * @param {number} run that began then, 0: none
 * @param {Ending} end
 * @param {number} site
 * @param {boolean} proven
 * @param {number} settler
 * @param {number} [cause] run that may have asked what this one answers
 */
function addWait (log, run, end, site, proven, settler, cause = 0) {
  const idle = to.idle - from.idle
  const others = Math.max(0, to.others - from.others)
  if (idle < MIN_PART && others < MIN_PART) return
  const begin = from.idle + from.others + from.own
  const until = to.idle + to.others + to.own
  const cameBy = Math.max(begin, Math.min(end.cameBy, until))
  const cameAfter = Math.max(begin, Math.min(end.cameAfter, cameBy))
  const own = to.own - from.own
  const ownLate = others < MIN_PART ? 0 : ownSince(log, run, cameBy, own)
  const delayed = Math.max(0, Math.min(others, until - cameBy - ownLate))
  const isExact = cameAfter === cameBy || others < MIN_PART
  const earliest = isExact ? delayed : until - cameAfter - ownSince(log, run, cameAfter, own)
  const ms = idle + others - delayed
  const question = cause !== 0 && ms >= MIN_PART ? questionOf(log, run, cause, ms) : NO_QUESTION
  waits.push({
    ms,
    delayed,
    delayedMax: Math.max(delayed, Math.min(others, earliest)),
    cameAfter,
    cameBy,
    until,
    own,
    ownLate,
    site,
    proven,
    callback: end.callback,
    callbackChain: end.callbackChain,
    settler,
    sent: question.sent,
    unsent: question.unsent,
    beside: question.beside
  })
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
    const end = log.beginOf(other) + log.timeAt(other + 1, OWN) - log.timeAt(other, OWN)
    if (end > since) own += end - Math.max(since, log.beginOf(other))
    if (log.beginOf(other) <= since) break
  }
  return Math.min(own, max)
}

/** Adds what the request ran outside of a span inside of it, to its waits meanwhile. @param {Walked} span */
function addOutside ({ log, endState, ownAtStart, run }) {
  const ms = endState.own - ownAtStart - run
  if (ms < MIN_PART) return
  const total = waits.reduce((sum, { own }) => sum + own, 0)
  if (total < MIN_PART) {
    from = NOTHING
    to = { ...NOTHING, idle: ms }
    addWait(log, 0, NO_ENDING, 0, false, 0)
    return
  }
  for (const wait of waits) {
    const late = wait.ownLate * ms / total
    wait.ms += wait.own * ms / total - late
    wait.delayed += late
    wait.delayedMax += late
  }
}

/**
 * Returns whether a wait was one for an answer, and how long nothing had been asked for it: a pool had no
 * free connection.
 * @param {import('./critical-path').PathLog} log
 * @param {number} run that ended it
 * @param {number} cause the run in which it began
 * @param {number} ms
 */
function questionOf (log, run, cause, ms) {
  const sent = log.timeAt(run, SENT)
  const begin = log.timeAt(cause, IDLE)
  const callback = log.timeAt(run, CALLBACK)
  let others = 0
  // What runs before the loop waits is a part of the cause: ticks, the end of a request that has no body.
  for (let other = cause + 1; other < run; other++) {
    if (log.timeAt(other, IDLE) >= begin + MIN_PART && log.timeAt(other, CALLBACK) !== callback) others++
  }
  if (sent === Infinity) return { sent: 0, unsent: ms, beside: others }
  const unsent = sent > begin ? ms * Math.min(1, (sent - begin) / (log.timeAt(run, IDLE) - begin)) : 0
  return { sent: sent > begin || sent === OWN_QUESTION ? 1 : 0, unsent, beside: others }
}

/**
 * Adds what a run took, and what else the request ran until another moment.
 * @param {Walked} span
 * @param {number} run
 * @param {number} own ms that the request had run by then
 */
function addOwn ({ log, runCount }, run, own) {
  const following = run < runCount ? Math.min(log.timeAt(run + 1, OWN), own) : own
  beside += own - following
  const isOwnSite = log.wordAt(run, REGISTERED) !== 0
  addRan(following - log.timeAt(run, OWN), isOwnSite ? log.wordAt(run, SITE) : 0)
}

module.exports = { walkPath }
