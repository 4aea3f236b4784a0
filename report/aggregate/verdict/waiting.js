'use strict'

// Requests that waited for each other when a recording ended.

const { amount, isRecord, list, text } = require('../../read/values')

const MAX_FOUND = 20
const MAX_MEMBERS = 100
const MAX_CHARS = 1000

/**
 * @typedef {import('../../../lib/handles/wait-graph').Cycle} Cycle
 * @typedef {import('../../../lib/handles/wait-graph').Convoy} Convoy
 */

class WaitFacts {
  /** @type {Cycle[]} */
  cycles = []
  /** @type {Convoy[]} */
  convoys = []

  /** @param {import('../../read/span-line').Span} record of a thread */
  add ({ attributes }) {
    const [graph] = list(attributes['longstack.waits_for'], 1).filter(isRecord)
    if (graph === undefined) return
    const { cycles, convoys } = this
    cycles.push(...list(graph.cycles, MAX_FOUND - cycles.length).filter(isRecord).flatMap(cycleOf))
    convoys.push(...list(graph.convoys, MAX_FOUND - convoys.length).filter(isRecord).flatMap(convoyOf))
  }
}

/** @param {unknown} value */
const nameOf = (value) => text(value, MAX_CHARS) ?? '?'

/** @param {unknown} value */
const placeOf = (value) => text(value, MAX_CHARS)

/** @param {unknown} value */
const figureOf = (value) => amount(value) ?? 0

/** @param {Record<string, any>} known @returns {Pick<Cycle, 'by' | 'seen'>} */
function evidenceOf ({ by, seen }) {
  return { by: by === 'promise' || by === 'settled' ? by : 'name', seen: figureOf(seen) }
}

/** @param {Record<string, any>} cycle @returns {Cycle[]} */
function cycleOf (cycle) {
  const members = list(cycle.members, MAX_MEMBERS).filter(isRecord).map((member) => ({
    request: nameOf(member.request),
    count: figureOf(member.count),
    took: placeOf(member.took),
    at: nameOf(member.at),
    caller: placeOf(member.caller),
    oldestMs: figureOf(member.oldestMs)
  }))
  return members.length === 0 ? [] : [{ ...evidenceOf(cycle), members, behind: figureOf(cycle.behind) }]
}

/** @param {Record<string, any>} convoy @returns {Convoy[]} */
function convoyOf (convoy) {
  const { for: holder } = convoy
  if (!isRecord(holder)) return []
  const requests = list(convoy.requests, MAX_MEMBERS).filter(isRecord)
    .map(({ request, count }) => ({ request: nameOf(request), count: figureOf(count) }))
  return [{
    ...evidenceOf(convoy),
    requests,
    count: figureOf(convoy.count),
    at: nameOf(convoy.at),
    caller: placeOf(convoy.caller),
    oldestMs: figureOf(convoy.oldestMs),
    for: {
      request: nameOf(holder.request),
      count: figureOf(holder.count),
      took: placeOf(holder.took),
      at: placeOf(holder.at),
      uses: placeOf(holder.uses),
      heldMs: figureOf(holder.heldMs)
    }
  }]
}

/**
 * Reports requests that wait for each other, and those that many others wait for, as longstack PID does.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules: pools and locks
 * @returns {import('./index').Fault[]}
 */
function waiting ({ waits: { cycles, convoys } }, faults) {
  const known = new Set(faults.flatMap(({ rule, at: site }) => rule === 'pool' ? site : undefined))
  return [
    ...cycles.map((cycle) => ({
      rule: /** @type {const} */ ('deadlock'),
      at: cycle.members[0].at,
      lostMs: 0,
      share: 0,
      figures: {
        requests: cycle.members.reduce((sum, { count }) => sum + count, cycle.behind),
        oldestMs: Math.max(...cycle.members.map(({ oldestMs }) => oldestMs))
      },
      details: { cycle }
    })),
    ...convoys.filter(({ at: site }) => !known.has(site)).map((convoy) => ({
      rule: /** @type {const} */ ('convoy'),
      at: convoy.at,
      lostMs: 0,
      share: 0,
      figures: { requests: convoy.count, oldestMs: convoy.oldestMs, heldMs: convoy.for.heldMs },
      details: { convoy }
    }))
  ]
}

module.exports = { WaitFacts, waiting }
