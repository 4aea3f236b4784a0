'use strict'

// Requests in flight on servers of this thread, and their waits. HTTP/1: the response that Node keeps on a
// connection until it is sent. HTTP/2: an open stream. Nothing here runs code of the program; the work is
// done in pieces.

const { now } = require('../core/clock')
const { contextAt } = require('../core/context')
const { connectionTypes } = require('../core/kinds')
const { ANSWERED, FLAGS, OUTER, REF, SPAN, findRecord } = require('../core/records')
const { eachRequest, requestOf } = require('../core/request-of')
const { getOrAdd, newList } = require('../group-by')
const { addressOf, handleOf, idOf, ownerOf } = require('../node-objects')
const { className, hidden, isObject, own } = require('../objects')
const { isProxy } = require('node:util').types
const { hops } = require('../stacks/chain')
const { userOf } = require('./find')
const { drain } = require('./list')
const { byRequest } = require('./pending')
const registry = require('../core/registry')
const { requestLabel } = require('./request-label')
const { settings } = require('../settings')
const { stoppedOf } = require('./stopped-requests')

const CHUNK = 256 // handles per piece of work
const MAX_REQUESTS = 1000 // the oldest ones, reported with their waits
const MAX_USES = 10 // per request

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../core/entry').Entry} Entry
 *
 * @typedef {object} WaitOfRequest
 * @property {string | undefined} at `connect (/app/pool.js:29:12)`
 * @property {string} label `await`
 * @property {number} count
 * @property {number} oldestMs
 *
 * @typedef {object} UseOfRequest an outgoing request, or a connection with an unanswered write
 * @property {string} what `GET http://127.0.0.1:8080/stock`, `TCP 127.0.0.1:5432`
 * @property {number | undefined} sinceMs
 *
 * @typedef {object} RequestInFlight
 * @property {string} request `GET /report`
 * @property {number | undefined} ageMs since its head was parsed; undefined if unknown, for example before
 *   tracing was on
 * @property {number} [leastMs] how long it has been in flight at least, if ageMs is unknown
 * @property {boolean} answering the head of its response was sent
 * @property {WaitOfRequest[]} waits innermost waits, see pending.js
 * @property {UseOfRequest[]} uses outgoing requests and connections
 * @property {import('./stopped-requests').LastStep} [stopped] what it started last, if nothing that it
 *   started is pending
 * @property {PrintedHop[]} hops
 *
 * @typedef {object} RequestsInFlight
 * @property {number} count total number
 * @property {RequestInFlight[]} requests oldest first, at most MAX_REQUESTS
 * @property {import('./pending').PendingNoteCode | undefined} noteCode reason why `waits` are unknown
 * @property {import('./idle-connections').IdleConnections[]} idle
 *
 * @typedef {object} AgentQueue requests of this thread waiting for a free socket of an http.Agent
 * @property {string} peer `127.0.0.1:8080`
 * @property {number} waiting requests waiting
 * @property {number} sockets sockets in use
 * @property {number} max maxSockets, or maxTotalSockets
 *
 * @typedef {object} Served
 * @property {number} ref
 * @property {string} label
 * @property {boolean} answering
 * @property {boolean | undefined} isWhole the whole request has come, its body too; undefined: unknown
 * @property {number | undefined} time ms of the clock when its head was parsed
 * @property {number} [seen] likewise, when it was first seen, if `time` is unknown
 *
 * @typedef {Served & Pick<RequestInFlight, 'waits' | 'uses' | 'stopped'>} Waiting
 */

/** when responses of requests without a record were first seen @type {WeakMap<object, number>} */
const firstSeen = new WeakMap()

/**
 * Returns the requests in flight. Yields between pieces of work.
 * @returns {Generator<void, RequestsInFlight, void>}
 */
