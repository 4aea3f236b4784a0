'use strict'

// What requests have taken: which functions gave them what they asked for, and who ended the waits for it.
// Read from the records that there still are, of promises that were settled: the program's last 32,768 ones.

const { connectionTypes, kindAt } = require('../core/kinds')
const {
  AWAITED, CAUSE, CHAIN, DETAIL, FLAGS, REF, SETTLED, SHIFT, SIZE,
  isAsk, isRequest, findRecord, promises, resources
} = require('../core/records')
const { requestOf } = require('../core/request-of')
const { source } = require('../core/source')

const CHUNK = 2048 // records that are looked at, at once
const MAX_STEPS = 4096 // from a step up to its request

/**
 * @typedef {import('../core/request-of').Lookup} Lookup
 * @typedef {import('./taking-calls').Call} Call
 *
 * @typedef {object} Endings who ended the waits for what a function gives
 * @property {number} byTakers requests that had it given something before
 * @property {number} byOthers other requests, or who is not known
 */

class Taken {
  /** by request, and key of the call: the places @type {Map<number, Map<string, Map<string, Call>>>} */
  #places = new Map()
  /** by key of the call @type {Map<string, Endings>} */
  endings = new Map()
  #calls
  #lookup

  /** @param {import('./taking-calls').Calls} calls @param {Lookup} lookup */
  constructor (calls, lookup) {
    this.#calls = calls
    this.#lookup = lookup
  }

  /**
   * Reads the records of promises that functions gave. Yields between pieces of work.
   * @param {Set<string>} keys of calls
   * @returns {Generator<void, void, void>}
   */
  * read (keys) {
    /** who ended a wait, by key @type {Array<[string, number]>} */
    const enders = []
    for (const ring of [promises, resources]) {
      for (let slot = 0; slot < SIZE; slot++) {
        if (slot % CHUNK === CHUNK - 1) yield
        const offset = slot << SHIFT
        if ((ring[offset + FLAGS] & (SETTLED | AWAITED)) !== SETTLED) continue
        const call = this.#calls.of(ring[offset + CHAIN])
        if (call?.name === undefined || !keys.has(call.key)) continue
        const request = requestOf(ring[offset + REF], this.#lookup)
        this.#note(request, call)
        const settler = ring[offset + DETAIL]
        if (!call.isPlain || settler === ring[offset + CAUSE]) continue // given at once
        const ender = this.#requestOfSettler(settler)
        if (ender !== request || ender === 0) enders.push([call.key, ender])
      }
    }
    for (const [key, ender] of enders) {
      const endings = this.endings.get(key) ?? { byTakers: 0, byOthers: 0 }
      this.endings.set(key, endings)
      if (ender !== 0 && this.places(ender, key).size > 0) endings.byTakers++
      else endings.byOthers++
    }
  }

  /** @param {number} request @param {Call} call */
  #note (request, call) {
    let byKey = this.#places.get(request)
    if (byKey === undefined) this.#places.set(request, byKey = new Map())
    let places = byKey.get(call.key)
    if (places === undefined) byKey.set(call.key, places = new Map())
    places.set(call.path, call)
  }

  /**
   * Returns where a function gave something to a request.
   * @param {number} request 0: to what is of none
   * @param {string} key of the function
   * @returns {Map<string, Call>}
   */
  places (request, key) {
    return this.#places.get(request)?.get(key) ?? new Map()
  }

  /**
   * Returns the request in which a promise was settled. What a connection's callback causes is of whoever has
   * opened it, unless it is known who has asked.
   * @param {number} settler reference
   * @returns {number} 0: it is not known
   */
  #requestOfSettler (settler) {
    for (let step = settler, i = 0; step !== 0 && i < MAX_STEPS; i++) {
      if (isRequest(step)) return step
      const record = findRecord(step)
      if (record === undefined) return 0
      const { words, offset } = record
      const kind = kindAt(source.chainAt(words[offset + CHAIN])?.kind ?? 0)
      if (!isAsk(step) && kind !== undefined && connectionTypes.has(kind.type)) return 0
      step = words[offset + CAUSE]
    }
    return 0
  }
}

module.exports = { Taken }
