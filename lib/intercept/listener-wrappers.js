'use strict'

// Replaces a listener of Node's by a wrapper. The emitter still shows, finds and removes the original:
// EventEmitter unwraps whatever has a `listener`, as the wrapper of once() has (lib/events.js).

const { own } = require('../objects')
const { imitate } = require('../wrap')

const { defineProperty } = Reflect

/**
 * @typedef {(original: Function, self: any, args: any[]) => unknown} Replacement what runs in the original's
 *   place
 */

/** @type {WeakSet<Function>} */
const wrappers = new WeakSet()

/**
 * Wraps the first listener that matches and has no wrapper yet.
 * @param {object} emitter
 * @param {string} event
 * @param {(listener: Function) => boolean} matches
 * @param {Replacement} replacement
 * @returns {{ original: Function, isListed: () => boolean } | undefined} undefined if no listener matches
 */
function wrapListener (emitter, event, matches, replacement) {
  const events = own(emitter, '_events')
  const listeners = events === undefined ? undefined : own(events, event)
  if (typeof listeners === 'function') {
    if (wrappers.has(listeners) || !matches(listeners)) return undefined
    const wrapper = createWrapper(listeners, replacement)
    events[event] = wrapper
    return { original: listeners, isListed: () => isListed(emitter, event, wrapper) }
  }
  if (!Array.isArray(listeners)) return undefined
  const index = listeners.findIndex((listener) => {
    return typeof listener === 'function' && !wrappers.has(listener) && matches(listener)
  })
  if (index === -1) return undefined
  const original = listeners[index]
  const wrapper = createWrapper(original, replacement)
  listeners[index] = wrapper // emit() iterates over a copy
  return { original, isListed: () => isListed(emitter, event, wrapper) }
}

/**
 * Replaces all wrappers of an event by their originals.
 * @param {object} emitter
 * @param {string} event
 */
function unwrapListeners (emitter, event) {
  const events = own(emitter, '_events')
  const listeners = events === undefined ? undefined : own(events, event)
  if (typeof listeners === 'function') {
    if (wrappers.has(listeners)) events[event] = /** @type {any} */ (listeners).listener
  } else if (Array.isArray(listeners)) {
    listeners.forEach((listener, index) => {
      if (wrappers.has(listener)) listeners[index] = listener.listener
    })
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
  const { wrapper } = {
    /** @this {unknown} @param {...any} args */
    wrapper (...args) {
      return replacement(original, this, args)
    }
  }
  imitate(wrapper, original)
  // Not enumerable: a socket prints as before.
  defineProperty(wrapper, 'listener', { value: original, writable: true, configurable: true })
  wrappers.add(wrapper)
  return wrapper
}

/** Returns a predicate for wrapListener. @param {string} name of Node's function */
function hasName (name) {
  return (/** @type {Function} */ listener) => own(listener, 'name') === name
}

module.exports = { hasName, wrapListener, unwrapListeners }
