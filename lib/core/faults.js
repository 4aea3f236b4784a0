'use strict'

// Failures of longstack's own work. A full stack can surface anywhere and is the program's own error.
// Everything else is a defect and must be reported.

const guard = require('./guard')
const { messageOf } = require('../warnings')
const allocationClock = require('./allocation-clock')

/** @type {{ code: string, message: string } | undefined} */
let firstFault

/** Notes that a hook or other own work has failed. @param {unknown} error */
function failed (error) {
  allocationClock.forget()
  if (error instanceof RangeError) return
  firstFault ??= { code: codeOf(error), message: messageOf(error) }
}

/** @param {any} error @returns {string} its code, or the name of its class */
function codeOf (error) {
  try {
    return String(error?.code ?? error?.name ?? typeof error).slice(0, 100)
  } catch {
    return 'unknown'
  }
}

/**
 * Runs own work in a hook or between the program's code; never throws.
 * @template T
 * @param {() => T} work
 * @returns {T | undefined}
 */
function safely (work) {
  try {
    return guard.run(work)
  } catch (error) {
    failed(error)
    return undefined
  }
}

module.exports = { failed, first: () => firstFault, safely }
