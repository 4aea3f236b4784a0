'use strict'

// Requests over HTTP/2, on both sides. Node 22 and later report streams through diagnostics_channel; on Node
// 20 no channel does.
//
// All streams of a session come on one resource: it is part of a stream's span for the rest of that callback
// alone.

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
 * @property {number} code of HTTP/2
 * @property {number | undefined} status of the response that a server sent
 * @property {unknown} [error]
 */

/** streams of undici, which reports its requests itself @type {WeakSet<object>} */
const undiciStreams = new WeakSet()
/** resources that leave the span of a stream when their callback has returned @type {Set<number>} */
const leaving = new Set()
/** of the request() that runs @type {Span | undefined} */
let spanOfCall

/**
 * @param {{ stream: object, headers: any }} message
 * @param {Context} [context] where it begins in a callback of its own
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

/** Ends a stream; its error may be reported only after that. @param {{ stream: any }} message */
function streamClosed ({ stream }) {
  const span = spanTag.read(stream)
  if (span === undefined || span.ended) return
  const end = endOf(stream, span)
  if (end.code === 0) httpSpans.streamEnded(span, end)
  else process.nextTick(() => guard.run(() => { if (!span.ended) httpSpans.streamEnded(span, end) }))
}

/** @param {{ stream: any, error?: unknown }} message of a stream that failed, or on Node 20 has ended */
function streamEnded ({ stream, error }, hasFailed = true) {
  const span = spanTag.read(stream)
  if (span === undefined || span.ended) return
  const end = endOf(stream, span)
  httpSpans.streamEnded(span, hasFailed ? { ...end, whole: false, error } : end)
}

/**
 * Reads what a tick was given when it is made, on Node 20: streams go through process.nextTick() there, a
 * server's to the listeners of 'stream', a response to those of 'response', the end to those of 'close'.
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
 * Has a resource leave the span of a stream when its callback has returned.
 * @param {number} id of the resource whose callback runs
 * @param {number} before number of its span before
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
 * The request() of a session is called, where it is wrapped.
 * @param {object} session
 * @param {any} headers
 * @returns {string | undefined} the traceparent to be sent
 */
function requestCalled (session, headers) {
  if (hidden(session, 'client') !== undefined) return undefined // undici's
  spanOfCall = httpSpans.streamRequested(headers, undefined)
  return spanOfCall === undefined ? undefined : httpSpans.traceparentFor(spanOfCall)
}

/** It has returned. @param {object | undefined} stream undefined where it threw */
function requestReturned (stream) {
  const span = spanOfCall
  spanOfCall = undefined
  if (span === undefined) return
  if (stream === undefined) return spans.discard(span)
  note(stream, span)
  httpSpans.streamDescribed(span, hidden(stream, 'sent-headers'), originOf(stream))
}

/** @param {object} object @returns {'SERVER' | 'CLIENT' | undefined} the side of a stream */
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

/** Returns whether the server began a stream. @param {object} stream */
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
