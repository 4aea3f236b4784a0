'use strict'

// What is awaited, by the place where it hangs: how many, since when, in which requests.

const { contextAt, contextOfChain } = require('../core/context')
const { requestOf } = require('../core/request-of')
const { siteOf } = require('../spans/path-sites')
const { hops } = require('../stacks/hops')
const { placeText } = require('../text')

const MAX_IDS = 5 // of a group

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('./pending').PendingData} PendingData
 */

/** The waits of one place. */
class Group {
  count = 0
  oldestMs = -1
  newestMs = Infinity
  /** by reference of the request: how many wait for it @type {Map<number, number>} */
  requests = new Map()
  /** references of the oldest, that one first @type {number[]} */
  refs = []

  /** @param {string | undefined} place @param {string} label */
  constructor (place, label) {
    this.at = place
    this.label = label
  }

  /** @param {number} ref @param {number} ageMs @param {number} request reference, 0: none is known */
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
  /** by chain; undefined: Node's own @type {Map<number, Group | undefined>} */
  #ofChains = new Map()
  #requests = new Map()

  /** @param {number} chain @param {number} ref @param {number} ageMs */
  add (chain, ref, ageMs) {
    this.of(chain)?.add(ref, ageMs, requestOf(ref, this.#requests))
  }

  /** Returns the group of a chain. @param {number} chain @returns {Group | undefined} as #groupOf */
  of (chain) {
    let group = this.#ofChains.get(chain)
    if (group === undefined && !this.#ofChains.has(chain)) {
      group = this.#groupOf(chain)
      this.#ofChains.set(chain, group)
    }
    return group
  }

  /** @param {number} chain @returns {Group | undefined} undefined: nothing of the program waits */
  #groupOf (chain) {
    const { at: place = this.#placeOf(chain), label = 'promise' } = placeOfChain(chain)
    if (place === undefined && contextOfChain(chain) !== undefined) return undefined
    const key = `${label} ${place}`
    let group = this.#groups.get(key)
    if (group === undefined) this.#groups.set(key, group = new Group(place, label))
    return group
  }

  /** Returns the innermost frame where all are of libraries. @param {number} chain */
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
        hops: withRequest(hops(contexts[0]), contextAt(requestOf(refs[0], this.#requests)), time)
      })
    }
    return list
  }
}

/** Returns the program's innermost frame of a chain, and what waits there. @param {number} chain */
function placeOfChain (chain) {
  const { at: place, label } = siteOf(chain)
  return { at: place && placeText(place), label }
}

/**
 * Names the request in hops of which the records are gone, but not its own.
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

/** @param {Map<number, number>} requests how often each occurs @returns {PendingData['requests']} */
function namesOf (requests) {
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const [ref, count] of requests) {
    const request = requestName(ref)
    if (request !== undefined) counts.set(request, (counts.get(request) ?? 0) + count)
  }
  return [...counts].map(([request, count]) => ({ request, count })).sort((a, b) => b.count - a.count)
}

/** @param {number} ref of a request @returns {string | undefined} `GET /report` */
function requestName (ref) {
  return ref === 0 ? undefined : contextAt(ref)?.request
}

module.exports = { Groups, requestName }
