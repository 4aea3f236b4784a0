'use strict'

// The timers that are pending. Node keeps them itself, those of one delay in a list each (TimersList in
// lib/internal/timers.js), and whoever knows the lists knows the timers. So a pending timer has no entry in
// the registry: the record that it carries (records.js) is all there is of it until a query asks. The lists
// are Node's own objects: one that is empty is not used again, and holds nothing.

const { executionAsyncResource } = require('node:async_hooks')
const { isObject, own } = require('../objects')

const MAX_STEPS = 1 << 24 // along a list: a program may have changed it
const MIN_LISTS = 256

/**
 * @typedef {{ _idleNext: any, _idlePrev: any }} List _idleNext: the newest timer, _idlePrev: the oldest; of a
 *   timer the next older and newer ones
 */

const { trunc } = Math

/** by delay in whole ms, as Node has them @type {Map<number, List>} */
const lists = new Map()
let maxLists = MIN_LISTS
/** the timer that was made last: it is in no list until the hook has returned @type {any} */
let last

/** Notes a timer that is being made. The hot path. @param {object} timer */
function made (timer) {
  if (last !== undefined) noteList(last)
  last = timer
}

/** Lets go of the timer that was made last: it is in its list by now, or over. */
function settle () {
  if (last === undefined) return
  const timer = last
  last = undefined
  noteList(timer)
}

/** Notes the list that a timer is in. @param {any} timer */
function noteList (timer) {
  if (timer._idlePrev === null) return // it is in none
  const delay = trunc(timer._idleTimeout)
  const known = lists.get(delay)
  if (known !== undefined && known._idleNext !== known) return // a list is given up only when it is empty
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

/** @returns {object[]} timers that may run, oldest first in each list; some may be older than longstack */
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
  const running = executionAsyncResource() // a repeating timer, which is put back into a list afterwards
  if (typeof own(running, '_repeat') === 'number' && own(running, '_idlePrev') === null) timers.push(running)
  return timers
}

module.exports = { made, noteList, pending, settle }
