'use strict'

// Labels of hops: the call in the program, not Node's provider name.

const { connectionTypes } = require('../core/kinds')
const { apiName } = require('./api-names')
const { isCore, isProgram } = require('./frames')
const { ensureHeadroom } = require('./stack-headroom')
const { afterLast, withoutAlias, withoutPrefix } = require('./text-scan')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 */

const MAX_NAME = 60 // characters of a span's name
const EXPRESSION_KB = 96 // stack needed to compile a regular expression

/** @type {Record<string, (detail: string | undefined, api: string | undefined) => string>} */
const phrases = {
  __proto__: /** @type {any} */ (null),
  process: () => 'process start',
  Immediate: (_, api) => deferredLabel('setImmediate', api),
  TickObject: (_, api) => deferredLabel('process.nextTick', api),
  Microtask: (_, api) => deferredLabel('queueMicrotask', api),
  Timeout: (detail, api) => timerLabel(detail, api),
  REQUEST: (_, api) => api ?? 'request',
  TCPWRAP: (detail, api) => call(api ?? 'TCP connection', detail),
  PIPEWRAP: (detail, api) => call(api ?? 'pipe', detail),
  TLSWRAP: (detail, api) => call(api ?? 'TLS connection', detail),
  TCPCONNECTWRAP: (detail, api) => call(api ?? 'net.connect', detail),
  PIPECONNECTWRAP: (detail, api) => call(api ?? 'net.connect', detail),
  TCPSERVERWRAP: (detail) => call('server.listen', detail),
  PIPESERVERWRAP: (detail) => call('server.listen', detail),
  GETADDRINFOREQWRAP: (detail, api) => call(api ?? 'dns.lookup', detail),
  GETNAMEINFOREQWRAP: (detail, api) => call(api ?? 'dns.lookupService', detail),
  QUERYWRAP: (detail, api) => call(api ?? 'dns.resolve', detail),
  HTTPCLIENTREQUEST: (detail, api) => call(api ?? 'http.request', detail),
  HTTP2SESSION: (_, api) => api ?? 'HTTP/2 session',
  HTTP2STREAM: (_, api) => api ?? 'HTTP/2 stream',
  PROCESSWRAP: (detail, api) => processLabel(detail, api ?? 'child_process.spawn'),
  WORKER: () => 'new Worker',
  MESSAGEPORT: (_, api) => api ?? 'new MessageChannel',
  MESSAGE: (_, api) => api ?? 'parentPort.postMessage',
  PORTMESSAGE: () => 'port.postMessage',
  STREAM_END_OF_STREAM: (_, api) => api === undefined || api === 'stream.eos' ? 'stream.finished' : api,
  SIGNALWRAP: () => 'process.on(signal)',
  Span: (name, api) => name === undefined ? resourceLabel('Span', api) : spanLabel(name)
}

/** @param {string} name */
function spanLabel (name) {
  return call('trace.span', printable(name).slice(0, MAX_NAME))
}

/** Replaces characters without a glyph by a space. Few names need the expression. @param {string} name */
function printable (name) {
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code >= 0x20 && code <= 0x7e) continue
    ensureHeadroom(EXPRESSION_KB)
    return name.replace(/\p{C}+/gu, ' ')
  }
  return name
}

/**
 * @param {Context} context
 * @param {Frame[]} frames of its stack
 * @returns {string}
 */
function labelOf (context, frames) {
  const { type, detail } = context
  if (context.origin === 'early') return 'made before longstack was enabled'
  if (type === 'PROMISE') return promiseLabel(context, frames)
  if (type === 'HTTPINCOMINGMESSAGE') {
    return withTransforms(context.request ?? 'http connection accepted', detail)
  }
  if (isAccepted(context, frames)) {
    return withTransforms(type === 'TLSWRAP' ? 'TLS connection accepted' : 'connection accepted', detail)
  }
  // Created through Node's binding, bypassing net.
  if (type.endsWith('SERVERWRAP') && frames.length > 0 && isProgram(frames[0])) {
    return call(type.startsWith('TCP') ? 'new TCP' : 'new Pipe', detail)
  }
  const arrived = arrivedBy(context, frames)
  if (arrived !== undefined) return arrived
  const api = apiName(frames)
  if (context.kind?.asked === true) return api === undefined || api === 'stream.write' ? 'socket.write' : api
  const phrase = phrases[type]
  if (phrase !== undefined) return phrase(detail, api)
  return boundLabel(type, frames) ?? resourceLabel(type, api)
}

