'use strict'

// Compares what became of each exchange, as its own listeners saw it, with the spans of it.

const MAX_EXAMPLES = 5

/**
 * @typedef {'whole' | 'cut' | 'upgraded' | 'free'} Outcome `cut`: it did not come to its end; `free`: not
 *   judged
 *
 * @typedef {object} Side
 * @property {Outcome} outcome
 *
 * @typedef {object} Truth
 * @property {string} kind
 * @property {boolean} isFree how it ends is not judged, only that it does
 * @property {boolean} isGood it has to come to its end on both sides
 * @property {Side[]} served
 * @property {Side[]} made
 * @property {string[]} serverSpans
 * @property {string[]} clientSpans
 */

function createJudge () {
  /** @type {Map<number, Truth>} */
  let truths = new Map()
  /** by kind and complaint @type {Map<string, { count: number, examples: string[] }>} */
  const complaints = new Map()
  const totals = {
    exchanges: 0, good: 0, whole: 0, cut: 0, upgraded: 0, unknownEnds: 0, swept: 0, connects: 0
  }

  /** how many were ended by the sweep, by kind and name @type {Map<string, number>} */
  const sweptNames = new Map()

  /** @param {string} kind @param {string} text @param {string} example */
  function complain (kind, text, example) {
    const key = `${kind}: ${text}`
    let entry = complaints.get(key)
    if (entry === undefined) complaints.set(key, entry = { count: 0, examples: [] })
    entry.count++
    if (entry.examples.length < MAX_EXAMPLES) entry.examples.push(example)
  }

  /** @param {number} id @param {Truth} truth */
  function judge (id, { kind, isFree, isGood, served, made, serverSpans, clientSpans }) {
    const all = `${id} served ${outcomes(served)} as [${serverSpans}], ` +
      `made ${outcomes(made)} as [${clientSpans}]`
    const whole = made.filter(({ outcome }) => outcome === 'whole').length
    totals.exchanges++
    if (isGood) totals.good++
    for (const { outcome } of [...served, ...made]) if (outcome !== 'free') totals[outcome]++
    if (isGood && ![...served, ...made].every(({ outcome }) => outcome === 'whole')) {
      complain(kind, 'a good one failed', all)
    }
    if (served.length !== serverSpans.length) complain(kind, 'not as many spans as served requests', all)
    if (clientSpans.length > made.length) complain(kind, 'more spans than requests', all)
    if (clientSpans.length < whole) complain(kind, 'a request that was made has no span', all)
    if (isFree) return
    compare(kind, 'a served', served, serverSpans, all)
    compare(kind, 'a made', made, clientSpans, all)
  }

  /**
   * @param {string} kind
   * @param {string} whose
   * @param {Side[]} sides
   * @param {string[]} spans
   * @param {string} all
   */
  function compare (kind, whose, sides, spans, all) {
    if (sides.some(({ outcome }) => outcome === 'free')) return
    for (const outcome of /** @type {Outcome[]} */ (['whole', 'upgraded'])) {
      const expected = sides.filter((side) => side.outcome === outcome).length
      const actual = spans.filter((span) => span.startsWith(outcome)).length
      const verb = actual > expected ? 'called' : 'not called'
      if (actual !== expected) complain(kind, `${whose} request is ${verb} ${outcome}`, all)
    }
  }

  return {
    totals: () => ({ ...totals, sweptNames: Object.fromEntries(sweptNames) }),

    /** @param {number} id @param {string} kind @returns {Truth} */
    begin (id, kind) {
      const lists = { served: [], made: [], serverSpans: [], clientSpans: [] }
      const truth = { kind, isFree: false, isGood: false, ...lists }
      truths.set(id, truth)
      return truth
    },

    /** @param {string} id @returns {Truth | undefined} */
    truthOf: (id) => truths.get(Number(id)),

    /** @param {any} span */
    noteSpan ({ name, kind, status, attributes }) {
      if (attributes['longstack.end'] === 'unknown') totals.unknownEnds++
      if (attributes['longstack.end_margin_ms'] !== undefined) {
        const sort = `${kind} ${name.replace(/[\d.:]+/g, '')}`
        totals.swept++
        sweptNames.set(sort, (sweptNames.get(sort) ?? 0) + 1)
      }
      if (name.startsWith('connect')) totals.connects++
      const id = /^\/?[a-z-]+[/.](\d+)/.exec(attributes['url.path'] ?? '')
      const truth = id === null ? undefined : truths.get(Number(id[1]))
      if (truth === undefined) return
      const code = attributes['http.response.status_code'] ?? 0
      const hasFailed = status.code === 'ERROR' && code < 400
      const end = attributes['longstack.end'] ?? (hasFailed ? 'failed' : 'whole')
      const text = `${end} ${code} ${attributes['error.type'] ?? ''}`.trim()
      if (kind === 'SERVER') truth.serverSpans.push(text)
      else truth.clientSpans.push(text)
    },

    /**
     * Judges all exchanges so far, and forgets them.
     * @param {any[]} open spans
     * @param {boolean} isBare there are no spans: nothing is judged
     */
    judgeBatch (open, isBare) {
      if (!isBare) for (const [id, truth] of truths) judge(id, truth)
      truths = new Map()
      for (const { kind, name, attributes } of open) {
        complain('all', 'spans stay open', `${kind} ${name} ${attributes['url.path'] ?? ''}`)
      }
    },

    /** @returns {string[]} */
    complaints () {
      return [...complaints].map(([key, { count, examples }]) => `${count} × ${key}: ${examples.join('; ')}`)
    }
  }
}

/** @param {Side[]} sides */
const outcomes = (sides) => `[${sides.map(({ outcome }) => outcome)}]`

module.exports = { createJudge }
