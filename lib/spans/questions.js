'use strict'

// What spans ask on connections of the program that carry no HTTP: a question lasts from when its bytes go
// out until the answer has come. Of each connection the questions under way are kept, in order; of each span
// those that it asked (asked.js tells them).
//
// A driver's call may write more than once, and a queue or a pool of the driver writes for others: in the
// connection's own callback, or in that of whoever gives the connection back. So who has written is an
// assumption. What the answer settles decides: a promise was made by the step that asked. Where nothing is
// settled (callbacks), the question of a known writer ends with the last data before the next one is asked.
// One that no promise claims and that the connection's own callback has written is nobody's.
//
// Hot path, while spans are timed, for each question: `ask`, `came` and `settle`.

const { descends } = require('../core/asks')
const { CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_SPAN, current } = require('../core/current')
const { timeAt } = require('../core/record-ids')
const { CAUSE, CHAIN, FIRST_CHAIN, REF, SPAN } = require('../core/records')
const { bytesRead, bytesWritten, framesOf, isOfDriver, isOwnCode } = require('../record/traffic')
const peek = require('../requests/peek')
const { settings } = require('../settings')
const { spanAt } = require('./identities')
const { packageOf } = require('./path-sites')

const MAX_QUESTIONS = 64 // of a span that are kept; more are counted
const MAX_OUTSTANDING = 256 // of a connection
const FEW = 8 // outstanding; beyond that, those of spans that have ended are dropped
const MIN_UNSENT = 0.5 // ms; the time of a promise is known to a quarter of one

// Who asked.
const KNOWN = 0 // the step that wrote
const CARRIED = 1 // the same, but an answer on the connection has led there
const UNDECIDED = 2 // the connection's own callback wrote
const HANDSHAKE = 3 // the driver itself, as it connects, if it asks more on the connection

// What has come of it.
const WAITING = 0
const DATA = 1 // data, the last part for all that is known
const PAST = 2 // the same, and another question was asked since
const SETTLED_ONE = 3 // a promise was settled that the asker made
const DROPPED = 4 // it is a part of another one

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/entry').Entry} Entry
 * @typedef {import('./loop-time').LoopTime} LoopTime
 */

class Question {
  constructor () {
    this.asker = KNOWN
    this.state = WAITING
    /** @type {Span | undefined} */
    this.span = undefined
    /** reference of the step that asked, 0: not known */
    this.cause = 0
    /** numbers of the chains of the write, and of the promise that the answer settled; 0: not known */
    this.place = 0
    this.promisePlace = 0
    /** reference of the promise that its answer settled */
    this.promise = 0
    /** asyncId of the connection, and its other end */
    this.connection = 0
    /** @type {string | undefined} */
    this.peer = undefined
    /** @type {import('../requests/peek').Operation | undefined} */
    this.operation = undefined
    /** ms of the clock; an end of 0: no answer has come */
    this.start = 0
    this.end = 0
    /** when the event loop had polled before it was asked */
    this.polledAt = 0
    /** ms before that in which the driver held it */
    this.unsent = 0
    /** bytes, -1: not known; until then what the connection had sent and got before */
    this.out = -1
    this.in = -1
    this.sentBefore = 0
    this.readBefore = 0
  }

  get isOpen () { return this.state < SETTLED_ONE }
}

/**
 * Notes that the program writes on a connection.
 * @param {Entry} entry
 * @param {number} place chain of the write, 0: not known who asks
 * @param {boolean} isHeld it goes out once the connection is there
 * @param {number} time ms of the clock
 * @param {number} polledAt when the event loop polled last
 */
function ask (entry, place, isHeld, time, polledAt) {
  const isFirst = entry.questions === undefined
  let questions = entry.questions ?? []
  const cause = current[CURRENT_CAUSE]
  const last = questions[questions.length - 1]
  if (last !== undefined && isSameCall(last, cause, place)) return
  const handle = entry.resource.deref()
  const sent = handle === undefined ? -1 : bytesWritten(handle)
  if (last !== undefined && last.out < 0 && sent >= 0) last.out = sent - last.sentBefore
  for (let i = 0; i < questions.length; i++) {
    const question = questions[i]
    const isHandshake = question.asker === HANDSHAKE
    if (isHandshake) unassign(question)
    if (question.state === DATA) question.state = isHandshake ? DROPPED : PAST
  }
  if (questions.length >= FEW) questions = withoutOld(questions)
  entry.questions = questions
  const question = new Question()
  const asker = askerOf(entry, place, isFirst)
  question.asker = asker
  question.operation = settings.options.peek ? peek.present() : undefined
  if (asker === KNOWN) entry.isAsked = true
  question.connection = entry.context.asyncId
  question.peer = entry.remote
  question.start = time
  question.polledAt = polledAt
  question.unsent = isHeld ? -1 : 0
  question.sentBefore = sent
  question.readBefore = handle === undefined ? -1 : bytesRead(handle)
  questions.push(question)
  if (asker === UNDECIDED) return
  question.cause = cause
  question.place = place === 0 ? current[CURRENT_CHAIN] : place
  assign(question, current[CURRENT_SPAN])
}

