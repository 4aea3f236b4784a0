'use strict'

// Who brought an object into a state in which it can do no more: ended or destroyed a stream, sent headers
// of a message, aborted a signal. Noted on the object as a step when it happens (requests/changed-states.js),
// and told of the errors that come of that state (attribution/former-state.js).

const { CURRENT_CAUSE, CURRENT_CHAIN, current } = require('./current')
const { contextOfNoted } = require('./context')
const guard = require('./guard')
const kindTable = require('./kind-table')
const { resolve } = require('./lookup')
const { CHAIN_BITS, OWN_WORK_CHAIN } = require('./records')
const { responseOf, setResponse } = require('./request-records')
const { OnChanged, createTag } = require('./tag')
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

/** the objects' changes that errors come of, on these @type {ReturnType<typeof createTag<Change>>} */
const errorTag = createTag()
/** the requests that were destroyed with errors, on these @type {ReturnType<typeof createTag<Context>>} */
const subjectTag = createTag()
/** who listens for aborts, on listeners @type {ReturnType<typeof createTag<Omit<Change, 'state'>>>} */
const listenerTag = createTag()

/** The last change of each state of an object. */
class Changes {
  /** @param {number} request reference of the one that a server answers with the object, 0: none */
  constructor (request) {
    this.request = request
    /** @type {Change | undefined} */
    this.ended = undefined
    /** @type {Change | undefined} */
    this.destroyed = undefined
    /** @type {Change | undefined} */
    this.sent = undefined
    /** @type {Change | undefined} */
    this.aborted = undefined
  }
}

/**
 * Notes which request a server answers with an object, before that has changed.
 * @param {object} response
 * @param {number} request reference
 */
function answers (response, request) {
  OnChanged.write(response, new Changes(request))
}

/** @param {object} object @returns {number} reference of the request that it is the response to, 0: none */
const answeredBy = (object) => OnChanged.read(object)?.request ?? 0

/** @param {object} object @returns {object | undefined} the request that it is a response to */
function requestOf (object) {
  const request = own(object, 'req')
  return isObject(request) ? request : undefined
}

/**
 * Returns what is noted of an object, and where more goes: of a response that no server made its request's.
 * @param {object} object
 * @returns {Changes}
 */
function changesOf (object) {
  const changes = OnChanged.read(object)
  if (changes !== undefined && changes.request !== 0) return changes
  const bearer = requestOf(object)
  const noted = bearer === undefined ? changes : OnChanged.read(bearer)
  if (noted !== undefined) return noted
  const made = new Changes(0)
  OnChanged.write(bearer ?? object, made)
  return made
}

/**
 * Notes who changes an object.
 * @param {State} state
 * @param {Changes} changes of the object
 * @param {string} call name of the hop
 * @param {Function} above stacks begin below this function
 * @returns {boolean} whether it is the first change of this object; not if it is longstack's own, or left out
 */
function note (state, changes, call, above) {
  const step = captureStep(call, above)
  if (step === undefined) return false
  const { ended, destroyed, sent } = changes
  changes[state] = { state, ...step }
  return step.chain !== 0 && ended === undefined && destroyed === undefined && sent === undefined
}

/**
 * @param {string} call name of the hop
 * @param {Function} above stacks begin below this function
 * @returns {Omit<Change, 'state'> | undefined} undefined: it is longstack's own, or left out
 */
function captureStep (call, above) {
  if (guard.inOwnWork) return undefined
  resolve()
  const parent = current[CURRENT_CHAIN]
  const kind = kindTable.kinds.get(call) ?? kindTable.add(call)
  if (parent === OWN_WORK_CHAIN || !kind.isSelected) return undefined
  const chain = capture.step(parent, kind.number, above) & CHAIN_BITS
  return { chain, cause: current[CURRENT_CAUSE], time: capture.clock[0] }
}

/**
 * Notes who listens for an abort.
 * @param {object} listener
 * @param {Function} above stacks begin below this function
 */
function noteListener (listener, above) {
  const step = captureStep('signal.addEventListener', above)
  if (step !== undefined) listenerTag.write(listener, step)
}

/**
 * of the abort that is under way: who listens, if that is one, and with which reason
 * @type {{ listener?: WeakRef<Function>, reason?: WeakRef<object> }}
 */
let aborted = {}

/**
 * An abort begins, or is over.
 * @param {unknown[]} listeners that it calls
 * @param {unknown} [reason]
 */
function setAborted (listeners, reason) {
  const [only] = listeners
  const listener = listeners.length === 1 && typeof only === 'function' ? new WeakRef(only) : undefined
  aborted = { listener, reason: isObject(reason) ? new WeakRef(reason) : undefined }
}

/** Whether an error is the reason of the abort that is under way. @param {object} error */
const isAbortReason = (error) => aborted.reason?.deref() === error

/**
 * Returns the call that listens for the abort that is under way: Node or a package does, for a caller. A
 * listener of the program's own may stand for any number of these.
 * @returns {Context | undefined} undefined: there is none, or several
 */
function abortedCall () {
  const listener = aborted.listener?.deref()
  const step = listener && listenerTag.read(listener)
  const context = step && contextOfNoted(step.chain, step.cause, step.time)
  const innermost = context?.stack?.frames.find(({ kind }) => kind !== 'own')
  return innermost === undefined || innermost.kind === 'user' ? undefined : context
}

/**
 * Returns who changed an object.
 * @param {object} object
 * @param {State[]} states the first of which that is known counts
 * @returns {Change | undefined}
 */
function changeOf (object, states) {
  const changes = OnChanged.read(object)
  const request = requestOf(object)
  const others = request && OnChanged.read(request)
  for (let i = 0; i < states.length; i++) {
    const change = changes?.[states[i]] ?? others?.[states[i]]
    if (change !== undefined) return change
  }
  return undefined
}

/** A request is destroyed with an error. @param {object} error @param {Context} request */
function linkSubject (error, request) {
  if (subjectTag.read(error) === undefined) subjectTag.write(error, request)
}

/** @param {object} error @returns {Context | undefined} the call that made the request which failed of it */
const subjectOf = (error) => subjectTag.read(error)

/** of the objects that changed last: references of the requests they answer, 0 for no response */
const recent = new Int32Array(RECENT)
let count = 0 // of those that were remembered

/**
 * Remembers what was changed, for errors that do not lead to it.
 * @param {object} object
 * @param {number} request reference of the one that a server answers with it, 0: none
 */
function remember (object, request) {
  const isKept = request !== 0 && setResponse(request, object)
  const place = count++ & (RECENT - 1)
  recent[place] = isKept ? request : 0
  if (!isKept) keepWeak(RESPONSES + place, object)
}

/** @returns {object[]} the objects that changed last, newest first */
function remembered () {
  const objects = []
  for (let i = 1; i <= RECENT; i++) {
    const place = (count - i) & (RECENT - 1)
    const object = recent[place] === 0 ? weakAt(RESPONSES + place) : responseOf(recent[place])
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
  Changes,
  abortedCall,
  answeredBy,
  answers,
  changeOf,
  changesOf,
  isAbortReason,
  link,
  linkedTo,
  linkSubject,
  note,
  noteListener,
  remember,
  remembered,
  requestOf,
  setAborted,
  statesByCode,
  subjectOf
}
