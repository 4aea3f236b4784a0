'use strict'

// Who is called when a resource has run, by async id: several may wait for the same one, as a connection and
// the attempt to make it do.

/**
 * @typedef {() => void} RunListener
 * @typedef {Map<number, RunListener>} RunListeners read by the hooks, which call what they find
 */

/** the listeners that a function in the map stands for @type {WeakMap<RunListener, Set<RunListener>>} */
const groups = new WeakMap()

/** @param {RunListeners} listeners @param {number} id @param {RunListener} listener */
function listen (listeners, id, listener) {
  const present = listeners.get(id)
  if (present === undefined || present === listener) {
    listeners.set(id, listener)
    return
  }
  const group = groups.get(present)
  if (group !== undefined) {
    group.add(listener)
    return
  }
  const members = new Set([present, listener])
  const callAll = () => { for (const member of members) member() }
  groups.set(callAll, members)
  listeners.set(id, callAll)
}

/** @param {RunListeners} listeners @param {number} id @param {RunListener} listener */
function unlisten (listeners, id, listener) {
  const present = listeners.get(id)
  if (present === undefined) return
  if (present === listener) {
    listeners.delete(id)
    return
  }
  const group = groups.get(present)
  if (group === undefined) return
  group.delete(listener)
  if (group.size === 0) listeners.delete(id)
}

module.exports = { listen, unlisten }
