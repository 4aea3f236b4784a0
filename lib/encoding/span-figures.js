'use strict'

// Figures of a span in the form of records and lines. Pure functions, also used by workers and commands.

const MAX_CONNECTIONS = 4 // per wait
const MIN_WAIT = 0.001 // ms
const MIN_RANGE = 1 // ms between minimum and maximum; closer values are reported as one
const MIN_LATE = 0.2 // minimum ms of a delay that is reported with its time
const MIN_SHARE = 1 / 50 // fraction of the duration, for such a delay and for its causes
const FEW = 16
const UNKNOWN = 'unknown' // subsystem of a wait if unknown

/**
 * @typedef {object} Place a frame
 * @property {string} function name, `<anonymous>`
 * @property {string} [file]
 * @property {number} [line]
 * @property {number} [column]
 * @property {string} [location] for a frame without a file with lines: `native`
 * @property {string} [via] package called there
 *
 * @typedef {object} Site equal sites share one object
 * @property {Place | undefined} at
 * @property {Place[] | undefined} callers of the program, innermost first
 * @property {string | undefined} label of the step registered there
 *
 * @typedef {{ ms: number, delayed: number, count: number, site: Site }} SiteRun own code, by the site that
 *   led to it
 *
 * @typedef {object} Late a wait with a known time, in ms of any clock
 * @property {number} cameAfter earliest time at which the awaited event had come
 * @property {number} cameBy latest such time
 * @property {number} until time of its end
 * @property {number} delayedMax maximum ms in which other code ran after the event
 *
 * @typedef {[start: number, us: number, certain?: number]} Delay delay of a span, in microseconds:
 *   earliest start after the span's start, maximum length, and the certain part at its end
 */

/** Sum of equal waits. */
class SiteWait {
  /**
   * @param {Site} site
   * @param {boolean} unproven whether its start there is uncertain because its end was registered elsewhere
   * @param {string | undefined} until subsystem that ended it, if known
   * @param {string | undefined} peer of the connection, address:port
   * @param {string | undefined} request another request that was running when it ended
   */
  constructor (site, unproven, until, peer, request) {
    this.ms = 0
    /** ms in which other code ran after the awaited event had come */
    this.delayed = 0
    /** the same for the earliest possible time of the event */
    this.delayedMax = 0
    this.count = 0
    this.site = site
    this.unproven = unproven
    this.until = until
    this.peer = peer
    this.request = request
    /** asyncIds of the connections whose callbacks ended it @type {number[] | undefined} */
    this.on = undefined
    /** number of waits for a response: the request had sent something there */
    this.sent = 0
    /** ms before anything was sent for it on these connections */
    this.unsent = 0
    /** number of waits for which another request sent a query: a queue of jobs */
    this.jobs = 0
    /** ms until own HTTP calls had opened their connection */
    this.opening = 0
    /** runs of the request off the critical path meanwhile */
    this.beside = 0
  }

  /** @param {Omit<import('../../report/path/critical-path').Wait, 'site'>} wait */
  add ({ ms, delayed, delayedMax, sent, unsent, jobs, opening, beside }) {
    this.ms += ms
    this.delayed += delayed
    this.delayedMax += delayedMax
    this.count++
    this.sent += sent
    this.unsent += unsent
    this.jobs += jobs
    this.opening += opening
    this.beside += beside
  }

  /** @param {number} connection asyncId */
  addConnection (connection) {
    if (this.on === undefined) this.on = [connection]
    else if (this.on.length < MAX_CONNECTIONS && !this.on.includes(connection)) this.on.push(connection)
  }
}

/**
 * Returns the wait with this site and end from a list, or adds it. Waits ended by another request count as
 * one, whatever their end.
 * @param {SiteWait[]} waits
 * @param {Site} site
 * @param {boolean} unproven
 * @param {string | undefined} until
 * @param {string | undefined} peer
 * @param {string | undefined} request
 */
function waitIn (waits, site, unproven, until, peer, request) {
  for (let i = 0; i < waits.length; i++) {
    const wait = waits[i]
    if (wait.site !== site || wait.unproven !== unproven || wait.request !== request) continue
    if (request !== undefined || (wait.until === until && wait.peer === peer)) return wait
  }
  const wait = new SiteWait(site, unproven, until, peer, request)
  waits.push(wait)
  return wait
}

