'use strict'

// Changes of tracing's state, and calls of the program's listeners. A listener may call anything: disable,
// enable, add and remove listeners, itself too, throw, exit. So none is called while the state changes, but
// once the change is done; a change that is requested during another is made after it; and before each call
// it is checked who still listens.

const { executionAsyncId } = require('node:async_hooks')

/**
 * async id of the execution that changes the state. V8 runs no `finally` where it terminates an execution: in
 * another one the value means nothing.
 * @type {number | undefined}
 */
let changingId
/** what to do once the change is done, in order @type {Array<() => void>} */
let postponed = []

/**
 * Changes the state of tracing; during another change: after it.
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

/** Runs what calls the program; during a change of state: after it. @param {() => void} work */
function afterChange (work) {
  if (isChanging()) postponed.push(work)
  else work()
}

function isChanging () {
  return changingId !== undefined && changingId === executionAsyncId()
}

/** Returns what `restoreChange` gets after V8 has terminated a change of state. */
const saveChange = () => changingId

/** @param {number | undefined} saved */
function restoreChange (saved) {
  changingId = saved
}

/** The listeners of one event. @template E @extends {Set<(event: E) => void>} */
class Listeners extends Set {
  /**
   * Calls those of a list that still listen.
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
