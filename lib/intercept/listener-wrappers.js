'use strict'

// Replaces one of Node's listeners by a wrapper. The emitter still shows, finds and removes the original:
// EventEmitter unwraps any function with a `listener` property, as for once() (lib/events.js).

const { own } = require('../objects')
const { imitate } = require('../wrap')

const { defineProperty } = Reflect

/**
 * @typedef {(original: Function, self: any, args: any[]) => unknown} Replacement runs instead of the original
 */

/** @type {WeakSet<Function>} */
const wrappers = new WeakSet()

/**
 * Lists the listeners of an event with their positions.
 * @param {object} emitter
 * @param {string} event
 * @returns {Array<{ holder: any, key: PropertyKey, listener: any }>}
 */
function slotsOf (emitter, event) {
  const events = own(emitter, '_events')
  const listeners = events && own(events, event)
  if (typeof listeners === 'function') return [{ holder: events, key: event, listener: listeners }]
  if (!Array.isArray(listeners)) return []
  return listeners.map((listener, key) => ({ holder: listeners, key, listener }))
}

/**
 * Wraps the first listener that matches and has no wrapper yet.
 * @param {object} emitter
 * @param {string} event
 * @param {(listener: Function) => boolean} matches
 * @param {Replacement} replacement
 * @returns {{ original: Function, isListed: () => boolean } | undefined} undefined if no listener matches
 */
function wrapListener (emitter, event, matches, replacement) {
  const slot = slotsOf(emitter, event).find(({ listener }) => {
    return typeof listener === 'function' && !wrappers.has(listener) && matches(listener)
  })
  if (slot === undefined) return undefined
  const { holder, key, listener: original } = slot
  const wrapper = createWrapper(original, replacement)
  holder[key] = wrapper // emit() iterates over a copy
  return { original, isListed: () => isListed(emitter, event, wrapper) }
}

/**
 * Replaces all wrappers of an event with their originals.
 * @param {object} emitter
 * @param {string} event
 */
function unwrapListeners (emitter, event) {
  for (const { holder, key, listener } of slotsOf(emitter, event)) {
    if (wrappers.has(listener)) holder[key] = listener.listener
  }
}

/**
 * @param {any} emitter Node's own socket; a plain read, since this runs for each chunk
 * @param {string} event
 * @param {Function} wrapper
 */
function isListed (emitter, event, wrapper) {
  const listeners = emitter._events?.[event]
  return listeners === wrapper || (Array.isArray(listeners) && listeners.includes(wrapper))
}

/** @param {Function} original @param {Replacement} replacement */
function createWrapper (original, replacement) {
  /** @this {unknown} @param {...any} args */
  function wrapper (...args) {
    return replacement(original, this, args)
  }
  imitate(wrapper, original)
  // Not enumerable, so that a socket prints as before.
  defineProperty(wrapper, 'listener', { value: original, writable: true, configurable: true })
  wrappers.add(wrapper)
  return wrapper
}

/** Returns a predicate for wrapListener. @param {string} name of Node's function */
function hasName (name) {
  return (/** @type {Function} */ listener) => own(listener, 'name') === name
}

module.exports = { hasName, wrapListener, unwrapListeners }
