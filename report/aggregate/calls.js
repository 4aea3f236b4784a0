'use strict'

// HTTP calls of requests: their peers, and retries until one succeeded. Lines of calls come before the line
// of the request that made them.

const { getOrCreate, groupsOf } = require('./lists')

const MAX_REQUESTS = 2000 // newest ones that have not ended, or ended before their calls
const MAX_CALLS = 100 // per request
const MAX_PEERS = 1000
const OVERLAP_MS = 0.5 // tolerated between serial calls, since span clocks are rounded

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {Pick<Span, 'name' | 'startMs' | 'ms' | 'failed'>} Call cancelled: failed, as it took too long
 *
 * @typedef {object} Tries retried calls of one request
 * @property {string} name
 * @property {number} count
 * @property {number} failedMs
 * @property {boolean} succeeded whether the last one did
 */

class Calls {
  /** by id of the request @type {Map<string, Call[]>} */
  #pending = new Map()
  /** addresses called over HTTP @type {Set<string>} */
  peers = new Set()

  /** @param {Span} span */
  add ({ kind, parentSpanId, name, startMs, ms, failed, cancelled, attributes }) {
    if (kind !== 'CLIENT' || typeof attributes['http.request.method'] !== 'string') return
    for (const prefix of ['network.peer', 'server']) {
      const [address, port] = [attributes[`${prefix}.address`], attributes[`${prefix}.port`]]
      const isKnown = typeof address === 'string' && typeof port === 'number'
      if (isKnown && this.peers.size < MAX_PEERS) this.peers.add(`${address}:${port}`)
    }
    if (parentSpanId === undefined) return
    const calls = getOrCreate(this.#pending, parentSpanId, () => [])
    if (calls.length < MAX_CALLS) calls.push({ name, startMs, ms, failed: failed || cancelled })
    if (this.#pending.size > MAX_REQUESTS) this.#pending.delete(String(this.#pending.keys().next().value))
  }

  /**
   * Whether a request made a call that went on after its end.
   * @param {string} spanId of the request
   * @param {number} end of the request, ms since 1970
   */
  outlasts (spanId, end) {
    return this.#pending.get(spanId)?.some(({ startMs, ms }) =>
      startMs < end && startMs + ms > end - OVERLAP_MS) === true
  }

  /**
   * Returns the retries of a request that has ended.
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
 * @returns {Tries[]} empty if they were concurrent, or if one succeeded before the last
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
