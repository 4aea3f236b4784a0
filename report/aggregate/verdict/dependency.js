'use strict'

// A peer that a route waits for most of its time, and that takes long to answer.

const { percent, rounded, short, time } = require('./words')

const MIN_REQUESTS = 10
const MIN_SHARE = 0.6 // of the time of the route
// To wait for a database is what most services do. People notice an answer that takes longer than this
// (J. Nielsen, Usability Engineering, 1993), and no CPU that is busy makes it of a usual 10 ms.
const MIN_ANSWER_MS = 100

/**
 * Speaks where most of a route's time is waits for one peer, each of them long; waits for a free connection
 * to it are those of a pool, many short ones a sequence.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Finding[]}
 */
function dependency ({ routes }) {
  return routes.flatMap(({ name, facts }) => {
    if (facts.lines < MIN_REQUESTS) return []
    /** @type {Map<string, { ms: number, count: number, worst: { ms: number, at: string | undefined } }>} */
    const peers = new Map()
    for (const site of facts.places) {
      const { ms, count, sent } = site.allWork
      if (site.peer === undefined || sent < count / 2) continue
      const sums = peers.get(site.peer) ?? { ms: 0, count: 0, worst: { ms: 0, at: undefined } }
      peers.set(site.peer, sums)
      sums.ms += ms
      sums.count += count
      if (ms > sums.worst.ms) sums.worst = { ms, at: site.place.at }
    }
    return [...peers].flatMap(([peer, { ms, count, worst }]) => {
      const share = ms / facts.totalMs
      const answerMs = ms / count
      if (!(share >= MIN_SHARE && answerMs >= MIN_ANSWER_MS && count >= facts.count / 2)) return []
      return [{
        rule: /** @type {const} */ ('dependency'),
        route: name,
        ...(worst.at === undefined ? {} : { at: worst.at }),
        lostMs: ms,
        share,
        sentence: `${short(name)} waits ${percent(share)} of its time for ${short(peer)}, which takes ` +
          `${time(answerMs)} to answer.`,
        advice: 'look at that service, keep its answers, or do without it',
        figures: { peer, answerMs: rounded(answerMs), requestMs: rounded(ms / facts.count) }
      }]
    })
  })
}

module.exports = { dependency }
