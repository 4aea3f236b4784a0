'use strict'

// Resource kinds under the current filter, by the type that async_hooks reports.

const { asyncWrapProviders } = require('node:async_hooks')
const { ASKED, AWAIT, kindCount, kindOf, resetKinds } = require('./kinds')
const {
  AWAITED, BRIEF, CALLED, DETAILED, LIVE, ONE_SHOT, PARSER, PASSED, SPECIAL, TICK, TIMER
} = require('./records')
const { settings } = require('../settings')
const capture = require('../stacks/capture')

const KINDS = 10_000 // distinct type names; programs may make them up

/** Types whose callbacks are called by the event loop. */
const calledTypes = new Set([...Object.keys(asyncWrapProviders), 'Timeout', 'Immediate'])
calledTypes.delete('PROMISE')

/**
 * Types that get no stack: Node 20 makes a resource of them while an exception is pending
 * (GetPrivateKeyEncodingFromJs in src/crypto/crypto_keys.cc). A hook that calls C++ would catch the
 * exception, and Node would abort.
 */
const unselected = new Set(process.versions.node.startsWith('20.') ? ['KEYPAIRGENREQUEST'] : [])

/** @typedef {import('./kinds').Kind} Kind */

const table = {
  calledTypes,

  /** @type {Map<string, Kind>} */
  kinds: new Map(),
  promise: kindOf('PROMISE', false),
  awaited: kindOf(AWAIT, false),
  tick: kindOf('TickObject', false),

  /** @param {string} type of a connection @returns {number} of the kind of queries on it */
  asked: (type) => (table.kinds.get(type + ASKED) ?? table.add(type + ASKED)).number,

  /** @param {string} type @returns {Kind} */
  add (type) {
    if (kindCount() > KINDS) {
      capture.reset() // must be first: chains refer to kinds by number
      resetKinds()
      table.refill()
    }
    const isSelected = !unselected.has(type) && settings.isSelected(type === AWAIT ? 'PROMISE' : type)
    const kind = kindOf(type, isSelected)
    kind.flags = flagsOf(kind)
    kind.embedded = !calledTypes.has(type) && !kind.promise && !kind.tick && !kind.handle
    kind.carried = kind.embedded || kind.timer || isCarried(type)
    if (kind.carried) kind.special = true
    table.kinds.set(type, kind)
    return kind
  },

  /** Refills the table after the filter has changed. */
  refill () {
    table.kinds = new Map()
    table.promise = table.add('PROMISE')
    table.awaited = table.add(AWAIT)
    table.tick = table.add('TickObject')
  }
}

/**
 * Returns whether resources of one of Node's types may never run, or end without a callback: crypto jobs that
 * run at once (lib/internal/crypto/random.js), requests without a response, parsers of connections.
 * @param {string} type
 */
function isCarried (type) {
  return type === 'HTTPINCOMINGMESSAGE' || type.endsWith('REQUEST')
}

/** @param {Kind} kind @returns {number} flags of its records */
function flagsOf (kind) {
  return (kind.handle ? 0 : LIVE) |
    (kind.isSelected ? 0 : PASSED) |
    (kind.oneShot ? ONE_SHOT : 0) |
    (kind.tick ? TICK : 0) |
    (kind.timer || kind.type === 'Immediate' ? TIMER : 0) |
    (kind.brief ? BRIEF : kind.handle ? SPECIAL : 0) |
    (kind.detail !== undefined ? DETAILED : 0) |
    (calledTypes.has(kind.type) ? CALLED : 0) |
    (kind.awaited ? AWAITED : 0) |
    (kind.type === 'HTTPINCOMINGMESSAGE' ? PARSER : 0)
}

module.exports = table
