'use strict'

// The HTTP calls of requests: to which peers, and which were tried again until one succeeded. Lines of calls
// come before the line of the request that made them.

const { getOrCreate, groupsOf } = require('./lists')

const MAX_REQUESTS = 2000 // that have not ended, or ended before their calls: the newest
const MAX_CALLS = 100 // of a request
const MAX_PEERS = 1000
const OVERLAP_MS = 0.5 // of two calls one after another: clocks of spans are rounded

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {Pick<Span, 'name' | 'startMs' | 'ms' | 'failed'>} Call
 *
 * @typedef {object} Tries calls of one request that were tried again
 * @property {string} name
 * @property {number} count
 * @property {number} failedMs
 * @property {boolean} succeeded the last one did
 */

class Calls {
  /** by id of the request @type {Map<string, Call[]>} */
  #pending = new Map()
  /** addresses that are asked by HTTP @type {Set<string>} */
  peers = new Set()

  /** @param {Span} span */
  add ({ kind, parentSpanId, name, startMs, ms, failed, attributes }) {
    if (kind !== 'CLIENT' || typeof attributes['http.request.method'] !== 'string') return
    for (const prefix of ['network.peer', 'server']) {
      const [address, port] = [attributes[`${prefix}.address`], attributes[`${prefix}.port`]]
      const isKnown = typeof address === 'string' && typeof port === 'number'
      if (isKnown && this.peers.size < MAX_PEERS) this.peers.add(`${address}:${port}`)
    }
    if (parentSpanId === undefined) return
    const calls = getOrCreate(this.#pending, parentSpanId, () => [])
    if (calls.length < MAX_CALLS) calls.push({ name, startMs, ms, failed })
    if (this.#pending.size > MAX_REQUESTS) this.#pending.delete(String(this.#pending.keys().next().value))
  }

  /**
   * Returns what a request tried again, now that it has ended.
   * @param {Span} span
   * @returns {Tries[]}
   */
  triesOf ({ spanId }) {
    const calls = this.#pending.get(spanId)
    if (calls === undefined) return []
    this.#pending.delete(spanId)
    return groupsOf(calls, ({ name }) => name).flatMap(triesOf)
  }
}

/**
 * @param {Call[]} calls of one name
 * @returns {Tries[]} none: they were at once, or one that succeeded was not the last
 */
function triesOf (calls) {
  if (calls.length < 2) return []
  const inOrder = [...calls].sort((a, b) => a.startMs - b.startMs)
  const isSerial = inOrder.every(({ startMs }, i) =>
    i === 0 || startMs >= inOrder[i - 1].startMs + inOrder[i - 1].ms - OVERLAP_MS)
  const failed = inOrder.filter((call) => call.failed)
  const last = inOrder[inOrder.length - 1]
  if (!isSerial || failed.length < inOrder.length - 1) return []
  if (failed.length < inOrder.length && last.failed) return []
  const failedMs = failed.reduce((sum, { ms }) => sum + ms, 0)
  return [{ name: last.name, count: inOrder.length, failedMs, succeeded: !last.failed }]
}

module.exports = { Calls }
