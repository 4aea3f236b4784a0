'use strict'

// Intervals that requests leave behind, one each.

const { amount, isRecord, text } = require('../../read/values')
const { counted, place, rounded, short } = require('./words')

const MIN_INTERVALS = 10
// Of the requests of the route: what a request sets and clears later on is open after the latest ones only.
const MIN_PART = 0.8
const MIN_AGE_MS = 5000 // of the oldest: work that is done in the background after an answer is mostly over
const MAX_GROUPS = 50 // of one record
const MAX_PROCESSES = 1000
const MAX_CALLERS = 8

/**
 * @typedef {object} IntervalGroup
 * @property {string | undefined} at
 * @property {string[]} callers
 * @property {string | undefined} label
 * @property {number} count
 * @property {number} oldestMs
 * @property {string} name of the requests that most of them were set in
 *
 * @typedef {{ first: Map<string, number>, startMs: number, endMs: number, last: IntervalGroup[] }} History
 */

/** The first and the last record of each process. */
class IntervalFacts {
  /** @type {Map<string, History>} */
  #histories = new Map()

  /** @param {import('../../read/span-line').Span} record */
  add ({ startMs, attributes, record }) {
    const pid = `${record.resource?.['process.pid']} ${record.resource?.['longstack.thread']}`
    const groups = groupsOf(attributes['longstack.open_intervals'])
    const history = this.#histories.get(pid)
    if (history === undefined) {
      if (this.#histories.size >= MAX_PROCESSES) return
      this.#histories.set(pid, { first: counts(groups), startMs, endMs: startMs, last: groups })
      return
    }
    if (startMs < history.startMs) [history.startMs, history.first] = [startMs, counts(groups)]
    if (startMs >= history.endMs) [history.endMs, history.last] = [startMs, groups]
  }

  /** Returns the groups of all processes, those that did not grow left out. @returns {IntervalGroup[]} */
  list () {
    /** @type {Map<string, IntervalGroup>} */
    const sums = new Map()
    for (const { first, startMs, endMs, last } of this.#histories.values()) {
      for (const group of last) {
        if (endMs > startMs && group.count <= (first.get(keyOf(group)) ?? 0)) continue
        const sum = sums.get(keyOf(group))
        if (sum === undefined) {
          sums.set(keyOf(group), { ...group })
        } else {
          sum.count += group.count
          sum.oldestMs = Math.max(sum.oldestMs, group.oldestMs)
        }
      }
    }
    return [...sums.values()]
  }
}

/** @param {IntervalGroup} group */
function keyOf ({ at: frame, callers, name }) {
  return JSON.stringify([frame, name, ...callers])
}

/** @param {IntervalGroup[]} groups */
function counts (groups) {
  return new Map(groups.map((group) => [keyOf(group), group.count]))
}

/** @param {unknown} list @returns {IntervalGroup[]} */
function groupsOf (list) {
  if (!Array.isArray(list)) return []
  return list.slice(0, MAX_GROUPS).filter(isRecord).map((group) => {
    const requests = isRecord(group.requests) ? Object.entries(group.requests) : []
    const [name, count] = requests.reduce((most, entry) => Number(entry[1]) > most[1] ? entry : most, ['', 0])
    const callers = Array.isArray(group.callers) ? group.callers.slice(0, MAX_CALLERS) : []
    return {
      at: text(group.at, 500),
      callers: callers.map((caller) => text(caller, 500) ?? ''),
      label: text(group.label, 100),
      count: amount(count) ?? 0,
      oldestMs: amount(group.oldest_ms) ?? 0,
      name: text(name, 300) ?? ''
    }
  })
}

/**
 * Speaks where nearly each request of a route left an interval, also the early ones, and they grow in number.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Finding[]}
 */
function interval ({ routes, intervals }) {
  return intervals.list().flatMap(({ at: frame, label, count, oldestMs, name }) => {
    const requests = routes.find((route) => route.name === name)?.facts.count ?? 0
    if (requests === 0 || count < MIN_INTERVALS || oldestMs < MIN_AGE_MS) return []
    if (count < requests * MIN_PART) return []
    const what = label === undefined ? 'an interval' : short(label)
    const site = frame === undefined ? '' : `, set at ${place(frame)}`
    return [{
      rule: /** @type {const} */ ('interval'),
      route: name,
      ...(frame === undefined ? {} : { at: frame }),
      lostMs: 0,
      share: 0,
      sentence: `${short(name)} leaves ${what} behind with each request${site}: ${count} are open after ` +
        `${counted(Math.round(requests), 'request')}.`,
      advice: 'clear it when the response is closed',
      figures: { open: count, requests: Math.round(requests), oldestMs: rounded(oldestMs) }
    }]
  })
}

module.exports = { IntervalFacts, interval }
