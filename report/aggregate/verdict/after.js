'use strict'

// Work that a request does not await: its queries and calls end after its response.

const { amount, isRecord, list, text } = require('../../read/values')
const { BoundedMap } = require('../lists')
const { framesOf, siteTextsOf } = require('../sites')

const MAX_GROUPS = 200 // per record
const MAX_ROUTES = 2000
const MAX_NAME_CHARS = 300
const MIN_REQUESTS = 10
const MIN_PART = 0.3 // share of the requests; a batch or a poll that one of them begins belongs to no request
const MIN_FAILED = 10
const MIN_STARVED_MS = 20 // without a CPU, even the answer to a write to a cache is late
const FIGURES = /** @type {const} */ (['requests', 'queries', 'calls', 'failed', 'ms'])

/** @typedef {Record<typeof FIGURES[number], number> & { frames: string[], most: number }} AfterSums */

class AfterFacts {
  /** by request name @type {BoundedMap<string, AfterSums>} */
  routes = new BoundedMap(MAX_ROUTES)

  /** @param {import('../../read/span-line').Span} record */
  add ({ attributes }) {
    for (const group of list(attributes['longstack.after'], MAX_GROUPS).filter(isRecord)) {
      const none = () => ({ requests: 0, queries: 0, calls: 0, failed: 0, ms: 0, frames: [], most: 0 })
      const sums = this.routes.find(text(group.name, MAX_NAME_CHARS) ?? '', none)
      const figures = FIGURES.map((name) => amount(group[name]) ?? 0)
      if (sums === undefined) continue
      FIGURES.forEach((name, i) => { sums[name] += figures[i] })
      if (figures[0] <= sums.most) continue
      sums.most = figures[0]
      sums.frames = framesOf(siteTextsOf(group))
    }
  }
}

/**
 * Reports routes with many requests that continue after their response: their queries and calls end well
 * after it, or fail.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Fault[]} faults of earlier rules
 * @returns {import('./index').Fault[]}
 */
function after ({ routes, after }, faults) {
  const minMs = faults.some(({ rule }) => rule === 'starved') ? MIN_STARVED_MS : 0
  return routes.flatMap(({ name, facts }) => {
    const { requests, queries, calls, failed, ms, frames } = after.routes.get(name) ?? NONE
    if (requests < MIN_REQUESTS || frames.length === 0) return []
    if (failed < MIN_FAILED && (requests < facts.count * MIN_PART || ms / requests < minMs)) return []
    return [{
      rule: /** @type {const} */ ('after'),
      route: name,
      at: frames[0],
      lostMs: 0,
      share: 0,
      figures: {
        requests,
        calls,
        asked: queries + calls,
        failed,
        lateMs: ms / requests
      },
      details: { caller: frames[1], count: Math.max(requests, Math.round(facts.count)) }
    }]
  })
}

const NONE = { requests: 0, queries: 0, calls: 0, failed: 0, ms: 0, frames: [] }

module.exports = { AfterFacts, after }
