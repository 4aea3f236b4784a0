'use strict'

// Memory outside of the heap, mostly Buffers, that callbacks of requests allocate while memory is short, for
// a black box. An allocation is not a leak, but the route that allocates most is the first suspect.

const runLog = require('../core/run-log')
const { part: at } = require('./box-layout')

const MIN_BYTES = 4096 // smallest amount of a callback that counts
const MAX_ROUTES = 64
const LISTED = 6
const STORE_MS = 100

/**
 * @typedef {object} RouteBuffers
 * @property {string} request its name
 * @property {number} chain of the callback that allocated most
 * @property {number} bytes of all its callbacks
 *
 * @typedef {object} Buffers
 * @property {number} all bytes, including those outside of requests
 * @property {RouteBuffers[]} routes largest first
 */

class BoxBuffers {
  /** by name of the request @type {Map<string, RouteBuffers & { most: number }>} */
  #routes = new Map()
  #all = 0
  #storedAt = 0
  #part
  #table
  #outside
  #before

  /**
   * @param {Buffer} part of the thread
   * @param {import('./open-table').OpenTable} table
   * @param {() => number} outside returns bytes outside of the heap
   */
  constructor (part, table, outside) {
    this.#part = part
    this.#table = table
    this.#outside = outside
    this.#before = outside()
    runLog.onReturn(this.#returned)
  }

  /** A callback has returned. */
  #returned = () => {
    const bytes = this.#outside()
    const grown = bytes - this.#before
    this.#before = bytes
    if (grown >= MIN_BYTES) this.#add(grown)
  }

  /** @param {number} bytes */
  #add (bytes) {
    const { request, chain, time } = runLog.newestRun()
    this.#all += bytes
    const name = request === 0 ? undefined : this.#table.nameOf(request)
    if (name !== undefined) this.#addTo(name, chain, bytes)
    if (time < this.#storedAt + STORE_MS) return
    this.#storedAt = time
    this.#store()
  }

  /** @param {string} name @param {number} chain @param {number} bytes */
  #addTo (name, chain, bytes) {
    const route = this.#routes.get(name) ?? { request: name, chain, bytes: 0, most: 0 }
    if (route.bytes === 0 && this.#routes.size === MAX_ROUTES) return
    this.#routes.set(name, route)
    route.bytes += bytes
    if (bytes <= route.most) return
    route.chain = chain
    route.most = bytes
  }

  #store () {
    const routes = Array.from(this.#routes.values(), ({ most, ...route }) => route)
    routes.sort((a, b) => b.bytes - a.bytes)
    this.#part.writeUInt32LE(0, at.buffersBytes)
    const room = at.stack - at.buffers
    for (let count = LISTED; count > 0; count--) {
      const text = JSON.stringify({ all: this.#all, routes: routes.slice(0, count) })
      if (Buffer.byteLength(text) > room) continue
      this.#part.writeUInt32LE(this.#part.write(text, at.buffers, room), at.buffersBytes)
      return
    }
  }

  close () { runLog.onReturn(undefined) }
}

module.exports = { BoxBuffers }
