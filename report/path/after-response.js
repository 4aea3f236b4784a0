'use strict'

// Queries and HTTP calls of the program that requests did not await and that were answered after the
// response. They are summed by request and place, and reported in one record at the end.

const { textsOf } = require('../../lib/encoding/span-form')
const { BoundedMap } = require('../../lib/group-by')
const { ERROR } = require('../../lib/core/run-log-words')
const { factsRecord } = require('./facts-record')

const MAX_GROUPS = 200
const MIN_MS = 10 // less may be a write to a cache or a counter, which nobody awaits

/**
 * @typedef {import('./source-texts').SourceTexts} SourceTexts
 *
 * @typedef {object} After activity of a request after its response
 * @property {import('./requests').Request} request
 * @property {import('./queries').Query[]} queries that were answered then
 * @property {import('./requests').Request[]} calls HTTP calls and connects that ended then
 *
 * @typedef {object} Group requests of one name with the same first site
 * @property {string} name
 * @property {string | undefined} at
 * @property {string[] | undefined} callers
 * @property {number} requests that went on for long, or failed then
 * @property {number} queries
 * @property {number} calls
 * @property {number} failed queries and calls that failed
 * @property {number} ms from each response to its last answer
 */

/** A query that opens a connection counts once. @param {ReturnType<SourceTexts['nameOf']>} name */
const isConnect = (name) => name?.name.startsWith('connect ') === true

class AfterResponse {
  /** @type {BoundedMap<string, Group>} */
  #groups = new BoundedMap(MAX_GROUPS)
  #latest = 0 // latest end of a response, ms of the clock

  /** @param {After} after @param {SourceTexts} texts */
  add ({ request, queries, calls }, texts) {
    const { name, isAccepted = false } = texts.nameOf(request.number) ?? {}
    if (name === undefined || isAccepted) return
    const asked = [
      ...queries.map((query) =>
        ({ ...query, site: texts.siteOfQuery(query), failed: texts.isRejected(query.promise), calls: 0 })),
      ...calls.filter(({ number }) => !isConnect(texts.nameOf(number)))
        .map(({ begin: start, end, chain, status }) =>
          ({ start, end, site: texts.siteOf(chain), failed: status === ERROR, calls: 1 }))
    ].filter(({ site }) => site.at !== undefined).sort((a, b) => a.start - b.start)
    const ms = Math.max(...asked.map(({ end }) => end)) - request.end
    if (ms < MIN_MS && !asked.some(({ failed }) => failed)) return
    const { at: place, callers } = textsOf(asked[0].site)
    const group = this.#groups.find(JSON.stringify([name, place, callers]), () =>
      ({ name, at: place, callers, requests: 0, queries: 0, calls: 0, failed: 0, ms: 0 }))
    if (group === undefined) return
    this.#latest = Math.max(this.#latest, request.end)
    group.requests++
    group.ms += ms
    for (const { failed, calls } of asked) {
      group.calls += calls
      group.queries += 1 - calls
      if (failed) group.failed++
    }
  }

  /** @param {SourceTexts} texts @returns {object | undefined} undefined if there is nothing to report */
  record (texts) {
    if (this.#groups.size === 0) return undefined
    const attributes = { 'longstack.after': [...this.#groups.values()] }
    return factsRecord('after responses', attributes, this.#latest, texts)
  }
}

module.exports = { AfterResponse }