function * requestsInFlight () {
  const time = now()
  const { count, requests, noteCode } = yield * servedWithWaits(time)
  /** @type {RequestInFlight[]} */
  const list = []
  for (const { ref, label, answering, time: begun, seen, waits, uses, stopped } of requests) {
    yield
    list.push({
      request: label,
      ageMs: begun === undefined ? undefined : Math.max(0, time - begun),
      leastMs: seen === undefined ? undefined : Math.max(0, time - seen),
      answering,
      waits,
      uses,
      stopped,
      hops: ref === 0 ? [] : hops(contextAt(ref))
    })
  }
  const idle = list.length === 0 ? [] : yield * require('./idle-connections').idleConnections()
  return { count, requests: list, noteCode, idle }
}

/**
 * Returns the oldest requests in flight with what they wait for. Yields between pieces of work.
 * @param {number} time ms of the clock
 * @param {boolean} [withStopped] what each started last, if nothing is pending
 * @returns {Generator<void, { requests: Waiting[] } & Omit<RequestsInFlight, 'requests' | 'idle'>, void>}
 */
function * servedWithWaits (time, withStopped = true) {
  const lookup = new Map()
  const { requests, uses } = yield * servedWithUses(lookup, time)
  yield
  const { waits, noteCode } = yield * byRequest(lookup, time)
  const oldest = requests.sort(byAge).slice(0, MAX_REQUESTS)
  /** when they began, by reference @type {Map<number, number>} */
  const quiet = new Map()
  const isAllTraced = String(settings.options.filter) === '*'
  for (const { ref, answering, isWhole, time: begun } of withStopped && isAllTraced ? oldest : []) {
    const isQuiet = !answering && isWhole && !waits.has(ref) && !uses.has(ref)
    if (isQuiet && begun !== undefined) quiet.set(ref, begun)
  }
  const stopped = yield * stoppedOf(quiet, lookup)
  const list = oldest.map((served) => ({
    ...served,
    waits: [...waits.get(served.ref)?.values() ?? []],
    uses: uses.get(served.ref) ?? [],
    stopped: stopped.get(served.ref)
  }))
  return { count: requests.length, requests: list, noteCode }
}

/**
 * @typedef {object} WaitsOfSpan what a request in flight waits for
 * @property {number} span number
 * @property {Array<[what: string, since: number | undefined]>} waits since: ms of the clock, if known
 * @property {true} [responding] the head of its response was sent
 * @property {import('./stopped-requests').LastStep} [stopped] see RequestInFlight
 *
 * @typedef {object} OpenWaits
 * @property {WaitsOfSpan[]} waits oldest request first
 * @property {number} [since] ms of the clock
 * @property {RequestsInFlight['idle']} [idle]
 * @property {Pick<import('./wait-graph').WaitGraph, 'cycles' | 'convoys'>} [graph] who waits for whom
 */

/**
 * Returns what requests in flight wait for, as a text of a recording.
 * @param {boolean} withOthers also connections, and who waits for whom
 * @returns {OpenWaits}
 */
function openWaits (withOthers) {
  const time = now()
  const { requests } = drain(servedWithWaits(time, withOthers))
  /** @type {WaitsOfSpan[]} */
  const waits = requests.flatMap(({ ref, answering, isWhole, waits: awaits, uses, stopped }) => {
    const record = ref === 0 ? undefined : findRecord(ref)
    if (record === undefined) return []
    const used = uses.map(({ what, sinceMs }) => ({ what, ms: sinceMs }))
    const awaited = awaits.map(({ at: frame, label, oldestMs }) =>
      ({ what: frame === undefined ? label : `${label} at ${frame}`, ms: oldestMs }))
    /** @type {WaitsOfSpan['waits']} */
    const all = [...used, ...awaited].map(({ what, ms }) => [what, ms === undefined ? undefined : time - ms])
    if (isWhole === false) all.unshift(['the rest of the request', undefined])
    const span = record.words[record.offset + SPAN]
    return [{ span, waits: all.slice(0, MAX_USES), ...(answering && { responding: true }), stopped }]
  })
  if (!withOthers) return { waits }
  const { cycles, convoys } = drain(require('./wait-graph').waitGraph())
  const idle = drain(require('./idle-connections').idleConnections())
  return { waits, since: time, idle, graph: { cycles, convoys } }
}

