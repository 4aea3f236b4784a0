'use strict'

// Connection attempts of the program, from net.connect() until they succeed or fail. Excludes those of HTTP/1
// requests, which are part of the request. net reports a socket before it has a handle, which is the next
// handle made; a tls socket already has one. Other attempts (new Socket().connect) begin with their connect
// request.

const { executionAsyncId } = require('node:async_hooks')
const { handleOf } = require('../node-objects')
const { hidden, isObject, own } = require('../objects')
const { settings } = require('../settings')
const { asyncIdsOf, spanTag } = require('./connections')
const { connectEnded, connectStarted } = require('./http-spans')
const { listen, unlisten } = require('./run-listeners')
const spans = require('./spans')

/**
 * @typedef {import('./span').Span} Span
 * @typedef {import('../core/context').Context} Context
 *
 * @typedef {object} ConnectEnd
 * @property {any} socket undefined if collected
 * @property {string | undefined} to last address tried, as address:port or path
 * @property {boolean} pipe
 * @property {boolean} done connected
 *
 * @typedef {object} Attempt
 * @property {WeakRef<object>} socket
 * @property {Span} span
 * @property {number[]} ids async ids of resources that run for it
 * @property {number} madeIn async id of the resource that was running when it was made
 * @property {string | undefined} to
 * @property {boolean} pipe
 * @property {boolean} wasOpen the socket was not destroyed when its connect request completed
 * @property {() => void} check
 */

/** by socket @type {WeakMap<object, Attempt>} */
let attempts = new WeakMap()
/** sockets of HTTP @type {WeakSet<object>} */
const httpSockets = new WeakSet()
/** attempt that waits for its handle @type {Attempt | undefined} */
let awaitingHandle
/** async id of the callback in which undici connects @type {number | undefined} */
let undiciId

/** @param {object} socket @param {Span} span @param {boolean} pipe */
function begin (socket, span, pipe) {
  /** @type {Attempt} */
  const attempt = {
    socket: new WeakRef(socket),
    span,
    ids: [],
    madeIn: executionAsyncId(),
    to: undefined,
    pipe,
    wasOpen: false,
    check: () => check(attempt)
  }
  attempts.set(socket, attempt)
  spanTag.write(socket, span)
  span.endsBy(socket, checkSocket)
  return attempt
}

/** @param {Attempt} attempt @param {number} id */
function watch (attempt, id) {
  attempt.ids.push(id)
  listen(id, attempt.check)
}

/** @param {Attempt} attempt */
function unwatch ({ ids, check }) {
  for (const id of ids) unlisten(id, check)
  ids.length = 0
}

/** Ends an attempt that is no longer connecting. @param {Attempt} attempt */
function check (attempt) {
  const { span, to, pipe } = attempt
  const socket = /** @type {any} */ (attempt.socket.deref())
  if (!span.ended && socket !== undefined && isPending(socket)) return
  unwatch(attempt)
  if (span.ended) return
  if (socket !== undefined && isHttp(socket)) spans.discard(span)
  else connectEnded(span, { socket, to, pipe, done: isConnected(attempt, socket) })
}

/** @type {import('./span').Look} */
function checkSocket (span, socket) {
  if (isHttp(socket)) leaveToHttp(socket)
  const attempt = attempts.get(socket)
  return attempt === undefined || isPending(socket) ? undefined : () => check(attempt)
}

/** Discards the span of a socket that turns out to belong to HTTP. @param {object} socket */
function leaveToHttp (socket) {
  httpSockets.add(socket)
  const attempt = attempts.get(socket)
  if (attempt === undefined || attempt.span.ended) return
  unwatch(attempt)
  spans.discard(attempt.span)
}

/** Notes that undici's connector is about to be called. */
function undiciConnects () {
  undiciId = executionAsyncId()
}

/** Notes a socket created by net.connect(). @param {{ socket: object }} message */
function socketMade ({ socket }) {
  awaitingHandle = undefined
  const isUndici = undiciId === executionAsyncId()
  undiciId = undefined
  if (isUndici) httpSockets.add(socket)
  if (isUndici || !settings.isSelected('TCPWRAP')) return
  const span = connectStarted()
  if (span === undefined) return
  const attempt = begin(socket, span, false)
  const ids = handleOf(socket) === undefined ? [] : asyncIdsOf(socket)
  for (const id of ids) watch(attempt, id)
  if (ids.length === 0) awaitingHandle = attempt
}

/** Notes a new handle. @param {Context} context */
function handleMade ({ type, asyncId }) {
  if (awaitingHandle === undefined || !(type === 'TCPWRAP' || type === 'PIPEWRAP')) return
  const attempt = awaitingHandle
  awaitingHandle = undefined
  if (attempt.madeIn !== executionAsyncId()) return
  attempt.pipe = type === 'PIPEWRAP'
  watch(attempt, asyncId)
}

/**
 * Notes a connect request that runs; its end is the end of the attempt.
 * @param {Context} context
 * @param {object} socket
 */
function connecting (context, socket) {
  if (httpSockets.has(socket)) return
  let attempt = attempts.get(socket)
  if (attempt === undefined) {
    const span = isHttp(socket) ? undefined : connectStarted(context)
    if (span === undefined) return
    attempt = begin(socket, span, context.type === 'PIPECONNECTWRAP')
  }
  if (attempt.span.ended) return
  attempt.to = context.detail
  attempt.wasOpen = !isDestroyed(socket)
  watch(attempt, context.asyncId)
  watch(attempt, context.triggerAsyncId)
}

/** Forgets all attempts: spans are disabled and have ended. */
function forget () {
  attempts = new WeakMap()
  awaitingHandle = undiciId = undefined
}

/**
 * Returns whether the attempt succeeded, even if the program closed the socket at once.
 * @param {Attempt} attempt
 * @param {any} socket
 */
function isConnected ({ wasOpen }, socket) {
  return socket !== undefined && (!isDestroyed(socket) || (wasOpen && !socket.errored))
}

/** @param {any} socket */
const isPending = (socket) => socket.connecting === true && socket.destroyed !== true

/** @param {any} socket */
const isDestroyed = (socket) => socket.destroyed === true

/**
 * Returns whether a socket is for HTTP/1: a request waits for it, or an http agent keeps it
 * (lib/_http_agent.js, `installListeners`). HTTP/2 sockets are not: their session serves many requests.
 * @param {object} socket
 */
function isHttp (socket) {
  if (isObject(own(socket, '_httpMessage'))) return true
  const events = own(socket, '_events')
  if (isObject(events) && own(events, 'agentRemove') !== undefined) return true
  const options = hidden(socket, 'connect-options') // options of tls.connect
  const protocols = isObject(options) ? own(options, 'ALPNProtocols') : undefined
  if (Array.isArray(protocols)) return /http\/1/.test(protocols.join())
  return protocols instanceof Uint8Array && /http\/1/.test(Buffer.from(protocols).toString('latin1'))
}

module.exports = { connecting, forget, handleMade, leaveToHttp, socketMade, undiciConnects }
