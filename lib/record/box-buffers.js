'use strict'

// Memory outside of the heap, mostly Buffers, that callbacks of requests allocate while memory is short, for
// a black box. An allocation is no leak, but the route that allocates most is the first one to look at.

const runLog = require('../core/run-log')
const { part: at } = require('./box-layout')

const MIN_BYTES = 4096 // of a callback
const MAX_SITES = 64
const LISTED = 6
const STORE_MS = 100

/**
 * @typedef {object} BufferSums
 * @property {string} request its name
 * @property {number} chain of the callbacks that allocated most
 * @property {number} bytes
 */

class BoxBuffers {
  /** bytes by chain, by name of the request @type {Map<string, Map<number, number>>} */
  #sums = new Map()
  #sites = 0
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
    const name = request === 0 ? undefined : this.#table.nameOf(request)
    if (name === undefined) return
    const sums = this.#sums.get(name) ?? new Map()
    if (!sums.has(chain) && ++this.#sites > MAX_SITES) return
    this.#sums.set(name, sums.set(chain, (sums.get(chain) ?? 0) + bytes))
    if (time < this.#storedAt + STORE_MS) return
    this.#storedAt = time
    this.#store()
  }

  #store () {
    const all = Array.from(this.#sums, ([request, sums]) => {
      const sites = Array.from(sums).sort(([, a], [, b]) => b - a)
      return { request, chain: sites[0][0], bytes: sites.reduce((sum, [, bytes]) => sum + bytes, 0) }
    })
    all.sort((a, b) => b.bytes - a.bytes)
    this.#part.writeUInt32LE(0, at.buffersBytes)
    const room = at.stack - at.buffers
    for (let count = LISTED; count > 0; count--) {
      const text = JSON.stringify(all.slice(0, count))
      if (Buffer.byteLength(text) > room) continue
      this.#part.writeUInt32LE(this.#part.write(text, at.buffers, room), at.buffersBytes)
      return
    }
  }

  close () { runLog.onReturn(undefined) }
}

module.exports = { BoxBuffers }
