'use strict'

// Requests in flight for which nothing is pending: no await, timer, handle or operation that they started is
// left. Only code of others can still respond, for example a queue of responses.

const {
  AWAITED, CALLED, CAUSE, CHAIN, FLAGS, LIVE, REF, SETTLED, SHIFT, TICK, TIMER,
  allOlder, findRecord, promises, resources, usedOlder
} = require('../core/records')
const { timeAt } = require('../core/record-ids')
const { requestOf } = require('../core/request-of')
const { siteOf } = require('../spans/path-sites')
const { placeText } = require('../text')
const { walk } = require('./list')

const WORDS = 1 << SHIFT
const CHUNK = 2048 // records per piece of work
const MAX_STEPS = 1 << 15 // up from a step to its origin
const RUNS = AWAITED | CALLED | TICK // other promises only settle

/**
 * @typedef {{ at: string | undefined, label: string | undefined }} LastStep undefined: its record is gone
 */

class Search {
  /** what each request started last @type {Map<number, { time: number, chain: number }>} */
  latest = new Map()
  /** requests with something pending @type {Set<number>} */
  pending = new Set()
  /** when something was started that is pending, for an unknown request */
  unknown = -Infinity
  /** steps outside of requests whose records are all there @type {Set<number>} */
  #outside = new Set()

  /**
   * @param {Map<number, number>} requests ms of the clock when they began, by reference
   * @param {import('../core/request-of').Lookup} lookup
   */
  constructor (requests, lookup) {
    this.requests = requests
    this.lookup = lookup
  }

  /**
   * Notes a step that may still run.
   * @param {number} ref
   * @param {number} time when it was started
   */
  addPending (ref, time) {
    const request = requestOf(ref, this.lookup)
    if (request !== 0) this.pending.add(request)
    else if (time > this.unknown && this.#isLost(ref)) this.unknown = time
  }

  /** Whether the record of a step, or of one that led to it, is gone. @param {number} ref */
  #isLost (ref) {
    const steps = []
    let step = ref
    while (step !== 0 && !this.#outside.has(step)) {
      const record = findRecord(step)
      if (record === undefined || steps.push(step) > MAX_STEPS) return true
      step = record.words[record.offset + CAUSE]
    }
    for (const passed of steps) this.#outside.add(passed)
    return false
  }

  /** @param {Int32Array} words @param {number} offset of a record */
  add (words, offset) {
    const [ref, chain, flags] = [words[offset + REF], words[offset + CHAIN], words[offset + FLAGS]]
    const time = timeAt(words, offset)
    if (isPending(ref, flags)) this.addPending(ref, time)
    const request = requestOf(ref, this.lookup)
    if (!this.requests.has(request) || (flags & RUNS) === 0 || siteOf(chain).at === undefined) return
    if (!(time < (this.latest.get(request)?.time ?? -Infinity))) this.latest.set(request, { time, chain })
  }
}

/**
 * Returns what these requests started last, for those for which nothing is pending.
 * @param {Map<number, number>} requests ms of the clock when they began, by reference
 * @param {import('../core/request-of').Lookup} lookup
 * @returns {Generator<void, Map<number, LastStep>, void>} by reference
 */
function * stoppedOf (requests, lookup) {
  /** @type {Map<number, LastStep>} */
  const stopped = new Map()
  if (requests.size === 0) return stopped
  const search = new Search(requests, lookup)
  for (const [words, end] of /** @type {const} */ ([
    [promises, promises.length], [resources, resources.length], [allOlder(), usedOlder()]
  ])) {
    for (let offset = 0; offset < end; offset += WORDS) {
      if ((offset / WORDS) % CHUNK === CHUNK - 1) yield
      if (words[offset + REF] !== 0) search.add(words, offset)
    }
  }
  // Long-lived ones carry their records
  for (const subject of walk(() => true)) {
    yield
    const context = subject?.context
    if (context !== undefined) search.addPending(context.ref, context.time)
  }
  for (const [ref, time] of requests) {
    if (search.pending.has(ref) || search.unknown >= time) continue
    const { at: frame, label } = siteOf(search.latest.get(ref)?.chain ?? 0)
    stopped.set(ref, { at: frame && placeText(frame), label })
  }
  return stopped
}

/**
 * Whether a step may still run. A promise that nobody awaits does not, and timers are listed elsewhere: these
 * may be cleared.
 * @param {number} ref
 * @param {number} flags of its record
 */
function isPending (ref, flags) {
  if ((flags & LIVE) === 0 || (flags & TIMER) !== 0) return false
  const isPromise = (ref & 1) === 1 || (flags & SETTLED) !== 0
  return (flags & AWAITED) !== 0 || !isPromise
}

module.exports = { stoppedOf }
