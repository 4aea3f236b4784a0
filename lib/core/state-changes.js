'use strict'

// Who brought an object into a state in which it can do no more: ended or destroyed a stream, sent headers
// of a message, aborted a signal. Noted on the object as a step when it happens (requests/changed-states.js),
// and told of the errors that come of that state (attribution/former-state.js).

const { CURRENT_CAUSE, CURRENT_CHAIN, current } = require('./current')
const guard = require('./guard')
const kindTable = require('./kind-table')
const { resolve } = require('./lookup')
const { CHAIN_BITS, OWN_WORK_CHAIN } = require('./records')
const { createStepTag, createTag } = require('./tag')
const { RECENT, RESPONSES, keepWeak, weakAt } = require('./weak-slots')
const { isObject, own } = require('../objects')
const capture = require('../stacks/capture')

/**
 * @typedef {import('./context').Context} Context
 * @typedef {'ended' | 'destroyed' | 'sent' | 'aborted'} State
 * @typedef {{ state: State, chain: number, cause: number, time: number }} Change ms of the clock
 */

/**
 * by codes of errors: the states that these come of
 * @type {Record<string, State[]>}
 */
const statesByCode = {
  __proto__: /** @type {any} */ (null),
  ERR_HTTP_HEADERS_SENT: ['sent', 'ended'],
  ERR_HTTP2_HEADERS_SENT: ['sent', 'ended'],
  ERR_HTTP2_INVALID_STREAM: ['destroyed', 'ended'],
  ERR_STREAM_ALREADY_FINISHED: ['ended'],
  ERR_STREAM_DESTROYED: ['destroyed', 'ended'],
  ERR_STREAM_WRITE_AFTER_END: ['ended', 'destroyed']
}

/** @type {Record<State, ReturnType<typeof createStepTag>>} */
const tags = {
  ended: createStepTag(), destroyed: createStepTag(), sent: createStepTag(), aborted: createStepTag()
}
/** the objects' changes that errors come of, on these @type {ReturnType<typeof createTag<Change>>} */
const errorTag = createTag()
/** the requests that were destroyed with errors, on these @type {ReturnType<typeof createTag<Context>>} */
const subjectTag = createTag()
/** of objects that were remembered */
let count = 0

/**
 * Returns what bears the notes of an object: of a response its request, which has the shape that Node knows.
 * @param {object} object
 * @returns {object}
 */
function bearerOf (object) {
  const request = own(object, 'req')
  return isObject(request) ? request : object
}

/**
 * Notes who changes an object.
 * @param {State} state
 * @param {object} object its bearer
 * @param {string} call name of the hop
 * @param {Function} above stacks begin below this function
 * @returns {number} chain of the step, 0: it is longstack's own, or left out
 */
function note (state, object, call, above) {
  if (guard.inOwnWork) return 0
  resolve()
  const parent = current[CURRENT_CHAIN]
  const kind = kindTable.kinds.get(call) ?? kindTable.add(call)
  if (parent === OWN_WORK_CHAIN || !kind.isSelected) return 0
  const chain = capture.step(parent, kind.number, above) & CHAIN_BITS
  tags[state].write(object, chain, current[CURRENT_CAUSE], capture.clock[0])
  return chain
}

/**
 * Returns who changed an object.
 * @param {object} object its bearer
 * @param {State[]} states the first of which that is known counts
 * @returns {Change | undefined}
 */
function changeOf (object, states) {
  for (let i = 0; i < states.length; i++) {
    const step = tags[states[i]].read(object)
    if (step !== undefined) return { state: states[i], ...step }
  }
  return undefined
}

/** A request is destroyed with an error. @param {object} error @param {Context} request */
function linkSubject (error, request) {
  if (subjectTag.read(error) === undefined) subjectTag.write(error, request)
}

/** @param {object} error @returns {Context | undefined} the call that made the request which failed of it */
const subjectOf = (error) => subjectTag.read(error)

/** @param {State} state @param {object} object @returns {boolean} whether it is known who changed it */
const isNoted = (state, object) => tags[state].has(object)

/** Whether anything is noted of an object. @param {object} object */
function isAnyNoted (object) {
  return tags.ended.has(object) || tags.destroyed.has(object) || tags.sent.has(object)
}

/** Remembers what was changed, for errors that do not lead to it. @param {object} object */
function remember (object) {
  keepWeak(RESPONSES + (count++ & (RECENT - 1)), object)
}

/** @returns {object[]} those that were changed last, the newest first */
function remembered () {
  const objects = []
  for (let i = 0; i < RECENT; i++) {
    const object = weakAt(RESPONSES + ((count - 1 - i) & (RECENT - 1)))
    if (object !== undefined) objects.push(object)
  }
  return objects
}

/** Notes what an error comes of. @param {object} error @param {Change | undefined} change */
function link (error, change) {
  if (change !== undefined && errorTag.read(error) === undefined) errorTag.write(error, change)
}

/** @param {object} error @returns {Change | undefined} what was noted for it */
const linkedTo = (error) => errorTag.read(error)

module.exports = {
  bearerOf,
  changeOf,
  isAnyNoted,
  isNoted,
  link,
  linkedTo,
  linkSubject,
  note,
  remember,
  remembered,
  statesByCode,
  subjectOf
}
