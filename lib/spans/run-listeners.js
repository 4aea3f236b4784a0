'use strict'

// Listeners called when a resource has run, by async id. Several may wait for the same one, such as a
// connection and the attempt to make it.

const { callbackListeners } = require('../core/on')
const { FLAGS, LISTENED, findResource } = require('../core/records')

/** @typedef {(isOver: boolean) => void} RunListener called when a callback begins and when it ends */

/** members of each group function in the map @type {WeakMap<RunListener, Set<RunListener>>} */
const groups = new WeakMap()

/** @param {number} id @param {RunListener} listener */
function listen (id, listener) {
  const present = callbackListeners.get(id)
  const record = present === undefined ? findResource(id) : undefined
  if (record !== undefined) record.words[record.offset + FLAGS] |= LISTENED
  if (present === undefined) return callbackListeners.set(id, listener)
  if (present === listener) return
  const group = groups.get(present)
  if (group !== undefined) return group.add(listener)
  const members = new Set([present, listener])
  const callAll = (/** @type {boolean} */ isOver) => { for (const member of members) member(isOver) }
  groups.set(callAll, members)
  callbackListeners.set(id, callAll)
}

/** @param {number} id @param {RunListener} listener */
function unlisten (id, listener) {
  const present = callbackListeners.get(id)
  if (present === undefined) return
  if (present === listener) return callbackListeners.delete(id)
  const group = groups.get(present)
  if (group === undefined) return
  group.delete(listener)
  if (group.size === 0) callbackListeners.delete(id)
}

module.exports = { listen, unlisten }
