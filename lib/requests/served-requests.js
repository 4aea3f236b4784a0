'use strict'

// Which request a server got: Node tells through diagnostics_channel when one begins, and of HTTP/2 in a tick. The words of
// a request are noted as a number in its record; what a framework makes of its path is read when somebody asks, for as long
// as it is the last request of its connection. No object of the program is held.

const records = require('../context/records')
const requests = require('../context/request-names')
const { contextTag } = require('../context/context')
const { ownerOf } = require('../node-objects')
const { className, hiddenProperty, isObject, own } = require('../objects')

const { CAUSE, DETAIL, OUTER, TRIGGER } = records
const STEPS = 64 // back to the request whose route Fastify tells

const streamHandle = hiddenProperty('kHandle')

/**
 * @param {object} deps
 * @param {(number: number) => boolean} deps.enterRequest says whether it is the first of its connection
 * @param {() => number} deps.currentRef reference of the step that runs
 * @param {import('../handles/registry').Registry} deps.registry
 * @param {() => { observeServer: (server: object) => void }} deps.koaRoutes
 * @param {(request: object) => string | undefined} deps.routeOf what a framework says of a request
 */
function createServedRequests ({ enterRequest, currentRef, registry, koaRoutes, routeOf }) {
  /** @param {{ request: any, server: object }} message */
  function started ({ request, server }) {
    const isPlain = requests.hasNodePrototype(request)
    const method = isPlain ? request.method : own(request, 'method')
    const url = isPlain ? request.url : own(request, 'url')
    if (typeof method !== 'string' || typeof url !== 'string') return
    if (enterRequest(requests.numberOf(method, url))) koaRoutes().observeServer(server)
  }

  /** Fastify runs a handler, in the midst of its request. @param {{ route: any }} message */
  function routed ({ route }) {
    const url = isObject(route) ? own(route, 'url') : undefined
    if (typeof url !== 'string') return
    const found = records.findRecord(requestOf(currentRef()))
    if (found !== undefined) found.words[found.offset + DETAIL] = requests.withRoute(found.words[found.offset + DETAIL], url)
  }

  return {
    started,
    routed,

    /**
     * A stream of HTTP/2 is about to be told to a program.
     * @param {unknown} stream
     * @param {unknown} headers
     * @returns {number} number of the words of its request, 0: it is none
     */
    streamed (stream, headers) {
      if (!isObject(stream) || !isObject(headers) || className(stream) !== 'ServerHttp2Stream') return 0
      const method = own(headers, ':method')
      const path = own(headers, ':path')
      if (typeof method !== 'string') return 0
      const number = requests.numberOf(method, typeof path === 'string' ? path : '')
      const handle = streamHandle(stream)
      const context = isObject(handle) ? contextTag.read(handle) : undefined
      if (context?.type === 'HTTP2STREAM') context.request = requests.textAt(number)
      return number
    },

    /**
     * @param {number} ref of a request
     * @returns {string | undefined} its words with the route, if a framework told that
     */
    routeOf (ref) {
      const found = records.findRecord(ref)
      const request = found === undefined ? undefined : incomingOf(ref, found.words[found.offset + OUTER])
      const route = request === undefined ? undefined : routeOf(request)
      if (found === undefined || route === undefined) return undefined
      const number = requests.withRoute(found.words[found.offset + DETAIL], route)
      found.words[found.offset + DETAIL] = number
      return requests.textAt(number)
    }
  }

  /**
   * The object of a request, if none came after it on its connection.
   * @param {number} ref
   * @param {number} parser reference of what it came on
   * @returns {object | undefined}
   */
  function incomingOf (ref, parser) {
    if (records.readWord(parser, DETAIL) !== ref) return undefined
    const handle = registry.get(records.readWord(parser, TRIGGER) >>> 1)?.resource.deref()
    const socket = handle === undefined ? undefined : ownerOf(handle)
    const node = socket === undefined ? undefined : own(socket, 'parser')
    const request = isObject(node) ? own(node, 'incoming') : undefined
    return isObject(request) && own(request, 'upgrade') !== true ? request : undefined
  }
}

/** The request in which a step was made. @param {number} ref @returns {number} 0: none is near */
function requestOf (ref) {
  let at = ref
  for (let i = 0; i < STEPS && at !== 0; i++) {
    if (records.isRequest(at)) return at
    at = records.readWord(at, CAUSE)
  }
  return 0
}

module.exports = { createServedRequests }
