'use strict'

// Answers what a live process is asked: what is awaited, which requests are in flight. In pieces, between
// which the event loop goes on, and as data, for commands; at once, and as reports, for the program.

const { now } = require('../context/clock')
const guard = require('../context/guard')
const { copyChain } = require('../format/chains')
const { inspectablePending, printedWaits } = require('../format/pending')
const { createPending, drain } = require('../handles/pending')
const { createRequestsInFlight, servedRequests } = require('../handles/requests-in-flight')
const { requestName } = require('../handles/wait-groups')
const { copyHop } = require('../stacks/hop-frames')

/**
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../handles/pending').PendingData} PendingData
 * @typedef {import('../handles/pending').PendingWaits} PendingWaits
 */

/**
 * @param {import('./queries').QueryParts} parts
 * @param {ReturnType<typeof import('../stacks/chain').createChain>} chain
 * @param {() => ReturnType<typeof import('../spans/wait-sites').createWaitSites>} waitSites
 */
function createLiveQueries ({ registry, settings }, chain, waitSites) {
  const { clean, placeText } = require('../text')
  const pending = createPending({
    siteOf: (number) => {
      const { at: place, label } = waitSites().siteOf(number)
      return { at: place && placeText(place), label }
    },
    hops: chain.hops,
    now,
    sawAllSince: (time) => registry.wasWatchingSince(time),
    noteCode
  })
  const { slices, sample } = pending
  const requestsInFlight = createRequestsInFlight({ registry, hops: chain.hops, now, pending })

  /** Returns why it is not known what is awaited. */
  function noteCode () {
    if (!settings.enabled) return 'DISABLED'
    return settings.isSelected('PROMISE') ? undefined : 'FILTER'
  }

  /** @param {PendingData} data @returns {PendingWaits} */
  function reportOf ({ hops, ...data }) {
    const publicHop = (/** @type {PrintedHop} */ hop) => ({ ...copyHop(hop), label: clean(hop.label) })
    const waits = { ...data, chain: copyChain(hops, publicHop) }
    printedWaits.write(waits, { ...data, hops })
    return waits
  }

  return {
    /**
     * Returns what trace.pending returns.
     * @param {{ olderThanMs: number }} options
     * @returns {import('../handles/pending').Pending}
     */
    pending (options) {
      const { groups, noteCode } = drain(slices(options))
      return inspectablePending(groups.map(reportOf), noteCode)
    },

    /**
     * Returns the same as data that can be JSON, in pieces: each call of `next` takes some ms at most.
     * `formatHops` of lib/format/hops.js prints the hops.
     * @param {{ olderThanMs?: number }} [options]
     */
    pendingSlices: (options) => guarded(slices(options)),

    /**
     * Returns the requests that servers of this thread have not answered, with what each waits for; likewise
     * as data, in pieces.
     */
    requestsInFlight: () => guarded(requestsInFlight()),

    /** Lists the requests of HTTP/1 in flight, in pieces. */
    servedRequests: () => servedRequests(registry),

    /**
     * Returns how many innermost waits there are of each chain now, for samples several times a second; in
     * pieces.
     * @returns {Generator<void, import('../handles/pending').SampledWaits[], void>}
     */
    pendingSample: () => sample(),

    /**
     * Returns the place of a chain that `pendingSample` names.
     * @param {number} number of the chain
     */
    siteOf: (number) => guard.run(() => waitSites().siteOf(number)),

    /** @param {number} ref of a request @returns {string | undefined} `GET /report` */
    requestName: (ref) => guard.run(() => requestName(ref))
  }
}

/**
 * Runs each piece of a generator as longstack's own work.
 * @template T
 * @param {Generator<void, T, void>} pieces
 * @returns {{ next: () => IteratorResult<void, T> }}
 */
function guarded (pieces) {
  return { next: () => guard.run(() => pieces.next()) }
}

module.exports = { createLiveQueries }
