'use strict'

// The steps that made objects unusable: ended or destroyed a stream, sent a message's headers, aborted a
// signal. Each is noted on the object when it happens (requests/changed-states.js) and reported with errors
// caused by that state (attribution/former-state.js).

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
 * States that cause errors, by error code
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

/** changes that caused errors, on the errors @type {ReturnType<typeof createTag<Change>>} */
const errorTag = createTag()
/** requests destroyed with errors, on the errors @type {ReturnType<typeof createTag<Context>>} */
const subjectTag = createTag()
/** steps that listen for aborts, on listeners @type {ReturnType<typeof createTag<Omit<Change, 'state'>>>} */
const listenerTag = createTag()

/** Last change of each state of an object. */
class Changes {
  /** @param {number} request reference of the request that the object is a response to, 0: none */
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
 * Notes the request that an object is the response to, before the object has changed.
 * @param {object} response
 * @param {number} request reference
 */
function answers (response, request) {
  OnChanged.write(response, new Changes(request))
}

/** @param {object} object @returns {number} reference of the request that it responds to, 0: none */
const answeredBy = (object) => OnChanged.read(object)?.request ?? 0

/** @param {object} object @returns {object | undefined} the request that it responds to */
function requestOf (object) {
  const request = own(object, 'req')
  return isObject(request) ? request : undefined
}

/**
 * Returns the list of an object's changes, to which more are added. A response that no server made shares the
 * changes of its request.
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
 * Notes the step that changes an object.
 * @param {State} state
 * @param {Changes} changes of the object
 * @param {string} call name of the hop
 * @param {Function} above stacks begin below this function
 * @returns {boolean} whether it is the object's first change; false for longstack's own and filtered changes
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
 * @returns {Omit<Change, 'state'> | undefined} undefined: longstack's own, or filtered
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
 * Notes the step that listens for an abort.
 * @param {object} listener
 * @param {Function} above stacks begin below this function
 */
function noteListener (listener, above) {
  const step = captureStep('signal.addEventListener', above)
  if (step !== undefined) listenerTag.write(listener, step)
}

/**
 * the abort in progress: its listener, if there is just one, and its reason
 * @type {{ listener?: WeakRef<Function>, reason?: WeakRef<object> }}
 */
let aborted = {}

/**
 * Sets the abort in progress, or clears it.
 * @param {unknown[]} listeners that it calls
 * @param {unknown} [reason]
 */
function setAborted (listeners, reason) {
  const [only] = listeners
  const listener = listeners.length === 1 && typeof only === 'function' ? new WeakRef(only) : undefined
  aborted = { listener, reason: isObject(reason) ? new WeakRef(reason) : undefined }
}

/** Returns whether an error is the reason of the abort in progress. @param {object} error */
const isAbortReason = (error) => aborted.reason?.deref() === error

/**
 * Returns the call that listens for the abort in progress: Node or a package does so for a caller. A listener
 * that the program registers itself may serve any number of calls.
 * @returns {Context | undefined} undefined: none, or several
 */
function abortedCall () {
  const listener = aborted.listener?.deref()
  const step = listener && listenerTag.read(listener)
  const context = step && contextOfNoted(step.chain, step.cause, step.time)
  const innermost = context?.stack?.frames.find(({ kind }) => kind !== 'own')
  return innermost === undefined || innermost.kind === 'user' ? undefined : context
}

/**
 * Returns the change of an object.
 * @param {object} object
 * @param {State[]} states in order of preference
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

/** Links an error to the request destroyed with it. @param {object} error @param {Context} request */
function linkSubject (error, request) {
  if (subjectTag.read(error) === undefined) subjectTag.write(error, request)
}

/** @param {object} error @returns {Context | undefined} the call that made the failed request */
const subjectOf = (error) => subjectTag.read(error)

/** references of the requests to which the last changed objects respond, 0: not a response */
const recent = new Int32Array(RECENT)
let count = 0 // objects remembered so far

/**
 * Remembers a changed object, for errors that have no link to it.
 * @param {object} object
 * @param {number} request reference of the request that it responds to, 0: none
 */
function remember (object, request) {
  const isKept = request !== 0 && setResponse(request, object)
  const place = count++ & (RECENT - 1)
  recent[place] = isKept ? request : 0
  if (!isKept) keepWeak(RESPONSES + place, object)
}

/** @returns {object[]} the last changed objects, newest first */
function remembered () {
  const objects = []
  for (let i = 1; i <= RECENT; i++) {
    const place = (count - i) & (RECENT - 1)
    const object = recent[place] === 0 ? weakAt(RESPONSES + place) : responseOf(recent[place])
    if (object !== undefined) objects.push(object)
  }
  return objects
}

/** Links an error to the change that caused it. @param {object} error @param {Change | undefined} change */
function link (error, change) {
  if (change !== undefined && errorTag.read(error) === undefined) errorTag.write(error, change)
}

/** @param {object} error @returns {Change | undefined} the linked change */
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
