'use strict'

// Figures of a span in the form of records and lines. Pure functions, also used by workers and commands.

const MAX_CONNECTIONS = 4 // of one entry
const MIN_WAIT = 0.001 // ms
const MIN_RANGE = 1 // ms, of a delay that is told as one
const MIN_LATE = 0.2 // ms of a delay of which it is told when it was
const MIN_SHARE = 1 / 50 // of the duration, of such a delay, and of who delayed the span
const FEW = 16
const UNKNOWN = 'unknown' // the subsystem of a wait where none is known

/**
 * @typedef {object} Place a frame
 * @property {string} function name, `<anonymous>`
 * @property {string} [file]
 * @property {number} [line]
 * @property {number} [column]
 * @property {string} [location] where a frame has no file with lines: `native`
 * @property {string} [via] the package that was called there
 *
 * @typedef {object} Site one object for equal ones
 * @property {Place | undefined} at
 * @property {Place[] | undefined} callers of the program, innermost first
 * @property {string | undefined} label of the step that was registered there
 *
 * @typedef {{ ms: number, delayed: number, count: number, site: Site }} SiteRun own code, by the site that
 *   led to it
 *
 * @typedef {object} Late a wait of which it is known when it was, in ms of any clock
 * @property {number} cameAfter when what it waited for had come, at the earliest
 * @property {number} cameBy at the latest
 * @property {number} until when it ended
 * @property {number} delayedMax ms for which others ran from then on, at most
 *
 * @typedef {[start: number, us: number, certain?: number]} Delay when a span was delayed, in microseconds:
 *   after its start, at the earliest, for how long at most, and the end of it that is certain
 */

/** Equal waits. */
class SiteWait {
  /**
   * @param {Site} site
   * @param {boolean} unproven that the wait began there, for what ended it was registered elsewhere
   * @param {string | undefined} until what ended it, as far as it is known: subsystem
   * @param {string | undefined} peer of the connection, address:port
   * @param {string | undefined} request another one, in whose run it ended
   */
  constructor (site, unproven, until, peer, request) {
    this.ms = 0
    /** ms in which others ran when what it waited for had come */
    this.delayed = 0
    /** the same, if that had come as early as may be */
    this.delayedMax = 0
    this.count = 0
    this.site = site
    this.unproven = unproven
    this.until = until
    this.peer = peer
    this.request = request
    /** asyncIds of the connections whose callbacks ended it @type {number[] | undefined} */
    this.on = undefined
    /** how many of them were waits for an answer: the request had sent something there */
    this.sent = 0
    /** ms before anything was sent for it on these connections */
    this.unsent = 0
    /** the request's runs meanwhile that are not on the path */
    this.beside = 0
  }

  /** @param {Pick<SiteWait, 'ms' | 'delayed' | 'delayedMax' | 'sent' | 'unsent' | 'beside'>} wait */
  add ({ ms, delayed, delayedMax, sent, unsent, beside }) {
    this.ms += ms
    this.delayed += delayed
    this.delayedMax += delayedMax
    this.count++
    this.sent += sent
    this.unsent += unsent
    this.beside += beside
  }

  /** @param {number} connection asyncId */
  addConnection (connection) {
    if (this.on === undefined) this.on = [connection]
    else if (this.on.length < MAX_CONNECTIONS && !this.on.includes(connection)) this.on.push(connection)
  }
}

/**
 * Returns the wait of a list of one place and end, which is added if there is none. What another request
 * ended is one, whatever that was.
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
 * Adds up own code by site.
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
 * Returns the run of a list of one site, which is added if there is none.
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
 * Sorts parts, worst first. Array.prototype.sort takes longer for few, and makes garbage.
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
 * Adds up waits by the subsystem that ended them, in whole microseconds.
 * @param {SiteWait[]} waits
 * @param {number} [waited] microseconds that they are, which rounded parts may miss by one each
 * @returns {{ sums: Record<string, number> | undefined, summed: number }} summed: all of them
 */
function sumsOf (waits, waited = NaN) {
  /** @type {Record<string, number>} */
  const sums = {}
  for (const { ms, until = UNKNOWN } of waits) {
    if (ms >= MIN_WAIT) sums[until] = (sums[until] ?? 0) + ms // else only others ran
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
 * Returns the end of a range, the same as its beginning where it is narrow.
 * @param {number} ms
 * @param {number} max
 */
function rangeEnd (ms, max) {
  return max - ms < MIN_RANGE ? ms : max
}

/**
 * Returns when a span was delayed, in order.
 * @param {Late[]} waits newest first
 * @param {number} zero of its times, in ms after the start of the span
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
 * Appends to a list of few: an empty one that grows takes room for 17.
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

/** Removes the properties that are undefined. @template {object} T @param {T} object @returns {T} */
function defined (object) {
  for (const key of Object.keys(object)) {
    if (/** @type {any} */ (object)[key] === undefined) delete /** @type {any} */ (object)[key]
  }
  return object
}

/** @param {number} ms @returns {number} whole microseconds */
const us = (ms) => Math.round(ms * 1000)
/** Rounds to microseconds. @param {number} ms */
const toMicros = (ms) => us(ms) / 1000

module.exports = {
  MIN_RANGE,
  MIN_SHARE,
  SiteWait,
  appended,
  defined,
  delaysOf,
  rangeEnd,
  runsBySite,
  sorted,
  sumsOf,
  toMicros,
  us,
  waitIn
}
