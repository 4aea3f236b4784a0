'use strict'

// Queries of spans on connections: valid entries of a line, and sums over a route's requests.

const { amount, isRecord, list, text } = require('../read/values')
const { Sums, peakOf, periodsOf, sum } = require('./lists')
const { framesOf, siteTextsOf } = require('./sites')

const MAX_ASKED = 10_000 // per line that is summed
const MAX_SHOWN = 64 // per line that is kept
const MAX_TEXT_CHARS = 300
const ROUNDING_MS = 0.002
const MAX_FRAMES = 300 // per route
const MAX_PEERS = 100
const MIN_SERIAL = 0.95 // share of the queries of one place; below it, they are in flight at once

/**
 * @typedef {object} Asked a query on a connection, until its response had arrived
 * @property {number} start when it was sent, ms since the span's start
 * @property {number} ms until its response had arrived
 * @property {boolean} unanswered the span ended before the response had arrived
 * @property {string | undefined} at innermost program frame
 * @property {string[]} callers innermost first
 * @property {string | undefined} peer
 * @property {number | undefined} connection asyncId
 * @property {number | undefined} unsent ms before it was sent
 * @property {string | undefined} operation
 *
 * @typedef {object} AskedFigures means of a route's requests
 * @property {number} count queries
 * @property {number} serial maximum number of these one after another
 * @property {number} ms during which at least one of them was in flight
 */

/**
 * @param {unknown} asked of a line
 * @param {number} [max] the rest is dropped
 * @returns {Asked[]} in order of start
 */
function askedOf (asked, max = MAX_SHOWN) {
  const valid = list(asked, max).filter((question) => isRecord(question) &&
    amount(question.start) !== undefined && amount(question.ms) !== undefined)
  return valid.map((question) => {
    const { at: place, callers } = siteTextsOf(question)
    return {
      start: question.start,
      ms: question.ms,
      unanswered: question.unanswered === true,
      at: place,
      callers,
      peer: text(question.peer, MAX_TEXT_CHARS),
      connection: amount(question.connection),
      unsent: amount(question.unsent),
      operation: text(question.operation, MAX_TEXT_CHARS)
    }
  }).sort((a, b) => a.start - b.start)
}

/** Sums of a route's spans. */
class AskedSums {
  weight = 0 // total
  count = 0
  serial = 0
  ms = 0
  #unsentMs = 0
  #answerMs = 0
  #most = 0
  #listed = 0 // queries that lines list individually
  /** @type {Sums<string>} */
  #peers = new Sums(MAX_PEERS)
  /** ms of responses by peer @type {Sums<string>} */
  #answeredBy = new Sums(MAX_PEERS)
  /** @type {Sums<string>} */
  #innermost = new Sums(MAX_FRAMES)
  /** queries by frame that led to them @type {Sums<string>} */
  #below = new Sums(MAX_FRAMES)
  /** the serial ones of them @type {Sums<string>} */
  #serialBelow = new Sums(MAX_FRAMES)

  /** @param {Record<string, any>} attributes of a span @param {number} weight */
  add (attributes, weight) {
    this.weight += weight
    const asked = askedOf(attributes['longstack.asked'], MAX_ASKED)
    if (asked.length === 0) return
    const more = amount(attributes['longstack.asked_more']?.count) ?? 0
    this.count += (asked.length + more) * weight
    const serial = new Set(serialOf(asked))
    this.serial += serial.size * weight
    for (const question of asked) {
      for (const frame of new Set(framesOf(question))) {
        this.#below.add(frame, weight)
        if (serial.has(question)) this.#serialBelow.add(frame, weight)
      }
    }
    this.ms += coveredMs(asked) * weight
    this.#addAtOnce(asked, weight)
  }

  /** @param {Asked[]} asked @param {number} weight */
  #addAtOnce (asked, weight) {
    this.#listed += asked.length * weight
    for (const { at: frame, peer, ms, unsent = 0 } of asked) {
      this.#unsentMs += unsent * weight
      this.#answerMs += ms * weight
      if (peer !== undefined) this.#peers.add(peer, weight)
      if (peer !== undefined) this.#answeredBy.add(peer, ms * weight)
      if (frame !== undefined) this.#innermost.add(frame, weight)
    }
    /** @type {Array<[number, number]>} */
    const periods = asked.map(({ start, ms }) => [start, start + ms])
    this.#most = Math.max(this.#most, peakOf(periods).count)
  }

  /**
   * Returns the mean waits of queries to be sent and to be answered.
   * @returns {{ unsentMs: number, answerMs: number, most: number, peer: string | undefined,
   *   at: string | undefined, share: number }} most: in flight at once in one request; peer: the only one, or
   *   undefined; at: site of most of them; share: of the queries, at this site
   */
  unsent () {
    const [peer, other] = this.#peers.keys()
    const [[site, count] = [undefined, 0]] = [...this.#innermost].sort((a, b) => b[1] - a[1])
    return {
      unsentMs: this.#unsentMs / this.#listed,
      answerMs: this.#answerMs / this.#listed,
      most: this.#most,
      peer: other === undefined ? peer : undefined,
      at: site,
      share: count / this.#listed
    }
  }

  /**
   * Returns how many queries a request sends below frames of one function, if they are serial.
   * @param {string[]} frames
   * @returns {number} 0 if they are not, or if there are none
   */
  serialAt (frames) {
    const [count, serial] = [this.#below, this.#serialBelow].map((sums) =>
      sum(frames, (frame) => sums.get(frame)))
    return count > 0 && serial >= count * MIN_SERIAL ? count / this.weight : 0
  }

  /** @param {string | undefined} peer @returns {number} queries per request, 0 if unknown */
  countOf (peer) {
    return peer === undefined || this.weight === 0 ? 0 : (this.#peers.get(peer) ?? 0) / this.weight
  }

  /** @param {string} peer @returns {number | undefined} mean ms until a response, if known */
  answerMsOf (peer) {
    const queries = this.#peers.get(peer)
    return queries === undefined ? undefined : (this.#answeredBy.get(peer) ?? 0) / queries
  }

  /** @returns {AskedFigures | undefined} undefined if there are no queries */
  means () {
    const { weight, count, serial, ms } = this
    return count === 0 ? undefined : { count: count / weight, serial: serial / weight, ms: ms / weight }
  }
}

/**
 * Returns the answered queries that were serial: each was sent after the response to the previous one.
 * @param {Asked[]} asked
 */
function serialOf (asked) {
  const byEnd = asked.filter(({ unanswered }) => !unanswered)
    .sort((a, b) => a.start + a.ms - b.start - b.ms)
  let end = -Infinity
  return byEnd.filter(({ start, ms, unsent = 0 }) => {
    const isAfter = start - unsent >= end - ROUNDING_MS
    if (isAfter) end = start + ms
    return isAfter
  })
}

/** @param {Asked[]} asked */
function coveredMs (asked) {
  const periods = periodsOf(asked.map(({ start, ms }) => ({ start, end: start + ms })))
  return sum(periods, (period) => Math.max(...period.map(({ end }) => end)) - period[0].start)
}

module.exports = { AskedSums, MAX_ASKED, askedOf }
