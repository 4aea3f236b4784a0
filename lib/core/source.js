'use strict'

// What contexts are read from: chains and stacks, spans, routes. Who has them sets these functions.

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
 * @property {(ref: number) => boolean} isAnswered whether a request is known to be
 * @property {(id: number) => number} servedOn reference of the one request in flight on a connection, 0: none
 * @property {(ref: number, step: import('./context').Context) => boolean} isAnsweredAfter whether a request
 *   was, after a step was made and in another callback
 * @property {(ref: number, step: import('./context').Context) => boolean} isBesideOthers whether another
 *   request was under way at some time from the begin of one up to a step
 * @property {(ref: number) => boolean} isInFlight whether a request is known to be
 * @property {(context: import('./context').Context | undefined) => import('./context').Context | undefined}
 *   startOf the step that began what may be a queue's job for another request
 * @property {(id: number) => object | undefined} socketOf the object on a handle
 * @property {(request: object) => string | undefined} routeTextOf the route that a framework found
 * @property {() => Iterable<number>} lastAsks references of the last asks on what is open
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
  startsWithHops: false // the main script has those of another thread or process; set by passing/threads.js
}

module.exports = { source }
