'use strict'

// What a span has asked (questions.js), as it is reported.

const { CAUSE, CHAIN, FLAGS, LIVE, SHIFT, promises, readWord } = require('../core/records')
const { toMicros } = require('../encoding/span-figures')
const { framesOf } = require('../record/traffic')
const { siteOf } = require('./path-sites')
const { isOfOneLibrary } = require('./questions')
const { peerOf } = require('./wait-sites')

const MAX_PLACES = 5000 // chains, of which is remembered whether their newest step has the program's code

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('./questions').Question} Question
 */

/** @type {Map<number, boolean>} */
const ownPlaces = new Map()

/**
 * Returns what a span has asked, in order of start.
 * @param {Span} span that has ended
 * @returns {Question[] | undefined}
 */
function toldOf ({ asked }) {
  if (asked === undefined) return undefined
  let told = asked
  if (asked.some(isUnanswered)) {
    const waiting = asked.filter((question) => isUnanswered(question) && !isPart(question, asked))
    const waitedFor = waiting.length === 0 ? undefined : awaitedOf(waiting)
    told = asked.filter((question) => !isUnanswered(question) || waitedFor?.has(question))
  }
  return told.length === 0 ? undefined : told.sort((a, b) => a.start - b.start)
}

/** @param {Question} question */
const isUnanswered = ({ end }) => end === 0

/**
 * Whether it is a further write of a call that was answered.
 * @param {Question} question
 * @param {Question[]} all
 */
function isPart ({ cause, place }, all) {
  return all.some((other) => other.end !== 0 && other.cause === cause && other.place === place)
}

/**
 * Returns those for which an answer is waited. A library may have written for somebody else: so the step
 * that asked has made a promise in the library that is not settled.
 * @param {Question[]} questions without an answer
 * @returns {Set<Question>}
 */
function awaitedOf (questions) {
  const awaited = new Set(questions.filter(({ place }) => framesOf(place)[0]?.kind === 'user'))
  for (let offset = 0; offset < promises.length; offset += 1 << SHIFT) {
    if ((promises[offset + FLAGS] & LIVE) === 0) continue
    const maker = promises[offset + CAUSE]
    for (const question of questions) {
      if (question.cause !== maker && readWord(question.cause, CAUSE) !== maker) continue
      if (isOfOneLibrary(question.place, promises[offset + CHAIN])) awaited.add(question)
    }
  }
  return awaited
}

/**
 * Returns where it was asked: where the library that wrote was called, or where its promise was made.
 * @param {Question} question
 */
function placeOf ({ place, promisePlace }) {
  if (place === 0 || promisePlace === 0) return siteOf(place || promisePlace)
  let isOwn = ownPlaces.get(place)
  if (isOwn === undefined) {
    if (ownPlaces.size >= MAX_PLACES) ownPlaces.clear()
    ownPlaces.set(place, isOwn = framesOf(place).some(({ kind }) => kind === 'user'))
  }
  return siteOf(isOwn ? place : promisePlace)
}

/** @param {Span} span @param {Question} question @returns {number} ms */
function lengthOf ({ end }, question) {
  return (question.end === 0 ? end : Math.min(question.end, end)) - question.start
}

/** @param {Span} span that has ended @returns {import('../encoding/span-form').Asked[] | undefined} */
function askedOf (span) {
  return toldOf(span)?.map((question) => {
    const { connection, start, end, unsent, out, in: read, operation, peer = peerOf(connection) } = question
    return {
      start: start - span.start,
      ms: lengthOf(span, question),
      unanswered: end === 0,
      site: placeOf(question),
      peer,
      connection,
      unsent,
      out,
      in: read,
      operation
    }
  })
}

/** Returns how many more it has asked, and how long they took. @param {Span} span */
function moreAsked ({ asked, askedCount, askedMoreMs }) {
  const count = askedCount - (asked?.length ?? 0)
  return count > 0 ? { count, ms: toMicros(askedMoreMs) } : undefined
}

module.exports = { askedOf, moreAsked }
