'use strict'

// The answer of trace.pending: what is awaited and not settled, by the place where it hangs. Asked of a live
// process, the work is done in pieces, between which the event loop goes on: waits are copied at once, all
// that follows reads the copy. No promise is held, nor asked.

const { ERA, FLAGS, LIVE, readWord } = require('../core/records')
const { timeOf } = require('../core/record-ids')
const { now } = require('../core/clock')
const { requestOf } = require('../core/request-of')
const { copyChain } = require('../format/chains')
const { inspectablePending, printedWaits } = require('../format/pending')
const { settings } = require('../settings')
const { copyHop } = require('../stacks/hop-frames')
const { clean } = require('../text')
const { wasWatchingSince } = require('../core/registry')
const { Groups } = require('./wait-groups')
const { INNERMOST, Waits } = require('./waits')

const CHUNK = 1024 // waits that are grouped at once

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 *
 * @typedef {'DISABLED' | 'FILTER'} PendingNoteCode why it is not known what is awaited
 *
 * @typedef {PendingWaits[] & { note?: string, noteCode?: PendingNoteCode }} Pending
 *   what is awaited, by place; note: why it is not known what is awaited
 *
 * @typedef {Omit<PendingWaits, 'chain'> & { hops: PrintedHop[] }} PendingData the same as data
 *
 * @typedef {object} PendingWaits what is awaited at one place and not settled
 * @property {string | undefined} at the program's innermost frame there: `connect (/app/pool.js:29:12)`
 * @property {string} label what waits: `await`, `promise.then`, `events.once`
 * @property {number} count how many wait there
 * @property {number} oldestMs for how long the oldest of them has waited
 * @property {number} newestMs the same of the newest
 * @property {Array<{ request: string, count: number }>} requests of servers, in which they began to wait, the
 *   most frequent first
 * @property {number[]} asyncIds of some of them, the oldest first
 * @property {import('../stacks/chain').Hop[]} chain of the oldest
 *
 * @typedef {{ groups: PendingData[], noteCode: PendingNoteCode | undefined }} PendingList
 *
 * @typedef {object} SampledWaits the innermost waits of one chain
 * @property {number} chain its number
 * @property {number[]} requests reference of the request of each, 0: none is known
 *
 * @typedef {{ at: string | undefined, label: string | undefined }} Site
 */

/**
 * Returns what is awaited and not settled, the most frequent place first. Yields between pieces of work.
 * @param {{ olderThanMs?: number }} [options]
 * @returns {Generator<void, PendingList, void>}
 */
function * slices ({ olderThanMs = 0 } = {}) {
  const code = pendingNote()
  if (code !== undefined) return { groups: [], noteCode: code }
  const time = now()
  const groups = new Groups()
  yield * visitInnermost(time, (chain, ref, ageMs) => {
    if (ageMs >= olderThanMs) groups.add(chain, ref, ageMs)
  })
  return { groups: yield * groups.list(time), noteCode: undefined }
}

/**
 * Visits the innermost waits, of which it is known since when they hang. Yields between pieces of work.
 * @param {number} time ms of the clock
 * @param {(chain: number, ref: number, ageMs: number) => void} visit
 * @returns {Generator<void, void, void>}
 */
function * visitInnermost (time, visit) {
  const waits = new Waits()
  yield
  yield * waits.judge()
  const { waiting, states } = waits
  for (let i = 0; i < waiting.length; i++) {
    if (i % CHUNK === CHUNK - 1) yield
    const ref = waiting.refs[i]
    if (states[i] !== INNERMOST || (readWord(ref, FLAGS) & LIVE) === 0) continue
    const madeAt = timeOf(waiting.times[i], waiting.flags[i] >>> ERA)
    if (wasWatchingSince(madeAt)) visit(waiting.chains[i], ref, Math.max(0, time - madeAt))
  }
}

/**
 * Returns how many innermost waits there are of each chain, without their hops: for samples several times a
 * second. Yields between pieces of work.
 * @returns {Generator<void, SampledWaits[], void>}
 */
function * sample () {
  if (pendingNote() !== undefined) return []
  const lookup = new Map()
  /** @type {Map<number, SampledWaits>} */
  const samples = new Map()
  yield * visitInnermost(now(), (chain, ref) => {
    let sampled = samples.get(chain)
    if (sampled === undefined) samples.set(chain, sampled = { chain, requests: [] })
    sampled.requests.push(requestOf(ref, lookup))
  })
  return [...samples.values()]
}

/**
 * Returns the innermost waits of each request.
 * @param {import('../core/request-of').Lookup} lookup
 * @param {number} time ms of the clock
 */
function * byRequest (lookup, time) {
  /** @type {Map<number, import('./requests-in-flight').WaitOfRequest[]>} */
  const byRef = new Map()
  const code = pendingNote()
  if (code !== undefined) return { waits: byRef, noteCode: code }
  const places = new Groups()
  yield * visitInnermost(time, (chain, ref, ageMs) => {
    const request = requestOf(ref, lookup)
    const place = request === 0 ? undefined : places.of(chain)
    if (place === undefined) return
    let list = byRef.get(request)
    if (list === undefined) byRef.set(request, list = [])
    let wait = list.find((other) => other.at === place.at && other.label === place.label)
    if (wait === undefined) list.push(wait = { at: place.at, label: place.label, count: 0, oldestMs: 0 })
    wait.count++
    wait.oldestMs = Math.max(wait.oldestMs, ageMs)
  })
  return { waits: byRef, noteCode: undefined }
}

/**
 * Returns why it is not known what is awaited.
 * @returns {PendingNoteCode | undefined}
 */
function pendingNote () {
  if (!settings.enabled) return 'DISABLED'
  return settings.isSelected('PROMISE') ? undefined : 'FILTER'
}

/**
 * Returns what trace.pending returns.
 * @param {{ olderThanMs: number }} options
 * @returns {Pending}
 */
function pending (options) {
  const { groups, noteCode } = drain(slices(options))
  return inspectablePending(groups.map(reportOf), noteCode)
}

/** @param {PendingData} data @returns {PendingWaits} */
function reportOf ({ hops, ...data }) {
  const publicHop = (/** @type {PrintedHop} */ hop) => ({ ...copyHop(hop), label: clean(hop.label) })
  const waits = { ...data, chain: copyChain(hops, publicHop) }
  printedWaits.write(waits, { ...data, hops })
  return waits
}

/**
 * Runs a generator to its end at once.
 * @template T
 * @param {Generator<void, T, void>} pieces
 * @returns {T}
 */
function drain (pieces) {
  for (;;) {
    const { done, value } = pieces.next()
    if (done) return /** @type {T} */ (value)
  }
}

module.exports = { byRequest, pending, sample, slices }
