'use strict'

// trace.intercept with transforms that hold back, return any memory, throw, or end the connection, on
// requests that are cut anywhere, while transforms come and go. Each transform gets what the one before
// returned, and the server makes of it what a server without transforms makes of the same bytes. A transform
// that fails closes its own connection, with an error that says so.

const trace = require('..')
const { expectHarmless } = require('./helpers/expectations')
const { check, fc } = require('./helpers/property')
const { Flow } = require('./intercept/flow')
const { chunks } = require('./intercept/requests')
const { Log, createServer, endsInMemory, pass } = require('./intercept/serve')
const { allowed, behaviours, endings, forbidden } = require('./intercept/transforms')

const BATCH = 20
const CODE = 'LONGSTACK_ERR_INTERCEPT'

/**
 * @typedef {{ log: Log, flow: Flow, client: any, served: any, states: Map<number, any>, isFailed: boolean }}
 *   Connection
 * @typedef {{ behaviour: string, from: number }} Drawn what a transform does from which call on
 */

/** A server, its transforms and its connections. */
class World {
  /** by socket @type {Map<any, Connection>} */
  connections = new Map()
  /** @type {Array<(() => void) | undefined>} */
  removers = []
  server = createServer((socket) => this.#of(socket).log)

  /** @param {any} socket @returns {Connection} */
  #of (socket) {
    return /** @type {Connection} */ (this.connections.get(socket))
  }

  /** Sets a transform. @param {Drawn} drawn */
  add ({ behaviour, from }) {
    const place = this.removers.length
    this.#complete()
    this.removers.push(trace.intercept(this.server, (chunk, socket) => {
      const connection = this.#of(socket)
      const { flow, states } = connection
      if (!states.has(place)) states.set(place, { held: Buffer.alloc(0), calls: 0 })
      const state = states.get(place)
      const transform = ++state.calls > from ? behaviours[behaviour] : allowed.nothing
      try {
        return flow.call(place, chunk, () => transform(chunk, socket, state))
      } finally {
        connection.isFailed ||= flow.hasEnded
        if (socket.destroyed) flow.end()
      }
    }))
  }

  /** Takes a transform away. @param {number} place */
  remove (place) {
    const remover = this.removers[place]
    this.removers[place] = undefined
    this.#complete()
    remover?.()
    this.#complete()
  }

  #complete () {
    for (const { flow } of this.connections.values()) flow.complete()
  }

  /** @param {Buffer} source all that its client sends */
  connect (source) {
    const { served } = openEnds(this.server, (ends) => {
      const states = new Map()
      const connection = { ...ends, log: new Log(), flow: new Flow(source), states, isFailed: false }
      this.connections.set(ends.served, connection)
    })
    return this.#of(served)
  }
}

/**
 * @typedef {ReturnType<typeof endsInMemory>} Ends
 *
 * @param {import('node:http').Server} server
 * @param {(ends: Ends) => void} [before] called before the server gets its end
 */
function openEnds (server, before) {
  const ends = endsInMemory()
  for (const end of [ends.client, ends.served]) end.on('error', () => {})
  before?.(ends)
  server.emit('connection', ends.served)
  ends.client.resume()
  return ends
}

/**
 * Gives what transforms passed on to a server that has none, at the same pace.
 * @param {Connection} connection
 * @returns {Promise<Log>}
 */
async function parseBare ({ flow }) {
  const log = new Log()
  const { client, served } = openEnds(createServer(() => log))
  for (const [index, pieces] of flow.turns.entries()) {
    if (index > 0) await pass()
    if (pieces.length > 0) client.write(Buffer.concat(pieces)) // a second one would come later
  }
  if (flow.hasEnded) served.destroy()
  else client.end(flow.unseen)
  await pass()
  return log
}

/** @param {Connection} connection */
async function expectAsBare (connection) {
  const { log, flow, isFailed, served } = connection
  if (flow.fault !== undefined) throw new Error(flow.fault)
  const own = log.errors.filter((code) => code === CODE)
  const isMissing = isFailed && own.length === 0 && log.errors.length === 0 // Node reports one error at most
  if (isMissing || own.length > Number(isFailed)) {
    throw new Error(`${own.length} errors of a transform, failed: ${isFailed}`)
  }
  if (isFailed && !served.destroyed) throw new Error('a connection whose transform failed is open')
  log.errors = log.errors.filter((code) => code?.startsWith('HPE_'))
  const bare = String(await parseBare(connection))
  if (String(log) !== bare) throw new Error(`the server has\n${log}\nwithout transforms\n${bare}`)
}

/**
 * @param {Buffer[][]} lists chunks of each connection
 * @param {Drawn[]} transforms
 * @param {Array<{ at: number, add: Drawn | undefined, remove: number }>} turns what changes before a chunk
 * @param {boolean} isTraced
 */
async function play (lists, transforms, turns, isTraced) {
  if (isTraced) trace.enable()
  const world = new World()
  for (const drawn of transforms) world.add(drawn)
  const connections = lists.map((list) => world.connect(Buffer.concat(list)))
  const longest = Math.max(...lists.map(({ length }) => length))
  for (let at = 0; at < longest; at++) {
    for (const turn of turns.filter((candidate) => candidate.at === at)) {
      if (turn.add !== undefined) world.add(turn.add)
      else world.remove(turn.remove)
    }
    for (const [index, { client, served }] of connections.entries()) {
      const chunk = lists[index][at]
      if (chunk !== undefined && !served.destroyed) client.write(Buffer.from(chunk))
    }
    await pass()
    for (const { flow } of connections) flow.endTurn()
  }
  for (const { client } of connections) client.end()
  await pass()
  for (const { flow } of connections) flow.endTurn()
  trace.disable()
  for (const connection of connections) await expectAsBare(connection)
}

function transform () {
  const names = [allowed, forbidden, endings].map((kind) => fc.constantFrom(...Object.keys(kind)))
  const behaviour = fc.oneof({ arbitrary: names[0], weight: 8 }, names[1], names[2])
  return fc.record({ behaviour, from: fc.nat(4) })
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'intercept',
  async run (settings) {
    const remove = trace.on('warning', ({ message }) => expectHarmless('a warning', message))
    const turn = fc.record({
      at: fc.nat(8), add: fc.option(transform(), { nil: undefined }), remove: fc.nat(4)
    })
    const connections = fc.array(chunks(), { minLength: 1, maxLength: 3 })
    const transforms = fc.array(transform(), { minLength: 1, maxLength: 4 })
    const turns = fc.array(turn, { maxLength: 3 })
    try {
      const property = fc.asyncProperty(connections, transforms, turns, fc.boolean(), play)
      return await check(property, settings, BATCH)
    } finally {
      remove()
      trace.disable()
    }
  }
}
