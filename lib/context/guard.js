'use strict'

// Who may touch it: everything that runs code which is not the program's own. While `busy` is set, no hook
// records anything; what is created then is marked as longstack's own (see OWN_WORK in context.js), so
// nothing that a hook callback does can come back as an event.

const guard = {
  inOwnWork: false,

  /**
   * Runs a function as longstack's own work. Never nests a second guard, always releases: a RangeError from a
   * full stack can surface anywhere.
   * @template T
   * @param {() => T} work
   * @returns {T}
   */
  run (work) {
    if (guard.inOwnWork) return work()
    guard.inOwnWork = true
    try {
      return work()
    } finally {
      guard.inOwnWork = false
    }
  }
}

module.exports = guard