/** @param {Entry} entry @param {number} place @param {boolean} isFirst of the connection */
function askerOf (entry, place, isFirst) {
  const { context, isAsked } = entry
  const isOwn = current[CURRENT_REF] === context.ref
  if (place === 0 && isOwn) return isFirst ? HANDSHAKE : UNDECIDED
  const chain = current[CURRENT_CHAIN]
  if (place === 0) return chain >= FIRST_CHAIN ? CARRIED : UNDECIDED
  if (isAsked || !isOfDriver(context, place, current[CURRENT_CAUSE], isFirst)) return KNOWN
  return isFirst ? HANDSHAKE : UNDECIDED
}

/** Makes a question one of a span. @param {Question} question @param {number} number of the span */
function assign (question, number) {
  const span = number === 0 ? undefined : spanAt(number)
  if (span === undefined) return
  question.span = span
  span.askedCount++
  if (span.asked === undefined) span.asked = [question]
  else if (span.asked.length < MAX_QUESTIONS) span.asked.push(question)
}

/** @param {Question} question that is not one of its span after all */
function unassign (question) {
  const { span } = question
  question.span = undefined
  if (span === undefined || span.ended) return
  span.askedCount--
  const index = span.asked?.indexOf(question) ?? -1
  if (index !== -1) span.asked?.splice(index, 1)
}

/**
 * Notes that what was written while the connection was made goes out.
 * @param {Entry} entry
 * @param {number} time ms of the clock
 */
function sent ({ questions }, time) {
  if (questions === undefined) return
  for (let i = 0; i < questions.length; i++) {
    const question = questions[i]
    if (question.unsent !== -1) continue
    question.unsent = time - question.start
    question.start = time
  }
}

/**
 * Notes data on a connection.
 * @param {Entry} entry
 * @param {LoopTime} loop
 */
function came (entry, loop) {
  const questions = /** @type {Question[]} */ (entry.questions)
  let waiting
  for (let i = 0; i < questions.length; i++) {
    const question = questions[i]
    if (!question.isOpen || question.state === PAST) continue
    if (waiting !== undefined) return // whose it is, what it settles will tell
    waiting = question
  }
  if (waiting === undefined) return
  waiting.state = DATA
  finish(waiting, entry, loop, true)
}

/**
 * Notes that an answer has settled a promise.
 * @param {Entry} entry of the connection
 * @param {Int32Array} words of the promise's record
 * @param {number} offset
 * @param {LoopTime} loop
 */
function settle (entry, words, offset, loop) {
  const questions = /** @type {Question[]} */ (entry.questions)
  const promise = words[offset + REF]
  const maker = words[offset + CAUSE]
  /** @type {Question | undefined} */
  let found
  /** @type {Question | undefined} */
  let answered
  for (let i = 0; i < questions.length; i++) {
    const question = questions[i]
    if (question.promise === promise) return
    if (question.cause === 0 || question.cause !== maker) continue
    if (!question.isOpen) answered = question
    else found ??= question
  }
  const madeAt = timeAt(words, offset)
  found ??= questions.find((question) => isOfFlow(question, maker, words[offset + SPAN]))
  if (found === undefined) {
    const chain = words[offset + CHAIN]
    found = questions.find((question) => isOpenToAll(question, madeAt, answered !== undefined))
    // A pipeline: its commands are answered one after another
    if (found === undefined && answered !== undefined) return finish(answered, entry, loop, false)
    found ??= questions.find((question) => isStray(question, madeAt, chain))
    if (found === undefined) return
    if (found.asker !== HANDSHAKE) {
      unassign(found)
      found.cause = maker
      found.place = 0
      if (!isOfDriver(entry.context, chain, maker, false)) {
        assign(found, words[offset + SPAN])
        entry.isAsked = true
      }
    }
  }
  found.state = SETTLED_ONE
  found.promise = promise
  found.promisePlace = words[offset + CHAIN]
  // Within one iteration of the event loop nothing was waited for
  if (madeAt < found.polledAt - MIN_UNSENT) found.unsent = found.start - madeAt
  const begin = loop.begunAt
  let isAlone = true
  for (let i = 0; i < questions.length; i++) {
    const { isOpen, start } = questions[i]
    if (questions[i] !== found && isOpen && start < begin) isAlone = false
  }
  finish(found, entry, loop, isAlone)
  entry.questions = withoutParts(questions, found, begin)
}

