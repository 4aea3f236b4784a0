'use strict'

// libuv's thread pool as the bottleneck: file system, crypto, zlib and dns.lookup wait for a thread.

const { amount, isRecord, list, text } = require('../../read/values')
const { BoundedMap, sum } = require('../lists')
const { siteTextsOf } = require('../sites')

const MAX_GROUPS = 200 // per record
const MAX_PLACES = 2000
const MIN_REQUESTS = 10
const MIN_MS = 5 // in the queue per request
const MIN_SHARE = 0.2 // share of the route's time
const MIN_HELD = 0.5 // share of the threads' running time
const MAX_SUBSYSTEM_CHARS = 20

/**
 * @typedef {object} TaskSums tasks of one place and subsystem
 * @property {string | undefined} at
 * @property {string | undefined} until
 * @property {number} tasks
 * @property {number} queuedMs
 * @property {number} ranMs
 */

class TaskFacts {
  /** by place and subsystem @type {BoundedMap<string, TaskSums>} */
  #places = new BoundedMap(MAX_PLACES)
  /** tasks in the pool of one process at once */
  most = 0
  /** of the smallest pool */
  threads = Infinity

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes }) {
    for (const group of list(attributes['longstack.tasks'], MAX_GROUPS).filter(isRecord)) {
      const place = { at: siteTextsOf(group).at, until: text(group.until, MAX_SUBSYSTEM_CHARS) }
      const sums = this.#places.find(keyOf(place), () => ({ ...place, tasks: 0, queuedMs: 0, ranMs: 0 }))
      if (sums === undefined) continue
      sums.tasks += amount(group.tasks) ?? 0
      sums.queuedMs += amount(group.queuedMs) ?? 0
      sums.ranMs += amount(group.ranMs) ?? 0
      this.most = Math.max(this.most, amount(group.most) ?? 0)
      this.threads = Math.min(this.threads, amount(group.threads) ?? Infinity)
    }
  }

  /**
   * Returns the means of the tasks at a place.
   * @param {Pick<TaskSums, 'at' | 'until'>} place
   * @returns {{ queuedMs: number, ranMs: number, queuedShare: number }} 0 if unknown
   */
  at (place) {
    const { tasks = 1, queuedMs = 0, ranMs = 0 } = this.#places.get(keyOf(place)) ?? {}
    const queuedShare = queuedMs === 0 ? 0 : queuedMs / (queuedMs + ranMs)
    return { queuedMs: queuedMs / tasks, ranMs: ranMs / tasks, queuedShare }
  }

  /** Returns the tasks that used most of the threads' time, if one place did. */
  get holder () {
    const all = [...this.#places.values()]
    const ranMs = sum(all, (group) => group.ranMs)
    return all.find((group) => group.ranMs >= ranMs * MIN_HELD)
  }
}

/** @param {Pick<TaskSums, 'at' | 'until'>} place */
const keyOf = ({ at: frame, until }) => JSON.stringify([frame, until])

/**
 * Reports routes that wait for a thread of libuv's pool for a part of their time, unless an earlier rule
 * reports that they open connections or resolve names.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules
 * @returns {import('./index').Fault[]}
 */
function threads ({ routes, tasks }, faults) {
  const ofOpening = faults.filter(({ rule }) => rule === 'lookups' || rule === 'opening')
  const resolving = new Set(ofOpening.map(({ route }) => route))
  return routes.flatMap(({ name, facts }) => {
    if (facts.lines < MIN_REQUESTS || resolving.has(name)) return []
    const lostAt = facts.places.map(({ place, allWork: { ms } }) => ms * tasks.at(place).queuedShare)
    const lostMs = sum(lostAt, Number)
    const share = lostMs / facts.totalMs
    if (!(share >= MIN_SHARE) || lostMs < facts.count * MIN_MS) return []
    const { place } = facts.places[lostAt.indexOf(Math.max(...lostAt))]
    const { queuedMs, ranMs } = tasks.at(place)
    const { holder } = tasks
    const isOwn = holder?.at === place.at && holder?.until === place.until
    const figures = { queuedMs, ranMs, atOnce: tasks.most, threads: tasks.threads, subsystem: place.until }
    return [{
      rule: /** @type {const} */ ('threads'),
      route: name,
      at: place.at,
      lostMs,
      share,
      figures,
      details: { holder: isOwn ? undefined : holder }
    }]
  })
}

module.exports = { TaskFacts, threads }
