'use strict'

// Realms besides the main one: vm contexts, one per test file in test runners. Node prefers the formatter of
// the error's own realm (prepareStackTraceCallback in lib/internal/errors.js), so that formatter is wrapped
// too, in the event-loop iteration after the program set it. Realms are found through vm.createContext and
// held weakly: nothing here keeps one alive.

const vm = require('node:vm')
const guard = require('../core/guard')
const { wrap } = require('../wrap')
const { readSlot } = require('./error-slots')
const { unwrapIn, wrapIn } = require('./formatter')

const { apply, getPrototypeOf } = Reflect
const { isContext } = vm // programs replace it

// WeakRef.deref() keeps its target alive until the job ends (KeepDuringJob of ECMA-262), and V8 treats
// everything kept at any time during a mark-sweep as reachable. Realms that are checked constantly would
// never be collected, especially if there are many. So each realm is checked less and less often, except for
// the newest ones, in which a runner may still load the code that sets its formatter.
const FIRST_CHECKS = 32 // iterations of the event loop with a check each
const NEWEST = 2 // realms checked in every iteration while they are young
const YOUNG_MS = 10_000
const CHECK_MS = 250 // until the next check, or the realm's age if that is more

/** Returns an error of the realm it runs in, without using a global, which the program may replace. */
const THROW = '(function () { try { null.longstack } catch (error) { return error } })()'

/**
 * @typedef {object} Realm
 * @property {WeakRef<ErrorConstructor>} error its Error constructor
 * @property {number} checks remaining checks, one per iteration
 * @property {number} addedAt ms of the clock; NaN if not checked yet
 * @property {number} checkAt ms of the clock, once no checks remain
 */

let isEnabled = false
/** @type {Realm[]} */
let realms = []
/** their Error constructors: finds out whether a realm is new without touching the others */
const realmErrors = new WeakSet()
/** ms of the clock of the next check of any realm; 0: in every iteration */
let checkAt = Infinity
/** the newest realm, until the program sets a formatter in it @type {Realm | undefined} */
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
    // The realm of an existing context is known, and running a script in it would run microtasks
    const isNew = isEnabled && !isKnownContext(object)
    const context = apply(method, this, arguments)
    if (isNew) guard.runQuietly(() => addContext(context)) // a sandbox may be a proxy with traps
    return context
  }
}

/** @param {object} object */
function isKnownContext (object) {
  try {
    return isContext(object)
  } catch { // it cannot be a context: createContext throws, or makes one without it
    return false
  }
}

/**
 * Wraps the formatter of a realm, if the program has set one.
 * @param {Realm} realm
 * @returns {boolean | undefined} whether it has one; undefined if the realm is gone
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
 * @returns {boolean} false if the realm is gone
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

/** Called after code has run in a realm: wraps the newest realm's formatter, if it has one by now. */
function noteRun () {
  if (unset === undefined || !isEnabled) return
  try {
    wrapFormatterOf(unset)
  } catch {} // a full stack
}

/** Wraps formatters that the program has set. @param {number} time ms */
function check (time) {
  if (time >= checkAt && isEnabled) checkDue(time)
}

module.exports = { add, check, disable, enable, noteRun }
