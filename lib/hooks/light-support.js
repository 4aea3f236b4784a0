'use strict'

// Whether this Node can do without promise hooks, and the types in whose callbacks the context is carried
// then.

const { AsyncLocalStorage, asyncWrapProviders, createHook } = require('node:async_hooks')

const loopTypes = [...Object.keys(asyncWrapProviders), 'Timeout', 'Immediate']

/** Types whose callbacks settle a promise and run nothing of the program. */
const silentTypes = new Set(['PROMISE', 'FSREQPROMISE', 'FILEHANDLECLOSEREQ'])

/**
 * Types in whose callbacks the context is carried where promise hooks are off. An AsyncResource puts back
 * what was carried when it was made, right after `before`: what is carried there would be lost inside, and
 * stay afterwards.
 */
const enteredTypes = new Set([...loopTypes, 'TickObject'].filter((type) => !silentTypes.has(type)))

/** Types whose callbacks the event loop calls. */
const calledTypes = new Set(loopTypes.filter((type) => type !== 'PROMISE'))

/**
 * Returns whether this Node can keep promise hooks off and carry the context across await by itself. Found
 * out by trying: Node 20 and 22 ignore the option, and 24 may be told to carry by promise hooks
 * (--no-async-context-frame). Must run guarded.
 */
function canBeLight () {
  const storage = new AsyncLocalStorage()
  let isInitCalled = false
  const callbacks = { __proto__: null, init () { isInitCalled = true }, trackPromises: false }
  const hook = createHook(/** @type {any} */ (callbacks)).enable()
  try {
    const hasNoId = storage.run(true, () => Object.getOwnPropertySymbols(Promise.resolve()).length === 0)
    return hasNoId && !isInitCalled
  } finally {
    hook.disable()
    storage.disable()
  }
}

/**
 * Returns whether this Node can leave promises out of async_hooks, so that V8's own hooks can report them.
 * Node 20 and 22 ignore the option. Read from the hook itself, which notes it (kNoPromiseHook in
 * lib/internal/async_hooks.js): to try it would make a promise that the program's own hooks see.
 */
function canLeavePromises () {
  const callbacks = { __proto__: null, init () {}, trackPromises: false }
  const hook = /** @type {any} */ (createHook(/** @type {any} */ (callbacks)))
  return Object.getOwnPropertySymbols(hook).some((symbol) => hook[symbol] === true)
}

module.exports = { calledTypes, canBeLight, canLeavePromises, enteredTypes }
