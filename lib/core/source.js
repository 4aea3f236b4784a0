'use strict'

// Late-bound lookups for contexts: chains and stacks, spans, routes. Other modules set these functions.

/**
 * @typedef {import('../spans/span').Span} Span
 *
 * @typedef {object} ChainParts
 * @property {number} parent number of the parent chain
 * @property {import('../stacks/frames').Stack | undefined} stack
 * @property {number} kind number of the kind
 *
 * @typedef {object} Source
 * @property {(chain: number) => ChainParts | undefined} chainAt
 * @property {(parent: number, stack: number, kind: number) => number} intern
 * @property {(number: number) => Span | undefined} spanAt
 * @property {(number: number) => Span | import('../spans/identities').Ended | undefined} identityAt
 * @property {(ref: number) => string | undefined} nameOfRequest with the route that a framework reported
 * @property {(ref: number) => boolean} isAnswered whether a request is known to have its response
 * @property {(id: number) => number} servedOn reference of a connection's only request in flight, 0: none
 * @property {(ref: number, step: import('./context').Context) => boolean} isAnsweredAfter whether a request
 *   had its response after a step was made, in another callback
 * @property {(ref: number, step: import('./context').Context) => boolean} isBesideOthers whether another
 *   request was in flight at any time between the begin of this one and a step
 * @property {(ref: number) => boolean} isInFlight whether a request is known to be in flight
 * @property {(context: import('./context').Context | undefined) => import('./context').Context | undefined}
 *   startOf the step that may have begun a queue's job for another request
 * @property {(id: number) => object | undefined} socketOf the socket object of a handle
 * @property {(request: object) => string | undefined} routeTextOf the route that a framework found
 * @property {() => Iterable<number>} lastAsks references of the last queries on open connections
 */

/** @type {Source & { startsWithHops: boolean }} */
const source = {
  chainAt: () => undefined,
  intern: () => 0,
  spanAt: () => undefined,
  identityAt: () => undefined,
  nameOfRequest: () => undefined,
  isAnswered: () => false,
  servedOn: () => 0,
  isBesideOthers: () => false,
  isInFlight: () => false,
  isAnsweredAfter: () => false,
  startOf: () => undefined,
  socketOf: () => undefined,
  routeTextOf: () => undefined,
  lastAsks: () => [],
  startsWithHops: false // the main script has hops of another thread or process; set by passing/threads.js
}

module.exports = { source }
