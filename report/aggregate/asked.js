'use strict'

// What spans asked on connections: valid entries of a line, and how many of a route's requests' there are.

const { amount, isRecord, list, text } = require('../read/values')
const { siteTextsOf } = require('./sites')

const MAX_ASKED = 64
const MAX_TEXT_CHARS = 300
const ROUNDING_MS = 0.002

/**
 * @typedef {object} Asked a query: what was asked on a connection, until the answer had come
 * @property {number} start ms since the span's
 * @property {number} ms
 * @property {boolean} unanswered the span ended before the answer had come
 * @property {string | undefined} at innermost frame of the program
 * @property {string[]} callers innermost first
 * @property {string | undefined} peer
 * @property {number | undefined} unsent ms before it was sent
 * @property {string | undefined} operation
 *
 * @typedef {object} AskedFigures means of a route's requests
 * @property {number} count queries
 * @property {number} serial how many of these at most came one after another
 * @property {number} ms during which one or more of them were under way
 */

/** @param {unknown} asked of a line @returns {Asked[]} in order of start */
function askedOf (asked) {
  const valid = list(asked, MAX_ASKED).filter((question) => isRecord(question) &&
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
      unsent: amount(question.unsent),
      operation: text(question.operation, MAX_TEXT_CHARS)
    }
  }).sort((a, b) => a.start - b.start)
}

/** Sums of a route's spans. */
class AskedSums {
  weight = 0
  count = 0
  serial = 0
  ms = 0

  /** @param {Record<string, any>} attributes of a span @param {number} weight */
  add (attributes, weight) {
    this.weight += weight
    const asked = askedOf(attributes['longstack.asked'])
    if (asked.length === 0) return
    const more = amount(attributes['longstack.asked_more']?.count) ?? 0
    this.count += (asked.length + more) * weight
    this.serial += serialOf(asked) * weight
    this.ms += coveredMs(asked) * weight
  }

  /** @returns {AskedFigures | undefined} undefined if nothing was asked */
  means () {
    const { weight, count, serial, ms } = this
    return count === 0 ? undefined : { count: count / weight, serial: serial / weight, ms: ms / weight }
  }
}

/** Returns how many came one after another, of those that were answered. @param {Asked[]} asked */
function serialOf (asked) {
  const byEnd = asked.filter(({ unanswered }) => !unanswered)
    .sort((a, b) => a.start + a.ms - b.start - b.ms)
  let count = 0
  let end = -Infinity
  for (const { start, ms } of byEnd) {
    if (start < end - ROUNDING_MS) continue
    count++
    end = start + ms
  }
  return count
}

/** @param {Asked[]} asked in order of start */
function coveredMs (asked) {
  let ms = 0
  let end = 0
  for (const question of asked) {
    const questionEnd = question.start + question.ms
    ms += Math.max(0, questionEnd - Math.max(end, question.start))
    end = Math.max(end, questionEnd)
  }
  return ms
}

module.exports = { AskedSums, askedOf }