const arrivals = new Set(['HTTP2STREAM', 'HTTP2SESSION', 'TickObject'])

/**
 * Whether a context is a connection that a server accepted: the server caused it, and no program code ran.
 * @param {Context} context
 * @param {Frame[]} frames
 */
function isAccepted ({ kind, type, parent }, frames) {
  if (parent === undefined || kind?.asked === true || !connectionTypes.has(type)) return false
  return parent.type.endsWith('SERVERWRAP') && frames.every(isCore)
}

/**
 * Returns the label of an HTTP/2 arrival, without program code on the stack: a session at a server, a stream
 * in a session, or the tick that notifies the program of a stream.
 * @param {Context} context
 * @param {Frame[]} frames
 * @returns {string | undefined}
 */
function arrivedBy ({ type, parent, request }, frames) {
  if (parent === undefined || !arrivals.has(type) || !frames.every(isCore)) return undefined
  if (type === 'HTTP2SESSION') {
    const opener = connectionTypes.has(parent.type) ? parent.parent : parent
    return opener !== undefined && opener.type.endsWith('SERVERWRAP') ? 'HTTP/2 session accepted' : undefined
  }
  if (parent.type !== 'HTTP2SESSION') return undefined
  const isStream = type === 'HTTP2STREAM' ||
    frames.some((frame) => frame.functionName?.endsWith('onSessionHeaders'))
  if (!isStream) return undefined
  return request ?? parent.request ?? 'HTTP/2 stream'
}

/**
 * Whether the label of a step names a request that a server received.
 * @param {Context} context
 * @param {Frame[]} frames
 */
function namesRequest (context, frames) {
  const { type, parent, request } = context
  if (type === 'HTTPINCOMINGMESSAGE') return request !== undefined
  if (type === 'HTTP2SESSION' || (request ?? parent?.request) === undefined) return false
  return arrivedBy(context, frames) !== undefined
}

/**
 * Adds the transforms that trace.intercept put between a connection and the parser.
 * @param {string} phrase
 * @param {string | undefined} names
 */
function withTransforms (phrase, names) {
  return names === undefined ? phrase : `${phrase}, through ${names}`
}

/**
 * Prefers the call that made Node defer.
 * @param {string} name
 * @param {string | undefined} api
 */
function deferredLabel (name, api) {
  return api === undefined || name.endsWith(afterLast(api, '.')) ? name : api
}

/**
 * Labels a timer. Only calls that set a time, such as socket.setTimeout, show the ms of their timer.
 * @param {string | undefined} detail
 * @param {string | undefined} api
 */
function timerLabel (detail, api) {
  if (api === undefined) return call('setTimeout', detail)
  const name = api.startsWith('timers.set') ? api.slice('timers.'.length) : api
  return isTimed(name.toLowerCase()) ? call(name, detail) : name
}

/** @param {string} name in lower case */
function isTimed (name) {
  if (name.includes('timeout') || name.includes('interval')) return true
  return name.endsWith('wait') || name.endsWith('refresh')
}

/**
 * Labels a child process: "fork(worker.js)", "spawn(node app.js)", "spawn(git)".
 * @param {string | undefined} command program and script
 * @param {string} api
 */
function processLabel (command, api) {
  if (command === undefined) return api
  const name = withoutPrefix(api, 'child_process.')
  return call(name, name.endsWith('fork') ? withoutPrefix(command, 'node ') : command)
}

const binders = new Set([
  'AsyncResource.bind', 'AsyncResource.snapshot', 'AsyncLocalStorage.bind', 'AsyncLocalStorage.snapshot'
])

/**
 * Labels a function bound to its context: the type of such a resource is the function's name.
 * @param {string} type
 * @param {Frame[]} frames
 */
