'use strict'

// HTTP/2 requests on both sides. Node 22 and later report streams through diagnostics_channel; Node 20 has no
// channel for them.
//
// All streams of a session arrive on one resource, which is part of a stream's span only for the rest of the
// current callback.

const process = require('node:process')
const { executionAsyncId } = require('node:async_hooks')
const guard = require('../core/guard')
const { className, hidden, isObject, own } = require('../objects')
const { spanTag } = require('./connections')
const httpSpans = require('./http-spans')
const { listen, unlisten } = require('./run-listeners')
const spans = require('./spans')
const { setSpan, spanOf } = require('./step-spans')

const HAS_CHANNELS = Number(process.versions.node.split('.')[0]) >= 22

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} StreamEnd
 * @property {boolean} whole request and response are complete
 * @property {number} code HTTP/2 error code
 * @property {number | undefined} status status of a server's response
 * @property {unknown} [error]
 */

/** undici's streams; undici reports its requests itself @type {WeakSet<object>} */
const undiciStreams = new WeakSet()
/** resources that leave a stream's span when their callback returns @type {Set<number>} */
const leaving = new Set()
/** span of the request() in progress @type {Span | undefined} */
let spanOfCall

/**
 * @param {{ stream: object, headers: any }} message
 * @param {Context} [context] if it begins in its own callback
 */
function streamServed ({ stream, headers }, context) {
  if (isPushed(stream) || spanTag.read(stream) !== undefined) return
  const id = executionAsyncId()
  const before = context === undefined ? spanOf(id) : 0
  const span = httpSpans.streamServed(stream, headers, context)
  if (span === undefined) return
  note(stream, span)
  const handle = hidden(stream, 'kHandle')
  if (isObject(handle)) httpSpans.takeHandle(span, handle)
  if (context === undefined && id > 1) leaveAfterCallback(id, before)
}

/** @param {object} stream @param {Span} span */
function note (stream, span) {
  spanTag.write(stream, span)
  span.endsBy(stream, lookAtStream)
}

/** @type {import('./span').Look} */
function lookAtStream (span, stream) {
  return stream.destroyed === true ? () => httpSpans.streamEnded(span, endOf(stream, span)) : undefined
}

/** @param {{ stream: object, headers: any }} message */
function streamRequested ({ stream, headers }) {
  if (spanTag.read(stream) !== undefined || undiciStreams.has(stream) || isPushed(stream)) return
  if (isOfUndici(stream)) return undiciStreams.add(stream)
  const span = spanOfCall ?? httpSpans.streamRequested(headers, originOf(stream))
  if (span === undefined) return
  if (spanOfCall !== undefined) httpSpans.streamDescribed(span, headers, originOf(stream))
  spanOfCall = undefined
  note(stream, span)
}

/** @param {{ stream: object, headers: any }} message */
function responseStarted ({ stream, headers }) {
  const span = spanTag.read(stream)
  if (span !== undefined && !span.ended) httpSpans.responseStarted(span, Number(headers[':status']))
}

/** Ends a stream. Its error may be reported only afterwards. @param {{ stream: any }} message */
function streamClosed ({ stream }) {
  const span = spanTag.read(stream)
  if (span === undefined || span.ended) return
  const end = endOf(stream, span)
  if (end.code === 0) httpSpans.streamEnded(span, end)
  else process.nextTick(() => guard.run(() => { if (!span.ended) httpSpans.streamEnded(span, end) }))
}

/** @param {{ stream: any, error?: unknown }} message of a stream that failed, or on Node 20 ended */
function streamEnded ({ stream, error }, hasFailed = true) {
  const span = spanTag.read(stream)
  if (span === undefined || span.ended) return
  const end = endOf(stream, span)
  httpSpans.streamEnded(span, hasFailed ? { ...end, whole: false, error } : end)
}

/**
 * Reads the arguments of a new tick on Node 20, which passes streams through process.nextTick(): a server's
 * stream to the 'stream' listeners, a response to 'response', the end to 'close'.
 * @param {Context} context of the tick
 * @param {any} tick
 */
