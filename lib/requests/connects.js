'use strict'

// Connections that the program makes: from net.connect() to the moment that there is one, or there will be none. Not
// those of HTTP/1 requests: they are part of the request. net tells of a socket before it has a handle; the handle is the
// next to be made. What is connected by other ways (tls.connect, new Socket().connect) begins with its connect request.

const { executionAsyncId } = require('node:async_hooks')
const { hidden, isObject, own } = require('../objects')

/**
 * @typedef {import('../spans/span').Span} Span
 * @typedef {import('../context/context').Context} Context
 *
 * @typedef {object} ConnectEnd
 * @property {any} socket undefined where it is gone
 * @property {string | undefined} to the address that was tried last, as address:port or path
 * @property {boolean} pipe
 * @property {boolean} done it is connected
 *
 * @typedef {object} Attempt
 * @property {WeakRef<object>} socket
 * @property {Span} span
 * @property {number[]} ids of what runs for it
 * @property {number} maker what ran when it was made
 * @property {string | undefined} to
 * @property {boolean} pipe
 * @property {boolean} alive when its connect request came back
 * @property {() => void} look
 */

/**
 * @param {object} deps
 * @param {import('./http1').RequestRooms} deps.rooms
 * @param {import('./http1').Mark} deps.mark
 * @param {Map<number, () => void>} deps.callbackListeners what is asked when a resource has run, by id
 * @param {(type: string) => boolean} deps.isSelected the filter
 */
function createConnects ({ rooms, mark, callbackListeners, isSelected }) {
  /** @type {WeakMap<object, Attempt>} by socket */
  const attempts = new WeakMap()
  /** those of HTTP @type {WeakSet<object>} */
  const left = new WeakSet()
  /** whose handle is about to be made @type {Attempt | undefined} */
  let next
  /** undici makes a connection in this run @type {number | undefined} */
  let undici

  /** @param {object} socket @param {Span} span @param {boolean} pipe */
  function attempt (socket, span, pipe) {
    /** @type {Attempt} */
    const made = { socket: new WeakRef(socket), span, ids: [], maker: executionAsyncId(), to: undefined, pipe, alive: false, look: () => look(made) }
    attempts.set(socket, made)
    mark.write(socket, span)
    return made
  }

  /** @param {Attempt} made @param {number} id */
  function watch (made, id) {
    made.ids.push(id)
    callbackListeners.set(id, made.look)
  }

  /** @param {Attempt} made */
  function unwatch ({ ids, look }) {
    for (const id of ids) if (callbackListeners.get(id) === look) callbackListeners.delete(id)
    ids.length = 0
  }

  /** @param {Attempt} made */
  function look (made) {
    const socket = /** @type {any} */ (made.socket.deref())
    if (!made.span.ended && socket !== undefined && socket.connecting === true && socket.destroyed !== true) return
    unwatch(made)
    if (made.span.ended) return
    if (socket !== undefined && isHttp(socket)) rooms.dropped(made.span)
    else rooms.connected(made.span, { socket, to: made.to, pipe: made.pipe, done: isDone(made, socket) })
  }

  return {
    /** undici's connector is about to be called. */
    undici () {
      undici = executionAsyncId()
    },

    /** net.connect() has made a socket. @param {{ socket: object }} message */
    made ({ socket }) {
      next = undefined
      const ofUndici = undici === executionAsyncId()
      undici = undefined
      if (ofUndici) left.add(socket)
      if (ofUndici || !isSelected('TCPWRAP')) return
      const span = rooms.connecting()
      if (span !== undefined) next = attempt(socket, span, false)
    },

    /** A handle was made. @param {Context} context */
    opened ({ type, asyncId }) {
      if (next === undefined || !(type === 'TCPWRAP' || type === 'PIPEWRAP')) return
      const made = next
      next = undefined
      if (made.maker !== executionAsyncId()) return
      made.pipe = type === 'PIPEWRAP'
      watch(made, asyncId)
    },

    /** A connect request runs: its end is that of the attempt. @param {Context} context @param {object} socket */
    connecting (context, socket) {
      if (left.has(socket)) return
      let made = attempts.get(socket)
      if (made === undefined) {
        const span = isHttp(socket) ? undefined : rooms.connecting(context)
        if (span === undefined) return
        made = attempt(socket, span, context.type === 'PIPECONNECTWRAP')
      }
      if (made.span.ended) return
      made.to = context.detail
      made.alive = !isGone(socket)
      watch(made, context.asyncId)
      watch(made, context.triggerAsyncId)
    },

    /** It is one of HTTP. @param {object} socket */
    drop (socket) {
      left.add(socket)
      const made = attempts.get(socket)
      if (made === undefined || made.span.ended) return
      unwatch(made)
      rooms.dropped(made.span)
    }
  }
}

/** Is it connected? The program may have closed it at once. @param {Attempt} made @param {any} socket */
function isDone ({ alive }, socket) {
  return socket !== undefined && (!isGone(socket) || (alive && !socket.errored))
}

/** @param {any} socket */
const isGone = (socket) => socket.destroyed === true

/** Does it carry requests of HTTP/1, of which one waits for it? Sessions of HTTP/2 are there for all. @param {object} socket */
function isHttp (socket) {
  if (isObject(own(socket, '_httpMessage'))) return true
  const options = hidden(socket, 'connect-options') // of tls.connect
  const protocols = isObject(options) ? own(options, 'ALPNProtocols') : undefined
  return /http\/1/.test(Array.isArray(protocols) ? protocols.join() : protocols instanceof Uint8Array ? Buffer.from(protocols).toString('latin1') : '')
}

module.exports = { createConnects }
