'use strict'

// Result of trace.pending: pending awaits, grouped by place. For a live process, the work is done in pieces
// between which the event loop runs: waits are copied at once, and everything else reads the copy. No promise
// is held or inspected.

const { ERA, FLAGS, LIVE, readWord } = require('../core/records')
const { timeOf } = require('../core/record-ids')
const { now } = require('../core/clock')
const { contextAt, contextOfChain } = require('../core/context')
const { requestOf } = require('../core/request-of')
const { copyChain } = require('../format/hops')
const { inspectablePending, printedWaits } = require('../format/pending')
const { getOrAdd, newMap } = require('../group-by')
const { settings } = require('../settings')
const { siteOf } = require('../spans/path-sites')
const { hopsOfStep } = require('../attribution/queued-jobs')
const { hops } = require('../stacks/chain')
const { clean, placeText } = require('../text')
const { wasWatchingSince } = require('../core/registry')
const { drain } = require('./list')
const { INNERMOST, OVER, Waits } = require('./waits')

const CHUNK = 1024 // waits grouped per piece of work
const MAX_IDS = 5 // per place

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 *
 * @typedef {'DISABLED' | 'FILTER'} PendingNoteCode reason why the list is unknown or
 *   incomplete
 *
 * @typedef {PendingWaits[] & { note?: string, noteCode?: PendingNoteCode }} Pending
 *   pending awaits by place; note: reason why the list is unknown or incomplete
 *
 * @typedef {Omit<PendingWaits, 'chain'> & { hops: PrintedHop[] }} PendingData the same, as plain data
 *
 * @typedef {object} PendingWaits pending awaits at one place
 * @property {string | undefined} at innermost frame of the program: `connect (/app/pool.js:29:12)`
 * @property {string} label kind of wait: `await`, `promise.then`, `events.once`
 * @property {number} count number of waits there
 * @property {number} oldestMs age of the oldest
 * @property {number} newestMs age of the newest
 * @property {Array<{ request: string, count: number }>} requests server requests that wait there,
 *   most frequent first
 * @property {number[]} asyncIds of some of them, oldest first
 * @property {import('../stacks/chain').Hop[]} chain of the oldest
 *
 * @typedef {{ groups: PendingData[], noteCode: PendingNoteCode | undefined }} PendingList
 *
 * @typedef {import('./requests-in-flight').WaitOfRequest} WaitOfRequest
 */

/**
 * Returns pending awaits, most frequent place first. Yields between pieces of work.
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
 * Visits the innermost waits with a known start. Yields between pieces of work.
 * @param {number} time ms of the clock
 * @param {(chain: number, ref: number, ageMs: number) => void} visit
 * @returns {Generator<void, void, void>}
 */
function * visitInnermost (time, visit) {
  yield * visitWaits(time, (chain, ref, ageMs, isInnermost) => { if (isInnermost) visit(chain, ref, ageMs) })
}

/**
 * Visits all waits with a known start. Yields between pieces of work.
 * @param {number} time ms of the clock
 * @param {(chain: number, ref: number, ageMs: number, isInnermost: boolean) => void} visit
 * @returns {Generator<void, void, void>}
 */
function * visitWaits (time, visit) {
  const waits = new Waits()
  yield
  yield * waits.judge()
  const { waiting, states } = waits
  for (let i = 0; i < waiting.length; i++) {
    if (i % CHUNK === CHUNK - 1) yield
    const ref = waiting.refs[i]
    if (states[i] === OVER || (readWord(ref, FLAGS) & LIVE) === 0) continue
    const madeAt = timeOf(waiting.times[i], waiting.flags[i] >>> ERA)
    if (!wasWatchingSince(madeAt)) continue
    visit(waiting.chains[i], ref, Math.max(0, time - madeAt), states[i] === INNERMOST)
  }
}

/**
 * Returns the innermost waits of each request.
 * @param {import('../core/request-of').Lookup} lookup
 * @param {number} time ms of the clock
 */
function * byRequest (lookup, time) {
  /** by request reference and place @type {Map<number, Map<Group, WaitOfRequest>>} */
  const byRef = new Map()
  const code = pendingNote()
  if (code !== undefined) return { waits: byRef, noteCode: code }
  const places = new Groups()
  yield * visitInnermost(time, (chain, ref, ageMs) => {
    const request = requestOf(ref, lookup)
    const place = request === 0 ? undefined : places.of(chain)
    if (place === undefined) return
    const { at: frame, label } = place
    const wait = getOrAdd(getOrAdd(byRef, request, newMap), place, () =>
      ({ at: frame, label, count: 0, oldestMs: 0 }))
    wait.count++
    wait.oldestMs = Math.max(wait.oldestMs, ageMs)
  })
  return { waits: byRef, noteCode: undefined }
}

/**
 * Returns the reason why pending awaits are unknown, if so.
 * @returns {PendingNoteCode | undefined}
 */
