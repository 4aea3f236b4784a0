'use strict'

// The words a person would use for a hop: the call they wrote, not the provider that Node names.

const { afterLast, aliasStart, isNameCode, withoutPrefix } = require('./text-scan')
const { ensureHeadroom } = require('./stack-headroom')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 */

const NAME = 60 // characters of a span's
const EXPRESSION_KB = 96 // room on the stack for compiling one

/** @type {Record<string, (detail: string | undefined, api: string | undefined) => string>} */
const phrases = {
  __proto__: /** @type {any} */ (null),
  process: () => 'process start',
  Immediate: (_, api) => deferred('setImmediate', api),
  TickObject: (_, api) => deferred('process.nextTick', api),
  Microtask: (_, api) => deferred('queueMicrotask', api),
  Timeout: (detail, api) => timer(detail, api),
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
  PROCESSWRAP: (_, api) => api ?? 'child_process.spawn',
  WORKER: () => 'new Worker',
  MESSAGEPORT: (_, api) => api ?? 'new MessageChannel',
  STREAM_END_OF_STREAM: (_, api) => api === undefined || api === 'stream.eos' ? 'stream.finished' : api,
  SIGNALWRAP: () => 'process.on(signal)',
  Span: (name, api) => name === undefined ? resource('Span', api) : spanLabel(name)
}

/** @param {string} name */
function spanLabel (name) {
  return call('trace.span', printable(name).slice(0, NAME))
}

/** Puts a space in place of what has no glyph. Few names need the expression. @param {string} name */
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
  if (type === 'HTTPINCOMINGMESSAGE') return through(context.request ?? 'http connection accepted', detail)
  if (accepted(context, frames)) return through(type === 'TLSWRAP' ? 'TLS connection accepted' : 'connection accepted', detail)
  if (type.endsWith('SERVERWRAP') && frames.length > 0 && isProgram(frames[0])) { // past net
    return call(type.startsWith('TCP') ? 'new TCP' : 'new Pipe', detail)
  }
  const arrived = arrivedBy(context, frames)
  if (arrived !== undefined) return arrived
  const api = apiName(frames)
  const phrase = phrases[type]
  return phrase === undefined ? bound(type, frames) ?? resource(type, api) : phrase(detail, api)
}

const connections = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])
const arrivals = new Set(['HTTP2STREAM', 'HTTP2SESSION', 'TickObject'])

/**
 * A connection that came in: nothing of the program ran, its cause is the server.
 * @param {Context} context
 * @param {Frame[]} frames
 */
function accepted ({ type, parent }, frames) {
  if (parent === undefined || !connections.has(type)) return false
  return parent.type.endsWith('SERVERWRAP') && frames.every(isCore)
}

/**
 * What came in over HTTP/2. Nothing of the program ran: a session came to a server, a stream to a session, and the program
 * hears of a stream in a tick.
 * @param {Context} context
 * @param {Frame[]} frames
 * @returns {string | undefined}
 */
function arrivedBy ({ type, parent, request }, frames) {
  if (parent === undefined || !arrivals.has(type) || !frames.every(isCore)) return undefined
  if (type === 'HTTP2SESSION') {
    const opener = connections.has(parent.type) ? parent.parent : parent
    return opener !== undefined && opener.type.endsWith('SERVERWRAP') ? 'HTTP/2 session accepted' : undefined
  }
  if (parent.type !== 'HTTP2SESSION') return undefined
  if (type !== 'HTTP2STREAM' && !frames.some((frame) => frame.functionName?.endsWith('onSessionHeaders'))) return undefined
  return request ?? parent.request ?? 'HTTP/2 stream'
}

/** What trace.intercept has put between a connection and the parser. @param {string} phrase @param {string | undefined} names */
function through (phrase, names) {
  return names === undefined ? phrase : `${phrase}, through ${names}`
}

