'use strict'

// Realms besides the main one: vm contexts, of which test runners make one per test file. Node prefers the
// formatter of the error's own realm (prepareStackTraceCallback in lib/internal/errors.js), so that one is
// wrapped as well, at the next iteration of the event loop after a program has set it. Realms are known by
// vm.createContext, and held weakly: nothing here keeps one alive.

const vm = require('node:vm')
const guard = require('../context/guard')
const { isSettable, readSlot, restoreSlot, setSlot } = require('./formatter-slot')

const { apply, defineProperty, getOwnPropertyDescriptor, getPrototypeOf } = Reflect

// WeakRef.deref() keeps its target until the job ends: a realm that is looked at in each of them is never
// collected. A runner sets its formatter soon.
const FIRST_CHECKS = 32 // in so many iterations of the event loop
const CHECK_MS = 250 // from one check to the next afterwards

/** Returns an error of the realm in which it runs, without a global variable, which a program may replace. */
const THROW = '(function () { try { null.longstack } catch (error) { return error } })()'

/**
 * @typedef {object} Realm
 * @property {WeakRef<ErrorConstructor>} error its constructor Error
 * @property {number} checks that are left, one in each iteration
 */

/**
 * @param {import('./wrapped-formatters').WrappedFormatters} wrapped
 */
function createRealms (wrapped) {
  /** @type {Realm[]} */
  let realms = []
  let isEnabled = false
  let checkAt = 0
  /** some realm is checked in each iteration */
  let hasNew = false
  /** @type {vm.Script | undefined} */
  let script
  /** @type {PropertyDescriptor | undefined} */
  let original

  /** @param {ErrorConstructor} error */
  function add (error) {
    if (error === Error || realms.some((realm) => realm.error.deref() === error)) return
    realms.push({ error: new WeakRef(error), checks: FIRST_CHECKS })
    hasNew = true
  }

  /** @param {object} context */
  function addContext (context) {
    script ??= new vm.Script(THROW, { filename: __filename })
    const { constructor } = /** @type {any} */ (getPrototypeOf)(getPrototypeOf(script.runInContext(context)))
    if (typeof constructor === 'function') add(constructor)
  }

  const wrapper = {
    /** @this {unknown} */
    createContext () {
      const context = apply(original?.value, this, arguments)
      if (isEnabled && !guard.inOwnWork) {
        guard.run(() => {
          try {
            addContext(context)
          } catch {} // a sandbox with traps of its own, or a full stack
        })
      }
      return context
    }
  }.createContext

  /** Wraps the formatter of a realm, where a program has set one. @param {ErrorConstructor} error */
  function wrapFormatter (error) {
    const slot = readSlot(error)
    if (typeof slot?.value !== 'function' || !isSettable(slot)) return false
    return wrapped.originalOf(slot.value) !== undefined || setSlot(wrapped.wrap(slot), slot, error)
  }

  /** @param {number} time ms */
  function checkAll (time) {
    const isDue = time >= checkAt
    if (isDue) checkAt = time + CHECK_MS
    hasNew = false
    realms = realms.filter((realm) => {
      if (realm.checks === 0 && !isDue) return true
      const error = realm.error.deref()
      if (error === undefined) return false
      realm.checks = wrapFormatter(error) ? 0 : Math.max(realm.checks - 1, 0)
      hasNew ||= realm.checks > 0
      return true
    })
  }

  return {
    add,

    enable () {
      isEnabled = true
      if (original !== undefined) return
      original = getOwnPropertyDescriptor(vm, 'createContext')
      defineProperty(vm, 'createContext', { ...original, value: wrapper })
    },

    /** Removes all wrappers. */
    disable () {
      isEnabled = false
      if (original !== undefined && vm.createContext === wrapper) {
        defineProperty(vm, 'createContext', original)
        original = undefined
      }
      for (const { error } of realms) {
        const realm = error.deref()
        const before = realm && wrapped.originalOf(readSlot(realm)?.value)
        if (before) restoreSlot(before.slot, realm)
      }
    },

    /** Wraps formatters that programs have set. @param {number} time ms */
    check (time) {
      if (realms.length > 0 && isEnabled && (hasNew || time >= checkAt)) checkAll(time)
    }
  }
}

module.exports = { createRealms }