function pendingNote () {
  if (!settings.enabled) return 'DISABLED'
  return settings.isSelected('PROMISE') ? undefined : 'FILTER'
}

/**
 * Implements trace.pending.
 * @param {{ olderThanMs: number }} options
 * @returns {Pending}
 */
function pending (options) {
  const { groups, noteCode } = drain(slices(options))
  return inspectablePending(groups.map(reportOf), noteCode)
}

/** @param {PendingData} data @returns {PendingWaits} */
function reportOf ({ hops, ...data }) {
  const waits = { ...data, chain: copyChain(hops, clean) }
  printedWaits.write(waits, { ...data, hops })
  return waits
}

/** Waits at one place. */
class Group {
  count = 0
  oldestMs = -1
  newestMs = Infinity
  /** number of waits, by request reference @type {Map<number, number>} */
  requests = new Map()
  /** references of some, the oldest first @type {number[]} */
  refs = []

  /** @param {string | undefined} place @param {string} label */
  constructor (place, label) {
    this.at = place
    this.label = label
  }

  /** @param {number} ref @param {number} ageMs @param {number} request reference, 0 if unknown */
  add (ref, ageMs, request) {
    this.count++
    if (ageMs > this.oldestMs) {
      this.refs.unshift(ref)
      this.refs.length = Math.min(this.refs.length, MAX_IDS)
    } else if (this.refs.length < MAX_IDS) {
      this.refs.push(ref)
    }
    this.oldestMs = Math.max(this.oldestMs, ageMs)
    this.newestMs = Math.min(this.newestMs, ageMs)
    if (request !== 0) this.requests.set(request, (this.requests.get(request) ?? 0) + 1)
  }
}

class Groups {
  /** by place and label @type {Map<string, Group>} */
  #groups = new Map()
  /** by chain; undefined: Node's @type {Map<number, Group | undefined>} */
  #ofChains = new Map()
  #requests = new Map()

  /** @param {number} chain @param {number} ref @param {number} ageMs */
  add (chain, ref, ageMs) {
    this.of(chain)?.add(ref, ageMs, requestOf(ref, this.#requests))
  }

  /** Returns the group of a chain. @param {number} chain @returns {Group | undefined} as #groupOf */
  of (chain) {
    return getOrAdd(this.#ofChains, chain, () => this.#groupOf(chain))
  }

  /** @param {number} chain @returns {Group | undefined} undefined: not a wait of the program */
  #groupOf (chain) {
    const { at: frame, label = 'promise' } = siteOf(chain)
    const place = frame === undefined ? this.#placeOf(chain) : placeText(frame)
    if (place === undefined && contextOfChain(chain) !== undefined) return undefined
    return getOrAdd(this.#groups, `${label} ${place}`, () => new Group(place, label))
  }

  /** Returns the innermost frame, for stacks with only library frames. @param {number} chain */
  #placeOf (chain) {
    for (const { lines } of hops(contextOfChain(chain))) {
      if (lines.length > 0) return lines[0].replace(/^\s*at (?:async )?/, '')
    }
    return undefined
  }

  /**
   * @param {number} time ms of the clock
   * @returns {Generator<void, PendingData[], void>}
   */
  * list (time) {
    /** @type {PendingData[]} */
    const list = []
    for (const group of [...this.#groups.values()].sort(bySize)) {
      yield
      const { label, count, oldestMs, newestMs, refs } = group
      const contexts = refs.map(contextAt)
      list.push({
        at: group.at,
        label,
        count,
        oldestMs,
        newestMs,
        requests: namesOf(group.requests),
        asyncIds: contexts.flatMap((context) => context?.asyncId || []),
        hops: withRequest(hopsOfStep(contexts[0]), contextAt(requestOf(refs[0], this.#requests)), time)
      })
    }
    return list
  }
}

/**
 * Names the request in hops that lost their records, if the request's own record remains.
 * @param {PrintedHop[]} hops
 * @param {import('../core/context').Context | undefined} request
 * @param {number} time ms of the clock
 * @returns {PrintedHop[]}
 */
function withRequest (hops, request, time) {
  const label = request?.request
  const i = hops.findLastIndex(({ type }) => type === request?.type)
  if (request === undefined || label === undefined || i === -1 || !Number.isNaN(hops[i].ageMs)) return hops
  return hops.with(i, { ...hops[i], label, ageMs: Math.max(0, time - request.time) })
}

/** @param {Group} group @param {Group} other */
const bySize = (group, other) => other.count - group.count || other.oldestMs - group.oldestMs

/** @param {Map<number, number>} requests counts by reference @returns {PendingData['requests']} */
function namesOf (requests) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const [ref, count] of requests) {
    const request = contextAt(ref)?.request
    if (request !== undefined) counts.set(request, (counts.get(request) ?? 0) + count)
  }
  return [...counts].map(([request, count]) => ({ request, count })).sort((a, b) => b.count - a.count)
}

module.exports = { byRequest, pending, pendingNote, slices, visitInnermost, visitWaits }
