'use strict'

// Requests, as Node reports them through diagnostics_channel: when one begins and how it ends. Joins HTTP/1
// in both directions, undici, HTTP/2, connections, and the few methods that have to be wrapped.
//
// Sockets are held weakly, and requests as long as Node holds them (see connections.js); a span holds none of
// them.

const { ownerOf } = require('../node-objects')
const { createConnects } = require('./connects')
const { Connections } = require('./connections')
const { createClientRequests } = require('./http1-client')
const { createServerRequests } = require('./http1-server')
const { createHttp2Layer } = require('./http2')
const { createMethods } = require('./patched-methods')
const { undiciSubscriptions } = require('./undici')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} Close how a connection ended
 * @property {object | undefined} socket
 * @property {boolean} timedOut
 *
 * @typedef {(span: Span, subject: any) => (() => void) | undefined} Look returns what ends the span, where
 *   that by which it ends is over
 *
 * @typedef {object} RequestListener makes spans of what is reported
 * @property {(span: Span, subject: object, look: Look) => void} endsBy a span can end by nothing but this
 *   object: where no event has reported it, it is looked at
 * @property {(request: object, socket: object) => Span | undefined} requestServed a server got a request; the
 *   rest of the callback is part of it
 * @property {(span: Span, request: object, socket: object) => void} requestDescribed more of it is known now
 * @property {(span: Span, request: object, response: object) => void} responseFinished the last byte of the
 *   response was handed to the kernel
 * @property {(span: Span, request: object, response: object, close: Close) => void} connectionLost before
 *   that
 * @property {(span: Span, status: number | undefined) => void} upgraded the connection serves another
 *   protocol now; or did, and is closed
 * @property {(socket: object, span: Span) => void} takeSocket what runs on this socket is part of the span
 * @property {(span: Span, handle: object) => void} takeHandle what runs on this handle is part of the span
 * @property {(request: object) => Span | undefined} requestMade
 * @property {(span: Span, status: number | undefined) => void} responseStarted the head of the response has
 *   come
 * @property {(span: Span) => void} responseReceived the last byte of the response has come
 * @property {(span: Span, error: unknown, timedOut: boolean) => void} requestFailed
 * @property {(stream: object, headers: any, context?: Context) => Span | undefined} streamServed a request
 *   came on a stream of HTTP/2
 * @property {(headers: any, origin: string | undefined) => Span | undefined} streamRequested
 * @property {(span: Span, headers: any, origin: string | undefined) => void} streamDescribed more of it is
 *   known now
 * @property {(span: Span, end: import('./http2').StreamEnd) => void} streamEnded
 * @property {(span: Span, route: unknown) => void} routeFound a framework reports the route of a served
 *   request
 * @property {(span: Span, error: unknown) => void} errorCaught a framework reports an error
 * @property {(server: object) => void} serverUsed a server got a request
 * @property {(since?: Context) => Span | undefined} connectStarted a connection is being made; where its
 *   context is given, since then
 * @property {(span: Span, end: import('./connects').ConnectEnd) => void} connectEnded
 * @property {(span: Span) => void} discard the span is not recorded
 * @property {(span: Span) => string | undefined} traceparentFor the header to be sent, where one is
 */

/**
 * @param {object} deps
 * @param {RequestListener} deps.listener
 * @param {(asyncId: number) => number} deps.spanOf number of the span that a resource is part of
 * @param {(asyncId: number, span: number) => void} deps.setSpan
 */
function createRequestLayer ({ listener, spanOf, setSpan }) {
  const connections = new Connections()
  const connects = createConnects({ listener })
  const http2 = createHttp2Layer({ listener, spanOf, setSpan })
  const server = createServerRequests({ listener, connections })
  const client = createClientRequests({ listener, connections, connects })
  const { upgradeRequested } = server
  const { traceparentOf } = client
  const methods = createMethods({ upgradeRequested, traceparentOf, http2: http2.requests })

  return {
    /** @type {Array<[string, (message: any) => void]>} */
    subscriptions: [
      ['tracing:net.server.listen:asyncStart', methods.enable],
      ['net.client.socket', connects.socketMade],
      ...server.subscriptions,
      ...client.subscriptions,
      ...undiciSubscriptions({ listener, connections, connects, client }),
      ...http2.subscriptions
    ],

    /** Notes a handle that was made. @type {(context: Context) => void} */
    opened: connects.handleMade,

    /**
     * Notes a connect request that runs for the first time.
     * @param {Context} context
     * @param {object | undefined} handle
     */
    connecting (context, handle) {
      const socket = handle === undefined ? undefined : ownerOf(handle)
      if (socket === undefined) return
      const connection = connections.get(socket)
      if (connection === undefined) connects.connecting(context, socket)
      else connection.addResource(context.asyncId)
    },

    /**
     * Reads what a tick was given; on Node 20 alone.
     * @type {((context: Context, tick: any) => void) | undefined}
     */
    ticked: http2.ticked === undefined
      ? undefined
      : (context, tick) => { if (!client.ticked(tick)) http2.ticked?.(context, tick) },

    enable: methods.enable,
    disable: methods.disable
  }
}

module.exports = { createRequestLayer }
