'use strict'

// Pending timers. Node keeps them in one list per delay (TimersList in lib/internal/timers.js), so the lists
// lead to all timers. A pending timer therefore has no entry in the registry: until a query needs one, it
// only carries its record (records.js). The lists are Node's own objects: an empty one is not reused and
// holds nothing.

const { executionAsyncResource } = require('node:async_hooks')
const { isObject, own } = require('../objects')

const MAX_STEPS = 1 << 24 // length of a list; a program may have changed it
const MIN_LISTS = 256

/**
 * @typedef {{ _idleNext: any, _idlePrev: any }} List _idleNext: the newest timer, _idlePrev: the oldest;
 *   in a timer, the next older and the next newer one
 */

const { trunc } = Math

/** by delay in whole ms, as in Node @type {Map<number, List>} */
const lists = new Map()
let maxLists = MIN_LISTS
/** the newest timer: it is in no list until the hook has returned @type {any} */
let last

/** Notes a timer that is being made. The hot path. @param {object} timer */
function made (timer) {
  if (last !== undefined) noteList(last)
  last = timer
}

/** Releases the newest timer: it is in its list by now, or over. */
function settle () {
  if (last === undefined) return
  const timer = last
  last = undefined
  noteList(timer)
}

/** Notes the list of a timer. @param {any} timer */
function noteList (timer) {
  if (timer._idlePrev === null) return // the timer is in no list
  const delay = trunc(timer._idleTimeout)
  const known = lists.get(delay)
  if (known !== undefined && known._idleNext !== known) return // Node drops a list only when it is empty
  const list = listOf(timer)
  if (list === undefined) return
  if (lists.size >= maxLists) dropEmpty()
  lists.set(delay, list)
}

/** @param {any} timer @returns {List | undefined} */
function listOf (timer) {
  let link = timer._idlePrev
  for (let i = 0; i < MAX_STEPS && isObject(link); i++, link = /** @type {any} */ (link)._idlePrev) {
    if (own(link, 'priorityQueuePosition') !== undefined) return /** @type {any} */ (link)
  }
  return undefined
}

function dropEmpty () {
  for (const [delay, list] of lists) if (list._idleNext === list) lists.delete(delay)
  maxLists = Math.max(MIN_LISTS, lists.size * 2)
}

/** @returns {object[]} pending timers, oldest first per list; some may be older than longstack */
function pending () {
  settle()
  /** @type {object[]} */
  const timers = []
  for (const list of lists.values()) {
    let timer = list._idlePrev
    for (; timer !== list && isObject(timer); timer = /** @type {any} */ (timer)._idlePrev) {
      if (timers.push(timer) >= MAX_STEPS) return timers
    }
  }
  const running = executionAsyncResource() // a repeating timer, which Node puts back into a list afterwards
  if (typeof own(running, '_repeat') === 'number' && own(running, '_idlePrev') === null) timers.push(running)
  return timers
}

module.exports = { made, noteList, pending, settle }
