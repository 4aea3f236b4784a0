'use strict'

// State changes of tracing, and calls of the program's listeners. A listener may call anything: disable,
// enable, add and remove listeners (itself too), throw, exit. So listeners run after a state change, never
// during it; a change requested during another one is made after it; and each listener is called only if it
// is still registered.

const { executionAsyncId } = require('node:async_hooks')

/**
 * async id of the execution that changes the state. V8 runs no `finally` blocks when it terminates an
 * execution, so in any other execution the value is stale.
 * @type {number | undefined}
 */
let changingId
/** work to do after the change, in order @type {Array<() => void>} */
let postponed = []

/**
 * Changes the state of tracing, or queues the change if another one is in progress.
 * @param {() => void} change
 */
function changeState (change) {
  if (isChanging()) {
    postponed.push(() => makeChange(change))
    return
  }
  postponed = []
  try {
    makeChange(change)
  } finally {
    while (postponed.length > 0) postponed.shift()?.()
  }
}

/** @param {() => void} change */
function makeChange (change) {
  changingId = executionAsyncId()
  try {
    change()
  } finally {
    changingId = undefined
  }
}

/** Runs work that calls the program, after the state change in progress. @param {() => void} work */
function afterChange (work) {
  if (isChanging()) postponed.push(work)
  else work()
}

function isChanging () {
  return changingId !== undefined && changingId === executionAsyncId()
}

/** Returns the value that `restoreChange` takes after V8 has terminated a state change. */
const saveChange = () => changingId

/** @param {number | undefined} saved */
function restoreChange (saved) {
  changingId = saved
}

/** The listeners of one event. @template E @extends {Set<(event: E) => void>} */
class Listeners extends Set {
  /**
   * Calls the listeners of a list that are still registered.
   * @param {E} event
   * @param {(thrown: unknown) => void} [onThrown] gets what a listener throws
   * @param {Array<(event: E) => void>} [listeners]
   */
  emit (event, onThrown = () => {}, listeners = [...this]) {
    for (const listener of listeners) {
      if (!this.has(listener)) continue
      try {
        listener(event)
      } catch (thrown) {
        onThrown(thrown)
      }
    }
  }
}

module.exports = { Listeners, afterChange, changeState, restoreChange, saveChange }