function ticked (context, { callback, args }) {
  if (!Array.isArray(args) || !isObject(args[0])) return
  const [first, event, third, headers] = args
  if (event === 'stream' && isObject(third) && kindOf(third) === 'SERVER') {
    return streamServed({ stream: third, headers }, context)
  }
  const kind = kindOf(first)
  if (kind === undefined) return
  if (kind === 'CLIENT') {
    streamRequested({ stream: first, headers: hidden(first, 'sent-headers') })
    if (event === 'response') responseStarted({ stream: first, headers: third })
  }
  if (/^emit(Error)?(And)?CloseNT$/.test(own(callback, 'name'))) {
    streamEnded({ stream: first, error: event }, isObject(event))
  }
}

/**
 * Makes a resource leave a stream's span when its callback returns.
 * @param {number} id of the running resource
 * @param {number} before number of its previous span
 */
function leaveAfterCallback (id, before) {
  if (leaving.has(id)) return
  const leave = () => {
    leaving.delete(id)
    unlisten(id, leave)
    setSpan(id, before)
  }
  leaving.add(id)
  listen(id, leave)
}

/**
 * Begins the span of a session's request(), if that method is wrapped.
 * @param {object} session
 * @param {any} headers
 * @returns {string | undefined} traceparent to send
 */
function requestCalled (session, headers) {
  if (hidden(session, 'client') !== undefined) return undefined // undici's
  spanOfCall = httpSpans.streamRequested(headers, undefined)
  return spanOfCall === undefined ? undefined : httpSpans.traceparentFor(spanOfCall)
}

/** Notes that request() returned. @param {object | undefined} stream undefined if it threw */
function requestReturned (stream) {
  const span = spanOfCall
  spanOfCall = undefined
  if (span === undefined) return
  if (stream === undefined) return spans.discard(span)
  note(stream, span)
  httpSpans.streamDescribed(span, hidden(stream, 'sent-headers'), originOf(stream))
}

/** @param {object} object @returns {'SERVER' | 'CLIENT' | undefined} side of a stream */
function kindOf (object) {
  const name = className(object)
  return name === 'ServerHttp2Stream' ? 'SERVER' : name === 'ClientHttp2Stream' ? 'CLIENT' : undefined
}

/** @param {any} stream @param {Span} span @returns {StreamEnd} */
function endOf (stream, span) {
  const state = hidden(stream, 'state')
  const code = Number(isObject(state) ? /** @type {any} */ (state).rstCode : 0) || 0
  const headers = hidden(stream, 'sent-headers')
  const isServer = span.kind === 'SERVER'
  const status = isServer && isObject(headers) ? Number(own(headers, ':status')) || undefined : undefined
  const isComplete = isServer ? stream.writableFinished === true : stream.readableEnded === true
  return { code, status, whole: code === 0 && (isComplete || stream.destroyed !== true) }
}

/** Returns whether the server initiated a stream. @param {object} stream */
const isPushed = (stream) => Number(hidden(stream, 'id')) % 2 === 0

/** @param {object} stream @returns {string | undefined} */
function originOf (stream) {
  const origin = hidden(stream, 'origin')
  return typeof origin === 'string' ? origin : undefined
}

/** @param {object} stream */
function isOfUndici (stream) {
  const session = hidden(stream, 'kSession', 'session')
  return isObject(session) && hidden(session, 'client') !== undefined
}

/** @type {Array<[string, (message: any) => void]>} */
const subscriptions = HAS_CHANNELS
  ? [
      ['http2.server.stream.start', (message) => streamServed(message)],
      ['http2.server.stream.close', streamClosed],
      ['http2.server.stream.error', (message) => streamEnded(message)],
      ['http2.client.stream.created', streamRequested],
      ['http2.client.stream.finish', responseStarted],
      ['http2.client.stream.close', streamClosed],
      ['http2.client.stream.error', (message) => streamEnded(message)]
    ]
  : []

module.exports = {
  forget: () => leaving.clear(),
  requestCalled,
  requestReturned,
  subscriptions,
  ticked: HAS_CHANNELS ? undefined : ticked
}