function boundLabel (type, frames) {
  const api = withoutPrefix(apiName(frames) ?? '', 'async_hooks.')
  if (!binders.has(api)) return undefined
  const isTraceBind = api === 'AsyncResource.bind' && frames.some((frame) => frame.kind === 'own')
  return call(isTraceBind ? 'trace.bind' : api, type === 'bound-anonymous-fn' ? undefined : type)
}

/**
 * Labels an AsyncResource of the program, whose type is its own name.
 * @param {string} type
 * @param {string | undefined} api
 */
function resourceLabel (type, api) {
  if (api === undefined) return type
  return api === 'new AsyncResource' || api === 'new EventEmitterAsyncResource' ? call(api, type) : api
}

/** @param {string} name @param {string | undefined} detail */
function call (name, detail) {
  return detail === undefined ? name : `${name}(${detail})`
}

/**
 * @param {Context} context
 * @param {Frame[]} frames
 */
function promiseLabel (context, frames) {
  const own = frames.findIndex((frame) => frame.kind !== 'core')
  if (own === -1) return 'promise'
  const creator = frames[own - 1]
  if (creator === undefined) {
    if (context.awaited) return 'await'
    const name = withoutAlias(frames[own].functionName ?? '')
    // Top-level module code creates promises only by import() or native code.
    if (name.endsWith('Object.<anonymous>')) return 'promise'
    return name === '' ? 'async function' : `${name}()`
  }
  if (creator.functionName?.startsWith('importModuleDynamically')) return 'import()'
  if (creator.fileName !== undefined) return apiName(frames) ?? 'promise'
  // Node 20 and 22 call the receiver of Promise.reject "Function".
  const name = withoutAlias(creator.functionName ?? 'promise')
  if (promiseMethods.has(name)) return name === 'Promise.finally' ? 'promise.finally' : 'promise.then'
  return name.startsWith('Function.') ? `Promise.${name.slice('Function.'.length)}` : name
}

// V8 turns a call of catch into one of then (ReducePromisePrototypeCatch in src/compiler/js-call-reducer.cc).
const promiseMethods = new Set(['Promise.then', 'Promise.catch', 'Promise.finally'])

// Node creates some resources after the program's call has returned: in a later tick, with only Node's own
// frames. These resources name the hop of that call.

const ranked = ['', '', 'HTTPCLIENTREQUEST', 'GETADDRINFOREQWRAP', 'FSREQCALLBACK']

/**
 * Ranks how informative a type is about a call into Node.
 * @param {string} type
 * @returns {number} 0 is the most informative; -1: not at all
 */
function rankOf (type) {
  if (type.endsWith('CONNECTWRAP')) return 0
  if (type.endsWith('SERVERWRAP')) return 1
  return ranked.indexOf(type)
}

/** Whether labels of this type name an address or a file. @param {string} type */
const isTelling = (type) => rankOf(type) !== -1

/**
 * Returns the more informative of two resources.
 * @param {Context | undefined} later
 * @param {Context} candidate
 * @returns {Context | undefined}
 */
function moreTelling (later, candidate) {
  const rank = rankOf(candidate.type)
  if (rank === -1) return later
  return later === undefined || rank < rankOf(later.type) ? candidate : later
}

/**
 * Names the hop of a call after a resource that Node created later.
 * @param {import('./chain').PrintedHop} hop
 * @param {Context} later
 * @param {Frame[]} frames of the hop's context
 */
function nameByLater (hop, later, frames) {
  const api = apiName(frames)
  if (api === undefined || defers(api)) return
  if (rankOf(later.type) > 1 && hop.type !== 'TickObject') return
  hop.asyncId = later.asyncId
  hop.triggerAsyncId = later.triggerAsyncId
  hop.type = later.type
  hop.label = labelOf(later, frames)
}

/**
 * Whether a call only defers: setTimeout, socket.setTimeout, queueMicrotask, nextTick.
 * @param {string} api
 */
function defers (api) {
  const method = afterLast(api, '.')
  if (method.startsWith('set')) return method.length > 'set'.length
  return method === 'queueMicrotask' || method === 'nextTick'
}

module.exports = { arrivedBy, isAccepted, isTelling, labelOf, moreTelling, nameByLater, namesRequest }
