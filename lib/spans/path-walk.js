'use strict'

// The parts of a critical path: back from the end of a span, from each run to the one that caused it. Between
// the beginnings of two runs lie the cause's own code, what else the request ran (beside the path), what the
// loop ran for others (delayed), and its waiting. The parts of all steps add up to the duration.

const { CALLBACK_CHAIN, OWN_QUESTION, REGISTERED, SETTLED, SETTLER, SITE } = require('./critical-path')

const MIN_PART = 0.001 // ms of a part that is reported

/**
 * @typedef {object} Wait a step of the path in which the loop waited, or ran others
 * @property {number} ms
 * @property {number} delayed ms in which the loop ran others
 * @property {number} site number of the chain that was registered, 0: not known
 * @property {boolean} proven the run that ended it was registered there; else only that it came next is known
 * @property {number} callback asyncId of the resource whose callback ended it
 * @property {number} callbackChain
 * @property {number} settler number of the span of another request, in whose run it was settled
 * @property {number} sent 1: the request had sent something on the connection that ended it
 * @property {number} unsent ms before anything was sent for it on that connection
 * @property {number} beside the request's runs meanwhile that are not on the path
 *
 * @typedef {object} Ran own code on the path
 * @property {number} ms
 * @property {number} site number of the chain whose registration led to it, 0: none, or not known
 *
 * @typedef {object} Counters at one moment, in ms
 * @property {number} idle the loop waited
 * @property {number} others it ran the code of others
 * @property {number} own it ran the request
 *
 * @typedef {object} Section what of a log is a span's
 * @property {import('./critical-path').PathLog} log
 * @property {number} first run of the span
 * @property {number} last run in which it ended, 0: it ended in none of its own
 * @property {number} count of runs by then
 * @property {Counters} start
 * @property {Counters & { callback: number, callbackChain: number }} end and what the loop ran then
 *
 * @typedef {{ waits: Wait[], ran: Ran[], beside: number }} Parts newest first; ms of what ran beside the path
 */

/**
 * Returns the parts of a span's path.
 * @param {Section} section
 * @returns {Parts}
 */
function walkPath (section) {
  const { log, first, last, count, start, end } = section
  /** @type {Parts} */
  const parts = { waits: [], ran: [], beside: 0 }
  let run = last === 0 ? count : last
  if (!log.has(run)) {
    addWait(parts, end.idle - start.idle, end.others - start.others, 0, false, 0, end)
    addRan(parts, end.own - start.own, 0)
    return parts
  }
  const idle = end.idle - log.idleAt(run)
  if (last === 0 || idle >= MIN_PART) {
    addWait(parts, idle, end.others - log.othersAt(run), siteOf(log, run), false, 0, end)
  }
  addOwn(parts, section, run, end.own)
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
    const ending = {
      callback: log.callbackAt(run),
      callbackChain: log.words[offset + CALLBACK_CHAIN]
    }
    const wait = addWait(parts, log.idleAt(run) - log.idleAt(cause), log.othersAt(run) - log.othersAt(cause),
      site, isOwnSite, log.words[offset + SETTLER], ending)
    if (wait !== undefined && wait.ms >= MIN_PART && !isContinuation) addQuestion(wait, log, run, cause)
    addOwn(parts, section, cause, log.ownAt(run))
    run = cause
  }
  // What was before the oldest run that is still recorded.
  addWait(parts, log.idleAt(run) - start.idle, log.othersAt(run) - start.others, 0, false, 0, NO_CALLBACK)
  addRan(parts, log.ownAt(run) - start.own, 0)
  return parts
}

const NO_CALLBACK = { callback: 0, callbackChain: 0 }

/**
 * @param {Parts} parts
 * @param {number} ms
 * @param {number} delayed
 * @param {number} site
 * @param {boolean} proven
 * @param {number} settler
 * @param {{ callback: number, callbackChain: number }} ending
 * @returns {Wait | undefined} undefined if there was none
 */
function addWait ({ waits }, ms, delayed, site, proven, settler, { callback, callbackChain }) {
  if (ms < MIN_PART && delayed < MIN_PART) return undefined
  const wait = {
    ms,
    delayed: Math.max(0, delayed),
    site,
    proven,
    callback,
    callbackChain,
    settler,
    sent: 0,
    unsent: 0,
    beside: 0
  }
  waits.push(wait)
  return wait
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
    wait.unsent = Math.min(wait.ms, sent - log.idleAt(cause))
    wait.sent = 1
  }
}

/**
 * Adds what a run took, and what else the request ran until another moment.
 * @param {Parts} parts
 * @param {Section} section
 * @param {number} run
 * @param {number} own ms that the request had run by then
 */
function addOwn (parts, { log, count }, run, own) {
  const following = run < count ? Math.min(log.ownAt(run + 1), own) : own
  parts.beside += own - following
  const offset = log.offsetOf(run)
  const isOwnSite = log.words[offset + REGISTERED] !== 0
  addRan(parts, following - log.ownAt(run), isOwnSite ? log.words[offset + SITE] : 0)
}

/** @param {Parts} parts @param {number} ms @param {number} site */
function addRan ({ ran }, ms, site) {
  if (ms >= MIN_PART) ran.push({ ms, site })
}

/** @param {import('./critical-path').PathLog} log @param {number} run @returns {number} number of a chain */
function siteOf (log, run) {
  return log.words[log.offsetOf(run) + SITE]
}

module.exports = { MIN_PART, walkPath }
