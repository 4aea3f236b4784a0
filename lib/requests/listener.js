'use strict'

// Who is told of requests: lib/spans/http-spans.js, which sets this before what reports them is loaded.

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
 * @property {(asyncId: number) => number} spanOf number of the span that a resource is part of
 * @property {(asyncId: number, span: number) => void} setSpan makes a resource part of a span, 0: of none
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
 * @property {(request: object, call?: Context) => Span | undefined} requestMade in the running context, or
 *   in that of an earlier call
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
 * @property {(since?: Context) => Span | undefined} connectStarted a connection is being made; where its
 *   context is given, since then
 * @property {(span: Span, end: import('./connects').ConnectEnd) => void} connectEnded
 * @property {(span: Span) => void} discard the span is not recorded
 * @property {(headers: any) => boolean} hasTraceparent
 * @property {(span: Span) => string | undefined} traceparentFor the header to be sent, where one is
 */

module.exports = { listener: /** @type {RequestListener} */ (/** @type {unknown} */ (undefined)) }
