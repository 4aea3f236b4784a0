'use strict'

// A route whose callbacks delay the requests of other routes, where no function is known to block.

const { MIN_LONG_MS } = require('./facts')
const { percent, rounded, short, time } = require('./words')

const MIN_REQUESTS = 10
const MIN_SHARE = 0.1 // of the time of the others
// Of its requests, not of the others': what runs long once, such as the first that loads a module, is no
// fault.
const MIN_LONG_PART = 0.5
// A machine that is busy makes the callbacks of all routes long, those of this one have to be longer.
const MIN_RATIO = 8

/**
 * Speaks where one route runs for far longer than the others, and a part of their time is that.
 * @param {import('./index').Evidence} evidence
 * @param {import('./index').Finding[]} findings of the rules before: what has a function is theirs
 * @returns {import('./index').Finding[]}
 */
function delayer ({ routes }, findings) {
  const blocking = new Set(findings.filter(({ rule }) => rule === 'blocker').map(({ route }) => route))
  return routes.flatMap(({ name, facts }) => {
    if (blocking.has(name) || facts.lines < MIN_REQUESTS) return []
    const others = routes.filter((other) => other.name !== name).map((other) => other.facts)
    const sum = (/** @type {(facts: import('./facts').RouteFacts) => number} */ figure) =>
      others.reduce((sum, facts) => sum + figure(facts), 0)
    const count = sum((other) => other.count)
    const othersMs = sum((other) => other.totalMs)
    const lostMs = sum((other) => other.delayedBy.get(name) ?? 0)
    const share = lostMs / othersMs
    const runMs = facts.runMs / facts.count
    const otherRunMs = sum((other) => other.runMs) / count
    if (count < MIN_REQUESTS || !(share >= MIN_SHARE)) return []
    if (runMs < MIN_LONG_MS || runMs < MIN_RATIO * otherRunMs) return []
    if (facts.longRuns < facts.count * MIN_LONG_PART) return []
    if (sum((other) => other.longRuns) > count * MIN_LONG_PART) return []
    return [{
      rule: /** @type {const} */ ('delayer'),
      route: name,
      lostMs,
      share,
      sentence: `${short(name)} runs for ${time(runMs)} a request, the others for ${time(otherRunMs)}, and ` +
        `delays them: ${percent(share)} of their time.`,
      advice: 'record with --blocked 20 to find the function; do its work in slices, or in a worker thread',
      figures: { runMs: rounded(runMs), othersRunMs: rounded(otherRunMs), delayedMs: rounded(lostMs) }
    }]
  })
}

module.exports = { delayer }