/** Node defers much on behalf of a call; then that call is the better word. @param {string} name @param {string | undefined} api */
function deferred (name, api) {
  return api === undefined || name.endsWith(afterLast(api, '.')) ? name : api
}

/**
 * A timer, or a call that is about time such as socket.setTimeout; others keep timers for their own ends.
 * @param {string | undefined} detail
 * @param {string | undefined} api
 */
function timer (detail, api) {
  if (api === undefined) return call('setTimeout', detail)
  const name = api.startsWith('timers.set') ? api.slice('timers.'.length) : api
  return isTimed(name.toLowerCase()) ? call(name, detail) : name
}

/** @param {string} name in lower case */
function isTimed (name) {
  if (name.includes('timeout') || name.includes('interval')) return true
  return name.endsWith('wait') || name.endsWith('refresh')
}

const binders = new Set([
  'AsyncResource.bind', 'AsyncResource.snapshot', 'AsyncLocalStorage.bind', 'AsyncLocalStorage.snapshot'
])

/**
 * A function bound to its context: the type of such a resource is the function's name.
 * @param {string} type
 * @param {Frame[]} frames
 */
function bound (type, frames) {
  const api = withoutPrefix(apiName(frames) ?? '', 'async_hooks.')
  if (!binders.has(api)) return undefined
  const ours = api === 'AsyncResource.bind' && frames.some((frame) => frame.kind === 'own')
  return call(ours ? 'trace.bind' : api, type === 'bound-anonymous-fn' ? undefined : type)
}

/** An AsyncResource of the program has a name of its own. @param {string} type @param {string | undefined} api */
function resource (type, api) {
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
  const made = frames[own - 1]
  if (made === undefined) {
    if (context.awaited) return 'await'
    const name = plain(frames[own].functionName ?? '')
    // A module itself makes no promise but by import() or native code.
    if (name.endsWith('Object.<anonymous>')) return 'promise'
    return name === '' ? 'async function' : `${name}()`
  }
  if (made.functionName?.startsWith('importModuleDynamically')) return 'import()'
  if (made.fileName !== undefined) return apiName(frames) ?? 'promise'
  // Node 20 and 22 call the receiver of Promise.reject "Function".
  const name = plain(made.functionName ?? 'promise')
  if (promiseMethods.has(name)) return `p${name.slice(1)}`
  return name.startsWith('Function.') ? `Promise.${name.slice('Function.'.length)}` : name
}

const promiseMethods = new Set(['Promise.then', 'Promise.catch', 'Promise.finally'])

/**
 * Turns a record of lists into a map from each member to the name of its list.
 * @param {Record<string, string>} lists words with spaces between
 * @returns {Map<string, string>}
 */
function invert (lists) {
  const map = new Map()
  for (const [name, words] of Object.entries(lists)) for (const word of words.split(' ')) map.set(word, name)
  return map
}

/** What a person calls an object of one of Node's classes. */
const nouns = invert({
  server: 'Server Http2Server Http2SecureServer TLSServer',
  socket: 'Socket TLSSocket',
  stream: 'Readable Writable Duplex Transform PassThrough Stream ReadStream WriteStream IncomingMessage ' +
    'Gzip Gunzip Http2Stream ClientHttp2Stream ServerHttp2Stream',
  request: 'ClientRequest OutgoingMessage',
  response: 'ServerResponse Http2ServerResponse',
  session: 'Http2Session ClientHttp2Session ServerHttp2Session',
  dir: 'Dir',
  handle: 'FileHandle FsFileHandle',
  resolver: 'Resolver',
  child: 'ChildProcess',
  worker: 'Worker',
  timer: 'Timeout',
  port: 'MessagePort BroadcastChannel',
  events: 'EventEmitter'
})

/** @param {string} owner a class */
function nounOf (owner) {
  return nouns.get(owner) ?? (owner.startsWith('Zlib') ? 'stream' : owner)
}

