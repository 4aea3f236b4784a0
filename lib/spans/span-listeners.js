'use strict'

// Hands records to the listeners of `span`, right before the event loop polls next.

const guard = require('../context/guard')
const { afterChange } = require('../listeners')
const { messageOf } = require('../warnings')

const MAX_WAITING = 1000 // records that wait for the end of an iteration

/** @typedef {(record: any) => void} SpanListener */

/**
 * @param {object} deps
 * @param {import('../listeners').Listeners<any>} deps.listeners
 * @param {() => boolean} deps.isBatching whether what is scheduled now runs before the event loop polls next
 * @param {(work: () => void) => void} deps.schedule
 * @param {(code: string, message: string) => void} deps.warn
 */
function createSpanListeners ({ listeners, isBatching, schedule, warn }) {
  /** records that are not handed on yet @type {unknown[]} */
  let waiting = []
  /** those that listened when the first of them came @type {SpanListener[]} */
  let receivers = []

  /** Hands on all records that wait. What listeners do makes no spans, now or later. */
  function flush () {
    if (waiting.length > 0) afterChange(() => guard.run(deliver))
  }

  /** Where the stack is too full to come here, the records go on waiting. */
  function deliver () {
    const records = waiting
    const present = receivers
    waiting = []
    for (const record of records) listeners.emit(record, warnOf, present)
  }

  /** @param {unknown} thrown */
  function warnOf (thrown) {
    warn('SPAN', `a listener of 'span' threw: ${messageOf(thrown)}`)
  }

  return {
    areThere: () => listeners.size > 0,

    /** @param {unknown} record @param {boolean} [atOnce] the loop may not poll for long */
    notify (record, atOnce = false) {
      const isScheduled = isBatching()
      if (waiting.length === 0) {
        receivers = listeners.list()
        if (isScheduled) schedule(flush)
      }
      waiting.push(record)
      if (!isScheduled || atOnce || waiting.length >= MAX_WAITING) flush()
    },

    flush
  }
}

module.exports = { createSpanListeners }
