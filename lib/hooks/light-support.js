'use strict'

// Without promise hooks: whether this Node can do that, and where the context is to be carried then.

const { AsyncLocalStorage, asyncWrapProviders, createHook } = require('node:async_hooks')

/** Types whose callbacks settle a promise and run nothing of the program. */
const silent = new Set(['PROMISE', 'FSREQPROMISE', 'FILEHANDLECLOSEREQ'])

/**
 * Types in whose runs the context is carried where promise hooks are off. An AsyncResource puts back what was carried when
 * it was made, right after `before`: to carry there would be lost inside, and stay afterwards.
 */
const entered = new Set([...Object.keys(asyncWrapProviders), 'Timeout', 'Immediate', 'TickObject'].filter((type) => !silent.has(type)))

/** Types that the event loop calls. */
const called = new Set([...Object.keys(asyncWrapProviders), 'Timeout', 'Immediate'].filter((type) => type !== 'PROMISE'))

/**
 * Can this Node keep promise hooks off, and carry the context across await by itself? Tried, not guessed: Node 20 and 22
 * ignore the option, and 24 may be told to carry by promise hooks. Guarded.
 */
function canBeLight () {
  const storage = new AsyncLocalStorage()
  let seen = false
  const hook = createHook(/** @type {any} */ ({ __proto__: null, init () { seen = true }, trackPromises: false })).enable()
  try {
    return storage.run(true, () => Object.getOwnPropertySymbols(Promise.resolve()).length === 0) && !seen
  } finally {
    hook.disable()
    storage.disable()
  }
}

/**
 * Can this Node leave promises out of async_hooks, so that V8's own hooks can tell of them? Node 20 and 22 ignore the
 * option. Asked of the hook itself, which notes it (kNoPromiseHook in lib/internal/async_hooks.js): to try it would make
 * a promise that the program's own hooks see.
 */
function canLeavePromises () {
  const hook = /** @type {any} */ (createHook(/** @type {any} */ ({ __proto__: null, init () {}, trackPromises: false })))
  return Object.getOwnPropertySymbols(hook).some((symbol) => hook[symbol] === true)
}

module.exports = { called, canBeLight, canLeavePromises, entered }