/**
 * Returns the requests in flight and what they use. Yields between pieces of work.
 * @param {import('../core/request-of').Lookup} lookup
 * @param {number} time ms of the clock
 * @returns {Generator<void, { requests: Served[], uses: Map<number, UseOfRequest[]> }, void>}
 */
function * servedWithUses (lookup, time) {
  /** @type {Map<number, UseOfRequest[]>} */
  const uses = new Map()
  /** @type {Served[]} */
  const requests = []
  const lastRequests = readLastRequests()
  let looked = 0
  for (const { socket, entry } of connections()) {
    if (++looked % CHUNK === 0) yield
    const message = own(socket, '_httpMessage')
    if (isObject(message) && isObject(own(message, 'req'))) {
      requests.push(servedOn(socket, message, lastRequests))
    } else {
      noteUse(uses, lookup, time, useOf(socket, entry))
    }
  }
  for (const entry of registry.list()) {
    if (++looked % CHUNK === 0) yield
    const served = entry.context.type === 'HTTP2STREAM' ? streamed(entry) : undefined
    if (served !== undefined) requests.push(served)
  }
  return { requests, uses }
}

/**
 * Lists HTTP/1 requests in flight, for figures. Yields undefined between pieces of work.
 * @returns {Generator<{ socket: object, request: object, time: number | undefined } | undefined, void, void>}
 *   time: ms of the clock when its head was parsed; undefined if unknown
 */
function * servedRequests () {
  const lastRequests = readLastRequests()
  let looked = 0
  for (const { socket } of connections()) {
    if (++looked % CHUNK === 0) yield undefined
    const message = own(socket, '_httpMessage')
    const request = isObject(message) ? own(message, 'req') : undefined
    if (!isObject(message) || !isObject(request)) continue
    yield { socket, request, time: servedOn(socket, message, lastRequests).time }
  }
}

/**
 * Lists sockets: those in the registry, and those opened before tracing, which only Node lists.
 * @returns {Generator<{ socket: object, entry: Entry | undefined }, void, void>}
 */
function * connections () {
  const listed = new Set()
  for (const entry of registry.list()) {
    if (!connectionTypes.has(entry.context.type)) continue
    const handle = entry.resource.deref()
    const socket = entry.owner?.deref() ?? (handle && ownerOf(handle))
    if (socket === undefined || listed.has(socket) || handleOf(socket) === undefined) continue
    listed.add(socket)
    yield { socket, entry }
  }
  const node = /** @type {any} */ (process)
  for (const socket of node._getActiveHandles()) {
    if (isProxy(socket) || listed.has(socket) || own(socket, '_httpMessage') === undefined) continue
    yield { socket, entry: undefined }
  }
}

/** Returns the last request on each parser, by reference. @returns {Map<number, number>} */
function readLastRequests () {
  /** @type {Map<number, number>} */
  const lastRequests = new Map()
  eachRequest((words, offset) => lastRequests.set(words[offset + OUTER], words[offset + REF]))
  return lastRequests
}

/**
 * Returns the HTTP/1 request in flight on a connection.
 * @param {object} socket
 * @param {object} response
 * @param {Map<number, number>} lastRequests
 * @returns {Served}
 */
function servedOn (socket, response, lastRequests) {
  const request = /** @type {object} */ (own(response, 'req'))
  const parser = own(socket, 'parser')
  // The parser knows the last request, which is a different one if requests are pipelined
  const isLast = isObject(parser) && own(parser, 'incoming') === request
  const ref = (isLast && lastRequests.get((idOf(parser) ?? 0) << 1)) || 0
  const context = ref === 0 ? undefined : contextAt(ref)
  const answering = typeof own(response, '_header') === 'string'
  const isWhole = own(request, 'complete') === true
  const known = {
    ref, label: context?.request ?? requestLabel(request), answering, isWhole, time: context?.time
  }
  return context !== undefined ? known : { ...known, seen: getOrAdd(firstSeen, response, now) }
}

