'use strict'

// Names of routes: patterns that select them, and the final names of requests. A line refers to another
// request, such as a delayer, by the name that it had then: method and path with `*` for ids
// (lib/path-names.js), if a framework reported its route only later.

const { generalPath, nameOfMethod } = require('../../lib/path-names')
const { endText } = require('../../lib/text')

/** @typedef {import('../read/span-line').Span} Span */

const MAX_NAMES = 10_000
const MAX_RECENT = 2048 // spans in each of two maps
const LEARNED = 1000 // spans of a name from which its paths are learned; then every 32nd
const EVERY = 32
const OF_ANOTHER = ' of another request'

class Renames {
  /** by earlier name; undefined if there are several @type {Map<string, string | undefined>} */
  #names = new Map()
  /** names of the latest ended spans, by id @type {Map<string, string>} */
  #recent = new Map()
  /** names of the spans before those, by id @type {Map<string, string>} */
  #older = new Map()
  /** spans by name @type {Map<string, number>} */
  #counts = new Map()

  /** Learns from a span that ended. @param {Span} span */
  learn ({ spanId, name, kind, attributes }) {
    if (kind !== 'SERVER') return
    this.#recent.set(spanId, name)
    if (this.#recent.size >= MAX_RECENT) [this.#older, this.#recent] = [this.#recent, new Map()]
    const count = (this.#counts.get(name) ?? 0) + 1
    if (count === 1 && this.#counts.size >= MAX_NAMES) return
    this.#counts.set(name, count)
    if (count > LEARNED && count % EVERY !== 0) return
    const { 'http.request.method': method, 'url.path': path } = attributes
    if (typeof method !== 'string' || typeof path !== 'string') return
    const before = `${nameOfMethod(method)} ${generalPath(path)}`
    if (this.#names.get(before) === name) return
    if (this.#names.has(before)) this.#names.set(before, undefined)
    else if (this.#names.size < MAX_NAMES) this.#names.set(before, name)
  }

  /**
   * Returns the final name of a request, or its earlier name if that is not certain.
   * @param {string} name
   * @param {string} [spanId]
   */
  nameOf = (name, spanId) => {
    const recent = spanId === undefined ? undefined : this.#recent.get(spanId) ?? this.#older.get(spanId)
    return recent ?? this.#names.get(name) ?? name
  }

  /** Renames the request that ended a wait. @param {string | undefined} until */
  untilOf = (until) => {
    const { settler } = endOf(until)
    return settler === undefined ? until : endText({ request: this.nameOf(settler) })
  }

  /**
   * Renames an open span, and for any span its delayers and the requests that ended its waits.
   * @param {import('./digest').Digest} digest
   */
  apply (digest) {
    if (digest.end === 'open') digest.name = this.nameOf(digest.name)
    for (const delayer of digest.delayedBy) {
      if (delayer.name !== undefined) delayer.name = this.nameOf(delayer.name, delayer.spanId)
    }
    for (const wait of digest.waits) wait.until = this.untilOf(wait.until)
    if (digest.blockedBy !== undefined) digest.blockedBy = this.nameOf(digest.blockedBy, digest.parentSpanId)
  }
}

/**
 * Parses the cause of the end of a wait.
 * @param {string | undefined} until
 * @returns {{ settler?: string, peer?: string }} request that ended it, or peer of the connection
 */
function endOf (until) {
  if (until?.endsWith(OF_ANOTHER)) return { settler: until.slice(0, -OF_ANOTHER.length) }
  return { peer: until?.match(/^[A-Z][A-Z0-9]* (\S.*)$/)?.[1] }
}

/**
 * Returns a function that tests the name of a route, or of a span.
 * @param {string} pattern with `*` for anything: `GET /users/*`
 * @returns {(name: string) => boolean}
 */
function routePattern (pattern) {
  const parts = pattern.trim().split(/\*+/).map((part) => part.replace(/[\\^$.|?+()[\]{}]/g, '\\$&'))
  const regex = new RegExp(`^${parts.join('.*?')}$`, 's')
  return (name) => regex.test(name)
}

/**
 * Returns the server routes, or all if there are none.
 * @template {{ kind: string }} R
 * @param {R[]} routes
 */
function requestRoutes (routes) {
  const servers = routes.filter(({ kind }) => kind === 'SERVER')
  return servers.length > 0 ? servers : routes
}

/** Returns a key that is the same for a route in two runs. @param {{ kind: string, name: string }} route */
function routeKey ({ kind, name }) {
  return `${kind} ${name}`
}

module.exports = { Renames, endOf, requestRoutes, routeKey, routePattern }