/** Rooms of Node's source that are no modules of their own, or not by this name. */
const rooms = invert({
  http: '_http_client _http_server _http_agent _http_outgoing _http_incoming _http_common',
  tls: '_tls_wrap _tls_common',
  'fs.promises': 'internal/fs/promises fs/promises',
  'dns.promises': 'internal/dns/promises dns/promises',
  'timers.promises': 'timers/promises',
  '': 'async_hooks'
})

const innerRooms = new Set([
  'fs', 'dns', 'child_process', 'crypto', 'http', 'http2', 'net', 'tls', 'dgram', 'timers', 'zlib'
])

/**
 * @param {string} place a module of Node's, public or internal
 * @returns {string} the public one that a person thinks of, or ''
 */
function roomOf (place) {
  const room = rooms.get(place)
  if (room !== undefined) return room
  if (!place.startsWith('internal/')) return place
  if (place.startsWith('internal/streams/')) return 'stream'
  let end = 'internal/'.length
  while (end < place.length && isNameCode(place.charCodeAt(end))) end++
  const inner = place.slice('internal/'.length, end)
  return innerRooms.has(inner) ? inner : ''
}

const plainOwners = new Set(['Object', 'Function', 'Module', 'process', 'FSPromise', 'FSPromises', 'exports'])

/** by the frames of a Stack @type {WeakMap<Frame[], string | undefined>} */
const apis = new WeakMap()

/** The name of the call into Node that the program made: the core frame next to the program's own. @param {Frame[]} frames */
function apiName (frames) {
  let name = apis.get(frames)
  if (name === undefined && !apis.has(frames)) apis.set(frames, name = findApiName(frames))
  return name
}

/** @param {Frame[]} frames @returns {string | undefined} */
function findApiName (frames) {
  let at = frames.findIndex(isProgram) - 1
  while (at >= 0 && !(isCore(frames[at]) && frames[at].fileName !== undefined)) at--
  const api = at < 0 ? undefined : frames[at]
  if (api?.functionName === undefined) return undefined
  const name = called(api.functionName)
  if (!isDottedName(name)) return undefined
  if (name.startsWith('new ')) return name
  const parts = name.split('.').filter((part) => !plainOwners.has(part))
  const method = parts[parts.length - 1]
  const owner = parts[parts.length - 2]
  if (owner !== undefined) return `${nounOf(owner)}.${method}`
  const room = roomOf(String(api.fileName).slice('node:'.length))
  return room === '' ? method : `${room}.${method}`
}

/** Says whether it is a name, or names with dots between, maybe after "new ". @param {string} text */
function isDottedName (text) {
  const start = text.startsWith('new ') ? 4 : 0
  let length = 0
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code !== 46 && !isNameCode(code)) return false
    if (code === 46 && length === 0) return false
    length = code === 46 ? 0 : length + 1
  }
  return length > 0
}

/** By which name a function was called: "Object.query [as resolve4]" → "Object.resolve4". @param {string} name */
function called (name) {
  const start = aliasStart(name)
  if (start === -1) return plain(name)
  const alias = name.slice(start + ' [as '.length, -1)
  let own = start
  while (own > 0 && isNameCode(name.charCodeAt(own - 1))) own--
  if (own === start || !isName(alias)) return plain(name)
  return withoutPrefix(name.slice(0, own), 'async ') + alias
}

/** @param {string} text */
function isName (text) {
  for (let i = 0; i < text.length; i++) if (!isNameCode(text.charCodeAt(i))) return false
  return text !== ''
}

/** A function's name without how it was called. @param {string} name */
function plain (name) {
  const alias = name.endsWith(']') ? name.indexOf(' [as ') : -1
  return withoutPrefix(alias === -1 ? name : name.slice(0, alias), 'async ')
}

/** @param {Frame} frame */
function isCore (frame) {
  return frame.kind === 'core'
}

/** @param {Frame} frame */
function isProgram (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

module.exports = { labelOf, accepted, arrivedBy, apiName, call }
