'use strict'

// Realms besides the main one: vm contexts, of which test runners make one per test file. Node prefers the
// formatter of the error's own realm (prepareStackTraceCallback in lib/internal/errors.js), so that one is
// wrapped as well, at the next iteration of the event loop after a program has set it. Realms are known by
// vm.createContext, and held weakly: nothing here keeps one alive.

const vm = require('node:vm')
const guard = require('../core/guard')
const { wrap } = require('../wrap')
const { readSlot } = require('./error-slots')
const { unwrapIn, wrapIn } = require('./formatter')

const { apply, getPrototypeOf } = Reflect
const { isContext } = vm // programs replace it

// WeakRef.deref() keeps its target until the job ends (KeepDuringJob of ECMA-262), and V8 takes for reachable
// what was kept at any moment of a mark-sweep: realms that are all looked at again and again are never
// collected, the less the more there are. So a realm is looked at ever less often, but for the newest ones,
// in which a runner may still load what sets its formatter.
const FIRST_CHECKS = 32 // in so many iterations of the event loop
const NEWEST = 2 // realms, which are looked at in each iteration while they are young
const YOUNG_MS = 10_000
const CHECK_MS = 250 // to the next check afterwards, if the realm is not older than that: else its age

/** Returns an error of the realm in which it runs, without a global variable, which a program may replace. */
const THROW = '(function () { try { null.longstack } catch (error) { return error } })()'

/**
 * @typedef {object} Realm
 * @property {WeakRef<ErrorConstructor>} error its constructor Error
 * @property {number} checks that are left, one in each iteration
 * @property {number} addedAt ms of the clock; NaN: not checked yet
 * @property {number} checkAt ms of the clock, once no checks are left
 */

let isEnabled = false
/** @type {Realm[]} */
let realms = []
/** their constructors Error: no realm is looked at to find out whether another one is new */
const realmErrors = new WeakSet()
/** ms of the clock: the next check of any; 0: in each iteration */
let checkAt = Infinity
/** the newest, while the program has set no formatter in it @type {Realm | undefined} */
let unset
/** @type {vm.Script | undefined} */
let script
/** @type {(() => boolean) | undefined} */
let unwrap

/** @param {ErrorConstructor} error */
function add (error) {
  if (error === Error || realmErrors.has(error)) return
  realmErrors.add(error)
  realms.push(unset = { error: new WeakRef(error), checks: FIRST_CHECKS, addedAt: NaN, checkAt: 0 })
  checkAt = 0
}

/** @param {object} context */
function addContext (context) {
  script ??= new vm.Script(THROW, { filename: __filename })
  const { constructor } = /** @type {any} */ (getPrototypeOf)(getPrototypeOf(script.runInContext(context)))
  if (typeof constructor === 'function') add(constructor)
}

/** @param {Function} method */
const make = (method) => {
  /** @this {unknown} @param {object} object */
  return function createContext (object) {
    // The realm of one that is a context already is known, and a script that is run in it runs microtasks
    const isNew = isEnabled && !isKnownContext(object)
    const context = apply(method, this, arguments)
    if (isNew) guard.runQuietly(() => addContext(context)) // a sandbox may have traps of its own
    return context
  }
}

/** @param {object} object */
function isKnownContext (object) {
  try {
    return isContext(object)
  } catch { // it cannot be one: createContext throws, or makes one without it
    return false
  }
}

/**
 * Wraps the formatter of a realm, where a program has set one.
 * @param {Realm} realm
 * @returns {boolean | undefined} whether it has one; undefined: the realm is gone
 */
function wrapFormatterOf (realm) {
  const error = realm.error.deref()
  const slot = error && readSlot(error)
  const isWrapped = error && typeof slot?.value === 'function' && wrapIn(error, slot) !== undefined
  if (isWrapped !== false && realm === unset) unset = undefined
  return isWrapped
}

/**
 * @param {Realm} realm
 * @param {number} time ms
 * @param {boolean} isNewest
 * @returns {boolean} false: it is gone
 */
function checkOne (realm, time, isNewest) {
  const isWrapped = wrapFormatterOf(realm)
  if (isWrapped === undefined) return false
  if (Number.isNaN(realm.addedAt)) realm.addedAt = time
  realm.checks = isWrapped ? 0 : Math.max(realm.checks - 1, 0)
  const age = time - realm.addedAt
  if (realm.checks === 0 && (isWrapped || !isNewest || age > YOUNG_MS)) {
    realm.checkAt = time + Math.max(CHECK_MS, age)
  }
  return true
}

/** @param {number} time ms */
function checkDue (time) {
  const newest = realms.length - NEWEST
  realms = realms.filter((realm, i) => realm.checkAt > time || checkOne(realm, time, i >= newest))
  checkAt = realms.reduce((first, realm) => Math.min(first, realm.checkAt), Infinity)
}

function enable () {
  isEnabled = true
  unwrap ??= wrap(vm, 'createContext', make)
}

/** Removes all wrappers. */
function disable () {
  isEnabled = false
  if (unwrap?.()) unwrap = undefined
  for (const { error } of realms) {
    const realm = error.deref()
    if (realm !== undefined) unwrapIn(realm)
  }
}

/** Code has run in a realm: wraps the formatter of the newest, if that has one by now. */
function noteRun () {
  if (unset === undefined || !isEnabled) return
  try {
    wrapFormatterOf(unset)
  } catch {} // a full stack
}

/** Wraps formatters that programs have set. @param {number} time ms */
function check (time) {
  if (time >= checkAt && isEnabled) checkDue(time)
}

module.exports = { add, check, disable, enable, noteRun }
