'use strict'

// What the lines of a file refer to (lib/encoding/definitions.js): the resource of who wrote them, stacks,
// types, attributes in common, and the sites of waits and runs. A span comes out as the object that listeners
// get, whatever its format. The content is not trusted: what is not defined is left out.

const { endText, placeText } = require('../../lib/text')
const { isRecord, list } = require('./values')

const MAX_SOURCES = 10_000
const MAX_CALLERS = 16
const UNSET = { code: 'UNSET' }

/**
 * @typedef {{ at: string | undefined, callers: string[] | undefined, label: string | undefined }} Site
 * @typedef {object} Source
 * @property {Record<string, unknown>} resource
 * @property {Map<number, string>} stacks
 * @property {Map<number, Site>} sites
 * @property {Map<number, Record<string, unknown>>} shared attributes
 * @property {Map<number, string>} types names
 */

class Definitions {
  /** @type {Map<string, Source>} */
  #sources = new Map()

  /**
   * Keeps what a line defines.
   * @param {any} line
   * @returns {boolean} whether it is such a line
   */
  add (line) {
    if (!isRecord(line) || typeof line.longstack !== 'number') return false
    const { source, resource, stack, text, site, shared: number, attributes: common, type, name } = line
    if (typeof source !== 'string') return true
    const { resource: attributes, stacks, sites, shared, types } = this.#sourceOf(source)
    if (typeof number === 'number' && isRecord(common)) shared.set(number, common)
    if (typeof type === 'number' && typeof name === 'string') types.set(type, name)
    if (isRecord(resource)) Object.assign(attributes, resource)
    if (typeof stack === 'number' && typeof text === 'string') stacks.set(stack, text)
    if (typeof site === 'number') sites.set(site, siteOf(line))
    return true
  }

  /** @param {string} id @returns {Source} */
  #sourceOf (id) {
    let source = this.#sources.get(id)
    if (source === undefined) {
      if (this.#sources.size >= MAX_SOURCES) this.#sources.clear()
      source = { resource: {}, stacks: new Map(), sites: new Map(), shared: new Map(), types: new Map() }
      this.#sources.set(id, source)
    }
    return source
  }

  /**
   * Puts in place what a span refers to.
   * @param {any} record of any format
   * @returns {any}
   */
  resolve (record) {
    if (!isRecord(record) || typeof record.source !== 'string') return record
    const { source, stack, shared: number, waits, ran, delays, runs, ...span } = record
    const { resource, stacks, sites, shared, types } = this.#sourceOf(source)
    const written = isRecord(span.attributes) ? span.attributes : {}
    /** @type {Record<string, any>} */
    const attributes = {
      'longstack.wait_ms': {},
      'longstack.waited_ms': sumOf(written['longstack.wait_ms']),
      'longstack.delayed_ms': 0,
      'longstack.delayed_by': [],
      ...shared.get(number),
      ...written
    }
    if (stacks.has(stack)) attributes['code.stacktrace'] = stacks.get(stack)
    attributes['longstack.waits'] = list(waits).map((wait) => partOf(wait, sites))
    if (ran !== undefined) attributes['longstack.ran'] = list(ran).map((run) => partOf(run, sites))
    if (delays !== undefined) {
      attributes['longstack.delays'] = list(delays).map((delay) => list(delay).map(toMs))
    }
    if (runs !== undefined) {
      attributes['longstack.runs'] = list(runs).filter(Array.isArray)
        .map(([start, length, type]) => [toMs(start), toMs(length), types.get(type) ?? 'unknown'])
    }
    return { status: UNSET, ...span, attributes, resource }
  }
}

/**
 * @param {any} part a wait or a run, in microseconds
 * @param {Map<number, Site>} sites
 */
function partOf (part, sites) {
  if (!isRecord(part)) return part
  const { us, delayed, delayed_max: delayedMax, unsent, site, until, peer, request, ...figures } = part
  const end = endText({ until: wordOf(until), peer: wordOf(peer), request: wordOf(request) })
  return {
    ms: toMs(us),
    count: 1,
    ...figures,
    ...(delayed === undefined ? {} : { delayed: toMs(delayed) }),
    ...(delayedMax === undefined ? {} : { delayed_max: toMs(delayedMax) }),
    ...(unsent === undefined ? {} : { unsent: toMs(unsent) }),
    ...sites.get(site),
    ...(end === undefined ? {} : { until: end })
  }
}

/** @param {unknown} us @returns {unknown} */
const toMs = (us) => typeof us === 'number' ? us / 1000 : us

/** @param {unknown} sums */
function sumOf (sums) {
  const values = isRecord(sums) ? Object.values(sums).filter((ms) => typeof ms === 'number') : []
  return Math.round(values.reduce((sum, ms) => sum + ms * 1000, 0)) / 1000
}

/** @param {unknown} value @returns {string | undefined} */
const wordOf = (value) => typeof value === 'string' ? value : undefined

/** @param {any} line @returns {Site} */
function siteOf ({ at: place, callers, label }) {
  const site = /** @type {Site} */ ({})
  if (isRecord(place)) site.at = placeText(place)
  if (Array.isArray(callers)) site.callers = callers.filter(isRecord).slice(0, MAX_CALLERS).map(placeText)
  if (typeof label === 'string') site.label = label
  return site
}

module.exports = { Definitions }
