'use strict'

// Streams of HTTP/2 on Node 20, where no channel reports them. They go through process.nextTick(): a server's
// to the listeners of 'stream', a response to those of 'response', the end to those of 'close'; what a tick
// is given is read when it is made.

const { className, hidden, isObject, own } = require('../objects')

/**
 * @param {object} layer of http2.js
 * @param {(message: { stream: object, headers: any }, context: import('../core/context').Context) => void}
 *   layer.streamServed
 * @param {(message: { stream: object, headers: any }) => void} layer.streamRequested
 * @param {(message: { stream: object, headers: any }) => void} layer.responseStarted
 * @param {(message: { stream: any, error?: unknown }, hasFailed: boolean) => void} layer.streamEnded
 */
function createTickReader ({ streamServed, streamRequested, responseStarted, streamEnded }) {
  /** @param {import('../core/context').Context} context of a tick @param {any} tick */
  return function ticked (context, { callback, args }) {
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
}

/** @param {object} object @returns {'SERVER' | 'CLIENT' | undefined} the side of a stream */
function kindOf (object) {
  const name = className(object)
  return name === 'ServerHttp2Stream' ? 'SERVER' : name === 'ClientHttp2Stream' ? 'CLIENT' : undefined
}

module.exports = { createTickReader }
