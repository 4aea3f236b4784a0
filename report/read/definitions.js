'use strict'

// Resolves the references in the lines of a file (lib/encoding/definitions.js): the writer's resource,
// stacks, types, shared attributes, and the sites of waits and runs. A resolved span is the object that
// listeners get, whatever its format. The content is not trusted: undefined references are left out.
//
// Memory is bounded whatever a file defines. A writer switches to a new source before its definitions exceed
// 1 MB, so the least recently used sources are dropped first.

const { endText, placeText } = require('../../lib/text')
const { isRecord, list } = require('./values')

const MAX_CALLERS = 16
const MAX_BYTES = 256 << 20 // all definitions of a file, as an upper estimate
const ENTRY_BYTES = 200 // overhead of a map entry
const SOURCE_BYTES = 2000
const BYTES_OF_TEXT = 2 // text: for each character of a line
const BYTES_OF_OBJECTS = 24 // objects: bytes that `{}` takes per character
const UNSET = { code: 'UNSET' }

/**
 * @typedef {{ at: string | undefined, callers: string[] | undefined, label: string | undefined }} Site
 * @typedef {object} Source
 * @property {Record<string, unknown> | undefined} resource
 * @property {Map<number, string>} stacks
 * @property {Map<number, Site>} sites
 * @property {Map<number, Record<string, unknown>>} shared attributes
 * @property {Map<number, string>} names of types and requests
 * @property {number} bytes
 */

class Definitions {
  /** least recently used first @type {Map<string, Source>} */
  #sources = new Map()
  #bytes = 0
  #hasDropped = false
  /** spans of unknown source since sources were dropped */
  unresolved = 0

  /**
   * Stores the definitions of a line. A number that is already defined is skipped: a rotated file starts with
   * all definitions again.
   * @param {any} line
   * @param {number} [size] characters of the line
   * @returns {boolean} whether the line is a definition
   */
  add (line, size = 0) {
    if (!isRecord(line) || typeof line.longstack !== 'number') return false
    const { source, resource, stack, text, site, shared: number, attributes: common, name } = line
    if (typeof source !== 'string') return true
    const target = this.#known(source) ?? this.#create(source)
    const { stacks, sites, shared, names } = target
    const [textBytes, objectBytes] = [size * BYTES_OF_TEXT, size * BYTES_OF_OBJECTS]
    this.#define(target, stacks, stack, wordOf(text), textBytes)
    this.#define(target, names, name, wordOf(text), textBytes)
    this.#define(target, sites, site, typeof site === 'number' ? siteOf(line) : undefined, textBytes)
    this.#define(target, shared, number, recordOf(common), objectBytes)
    if (isRecord(resource) && target.resource === undefined) {
      target.resource = resource
      this.#grow(target, objectBytes)
    }
    return true
  }

