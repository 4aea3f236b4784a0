'use strict'

// The entries of critical paths: waits and runs.

const { amount } = require('./span-line')

const MAX_ENTRIES = 10 // of each list
const MAX_CONNECTIONS = 4

/**
 * @typedef {object} PathEntry a wait or a run, of one or several that are equal
 * @property {number} ms
 * @property {number} count
 * @property {number} delayed ms in which the loop ran the code of others
 * @property {number | undefined} sent
 * @property {number | undefined} unsent
 * @property {number | undefined} beside
 * @property {number[] | undefined} on asyncIds of connections
 * @property {any} place what `placeOf` returned for its site
 * @property {boolean} isRun
 */

/**
 * Makes the entries of a path of an attribute that JSON.parse has read.
 * @param {unknown} list
 * @param {boolean} isRun
 * @param {(entry: Record<string, any>) => any} placeOf
 * @returns {PathEntry[]}
 */
function entriesOf (list, isRun, placeOf) {
  if (!Array.isArray(list)) return []
  const valid = list.slice(0, MAX_ENTRIES).filter((entry) => amount(entry?.ms) !== undefined)
  return valid.map((entry) => ({
    ms: entry.ms,
    count: Number.isSafeInteger(entry.count) && entry.count > 0 ? entry.count : 1,
    delayed: amount(entry.delayed) ?? 0,
    sent: amount(entry.sent),
    unsent: amount(entry.unsent),
    beside: amount(entry.beside),
    on: connectionsOf(entry.on),
    place: placeOf(entry),
    isRun
  }))
}

/** @param {unknown} on @returns {number[] | undefined} */
function connectionsOf (on) {
  return Array.isArray(on) ? on.slice(0, MAX_CONNECTIONS).filter((id) => amount(id) !== undefined) : undefined
}

module.exports = { entriesOf }
