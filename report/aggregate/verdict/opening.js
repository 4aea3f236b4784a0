'use strict'

// New connections: lookups of host names, and whatever else happens until a call has its connection.

const { groupsOf, sum } = require('../lists')

const LOOKUP = 'DNS'
const MIN_REQUESTS = 10
const MIN_MS = 20 // per lookup or connection; with a near resolver and peer it takes less
const MIN_SHARE = 0.3 // share of the route's time
const MIN_QUEUE_MS = 5 // per lookup

/**
 * Reports routes that wait long for names of hosts to be resolved.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function lookups ({ routes, tasks }) {
  return routes.flatMap(({ name, facts }) => {
    const sites = facts.places.filter(({ place: { until } }) => until === LOOKUP)
    const lostMs = sum(sites, ({ allWork }) => allWork.ms)
    const count = sum(sites, ({ allWork }) => allWork.count)
    const share = lostMs / facts.totalMs
    if (facts.lines < MIN_REQUESTS || count < facts.count / 2 || !(share >= MIN_SHARE)) return []
    const { place } = sites.reduce((worst, site) => site.allWork.ms > worst.allWork.ms ? site : worst)
    const lookupMs = lostMs / count
    const { queuedMs, queuedShare } = tasks.at(place)
    if (lookupMs * (1 - queuedShare) < MIN_MS) return []
    const figures = { lookupMs, queuedMs: queuedMs < MIN_QUEUE_MS ? undefined : queuedMs }
    return [{ rule: /** @type {const} */ ('lookups'), route: name, at: place.at, lostMs, share, figures }]
  })
}

/**
 * Reports routes that spend a part of their time until HTTP calls have a connection: each call opens one.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function opening ({ routes, tasks }) {
  return routes.flatMap(({ name, facts }) => {
    const opened = facts.places.filter(({ peer, allWork }) => peer !== undefined && allWork.opening > 0)
    return groupsOf(opened, ({ peer }) => String(peer)).flatMap((sites) => {
      const [{ peer }] = sites
      const lostMs = sum(sites, ({ allWork }) => allWork.opening)
      const count = sum(sites, ({ allWork }) => allWork.count)
      const share = lostMs / facts.totalMs
      if (facts.lines < MIN_REQUESTS || count < facts.count / 2) return []
      if (!(share >= MIN_SHARE) || lostMs < count * MIN_MS) return []
      const worst = sites.reduce((most, site) => site.allWork.opening > most.allWork.opening ? site : most)
      const { at: frame } = worst.place
      const { queuedMs, ranMs } = tasks.at({ at: frame, until: LOOKUP })
      const openingMs = lostMs / count
      const lookupMs = Math.min(openingMs, queuedMs + ranMs)
      const figures = {
        peer,
        openingMs,
        lookupMs: lookupMs < MIN_QUEUE_MS ? undefined : lookupMs,
        queuedMs: queuedMs < MIN_QUEUE_MS ? undefined : queuedMs
      }
      return [{ rule: /** @type {const} */ ('opening'), route: name, at: frame, lostMs, share, figures }]
    })
  })
}

module.exports = { lookups, opening }