  /**
   * @template T
   * @param {Source} source
   * @param {Map<number, T>} definitions a map of the source
   * @param {unknown} number
   * @param {T | undefined} value
   * @param {number} bytes estimated size
   */
  #define (source, definitions, number, value, bytes) {
    if (typeof number !== 'number' || value === undefined || definitions.has(number)) return
    definitions.set(number, value)
    this.#grow(source, ENTRY_BYTES + bytes)
  }

  /** Returns a source, and marks it as used. @param {string} id @returns {Source | undefined} */
  #known (id) {
    const source = this.#sources.get(id)
    if (source === undefined) return undefined
    this.#sources.delete(id)
    this.#sources.set(id, source)
    return source
  }

  /** @param {string} id @returns {Source} */
  #create (id) {
    const source = emptySource()
    this.#sources.set(id, source)
    this.#grow(source, SOURCE_BYTES + id.length * BYTES_OF_TEXT)
    return source
  }

  /** Returns an empty source. */
  #missing () {
    if (this.#hasDropped) this.unresolved++
    return NO_SOURCE
  }

  /** @param {Source} source @param {number} bytes */
  #grow (source, bytes) {
    source.bytes += bytes
    this.#bytes += bytes
    for (const [id, oldest] of this.#sources) {
      if (this.#bytes <= MAX_BYTES) return
      this.#sources.delete(id)
      this.#bytes -= oldest.bytes
      this.#hasDropped = true
    }
  }

  /**
   * Replaces the references of a span with their values.
   * @param {any} record in any format
   * @returns {any}
   */
  resolve (record) {
    if (!isRecord(record) || typeof record.source !== 'string') return record
    const {
      source, stack, shared: number, start, duration, run, beside, wait, waited, delayed = 0,
      delayed_max: delayedMax, delayed_by: delayers, waits, asked, asked_more: more, ran, delays, runs,
      ...span
    } = record
    const { resource = {}, stacks, sites, shared, names } = this.#known(source) ?? this.#missing()
    const times = isRecord(wait) ? wait : {}
    const runLines = typeof runs === 'number' ? [[0, duration, runs]] : runs // a number is one callback
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
      'longstack.asked_more': Array.isArray(more) ? { count: more[0], ms: toMs(more[1]) } : undefined,
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

/** @param {unknown} lines @returns {any[][]} the lines that are lists */
const rows = (lines) => list(lines).filter(Array.isArray)

/** @param {any[]} run microseconds, site, count @param {Map<number, Site>} sites */
function runOf ([us, site, count = 1], sites) {
  return { ms: toMs(us), count, ...sites.get(site) }
}

/**
 * @param {any[]} line a query on a connection, in microseconds; negative if unanswered when the span ended
 * @param {unknown} duration of the span, in microseconds
 * @param {Map<number, Site>} sites
 * @param {Map<number, string>} names
 */
function askedOf (line, duration, sites, names) {
  const [start, us, site, peer, connection, unsent = 0, out = 0, bytesIn = 0, operation, system] = line
  const isUnanswered = isNegative(us)
  const end = typeof duration === 'number' && typeof start === 'number' ? duration - start : 0
  return {
    start: toMs(start),
    ms: toMs(isUnanswered ? end : us),
    unanswered: isUnanswered || undefined,
    ...sites.get(site),
    peer: names.get(peer),
    connection,
    unsent: isPositive(unsent) ? toMs(unsent) : undefined,
    out: isPositive(out) ? out : undefined,
    in: isPositive(bytesIn) ? bytesIn : undefined,
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
  const { us, delayed, delayed_max: delayedMax, site, until, peer, request, ...figures } = wait
  const { unsent, opening } = wait
  return {
    ms: toMs(us),
    count: 1,
    ...figures,
    delayed: toMs(delayed),
    delayed_max: toMs(delayedMax),
    unsent: toMs(unsent),
    opening: toMs(opening),
    ...sites.get(site),
    until: endText({ until: names.get(until), peer: wordOf(peer), request: names.get(request) })
  }
}

/**
 * @param {unknown} start seconds since 1970, and nanoseconds
 * @param {unknown} duration microseconds since start
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
 * @param {any[]} line delayer of a span
 * @param {Map<number, string>} names
 */
function delayerOf ([us, spanId, name, max, at], names) {
  return {
    spanId: wordOf(spanId),
    name: names.get(name),
    ms: toMs(us),
    max: typeof us === 'number' && typeof max === 'number' && max > us ? toMs(max) : undefined,
    at: wordOf(at)
  }
}

/** @param {unknown} value */
const isNegative = (value) => typeof value === 'number' && value < 0

/** @param {unknown} value */
const isPositive = (value) => typeof value === 'number' && value > 0

/** @param {unknown} value @returns {string | undefined} */
const wordOf = (value) => typeof value === 'string' ? value : undefined

/** @param {unknown} value @returns {Record<string, unknown> | undefined} */
const recordOf = (value) => isRecord(value) ? value : undefined

/** @param {any} line @returns {Site} */
function siteOf ({ at: place, callers, label }) {
  return {
    at: placeOf(place),
    callers: callers && list(callers).slice(0, MAX_CALLERS).map(placeOf).filter((text) => text !== undefined),
    label: wordOf(label)
  }
}

/** @param {unknown} place @returns {string | undefined} undefined if it is not a place */
function placeOf (place) {
  if (!isRecord(place)) return undefined
  const { function: name, file, line, column, location, via } = place
  const hasFile = typeof file === 'string' && typeof line === 'number' && typeof column === 'number'
  if (typeof name !== 'string' || !(hasFile || typeof location === 'string')) return undefined
  const spot = hasFile ? { file, line, column } : { location }
  return placeText({ function: name, ...spot, via: wordOf(via) })
}

/** @returns {Source} */
const emptySource = () => ({
  resource: undefined, stacks: new Map(), sites: new Map(), shared: new Map(), names: new Map(), bytes: 0
})

const NO_SOURCE = emptySource()

module.exports = { Definitions }
