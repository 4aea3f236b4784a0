'use strict'

// Sums by site: where the critical paths of a route's requests waited and ran. A site is a frame of the
// program with its callers, and what ended the wait.

const { Sample } = require('./sample')
const { sparse } = require('./times')

/**
 * @typedef {import('./digest').Wait} Wait
 *
 * @typedef {object} Place one for each different site of a report
 * @property {string | undefined} at
 * @property {string[]} callers innermost first
 * @property {string | undefined} until
 * @property {string | undefined} label
 * @property {boolean} isListed false: it stands for what has no site
 *
 * @typedef {object} Site
 * @property {string | undefined} at innermost frame of the program; absent if not known
 * @property {string[]} callers the program's frames that led to it, innermost first
 * @property {string | undefined} until what ended the waits
 * @property {string | undefined} label of what was waited for
 * @property {number} ms sum of the waits, weighted
 * @property {number} share of the total time of the route, from 0 to 1
 * @property {number} count waits, weighted
 * @property {number} spans requests that waited there, weighted
 * @property {number} delayed ms in which the loop ran the code of others meanwhile, weighted
 * @property {{ min: number, q1: number, median: number, q3: number, max: number } | undefined} summary of the
 *   ms that one request waited there; undefined if it was only delayed
 * @property {import('./times').Sparse | undefined} byBucket ms and count along time; undefined if not known
 *
 * @typedef {{ count: number, ms: number }} OtherSites count: sites; ms also of waits of which a line has no
 *   site
 */

const MAX_PLACES = 20_000 // of a report
const MAX_LISTED = 50

/** @param {string} name @returns {Place} */
const unlisted = (name) => ({ at: undefined, callers: [], until: name, label: undefined, isListed: false })

/** Stand for what a line has no site of. */
const OTHER_SITES = unlisted('other sites')
const UNKNOWN = unlisted('unknown')
const BESIDE = unlisted('ran beside')

/** The different sites of a report. */
class Places {
  omitted = 0
  /** @type {Map<string, Place>} */
  #places = new Map()

  /**
   * @param {string | undefined} at
   * @param {string[]} callers
   * @param {string | undefined} until
   * @param {string | undefined} label
   * @returns {Place} the same one for equal values; OTHER_SITES if there are too many
   */
  find (at, callers, until, label) {
    const key = JSON.stringify([at, until, label, ...callers])
    const existing = this.#places.get(key)
    if (existing !== undefined) return existing
    if (this.#places.size >= MAX_PLACES) {
      this.omitted++
      return OTHER_SITES
    }
    const place = { at, callers, until, label, isListed: true }
    this.#places.set(key, place)
    return place
  }
}

/** What the requests of a route spent at one place, weighted. */
class SiteSums {
  waited = 0
  waits = 0
  spans = 0
  delayed = 0
  ran = 0
  callbacks = 0
  sample = new Sample()
  /** @type {Array<{ ms: number, traceId: string }>} longest first */
  examples = []
  /** Waited, waits, delayed and ran. @type {import('./times').Times | undefined} */
  times

  /** @param {Place} place */
  constructor (place) {
    this.place = place
  }
}

/**
 * @param {SiteSums[]} sums
 * @param {number} totalMs of the route
 * @param {import('./time-axis').Axis | undefined} axis
 * @returns {{ sites: Site[], otherSites: OtherSites | undefined }}
 */
function listSites (sums, totalMs, axis) {
  const waited = sums.filter(({ place, waited, delayed }) => place !== UNKNOWN && (waited > 0 || delayed > 0))
  const listed = waited.filter(({ place }) => place.isListed).sort(worstFirst)
  const others = [...listed.slice(MAX_LISTED), ...waited.filter(({ place }) => !place.isListed)]
  const ms = others.reduce((sum, { waited }) => sum + waited, 0)
  const count = Math.max(0, listed.length - MAX_LISTED)
  return {
    sites: listed.slice(0, MAX_LISTED).map((site) => siteOf(site, totalMs, axis)),
    otherSites: count > 0 || ms > 0 ? { count, ms } : undefined
  }
}

/** @param {SiteSums} a @param {SiteSums} b */
function worstFirst (a, b) {
  return b.waited - a.waited || b.delayed - a.delayed
}

/**
 * @param {SiteSums} sums
 * @param {number} totalMs
 * @param {import('./time-axis').Axis | undefined} axis
 * @returns {Site}
 */
function siteOf ({ place, waited: ms, waits: count, spans, delayed, sample, times }, totalMs, axis) {
  const { at: frame, callers, until, label } = place
  const share = totalMs > 0 ? ms / totalMs : 0
  const byBucket = axis && times && sparse(times.list(axis, 0), times.list(axis, 1))
  const summary = sample.summary()
  return { at: frame, callers, until, label, ms, share, count, spans, delayed, summary, byBucket }
}

module.exports = { BESIDE, OTHER_SITES, Places, SiteSums, UNKNOWN, listSites }
