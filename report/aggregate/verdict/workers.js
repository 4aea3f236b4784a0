'use strict'

// Worker threads as the bottleneck: requests wait for messages of workers that are busy.

const { queuedOf } = require('../../path/queue')
const { groupsOf, sum } = require('../lists')

const MIN_REQUESTS = 10
const MIN_SHARE = 0.2 // share of the route's time
const MIN_QUEUE_MS = 5 // mean of a task
const MIN_BUSY = 0.7 // of the event loop of a worker; with less to do, it is not the limit

/** @param {Array<number | undefined>} shares @returns {number | undefined} the largest, if all are known */
const busyShareOf = (shares) => shares.includes(undefined) ? undefined : Math.max(...shares.map(Number))

/**
 * Reports routes that wait for a free worker: they have more tasks at once than there are busy workers, which
 * take them in order.
 * @param {import('./index').Evidence} evidence
 * @returns {import('./index').Fault[]}
 */
function workers ({ routes, load: { threads } }) {
  const exact = routes.filter(({ facts }) => !facts.isSampled && facts.lines >= MIN_REQUESTS)
  const all = exact.flatMap((route) => route.facts.messages.map((wait) => ({ ...wait, route })))
  return groupsOf(all, ({ pid }) => String(pid)).flatMap((waits) => {
    const own = threads.filter(({ pid, thread }) => thread !== undefined && pid === waits[0].pid)
    const busy = own.map(({ busyShare }) => busyShare).filter((share = 1) => share >= MIN_BUSY)
    if (busy.length === 0) return []
    const { queued, most } = queuedOf(waits, busy.length)
    return groupsOf(waits, ({ route }) => route.name).flatMap((own) => {
      const [{ place, route: { name, facts } }] = own
      const lostMs = sum(own, (wait) => queued.get(wait))
      const share = lostMs / facts.totalMs
      const queuedMs = lostMs / own.length
      if (!(share >= MIN_SHARE) || queuedMs < MIN_QUEUE_MS) return []
      const ranMs = sum(own, ({ start, end }) => end - start) / own.length - queuedMs
      const figures = { atOnce: most, workers: busy.length, busyShare: busyShareOf(busy), queuedMs, ranMs }
      return [{ rule: /** @type {const} */ ('workers'), route: name, at: place.at, lostMs, share, figures }]
    })
  })
}

module.exports = { workers }
