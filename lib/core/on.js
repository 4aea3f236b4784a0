'use strict'

// What the hooks tell whoever registers here, seldom: when more happens than a step.

/**
 * @typedef {import('./context').Context} Context
 *
 * @typedef {{ ref: number, chain: number, span: number }} PromiseRecord what is recorded of a promise; 0:
 *   nothing
 *
 * @typedef {import('./entry').Entry} Entry
 *
 * @typedef {object} Events
 * @property {(context: Context, resource: object) => void} opened a resource that stays open was made
 * @property {(context: Context, timer: object) => void} intervalMade a repeating timer was made
 * @property {(context: Context, entry: import('./entry').Entry) => void} connecting a connect
 *   request runs for the first time
 * @property {(entry: import('./entry').Entry, isWrite: boolean) => void} traffic data passed on a connection
 *   that no server accepted; isWrite: it is written, and no `asked`
 *   came for it
 * @property {(entry: Entry, place: number, isHeld: boolean, writer: number) => void} asked the program writes
 *   on a connection that it has made, and that no request uses: the chain of the write, 0: who asks is not
 *   known; it is held until the connection is there; the chain again, 0: a driver wrote by itself
 * @property {(asyncId: number, task: object) => void} taskMade a pool of threads was given a task
 * @property {(error: object, context: Context, subject: unknown) => void} passedToTick an error was passed to
 *   nextTick, behind this argument
 * @property {(context: Context, tick: object) => void} ticked nextTick was called, while runs are logged
 *   or runs are logged
 * @property {(reason: unknown, context: Context, promise: PromiseRecord) => void} rejected a promise was
 *   rejected in this context
 * @property {(error: unknown, context: Context) => void} escaped nothing caught an error of this context
 * @property {(server: object) => void} served a server got its first request of a connection
 * @property {(stream: object) => void} streamServed a server got a request of HTTP/2
 * @property {() => void} forgetting what numbers of chains stand for is about to be forgotten
 * @property {(time: number) => void} iteration an iteration of the event loop begins
 * @property {() => void} contextRan code of a vm context has run; does not throw
 * @property {() => void} formatterReplaced Error.prepareStackTrace is not longstack's any more
 * @property {(time: number, context: Context) => void} callback the event loop calls, while callbacks are
 *   watched
 * @property {() => void} changed other options come into force
 * @property {() => void} stopped tracing is disabled
 */

/** replaced, never changed @type {{ [E in keyof Events]: Array<Events[E]> }} */
const listeners = {
  opened: [],
  intervalMade: [],
  connecting: [],
  traffic: [],
  asked: [],
  taskMade: [],
  passedToTick: [],
  ticked: [],
  rejected: [],
  escaped: [],
  forgetting: [],
  iteration: [],
  contextRan: [],
  formatterReplaced: [],
  callback: [],
  served: [],
  streamServed: [],
  changed: [],
  stopped: []
}

/**
 * Listeners for the begin and end of a resource's callback, by async id. They are called while spans are
 * timed or runs are logged. The record of such a resource is LISTENED.
 * @type {Map<number, (isOver: boolean) => void>}
 */
const callbackListeners = new Map()

/**
 * @template {keyof Events} E
 * @param {E} event
 * @param {Events[E]} listener
 * @returns {() => void} which removes it
 */
function on (event, listener) {
  const lists = /** @type {Record<string, Function[]>} */ (listeners)
  lists[event] = lists[event].concat(listener)
  return () => { lists[event] = lists[event].filter((other) => other !== listener) }
}

/**
 * Programs may lack iterators, so nothing is spread here.
 * @template {keyof Events} E
 * @param {E} event
 * @param {Parameters<Events[E]>[0]} [a]
 * @param {Parameters<Events[E]>[1]} [b]
 * @param {Parameters<Events[E]>[2]} [c]
 * @param {Parameters<Events[E]>[3]} [d]
 */
function emit (event, a, b, c, d) {
  const list = /** @type {Function[]} */ (listeners[event])
  for (let i = 0; i < list.length; i++) list[i](a, b, c, d)
}

module.exports = { callbackListeners, emit, listeners, on }
