'use strict'

// The requests that servers get: Node reports through diagnostics_channel when one begins, and of HTTP/2 in a
// tick. The name of a request is noted as a number in its record; the route that a framework found for it is
// read when it is needed, for as long as it is the last request of its connection. No object of the program
// is held.

const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const { HEAD } = require('./callback-handlers')
const { now } = require('./clock')
const { ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_SPAN, LOGGED, current } = require('./current')
const records = require('./records')
const { timeAt, triggerIdAt } = require('./record-ids')
const { all: allRequests, setResponse } = require('./request-records')
const requests = require('./request-names')
const { setAsk } = require('./asks')
const { answeredBy, answers } = require('./state-changes')
const { contextTag } = require('./context')
const { emit } = require('./on')
const { source } = require('./source')
const registry = require('./registry')
const runLog = require('./run-log')
const { currentStep, enteredId } = require('./current-step')
const { ownerOf, underlyingHandle } = require('../node-objects')
const { className, hiddenProperty, isObject, own } = require('../objects')

const {
  ANSWERED_AT, CAUSE, DETAIL, FLAGS, INCOMING, OUTER, PARSER, REF, SETTLED_FOR, SHIFT, TICKS
} = records
const { clock } = capture

/** @typedef {import('./entry').Entry} Entry */

const ENDING_STEPS = 4 // from response.end() to its "finish"

const streamHandle = hiddenProperty('kHandle')

/**
 * Makes the remainder of this callback part of a request that a server got, and so what the connection's
 * parser brings of it later.
 * @param {number} name number of its name, see core/request-names.js
 * @param {object} message
 * @param {object} response
 * @returns {boolean} the first one of its connection
 */
function enterRequest (name, message, response) {
  const parser = records.findResource(enteredId())
  if (parser === undefined || (parser.words[parser.offset + FLAGS] & PARSER) === 0) return false
  const request = records.addRequest(parser, clock[0] * TICKS, name)
  const isFirst = parser.words[parser.offset + DETAIL] === 0
  parser.words[parser.offset + DETAIL] = request
  parser.words[parser.offset + INCOMING] = HEAD
  current[CURRENT_CAUSE] = request
  if (isObject(response)) answers(response, request)
  const connection = isFirst ? registry.get(triggerIdAt(parser.words, parser.offset)) : undefined
  if (connection !== undefined) noteServed(connection, request)
  if ((current[ATTENTION] & LOGGED) !== 0) runLog.turned(now())
  if (allocationClock.isOn) allocationClock.mark(current[CURRENT_CHAIN], request, current[CURRENT_SPAN])
  return isFirst
}

/**
 * Notes that requests come on a connection, and on the one below TLS, which reports that it is closed.
 * @param {Entry} connection
 * @param {number} request reference of the first one
 */
function noteServed (connection, request) {
  setAsk(connection, request)
  if (connection.context.type !== 'TLSWRAP') return
  const handle = connection.resource.deref()
  const context = handle && contextTag.read(underlyingHandle(handle))
  const below = context && registry.get(context.asyncId)
  if (below === undefined || below === connection) return
  below.above = connection
  setAsk(below, request)
}

/** A server got a request. @param {{ request: any, response: object, server: object }} message */
function started ({ request, response, server }) {
  const isPlain = requests.hasNodePrototype(request)
  const method = isPlain ? request.method : own(request, 'method')
  const url = isPlain ? request.url : own(request, 'url')
  if (typeof method !== 'string' || typeof url !== 'string') return
  if (enterRequest(requests.numberOf(method, url), request, response)) emit('served', server)
}

/** Notes the route when Fastify runs a handler, within its request. @param {{ route: any }} message */
function routed ({ route }) {
  const url = isObject(route) ? own(route, 'url') : undefined
  if (typeof url === 'string') noteRoute(url)
}

/** Notes the route of the request that runs. @param {string} route */
function noteRoute (route) {
  const { NEAR_STEPS, requestOf } = require('./request-of') // loaded with the first request
  const record = records.findRecord(requestOf(currentStep().ref, undefined, NEAR_STEPS))
  if (record === undefined) return
  const index = record.offset + DETAIL
  record.words[index] = requests.withRoute(record.words[index], route)
}

/** Reads the route of a request that was answered, within it. @param {{ request: object }} message */
function answered ({ request }) {
  const route = source.routeTextOf(request)
  if (route !== undefined) noteRoute(route)
}

/**
 * Adds the record of a request, when the event of a stream of HTTP/2 is about to be emitted.
 * @param {unknown} stream
 * @param {unknown} headers
 * @param {{ words: Int32Array, offset: number }} session its record
 * @param {number} time in ticks
 * @returns {number} reference of the request, 0: it is none
 */
function streamed (stream, headers, session, time) {
  if (!isObject(stream) || !isObject(headers) || className(stream) !== 'ServerHttp2Stream') return 0
  emit('streamServed', stream)
  const method = own(headers, ':method')
  const path = own(headers, ':path')
  if (typeof method !== 'string') return 0
  const number = requests.numberOf(method, typeof path === 'string' ? path : '')
  const handle = streamHandle(stream)
  const context = isObject(handle) ? contextTag.read(handle) : undefined
  const ref = records.addRequest(session, time, number)
  if (context?.type === 'HTTP2STREAM') {
    context.request = requests.textAt(number)
    context.ensureExtra().requestRef = ref
  }
  return ref
}

/** Notes when the response to a request of HTTP/1 is finished. @param {{ response: object }} message */
function finished ({ response }) {
  const request = records.findRecord(answeredBy(response))
  if (request === undefined) return
  request.words[request.offset + ANSWERED_AT] = clock[0]
  request.words[request.offset + SETTLED_FOR] = currentStep().ref
}

