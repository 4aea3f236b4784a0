'use strict'

// Events that the hooks emit to registered listeners. All are rare compared to steps.

/**
 * @typedef {import('./context').Context} Context
 *
 * @typedef {{ ref: number, chain: number, span: number }} PromiseRecord recorded data of a promise; 0:
 *   none
 *
 * @typedef {import('./entry').Entry} Entry
 *
 * @typedef {object} Events
 * @property {(context: Context, resource: object) => void} opened a resource that stays open was made
 * @property {(context: Context, timer: object) => void} intervalMade a repeating timer was made
 * @property {(context: Context, entry: import('./entry').Entry) => void} connecting a connect
 *   request runs for the first time
 * @property {(entry: import('./entry').Entry, isWrite: boolean) => void} traffic data passed on a connection
 *   that no server accepted; isWrite: a write for which no `asked` was emitted
 * @property {(entry: Entry, place: number, isHeld: boolean, writer: number) => void} asked the program
 *   writes on a connection that it opened and that no request uses. place: chain of the write, 0: the
 *   caller is unknown; isHeld: buffered until the connection is open; writer: chain of the write, 0: a
 *   driver wrote on its own
 * @property {(asyncId: number, task: object) => void} taskMade a thread pool received a task
 * @property {(error: object, context: Context, subject: unknown) => void} passedToTick an error was passed
 *   to nextTick, after this argument
 * @property {(context: Context, tick: object) => void} ticked nextTick was called while runs are logged
 * @property {(reason: unknown, context: Context, promise: PromiseRecord) => void} rejected a promise was
 *   rejected in this context
 * @property {(error: unknown, context: Context) => void} escaped an error of this context was not caught
 * @property {(server: object) => void} served a server received the first request of a connection
 * @property {(stream: object) => void} streamServed a server received an HTTP/2 request
 * @property {() => void} forgetting chain numbers are about to become invalid
 * @property {(time: number) => void} iteration an iteration of the event loop begins
 * @property {() => void} contextRan code of a vm context has run; listeners must not throw
 * @property {() => void} formatterReplaced Error.prepareStackTrace is no longer longstack's
 * @property {(time: number, context: Context) => void} callback the event loop calls a callback while
 *   callbacks are watched
 * @property {() => void} changed changed options take effect
 * @property {() => void} stopped tracing was disabled
 */

/** arrays are replaced, never mutated @type {{ [E in keyof Events]: Array<Events[E]> }} */
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
 * timed or runs are logged. The record of such a resource has the flag LISTENED.
 * @type {Map<number, (isOver: boolean) => void>}
 */
const callbackListeners = new Map()

/**
 * @template {keyof Events} E
 * @param {E} event
 * @param {Events[E]} listener
 * @returns {() => void} removes the listener
 */
function on (event, listener) {
  const lists = /** @type {Record<string, Function[]>} */ (listeners)
  lists[event] = lists[event].concat(listener)
  return () => { lists[event] = lists[event].filter((other) => other !== listener) }
}

/**
 * Avoids spread: programs may lack iterators.
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
