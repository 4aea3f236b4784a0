'use strict'

// The words a person would use for a hop: the call they wrote, not the provider that Node names.

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 */

const NAME = 60 // characters of a span's

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
  HTTPINCOMINGMESSAGE: (names) => through('http connection accepted', names),
  HTTPCLIENTREQUEST: (detail, api) => call(api ?? 'http.request', detail),
  HTTP2SESSION: (_, api) => api ?? 'HTTP/2 session',
  HTTP2STREAM: (_, api) => api ?? 'HTTP/2 stream',
  PROCESSWRAP: (_, api) => api ?? 'child_process.spawn',
  WORKER: () => 'new Worker',
  MESSAGEPORT: (_, api) => api ?? 'new MessageChannel',
  STREAM_END_OF_STREAM: (_, api) => api === undefined || api === 'stream.eos' ? 'stream.finished' : api,
  SIGNALWRAP: () => 'process.on(signal)',
  Span: (name, api) => name === undefined ? resource('Span', api) : call('trace.span', name.replace(/\p{C}+/gu, ' ').slice(0, NAME))
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
  if (accepted(context, frames)) return through(type === 'TLSWRAP' ? 'TLS connection accepted' : 'connection accepted', detail)
  if (/SERVERWRAP$/.test(type) && !/^(core|own)$/.test(frames[0]?.kind ?? 'core')) return call(type.startsWith('TCP') ? 'new TCP' : 'new Pipe', detail) // past net
  const arrived = arrivedBy(context, frames)
  if (arrived !== undefined) return arrived
  const api = apiName(frames)
  const phrase = phrases[type]
  return phrase === undefined ? bound(type, frames) ?? resource(type, api) : phrase(detail, api)
}

/**
 * A connection that came in: nothing of the program ran, its cause is the server.
 * @param {Context} context
 * @param {Frame[]} frames
 */
function accepted ({ type, parent }, frames) {
  return /^(TCP|PIPE|TLS)WRAP$/.test(type) && parent !== undefined && /SERVERWRAP$/.test(parent.type) &&
    frames.every((frame) => frame.kind === 'core')
}

/**
 * What came in over HTTP/2. Nothing of the program ran: a session came to a server, a stream to a session, and the program
 * hears of a stream in a tick.
 * @param {Context} context
 * @param {Frame[]} frames
 * @returns {string | undefined}
 */
function arrivedBy ({ type, parent }, frames) {
  if (parent === undefined || !/^(HTTP2STREAM|HTTP2SESSION|TickObject)$/.test(type) || frames.some((frame) => frame.kind !== 'core')) return undefined
  if (type === 'HTTP2SESSION') {
    const opener = /^(TCP|PIPE|TLS)WRAP$/.test(parent.type) ? parent.parent : parent
    return opener !== undefined && /SERVERWRAP$/.test(opener.type) ? 'HTTP/2 session accepted' : undefined
  }
  if (parent.type !== 'HTTP2SESSION') return undefined
  return type === 'HTTP2STREAM' || frames.some((frame) => frame.functionName?.endsWith('onSessionHeaders')) ? 'HTTP/2 stream' : undefined
}

/** What trace.intercept has put between a connection and the parser. @param {string} phrase @param {string | undefined} names */
function through (phrase, names) {
  return names === undefined ? phrase : `${phrase}, through ${names}`
}

/** Node defers much on behalf of a call; then that call is the better word. @param {string} name @param {string | undefined} api */
function deferred (name, api) {
  return api === undefined || name.endsWith(api.replace(/^.*\./, '')) ? name : api
}

/**
 * A timer, or a call that is about time such as socket.setTimeout; others keep timers for their own ends.
 * @param {string | undefined} detail
 * @param {string | undefined} api
 */
function timer (detail, api) {
  if (api === undefined) return call('setTimeout', detail)
  const name = api.replace(/^timers\.(?=set)/, '')
  return /timeout|interval|wait$|refresh$/i.test(name) ? call(name, detail) : name
}

/**
 * A function bound to its context: the type of such a resource is the function's name.
 * @param {string} type
 * @param {Frame[]} frames
 */
function bound (type, frames) {
  const api = /^(async_hooks\.)?((?:AsyncResource|AsyncLocalStorage)\.(?:bind|snapshot))$/.exec(apiName(frames) ?? '')?.[2]
  if (api === undefined) return undefined
  const ours = api === 'AsyncResource.bind' && frames.some((frame) => frame.kind === 'own')
  return call(ours ? 'trace.bind' : api, type === 'bound-anonymous-fn' ? undefined : type)
}