/**
 * Whether the response to a request was ended later than a step was made, and in another callback; false if
 * that is unknown.
 * @param {number} ref of the request
 * @param {import('./context').Context} step
 */
function isAnsweredAfter (ref, { parent, time }) {
  if (time >= records.readWord(ref, ANSWERED_AT)) return false
  let ending = records.readWord(ref, SETTLED_FOR)
  for (let i = 0; i < ENDING_STEPS && ending !== 0; i++) {
    if (ending === parent?.ref) return false
    ending = records.readWord(ending, CAUSE)
  }
  return true
}

/** Whether a request of HTTP/1 is known to be answered. @param {number} ref */
function isAnswered (ref) {
  const parser = parserOf(ref)
  if (parser === undefined) return false
  if (parser.words[parser.offset + DETAIL] !== ref) return true
  const socket = socketOf(parser)
  return socket !== undefined && own(socket, '_httpMessage') === null
}

/** Whether a request of HTTP/1 is known to wait for its answer. @param {number} ref */
function isInFlight (ref) {
  const parser = parserOf(ref)
  if (parser === undefined || parser.words[parser.offset + DETAIL] !== ref) return false
  const socket = socketOf(parser)
  return socket !== undefined && own(socket, '_httpMessage') !== null
}

/**
 * Whether another request was under way at some time from the begin of one up to a step, or went on after its
 * answer. Those of HTTP/2 are under way for as long as they have a record, since no end of theirs is noted.
 * @param {number} ref of the request, 0: none led to the step; then only at that step
 * @param {import('./context').Context} step
 */
function isBesideOthers (ref, { time }) {
  const request = ref === 0 ? undefined : records.findRecord(ref)
  const words = allRequests()
  if (ref !== 0 && request === undefined) return true
  if (words === undefined) return false
  const begin = request === undefined ? time : timeAt(request.words, request.offset)
  for (let i = 0; i < words.length; i += 1 << SHIFT) {
    // Newer ones first: under load the next is one
    const offset = ((request?.offset ?? 0) + i) % words.length
    const other = words[offset + REF]
    if (other === 0 || other === ref || timeAt(words, offset) > time) continue
    const end = words[offset + ANSWERED_AT]
    if (end !== 0 && end >= begin) return true
    if (end === 0 && (ref === 0 ? isInFlight(other) : !isAnswered(other))) return true
  }
  return ref !== 0 && require('./request-of').othersWorkSince(ref, begin) <= time
}

/** @param {number} ref of a request @returns {{ words: Int32Array, offset: number } | undefined} */
function parserOf (ref) {
  const request = records.findRecord(ref)
  const parser = request && records.findRecord(request.words[request.offset + OUTER])
  const isParser = parser !== undefined && (parser.words[parser.offset + FLAGS] & PARSER) !== 0
  return isParser ? parser : undefined
}

/**
 * Returns the request that came last on a connection, if it is the only one that is not answered: what
 * happens to the connection happens to that request.
 * @param {number} id of its handle
 * @returns {number} reference, 0: there is none
 */
function servedOn (id) {
  const socket = ownerOfConnection(id)
  const response = socket && own(socket, '_httpMessage')
  if (!isObject(response)) return 0
  const node = own(/** @type {object} */ (socket), 'parser')
  const request = own(response, 'req') // of the oldest, where requests are pipelined
  const isOnly = isObject(request) && isObject(node) && own(node, 'incoming') === request
  return isOnly ? answeredBy(response) : 0
}

/**
 * @param {number} id of a handle
 * @returns {object | undefined} the socket on it; that of TLS, if there is one
 */
function ownerOfConnection (id) {
  const connection = registry.get(id)
  const handle = (connection?.above ?? connection)?.resource.deref()
  return handle && ownerOf(handle)
}

/** Notes the response to a request of HTTP/2. @param {object} stream @param {object} response */
function streamResponded (stream, response) {
  const handle = streamHandle(stream)
  const ref = isObject(handle) ? contextTag.read(handle)?.extra?.requestRef : undefined
  if (ref !== undefined) setResponse(ref, response)
}

/**
 * @param {number} ref of a request
 * @returns {string | undefined} its name, with the route if a framework found one
 */
function nameOf (ref) {
  const record = records.findRecord(ref)
  if (record === undefined) return undefined
  const { words, offset } = record
  const request = incomingOf(ref, words[offset + OUTER])
  const route = request === undefined ? undefined : source.routeTextOf(request)
  if (route !== undefined) words[offset + DETAIL] = requests.withRoute(words[offset + DETAIL], route)
  return requests.textAt(words[offset + DETAIL])
}

/**
 * Returns the object of a request, if none came after it on its connection.
 * @param {number} ref
 * @param {number} parser reference of what it came on
 * @returns {object | undefined}
 */
function incomingOf (ref, parser) {
  const record = records.findRecord(parser)
  if (record === undefined || record.words[record.offset + DETAIL] !== ref) return undefined
  const socket = socketOf(record)
  const node = socket === undefined ? undefined : own(socket, 'parser')
  const request = isObject(node) ? own(node, 'incoming') : undefined
  return isObject(request) && own(request, 'upgrade') !== true ? request : undefined
}

/** @param {{ words: Int32Array, offset: number }} parser its record @returns {object | undefined} */
function socketOf ({ words, offset }) {
  const handle = registry.get(triggerIdAt(words, offset))?.resource.deref()
  return handle === undefined ? undefined : ownerOf(handle)
}

Object.assign(source, {
  isAnswered,
  isAnsweredAfter,
  isBesideOthers,
  isInFlight,
  servedOn,
  nameOfRequest: nameOf,
  socketOf: ownerOfConnection
})

module.exports = { answered, finished, nameOf, routed, started, streamResponded, streamed }
