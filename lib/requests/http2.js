'use strict'

// Requests over HTTP/2, on both sides. Node 22 and later tell of streams through diagnostics_channel. On Node 20 nothing
// does, but streams go through process.nextTick(): a server's to the listeners of 'stream', an answer to those of
// 'response', the end to those of 'close'; what a tick is given is seen there when it is made.
//
// All streams of a session come on one resource: it is part of a stream's span for the rest of that run alone.

const process = require('node:process')
const { executionAsyncId } = require('node:async_hooks')
const guard = require('../context/guard')
const { className, hidden, isObject, own } = require('../objects')

const TOLD = Number(process.versions.node.split('.')[0]) >= 22

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../context/context').Context} Context
 *
 * @typedef {object} StreamEnd
 * @property {boolean} whole request and answer went through
 * @property {number} code of HTTP/2
 * @property {number | undefined} status of the answer that a server gave
 * @property {unknown} [error]
 */

/**
 * @param {object} deps
 * @param {import('./http1').RequestRooms} deps.rooms
 * @param {import('./http1').Mark} deps.mark
 * @param {Map<number, () => void>} deps.callbackListeners what is asked when a resource has run, by id
 * @param {(asyncId: number) => number} deps.spanOf number of the span that a resource is part of
 * @param {(asyncId: number, span: number) => void} deps.setSpan
 */
function createHttp2Layer ({ rooms, mark, callbackListeners, spanOf, setSpan }) {
  /** streams of undici, which tells of its requests itself @type {WeakSet<object>} */
  const left = new WeakSet()
  /** of the request() that runs @type {Span | undefined} */
  let making

  /** @param {{ stream: object, headers: any }} message */
  function served ({ stream, headers }) {
    if (pushed(stream) || mark.read(stream) !== undefined) return
    const id = executionAsyncId()
    const before = spanOf(id)
    const span = rooms.streamServed(stream, headers)
    if (span === undefined) return
    take(stream, span)
    if (id > 1 && !callbackListeners.has(id)) leaves(id, before)
  }

  /** With the run, its resource leaves the span. @param {number} id @param {number} before number of the span before */
  function leaves (id, before) {
    callbackListeners.set(id, () => {
      callbackListeners.delete(id)
      setSpan(id, before)
    })
  }

  /** What comes on the stream's own handle is part of the span as well. @param {object} stream @param {Span} span */
  function take (stream, span) {
    mark.write(stream, span)
    const handle = hidden(stream, 'kHandle')
    if (isObject(handle)) rooms.takesHandle(span, handle)
  }

  /** @param {{ stream: object, headers: any }} message */
  function requested ({ stream, headers }) {
    if (mark.read(stream) !== undefined || left.has(stream) || pushed(stream)) return
    if (ofUndici(stream)) return left.add(stream)
    const span = making ?? rooms.streamRequested(headers, originOf(stream))
    if (span === undefined) return
    if (making !== undefined) rooms.streamMet(span, headers, originOf(stream))
    making = undefined
    mark.write(stream, span)
  }

  /** @param {{ stream: object, headers: any }} message */
  function responded ({ stream, headers }) {
    const span = mark.read(stream)
    if (span !== undefined && !span.ended) rooms.responded(span, Number(headers[':status']))
  }

  /** Why it is closed may be told only after that. @param {{ stream: any }} message */
  function closed ({ stream }) {
    const span = mark.read(stream)
    if (span === undefined || span.ended) return
    const end = endOf(stream, span)
    if (end.code === 0) rooms.streamEnded(span, end)
    else process.nextTick(() => guard.run(() => { if (!span.ended) rooms.streamEnded(span, end) }))
  }

  /** @param {{ stream: any, error: unknown }} message */
  function failed ({ stream, error }) {
    const span = mark.read(stream)
    if (span !== undefined && !span.ended) rooms.streamEnded(span, { ...endOf(stream, span), whole: false, error })
  }

  /** Node 20: @param {Context} context of a tick @param {any} tick */
  function ticked (context, { callback, args }) {
    if (!Array.isArray(args) || !isObject(args[0])) return
    const [first, event, third, headers] = args
    if (event === 'stream' && isObject(third) && isStream(third) === 'SERVER') return servedIn(context, third, headers)
    const kind = isStream(first)
    if (kind === undefined) return
    if (kind === 'CLIENT') requested({ stream: first, headers: hidden(first, 'sent-headers') })
    if (event === 'response' && kind === 'CLIENT') responded({ stream: first, headers: third })
    if (/^emit(Error)?(And)?CloseNT$/.test(own(callback, 'name'))) over(first, event)
  }

  /** @param {Context} context @param {object} stream @param {any} headers */
  function servedIn (context, stream, headers) {
    if (pushed(stream) || mark.read(stream) !== undefined) return
    const span = rooms.streamServed(stream, headers, context)
    if (span !== undefined) take(stream, span)
  }

  /** @param {object} stream @param {unknown} error */
  function over (stream, error) {
    const span = mark.read(stream)
    if (span === undefined || span.ended) return
    const end = endOf(stream, span)
    rooms.streamEnded(span, isObject(error) ? { ...end, whole: false, error } : end)
  }

  return {
    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: TOLD
      ? [
          ['http2.server.stream.start', served],
          ['http2.server.stream.close', closed],
          ['http2.server.stream.error', failed],
          ['http2.client.stream.created', requested],
          ['http2.client.stream.finish', responded],
          ['http2.client.stream.close', closed],
          ['http2.client.stream.error', failed]
        ]
      : [],

    ticked: TOLD ? undefined : ticked,

    /** The request() of a session, where it is listened to. */
    requests: {
      /** @param {object} session @param {any} headers @returns {string | undefined} the header to be sent */
      making (session, headers) {
        if (hidden(session, 'client') !== undefined) return undefined // undici's
        making = rooms.streamRequested(headers, undefined)
        return making === undefined ? undefined : rooms.header(making)
      },

      /** @param {object | undefined} stream undefined where it threw */
      made (stream) {
        const span = making
        making = undefined
        if (span === undefined) return
        if (stream === undefined) return rooms.dropped(span)
        mark.write(stream, span)
        rooms.streamMet(span, hidden(stream, 'sent-headers'), originOf(stream))
      }
    }
  }
}

/** @param {any} stream @param {Span} span @returns {StreamEnd} */
function endOf (stream, span) {
  const code = Number(stateOf(stream)?.rstCode) || 0
  const headers = hidden(stream, 'sent-headers')
  const status = span.kind === 'SERVER' && isObject(headers) ? Number(own(headers, ':status')) || undefined : undefined
  const through = span.kind === 'SERVER' ? stream.writableFinished === true : stream.readableEnded === true
  return { code, status, whole: code === 0 && (through || stream.destroyed !== true) }
}

/** @param {object} stream @returns {any} */
function stateOf (stream) {
  const state = hidden(stream, 'state')
  return isObject(state) ? state : undefined
}

/** One that the server began. @param {object} stream */
const pushed = (stream) => Number(hidden(stream, 'id')) % 2 === 0

/** @param {object} stream @returns {string | undefined} */
function originOf (stream) {
  const origin = hidden(stream, 'origin')
  return typeof origin === 'string' ? origin : undefined
}

/** @param {object} stream */
function ofUndici (stream) {
  const session = hidden(stream, 'kSession', 'session')
  return isObject(session) && hidden(session, 'client') !== undefined
}

/** @param {object} object */
function isStream (object) {
  const name = className(object)
  return name === 'ServerHttp2Stream' ? 'SERVER' : name === 'ClientHttp2Stream' ? 'CLIENT' : undefined
}

module.exports = { createHttp2Layer }
