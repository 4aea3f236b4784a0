'use strict'

// Requests that servers receive. Node reports their begin through diagnostics_channel, and for HTTP/2 in a
// tick. The record holds the name as a number. A framework's route is read on demand, as long as the
// request is the last one on its connection. Holds no object of the program.

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

const ENDING_STEPS = 4 // steps from response.end() to its "finish"

const streamHandle = hiddenProperty('kHandle')

/**
 * Attributes the rest of this callback, and later data from the connection's parser, to a request that a
 * server received.
 * @param {number} name number of its name, see core/request-names.js
 * @param {object} message
 * @param {object} response
 * @returns {boolean} whether it is the first one of its connection
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
 * Notes that a connection serves requests, and so does the one below TLS, which reports the close.
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

/** Notes a server's new request. @param {{ request: any, response: object, server: object }} message */
function started ({ request, response, server }) {
  const isPlain = requests.hasNodePrototype(request)
  const method = isPlain ? request.method : own(request, 'method')
  const url = isPlain ? request.url : own(request, 'url')
  if (typeof method !== 'string' || typeof url !== 'string') return
  if (enterRequest(requests.numberOf(method, url), request, response)) emit('served', server)
}

/** Notes the route when Fastify runs a handler, inside its request. @param {{ route: any }} message */
function routed ({ route }) {
  const url = isObject(route) ? own(route, 'url') : undefined
  if (typeof url === 'string') noteRoute(url)
}

/** Notes the route of the current request. @param {string} route */
function noteRoute (route) {
  const { NEAR_STEPS, requestOf } = require('./request-of') // loaded with the first request
  const record = records.findRecord(requestOf(currentStep().ref, undefined, NEAR_STEPS))
  if (record === undefined) return
  const index = record.offset + DETAIL
  record.words[index] = requests.withRoute(record.words[index], route)
}

/** Reads the route of a finished request, in the request's context. @param {{ request: object }} message */
function answered ({ request }) {
  const route = source.routeTextOf(request)
  if (route !== undefined) noteRoute(route)
}

/**
 * Adds the record of a request when the event of an HTTP/2 stream is about to be emitted.
 * @param {unknown} stream
 * @param {unknown} headers
 * @param {{ words: Int32Array, offset: number }} session its record
 * @param {number} time in ticks
 * @returns {number} reference of the request, 0: not a request
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

/** Notes when the response to an HTTP/1 request finishes. @param {{ response: object }} message */
function finished ({ response }) {
  const request = records.findRecord(answeredBy(response))
  if (request === undefined) return
  request.words[request.offset + ANSWERED_AT] = clock[0]
  request.words[request.offset + SETTLED_FOR] = currentStep().ref
}

/**
 * Returns whether the response to a request ended after a step was made, in another callback; false if
 * unknown.
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

/** Returns whether an HTTP/1 request is known to have its response. @param {number} ref */
function isAnswered (ref) {
  const parser = parserOf(ref)
  if (parser === undefined) return false
  if (parser.words[parser.offset + DETAIL] !== ref) return true
  const socket = socketOf(parser)
  return socket !== undefined && own(socket, '_httpMessage') === null
}

/** Returns whether an HTTP/1 request is known to be in flight. @param {number} ref */
function isInFlight (ref) {
  const parser = parserOf(ref)
  if (parser === undefined || parser.words[parser.offset + DETAIL] !== ref) return false
  const socket = socketOf(parser)
  return socket !== undefined && own(socket, '_httpMessage') !== null
}

/**
 * Returns whether another request was in flight at any time between the begin of one and a step, or kept
 * working after its response. HTTP/2 requests count as in flight while they have a record: their end is not
 * noted.
 * @param {number} ref of the request; 0 if none led to the step: then only that step's time counts
 * @param {import('./context').Context} step
 */
function isBesideOthers (ref, { time }) {
  const request = ref === 0 ? undefined : records.findRecord(ref)
  const words = allRequests()
  if (ref !== 0 && request === undefined) return true
  if (words === undefined) return false
  const begin = request === undefined ? time : timeAt(request.words, request.offset)
  for (let i = 0; i < words.length; i += 1 << SHIFT) {
    // Newer ones first: under load, the next one is in flight
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
 * Returns the last request on a connection if it is the only one in flight: events of the connection then
 * concern that request.
 * @param {number} id of its handle
 * @returns {number} reference, 0: none
 */
function servedOn (id) {
  const socket = ownerOfConnection(id)
  const response = socket && own(socket, '_httpMessage')
  if (!isObject(response)) return 0
  const node = own(/** @type {object} */ (socket), 'parser')
  const request = own(response, 'req') // the oldest one, if requests are pipelined
  const isOnly = isObject(request) && isObject(node) && own(node, 'incoming') === request
  return isOnly ? answeredBy(response) : 0
}

/**
 * @param {number} id of a handle
 * @returns {object | undefined} its socket; the TLS socket, if there is one
 */
function ownerOfConnection (id) {
  const connection = registry.get(id)
  const handle = (connection?.above ?? connection)?.resource.deref()
  return handle && ownerOf(handle)
}

/** Notes the response to an HTTP/2 request. @param {object} stream @param {object} response */
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
 * Returns the object of a request, unless another one followed on its connection.
 * @param {number} ref
 * @param {number} parser reference of the resource on which it came
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
