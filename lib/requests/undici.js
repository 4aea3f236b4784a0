'use strict'

// Requests by fetch and undici, as they tell of them through diagnostics_channel: Node's own copy and those from npm.
// On a pooled connection they run in the context of its first request, so they are told apart by their objects.

const { hidden, own } = require('../objects')

/**
 * @param {object} deps
 * @param {import('./http1').RequestRooms} deps.rooms
 * @param {import('./http1').Mark} deps.mark
 * @param {ReturnType<typeof import('./connections').createConnections>} deps.lines
 * @param {ReturnType<typeof import('./connects').createConnects>} deps.connects
 * @param {(message: { request: object }) => void} deps.requested
 * @param {(message: { request: object, error: unknown }) => void} deps.failed
 * @returns {Array<[string, (message: any) => void]>}
 */
function undiciSubscriptions ({ rooms, mark, lines, connects, requested, failed }) {
  /** The connection may be handed over to the program then, of which nothing is told. @param {{ request: object, socket: object }} message */
  function sent ({ request, socket }) {
    const span = mark.read(request)
    if (span === undefined || span.ended || !(own(request, 'upgrade') || own(request, 'method') === 'CONNECT')) return
    const line = lines.of(socket)
    const weak = new WeakRef(socket)
    line.add(span, () => {
      const present = weak.deref()
      if (span.ended) return line.remove(span)
      if (present === undefined || line.gone || hidden(present, 'parser') !== null) return // what failed is told
      line.remove(span)
      rooms.switched(span, undefined)
    })
  }

  return [
    ['undici:request:create', requested],
    ['undici:client:beforeConnect', connects.undici],
    ['undici:client:sendHeaders', sent],
    ['undici:request:headers', ({ request, response }) => {
      const span = mark.read(request)
      if (span !== undefined) rooms.responded(span, response.statusCode)
    }],
    ['undici:request:trailers', ({ request }) => {
      const span = mark.read(request)
      if (span !== undefined) rooms.received(span)
    }],
    ['undici:request:error', failed]
  ]
}

module.exports = { undiciSubscriptions }