/** @param {Entry} entry of a stream @returns {Served | undefined} undefined: no server request */
function streamed ({ context, resource }) {
  const handle = resource.deref()
  const stream = handle && ownerOf(handle)
  if (stream === undefined || className(stream) !== 'ServerHttp2Stream') return undefined
  if (handleOf(stream) !== handle) return undefined
  const { extra, request = 'HTTP/2 request', time } = context
  const answering = isObject(hidden(stream, 'sent-headers'))
  return { ref: extra?.requestRef ?? 0, label: request, answering, isWhole: undefined, time }
}

/**
 * Notes the request that uses a connection, if any.
 * @param {Map<number, UseOfRequest[]>} uses by reference of the request
 * @param {import('../core/request-of').Lookup} lookup
 * @param {number} time ms of the clock
 * @param {ReturnType<typeof useOf>} use
 */
function noteUse (uses, lookup, time, use) {
  const request = use === undefined ? 0 : requestOf(use.ref, lookup)
  if (use === undefined || request === 0) return
  const list = getOrAdd(uses, request, newList)
  const sinceMs = Number.isNaN(use.time) ? undefined : Math.max(0, time - use.time)
  if (list.length < MAX_USES) list.push({ what: use.what, sinceMs })
}

/**
 * Returns the outgoing request or write that currently uses a connection.
 * @param {object} socket
 * @param {Entry | undefined} entry
 * @returns {{ ref: number, what: string, time: number } | undefined} ref: step in which it began
 */
function useOf (socket, entry) {
  const user = userOf(socket, entry)
  if (user !== undefined) {
    const { context, label } = user
    if (context === undefined) return undefined
    const step = context.ref === 0 ? context.parent : context // an outgoing request is not a resource
    return { ref: step?.ref ?? 0, what: label, time: context.time }
  }
  const asked = entry === undefined || entry.use !== undefined ? undefined : findRecord(entry.lastAsk)
  if (entry === undefined || asked === undefined) return undefined
  if ((asked.words[asked.offset + FLAGS] & ANSWERED) !== 0) return undefined // data came since
  const handle = handleOf(socket)
  const remote = (handle && addressOf(handle, 'getpeername')) ?? entry.remote
  const subsystem = entry.context.type.slice(0, -'WRAP'.length)
  const text = remote === undefined ? subsystem : `${subsystem} ${remote}`
  return { ref: entry.lastAsk, what: text, time: Number(entry.writeTime) }
}

/** @param {Served} request @param {Served} other */
const byAge = (request, other) => (request.time ?? 0) - (other.time ?? 0)

/**
 * Lists requests that wait for a free socket of an http.Agent, which opens at most maxSockets. Agents are
 * found through their sockets in use.
 * @returns {Generator<void, AgentQueue[], void>} longest first
 */
function * agentQueues () {
  /** @type {Set<object>} */
  const agents = new Set()
  let looked = 0
  for (const { socket } of connections()) {
    if (++looked % CHUNK === 0) yield
    const message = own(socket, '_httpMessage')
    const agent = isObject(message) ? own(message, 'agent') : undefined
    if (isObject(agent) && !isProxy(agent)) agents.add(agent)
  }
  return [...agents].flatMap(queuesOf).sort((a, b) => b.waiting - a.waiting)
}

/** @param {object} agent @returns {AgentQueue[]} */
function queuesOf (agent) {
  const [requests, sockets] = [own(agent, 'requests'), own(agent, 'sockets')]
  if (!isObject(requests) || isProxy(requests)) return []
  const max = Math.min(limit(agent, 'maxSockets'), limit(agent, 'maxTotalSockets'))
  return Object.keys(requests).map((name) => ({
    peer: name.split(':', 2).join(':'),
    waiting: lengthOf(requests, name),
    sockets: lengthOf(sockets, name),
    max
  })).filter(({ waiting, sockets: inUse }) => waiting > 0 && inUse > 0)
}

/** @param {object} agent @param {string} name @returns {number} */
function limit (agent, name) {
  const value = own(agent, name)
  return typeof value === 'number' ? value : Infinity
}

/** @param {unknown} lists @param {string} name */
function lengthOf (lists, name) {
  const list = isObject(lists) ? own(lists, name) : undefined
  return Array.isArray(list) ? list.length : 0
}

module.exports = { agentQueues, openWaits, requestsInFlight, servedRequests, servedWithUses }
