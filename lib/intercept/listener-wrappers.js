'use strict'

// A function in the place of a listener of Node's. The emitter shows, finds and removes the original: that is what
// EventEmitter does with whatever has a `listener`, as the wrapper of once() has.

const { own } = require('../objects')

const { defineProperty } = Reflect

/** @typedef {(original: Function, self: any, args: any[]) => unknown} Run what runs in the original's place */

/** @type {WeakSet<Function>} */
const ours = new WeakSet()

/**
 * Puts a stand-in in the place of the first listener that is wanted.
 * @param {object} emitter
 * @param {string} event
 * @param {(listener: Function) => boolean} wanted
 * @param {Run} run
 * @returns {{ original: Function, listed: () => boolean } | undefined} undefined where there is none
 */
function standIn (emitter, event, wanted, run) {
  const events = own(emitter, '_events')
  const found = events === undefined ? undefined : own(events, event)
  if (typeof found === 'function') {
    if (ours.has(found) || !wanted(found)) return undefined
    const made = make(found, run)
    events[event] = made
    return { original: found, listed: () => isListed(emitter, event, made) }
  }
  if (!Array.isArray(found)) return undefined
  const at = found.findIndex((one) => typeof one === 'function' && !ours.has(one) && wanted(one))
  if (at === -1) return undefined
  const original = found[at]
  const made = make(original, run)
  found[at] = made // emit() goes over a copy
  return { original, listed: () => isListed(emitter, event, made) }
}

/** Puts all originals back. @param {object} emitter @param {string} event */
function putBack (emitter, event) {
  const events = own(emitter, '_events')
  const found = events === undefined ? undefined : own(events, event)
  if (typeof found === 'function') {
    if (ours.has(found)) events[event] = /** @type {any} */ (found).listener
  } else if (Array.isArray(found)) {
    found.forEach((one, i) => { if (ours.has(one)) found[i] = one.listener })
  }
}

/** @param {any} emitter Node's own socket: hot, read plainly @param {string} event @param {Function} listener */
function isListed (emitter, event, listener) {
  const found = emitter._events?.[event]
  return found === listener || (Array.isArray(found) && found.includes(listener))
}

/** @param {Function} original @param {Run} run */
function make (original, run) {
  const { made } = {
    /** @this {unknown} @param {...any} args */
    made (...args) {
      return run(original, this, args)
    }
  }
  for (const name of ['name', 'length']) defineProperty(made, name, { value: own(original, name), configurable: true })
  defineProperty(made, 'listener', { value: original, writable: true, configurable: true }) // not enumerable: a socket prints as before
  ours.add(made)
  return made
}

module.exports = { standIn, putBack }
