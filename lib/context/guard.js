'use strict'

// Who may touch it: everything that runs code which is not the program's own. While `busy` is set, no hook
// records anything; what is created then is marked as longstack's own (see muted in context.js), so nothing
// that a hook callback does can come back as an event.

const guard = {
  busy: false,

  /**
   * Runs a function as longstack's own work. Never nests a second guard, always releases: a RangeError from a
   * full stack can surface anywhere.
   * @template T
   * @param {() => T} work
   * @returns {T}
   */
  run (work) {
    if (guard.busy) return work()
    guard.busy = true
    try {
      return work()
    } finally {
      guard.busy = false
    }
  }
}

module.exports = guard