/**
 * Whether a question was asked by a step that the maker of a promise has caused, or in its request.
 * @param {Question} question
 * @param {number} maker
 * @param {number} number of the span
 */
function isOfFlow ({ cause, isOpen, span }, maker, number) {
  if (!isOpen || cause === 0) return false
  return descends(cause, maker) || (span !== undefined && number !== 0 && spanAt(number)?.log === span.log)
}

/**
 * Whether whoever is answered asked a question.
 * @param {Question} question
 * @param {number} madeAt when the promise was made
 * @param {boolean} hasAsked whoever made it has asked before
 */
function isOpenToAll ({ asker, isOpen, start, state }, madeAt, hasAsked) {
  if (!isOpen || !(start >= madeAt - MIN_UNSENT) || (hasAsked && state === WAITING)) return false
  return asker === UNDECIDED || asker === HANDSHAKE
}

/**
 * Whether another than its writer asked a question: the driver held it, and made the promise before.
 * @param {Question} question
 * @param {number} madeAt
 * @param {number} chain of the promise
 */
function isStray ({ isOpen, place, start }, madeAt, chain) {
  return isOpen && start >= madeAt - MIN_UNSENT && isOfOneLibrary(place, chain)
}

/**
 * Sets the end of a question, as far as it is known.
 * @param {Question} question
 * @param {Entry} entry
 * @param {LoopTime} loop
 * @param {boolean} isAlone no other is under way
 */
function finish (question, entry, loop, isAlone) {
  const { span } = question
  if (span === undefined || span.ended) return
  const end = loop.answeredAt(question.start)
  if (!span.asked?.includes(question)) span.askedMoreMs += end - (question.end || question.start)
  question.end = end
  if (!isAlone) {
    question.in = -1
    return
  }
  const handle = entry.resource.deref()
  if (handle === undefined) return
  if (question.out < 0) question.out = bytesWritten(handle) - question.sentBefore
  question.in = bytesRead(handle) - question.readBefore
}

/**
 * Returns questions without what was a part of a call that has ended: a statement that is prepared is
 * executed in the connection's callback. What is before the one that was answered last is over.
 * @param {Question[]} questions
 * @param {Question} answered
 * @param {number} begin of the callback, ms of the clock
 */
function withoutParts (questions, answered, begin) {
  let isBefore = true
  return questions.filter((question) => {
    if (question === answered) isBefore = false
    const { asker, isOpen, start, state } = question
    if (isBefore) return isOpen && (asker !== UNDECIDED || state !== PAST)
    return asker !== UNDECIDED || state !== DATA || start >= begin
  })
}

/**
 * Returns questions without those whose spans have ended, and where there are too many without the oldest.
 * @param {Question[]} questions
 */
function withoutOld (questions) {
  return questions.slice(1 - MAX_OUTSTANDING).filter(({ asker, span, state }) => {
    return span === undefined ? state < PAST && asker >= UNDECIDED : !span.ended
  })
}

/**
 * Whether a write is a further one of a driver's call, or of a function of the program that writes itself.
 * @param {Question} last
 * @param {number} cause
 * @param {number} place
 */
function isSameCall (last, cause, place) {
  if (last.state !== WAITING || last.cause !== cause || place === 0 || last.place === place) return false
  const frames = framesOf(place)
  const others = framesOf(last.place)
  const outer = frames[0]?.kind === 'user' ? 1 : 0
  const calls = frames.filter(isOwnCode)
  const otherCalls = others.filter(isOwnCode)
  return calls.length === otherCalls.length &&
    calls.every(({ text }, i) => i < outer || text === otherCalls[i].text)
}

/**
 * Whether one library has frames in two steps, or its parts have: pg and pg-pool.
 * @param {number} chain
 * @param {number} other
 */
function isOfOneLibrary (chain, other) {
  const names = packagesOf(chain)
  return packagesOf(other).some((name) => names.some((one) => one.startsWith(name) || name.startsWith(one)))
}

/** @param {number} chain @returns {string[]} */
function packagesOf (chain) {
  return framesOf(chain).map(({ fileName }) => packageOf(fileName)).filter((name) => name !== undefined)
}

module.exports = { Question, ask, came, isOfOneLibrary, sent, settle }
