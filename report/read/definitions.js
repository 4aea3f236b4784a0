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
 * @property {Map<number, string>} names of types and requests
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
    const { source, resource, stack, text, site, shared: number, attributes: common, name } = line
    if (typeof source !== 'string') return true
    const { resource: attributes, stacks, sites, shared, names } = this.#sourceOf(source)
    if (typeof number === 'number' && isRecord(common)) shared.set(number, common)
    if (typeof name === 'number' && typeof text === 'string') names.set(name, text)
    if (isRecord(resource)) Object.assign(attributes, resource)
    if (typeof stack === 'number' && typeof text === 'string') stacks.set(stack, text)
    if (typeof site === 'number') sites.set(site, siteOf(line))
    return true
  }

  /** @param {string} id @returns {Source} */
  #sourceOf (id) {
    const known = this.#sources.get(id)
    if (known !== undefined) return known
    if (this.#sources.size >= MAX_SOURCES) this.#sources.clear()
    const source = { resource: {}, stacks: new Map(), sites: new Map(), shared: new Map(), names: new Map() }
    this.#sources.set(id, source)
    return source
  }

  /**
   * Puts in place what a span refers to.
   * @param {any} record of any format
   * @returns {any}
   */
  resolve (record) {
    if (!isRecord(record) || typeof record.source !== 'string') return record
    const {
      source, stack, shared: number, start, duration, run, beside, wait, waited, delayed = 0,
      delayed_max: delayedMax, delayed_by: delayers, waits, asked, asked_more: more, ran, delays, runs,
      ...span
    } = record
    const { resource, stacks, sites, shared, names } = this.#sourceOf(source)
    const times = isRecord(wait) ? wait : {}
    const runLines = typeof runs === 'number' ? [[0, duration, runs]] : runs // a number: one callback
    /** @type {Record<string, any>} */
    const attributes = {
      ...shared.get(number),
      ...(isRecord(span.attributes) ? span.attributes : {}),
      'longstack.run_ms': toMs(run),
      'longstack.beside_ms': toMs(beside),
      'longstack.wait_ms': Object.fromEntries(Object.entries(times).map(([key, us]) => [key, toMs(us)])),
      'longstack.waited_ms': toMs(waited === undefined ? sumOf(times) : waited),
      'longstack.delayed_ms': toMs(delayed),
      'longstack.delayed_max_ms': toMs(delayedMax),
      'longstack.delayed_by': rows(delayers).map((line) => delayerOf(line, names)),
      'longstack.waits': list(waits).map((wait) => waitOf(wait, sites, names)),
      'longstack.asked': asked && rows(asked).map((line) => askedOf(line, duration, sites, names)),
      'longstack.asked_more': more && { count: more[0], ms: toMs(more[1]) },
      'longstack.ran': ran === null ? undefined : rows(ran).map((line) => runOf(line, sites)),
      'longstack.delays': delays && rows(delays).map((delay) => delay.map(toMs)),
      'longstack.runs': runLines && rows(runLines).map(([start, length, type, ...wait]) =>
        [toMs(start), toMs(length), names.get(type) ?? 'unknown', ...wait])
    }
    if (stacks.has(stack)) attributes['code.stacktrace'] = stacks.get(stack)
    if (start !== undefined) {
      span.startTimeUnixNano = nanosOf(start, 0)
      span.endTimeUnixNano = nanosOf(start, duration)
    }
    return { status: UNSET, kind: 'SERVER', ...span, attributes, resource }
  }
}

/** @param {unknown} lines @returns {any[][]} those that are lists */
const rows = (lines) => list(lines).filter(Array.isArray)

/** @param {any[]} run microseconds, site, count @param {Map<number, Site>} sites */
function runOf ([us, site, count = 1], sites) {
  return { ms: toMs(us), count, ...sites.get(site) }
}

/**
 * @param {any[]} line what was asked on a connection: microseconds; below 0: not answered when the span ended
 * @param {unknown} duration of the span, in microseconds
 * @param {Map<number, Site>} sites
 * @param {Map<number, string>} names
 */
function askedOf (line, duration, sites, names) {
  const [start, us, site, peer, connection, unsent = 0, out = 0, bytesIn = 0, operation, system] = line
  const end = typeof duration === 'number' ? duration - start : 0
  return {
    start: toMs(start),
    ms: toMs(us < 0 ? end : us),
    unanswered: us < 0 ? true : undefined,
    ...sites.get(site),
    peer: names.get(peer),
    connection,
    unsent: unsent > 0 ? toMs(unsent) : undefined,
    out: out > 0 ? out : undefined,
    in: bytesIn > 0 ? bytesIn : undefined,
    operation: names.get(operation),
    system: names.get(system)
  }
}

/**
 * @param {any} wait in microseconds
 * @param {Map<number, Site>} sites
 * @param {Map<number, string>} names
 */
function waitOf (wait, sites, names) {
  if (!isRecord(wait)) return wait
  const { us, delayed, delayed_max: delayedMax, unsent, site, until, peer, request, ...figures } = wait
  return {
    ms: toMs(us),
    count: 1,
    ...figures,
    delayed: toMs(delayed),
    delayed_max: toMs(delayedMax),
    unsent: toMs(unsent),
    ...sites.get(site),
    until: endText({ until: names.get(until), peer: wordOf(peer), request: names.get(request) })
  }
}

/**
 * @param {unknown} start seconds since 1970, and nanoseconds
 * @param {unknown} duration microseconds from there on
 * @returns {string | undefined} nanoseconds in decimal
 */
function nanosOf (start, duration) {
  const [seconds, ns] = list(start)
  if (![seconds, ns, duration].every((part) => Number.isFinite(part))) return undefined
  return String(BigInt(Math.round(seconds)) * 1_000_000_000n + BigInt(Math.round(ns)) +
    BigInt(Math.round(/** @type {number} */ (duration))) * 1000n)
}

/** @param {unknown} us @returns {unknown} */
const toMs = (us) => typeof us === 'number' ? us / 1000 : us

/** @param {Record<string, any>} sums @returns {number} */
function sumOf (sums) {
  return Object.values(sums).reduce((sum, us) => typeof us === 'number' ? sum + us : sum, 0)
}

/**
 * @param {any[]} line who delayed a span
 * @param {Map<number, string>} names
 */
function delayerOf ([us, spanId, name, max, at], names) {
  return {
    spanId: wordOf(spanId),
    name: names.get(name),
    ms: toMs(us),
    max: typeof us === 'number' && max > us ? toMs(max) : undefined,
    at: wordOf(at)
  }
}

/** @param {unknown} value @returns {string | undefined} */
const wordOf = (value) => typeof value === 'string' ? value : undefined

/** @param {any} line @returns {Site} */
function siteOf ({ at: place, callers, label }) {
  return {
    at: isRecord(place) ? placeText(place) : undefined,
    callers: callers && list(callers).filter(isRecord).slice(0, MAX_CALLERS).map(placeText),
    label: wordOf(label)
  }
}

module.exports = { Definitions }