/** An AsyncResource of the program has a name of its own. @param {string} type @param {string | undefined} api */
function resource (type, api) {
  if (api === undefined) return type
  return /^new (EventEmitter)?AsyncResource$/.test(api) ? call(api, type) : api
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
  if (/^importModuleDynamically/.test(made.functionName ?? '')) return 'import()'
  if (made.fileName !== undefined) return apiName(frames) ?? 'promise'
  // Node 20 and 22 call the receiver of Promise.reject "Function".
  return plain(made.functionName ?? 'promise').replace(/^Promise\.(?=(then|catch|finally)$)/, 'promise.').replace(/^Function\./, 'Promise.')
}

/** What a person calls an object of one of Node's classes. @type {Array<[RegExp, string]>} */
const nouns = [
  [/^(Http2(Secure)?|TLS)?Server$/, 'server'],
  [/^(TLS)?Socket$/, 'socket'],
  [/^(Readable|Writable|Duplex|Transform|PassThrough|Stream|ReadStream|WriteStream|IncomingMessage|Zlib\w*|G(un)?zip)$/, 'stream'],
  [/^(ClientRequest|OutgoingMessage)$/, 'request'],
  [/^(Http2)?ServerResponse$/, 'response'],
  [/^(Client|Server)?Http2Session$/, 'session'],
  [/^(Client|Server)?Http2Stream$/, 'stream'],
  [/^Dir$/, 'dir'],
  [/^(Fs)?FileHandle$/, 'handle'],
  [/^Resolver$/, 'resolver'],
  [/^ChildProcess$/, 'child'],
  [/^Worker$/, 'worker'],
  [/^Timeout$/, 'timer'],
  [/^(MessagePort|BroadcastChannel)$/, 'port'],
  [/^EventEmitter$/, 'events']
]

/** Rooms of Node's source that are no modules of their own, or not by this name. @type {Array<[RegExp, string]>} */
const rooms = [
  [/^_http_(client|server|agent|outgoing|incoming|common)$/, 'http'],
  [/^_tls_(wrap|common)$/, 'tls'],
  [/^internal\/(fs|dns)\/promises$/, '$1.promises'],
  [/^(fs|dns)\/promises$/, '$1.promises'],
  [/^timers\/promises$/, 'timers.promises'],
  [/^internal\/streams\/.*$/, 'stream'],
  [/^internal\/(fs|dns|child_process|crypto|http|http2|net|tls|dgram|timers|zlib)\b.*$/, '$1'],
  [/^internal\/.*$/, ''],
  [/^async_hooks$/, '']
]

/** The name of the call into Node that the program made: the core frame next to the program's own. @param {Frame[]} frames */
function apiName (frames) {
  const first = frames.findIndex((frame) => frame.kind === 'user' || frame.kind === 'module')
  const core = frames.slice(0, Math.max(0, first)).filter((frame) => frame.kind === 'core' && frame.fileName !== undefined)
  const api = core[core.length - 1]
  if (api?.functionName === undefined) return undefined
  const name = called(api.functionName)
  if (!/^(new )?[\w$]+(\.[\w$]+)*$/.test(name)) return undefined
  if (name.startsWith('new ')) return name
  const parts = name.split('.').filter((part) => !/^(Object|Function|Module|process|FSPromises?|exports)$/.test(part))
  const method = parts[parts.length - 1]
  const owner = parts[parts.length - 2]
  if (owner !== undefined) {
    const noun = nouns.find(([pattern]) => pattern.test(owner))
    return `${noun === undefined ? owner : noun[1]}.${method}`
  }
  const place = String(api.fileName).slice('node:'.length)
  const [pattern, put] = rooms.find(([one]) => one.test(place)) ?? [/$/, '']
  const room = place.replace(pattern, put)
  return room === '' ? method : `${room}.${method}`
}

/** By which name a function was called: "Object.query [as resolve4]" → "Object.resolve4". @param {string} name */
function called (name) {
  const match = /^(?:async )?(.*?)([\w$]+) \[as ([\w$]+)\]$/.exec(name)
  return match === null ? plain(name) : `${match[1]}${match[3]}`
}

/** A function's name without how it was called. @param {string} name */
function plain (name) {
  return name.replace(/ \[as .*\]$/, '').replace(/^async /, '')
}

module.exports = { labelOf, accepted, arrivedBy, apiName, call }
