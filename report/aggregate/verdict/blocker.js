'use strict'

// The function that blocks the event loop most.

const { counted, percent, place, rounded, short, time } = require('./words')

const MIN_TIMES = 5 // what happens once or twice may be a start, a collection, or another process
const MIN_WORST_MS = 20 // at 60 frames a second nobody notices less
const MIN_SHARE = 0.05 // of the time of all requests
// Of the requests of its route: a thread that waits for a CPU now and then blocks in any function, rarely.
const MIN_PART = 0.3
const OUTSIDE = '(outside of any request)'

/**
 * Speaks where a known function blocked the loop again and again, for a part of the time of all requests; is
 * silent where the function is not known.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Finding[]}
 */
function blocker ({ model, routes, totalMs }) {
  /** @type {import('./index').Finding[]} */
  const findings = []
  for (const { name, at: frame, count, totalMs: ownMs, worstMs, delayedMs, delayedSpans } of model.blockers) {
    if (frame === undefined || count < MIN_TIMES || worstMs < MIN_WORST_MS) continue
    const route = routes.find((other) => other.name === name)
    const requests = route?.facts.count ?? (name === OUTSIDE ? 0 : sum(routes))
    if (count < requests * MIN_PART) continue
    const lostMs = delayedMs + (route === undefined ? 0 : ownMs)
    const share = Math.min(1, lostMs / totalMs)
    if (!(share >= MIN_SHARE)) continue
    const owner = name === OUTSIDE ? '' : ` in ${short(name)}`
    const others = delayedSpans > 0 ? `others waited ${time(delayedMs)} for it` : ''
    const total = `${counted(count, 'time')} for ${time(ownMs)} in total, ${time(worstMs)} at most`
    const part = `${percent(share)} of the time of all requests`
    findings.push({
      rule: 'blocker',
      ...(route === undefined ? {} : { route: name }),
      at: frame,
      lostMs,
      share,
      sentence: route === undefined
        ? `${place(frame)}${owner} blocked the event loop ${total}; ${others}: ${part}.`
        : `${place(frame)}${owner} blocked the event loop ${total}: ${part}${others && `; ${others}`}.`,
      advice: 'do it in slices, or in a worker thread',
      figures: {
        times: count,
        totalMs: rounded(ownMs),
        worstMs: rounded(worstMs),
        delayedMs: rounded(delayedMs),
        delayedRequests: Math.round(delayedSpans)
      }
    })
  }
  return findings
}

/** @param {import('./index').Evidence['routes']} routes @returns {number} requests of all */
function sum (routes) {
  return routes.reduce((count, { facts }) => count + facts.count, 0)
}

module.exports = { blocker }
