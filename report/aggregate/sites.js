'use strict'

// Sums by site: waits and runs on the critical paths of a route's requests. A site is a program frame with
// its callers, and the cause of the wait's end.

const { list, text } = require('../read/values')
const { BoundedMap, groupsOf, sum } = require('./lists')
const { quartilesOf } = require('./numbers')
const { sparse } = require('./time-axis')

/**
 * @typedef {import('./time-axis').Axis} Axis
 * @typedef {import('./critical-paths').SiteSums} SiteSums
 *
 * @typedef {object} Place a distinct site of a report
 * @property {string | undefined} at
 * @property {string[]} callers innermost first
 * @property {string | undefined} until
 * @property {string | undefined} label
 * @property {boolean} isListed false for placeholders without a site
 * @property {number} index in the list of all, after those of OTHER_SITES, UNKNOWN and BESIDE
 *
 * @typedef {object} Site
 * @property {string | undefined} at innermost program frame; absent if unknown
 * @property {string[]} callers program frames that led to it, innermost first
 * @property {string | undefined} until cause of the end of the waits
 * @property {string | undefined} label of the awaited operation
 * @property {number} ms sum of the waits, weighted
 * @property {number} share of the total time of the route, from 0 to 1
 * @property {number} count waits, weighted
 * @property {number} spans requests that waited there, weighted
 * @property {number} delayed ms in which the loop ran other code meanwhile, weighted
 * @property {{ min: number, q1: number, median: number, q3: number, max: number } | undefined} summary of the
 *   ms that one request waited there; undefined if requests were only delayed
 * @property {import('./time-axis').Sparse | undefined} byBucket ms and count over time; undefined if
 *   unknown
 *
 * @typedef {{ count: number, ms: number }} OtherSites count: sites; ms includes waits without a site in the
 *   line
 */

const MAX_PLACES = 20_000 // per report
const MAX_LISTED = 50
const [MAX_FRAME_CHARS, MAX_NAME_CHARS, MAX_LABEL_CHARS] = [500, 300, 100]
const MAX_CALLERS = 8

/** @param {string} name @param {number} index @returns {Place} */
const unlisted = (name, index) =>
  ({ at: undefined, callers: [], until: name, label: undefined, isListed: false, index })

/** Placeholders for times without a site in the line. */
const OTHER_SITES = unlisted('other sites', 0)
const UNKNOWN = unlisted('unknown', 1)
const BESIDE = unlisted('ran beside', 2)

/** Reads the site of a wait or run. @param {Record<string, any>} entry */
function siteTextsOf ({ at: frame, callers, until, label }) {
  const frames = list(callers, MAX_CALLERS).map((caller) => text(caller, MAX_FRAME_CHARS))
  return {
    at: text(frame, MAX_FRAME_CHARS),
    callers: frames.filter((caller) => caller !== undefined),
    until: text(until, MAX_NAME_CHARS),
    label: text(label, MAX_LABEL_CHARS)
  }
}

/** @param {Pick<Place, 'at' | 'callers'>} place @returns {string[]} innermost first */
function framesOf ({ at: frame, callers }) {
  return frame === undefined ? callers : [frame.replace(/ via \S+$/, ''), ...callers]
}

/** Distinct sites of a report. */
class Places {
  /** @type {BoundedMap<string, Place>} */
  #places = new BoundedMap(MAX_PLACES)
  #list = [OTHER_SITES, UNKNOWN, BESIDE]

  /**
   * Returns the place of a wait or run of a line, the same object for equal values.
   * @param {Record<string, any>} entry
   * @returns {Place} OTHER_SITES if there are too many
   */
  placeOf = (entry) => {
    const place = { ...siteTextsOf(entry), isListed: true, index: this.#list.length }
    const known = this.#places.find(keyOf(place), () => place)
    if (known === place) this.#list.push(place)
    return known ?? OTHER_SITES
  }

  get omitted () {
    return this.#places.omitted
  }

  /** Renames causes of ends of waits. @param {(until: string | undefined) => string | undefined} untilOf */
  rename (untilOf) {
    for (const place of this.#list.slice(3)) place.until = untilOf(place.until)
  }

  /** @param {number} index @returns {Place} */
  at (index) {
    return this.#list[index]
  }
}

/** @param {Pick<Place, 'at' | 'callers' | 'until' | 'label'>} place @returns {string} same for equal ones */
function keyOf ({ at: frame, callers, until, label }) {
  return JSON.stringify([frame, until, label, ...callers])
}

/**
 * Lists the sites of a route; sums of equal places are merged.
 * @param {SiteSums[]} sums
 * @param {number} totalMs of the route
 * @param {Axis | undefined} axis
 * @returns {{ sites: Site[], otherSites: OtherSites | undefined }}
 */
function listSites (sums, totalMs, axis) {
  const others = sums.filter(({ place }) => place === OTHER_SITES)
  const listed = sums.filter(({ place, waited, delayed }) => place.isListed && (waited > 0 || delayed > 0))
  const sites = groupsOf(listed, ({ place }) => keyOf(place)).map((group) => siteOf(group, totalMs))
  sites.sort((a, b) => b.ms - a.ms || b.delayed - a.delayed)
  const hidden = sites.slice(MAX_LISTED)
  const ms = sum(others, ({ waited }) => waited) + sum(hidden, (site) => site.ms)
  return {
    sites: sites.slice(0, MAX_LISTED).map(({ group, ...site }) => ({
      ...site,
      summary: quartilesOf(group.map(({ sample }) => sample)),
      byBucket: sparse(axis, group.map(({ times }) => times), 0, 1)
    })),
    otherSites: ms > 0 || hidden.length > 0 ? { count: hidden.length, ms } : undefined
  }
}

/** @param {SiteSums[]} group of equal places @param {number} totalMs */
function siteOf (group, totalMs) {
  const { isListed, index, ...site } = group[0].place
  const ms = sum(group, ({ waited }) => waited)
  return {
    ...site,
    ms,
    share: totalMs > 0 ? ms / totalMs : 0,
    count: sum(group, ({ waits }) => waits),
    spans: sum(group, ({ spans }) => spans),
    delayed: sum(group, ({ delayed }) => delayed),
    group
  }
}

module.exports = { BESIDE, MAX_PLACES, OTHER_SITES, Places, UNKNOWN, framesOf, listSites, siteTextsOf }