/**
 * Sums own code by site.
 * @param {Array<{ ms: number, site: number }>} ran by the chain that led to it
 * @param {(chain: number) => Site} siteOf
 * @returns {SiteRun[]} worst first
 */
function runsBySite (ran, siteOf) {
  /** @type {SiteRun[]} */
  const runs = []
  for (const { ms, site: chain } of ran) {
    const run = runAt(runs, siteOf(chain))
    run.ms += ms
    run.count++
  }
  return sorted(runs)
}

/**
 * Returns the run of a site from a list, or adds it.
 * @param {SiteRun[]} runs
 * @param {Site} site
 */
function runAt (runs, site) {
  for (const run of runs) if (run.site === site) return run
  const run = { ms: 0, delayed: 0, count: 0, site }
  runs.push(run)
  return run
}

/** @typedef {{ ms: number, delayed: number }} Part */
/** @param {Part} a @param {Part} b */
const longestFirst = (a, b) => b.ms + b.delayed - a.ms - a.delayed

/**
 * Sorts parts, worst first. For short lists, Array.prototype.sort is slower and creates garbage.
 * @template {Part} T
 * @param {T[]} parts
 */
function sorted (parts) {
  if (parts.length > FEW) return parts.sort(longestFirst)
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i]
    let place = i
    while (place > 0 && longestFirst(parts[place - 1], part) > 0) parts[place] = parts[--place]
    parts[place] = part
  }
  return parts
}

/**
 * Sums waits by the subsystem that ended them, in whole microseconds.
 * @param {SiteWait[]} waits
 * @param {number} [waited] their total in microseconds; each rounded part may add an error of one
 * @returns {{ sums: Record<string, number> | undefined, summed: number }} summed: total of the sums
 */
function sumsOf (waits, waited = NaN) {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const { ms, until = UNKNOWN } of waits) {
    if (ms >= MIN_WAIT) sums[until] = (sums[until] ?? 0) + ms // otherwise only other code ran
  }
  const subsystems = Object.keys(sums)
  let [longest] = subsystems
  if (longest === undefined) return { sums: undefined, summed: 0 }
  let summed = 0
  for (const subsystem of subsystems) {
    sums[subsystem] = us(sums[subsystem])
    summed += sums[subsystem]
    if (sums[subsystem] > sums[longest]) longest = subsystem
  }
  if (!(Math.abs(waited - summed) <= subsystems.length)) return { sums, summed }
  sums[longest] += waited - summed
  return { sums, summed: waited }
}

/**
 * Returns the end of a range, or its beginning if it is narrow.
 * @param {number} ms
 * @param {number} max
 */
function rangeEnd (ms, max) {
  return max - ms < MIN_RANGE ? ms : max
}

/**
 * Returns the delays of a span, in order of time.
 * @param {Late[]} waits newest first
 * @param {number} zero of the times of waits, in ms after the start of the span
 * @param {number} duration ms
 */
function delaysOf (waits, zero, duration) {
  const min = Math.max(MIN_LATE, duration * MIN_SHARE)
  /** @type {Delay[] | undefined} */
  let delays
  for (let i = waits.length - 1; i >= 0; i--) {
    const { cameAfter, cameBy, delayedMax, until } = waits[i]
    const ms = rangeEnd(until - cameBy, until - cameAfter)
    if (ms < min || delayedMax === 0) continue
    const certain = until - cameBy
    const [start, length] = [us(zero + until - ms), us(ms)]
    delays = appended(delays, certain < ms ? [start, length, us(certain)] : [start, length])
  }
  return delays
}

/**
 * Appends to a short list: an empty array that grows allocates 17 elements.
 * @template T
 * @param {T[] | undefined} list
 * @param {T} item
 * @returns {T[]}
 */
function appended (list, item) {
  if (list === undefined) return [item]
  list.push(item)
  return list
}

/** Removes undefined properties. @template {object} T @param {T} object @returns {T} */
function defined (object) {
  for (const key of Object.keys(object)) {
    if (/** @type {any} */ (object)[key] === undefined) delete /** @type {any} */ (object)[key]
  }
  return object
}

/** @param {number} ms @returns {number} whole microseconds */
const us = (ms) => Math.round(ms * 1000)

module.exports = {
  MIN_RANGE,
  MIN_SHARE,
  SiteWait,
  defined,
  delaysOf,
  rangeEnd,
  runsBySite,
  sorted,
  sumsOf,
  us,
  waitIn
}
