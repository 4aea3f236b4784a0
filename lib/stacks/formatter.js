'use strict'

// Appends hops to `.stack`. The formatter that was there before is wrapped (wrapped-formatters.js). One that
// the program sets later wins at once; when the next callback begins it is wrapped in its turn. One that is
// swapped in and back (depd, callsites) is never touched, and gets its raw frames.
//
// With the option `errors: false` nothing is wrapped. Longstack then swaps a formatter in and back itself,
// for the moment in which it reads one stack, so that nothing of the program runs while it is there.

const {
  isSettable, lendSlot, nodeFormatter, readSlot, readWith, realmOf, restoreSlot, returnSlot, setSlot
} = require('./formatter-slot')
const { forget } = require('./program-mapper')
const realms = require('./realms')
const {
  loadSourceMaps, noteFormatted, originalOf, readOwn, setReporter, state, withoutOwnSites, wrapFormatter
} = require('./wrapped-formatters')

const { apply } = Reflect
const UNKEPT = Object.freeze({}) // thrown so that V8 keeps nothing

/**
 * @typedef {import('./formatter-slot').Formatter} Formatter
 */

/** what Error.prepareStackTrace is while a wrapper is in force @type {{ format: Formatter | undefined }} */
const installed = { format: undefined }

/** Returns whether Error.prepareStackTrace is the wrapper that was installed last. */
function isInstalled () {
  return installed.format !== undefined && Error.prepareStackTrace === installed.format
}

/**
 * Reads a `stack` of longstack's own. The wrapper knows it; another formatter is replaced for the moment.
 * @param {{ stack: any }} holder
 * @param {Formatter} formatter
 */
function readHolder (holder, formatter) {
  if (state.isAppending) return holder.stack
  return isInstalled() ? readOwn(holder, formatter) : readWith(holder, formatter)
}

/** Loads what the program's first error needs. */
function preload () {
  try {
    loadSourceMaps()
  } catch {} // that error tries again
}

/**
 * Wraps whatever formatter is in force.
 * @returns {boolean} false where Error.prepareStackTrace cannot be set (--frozen-intrinsics)
 */
function enable () {
  state.isEnabled = true
  realms.enable()
  const slot = readSlot()
  const isWrapped = originalOf(slot?.value) !== undefined
  installed.format = isWrapped ? slot?.value : undefined
  if (isWrapped) return true
  if (!isSettable(slot)) return false
  const wrapper = installed.format = wrapFormatter(slot)
  return setSlot(wrapper, slot)
}

/** Removes the wrapper; under a formatter that was set on top of it, it passes everything through. */
function disable () {
  state.isEnabled = false
  installed.format = undefined
  forget()
  realms.disable()
  const original = originalOf(readSlot()?.value)
  if (original !== undefined) restoreSlot(original.slot)
}

/** Whether Node's own formatter is in force, maybe in a wrapper. */
function usesNodeFormatter () {
  const { formatter } = inForce()
  return typeof formatter !== 'function' || formatter === nodeFormatter
}

/**
 * Whether a wrapper is in force. V8 reads the property at every error, too; other formatters are not called.
 */
function isInForce () {
  return isInstalled() || originalOf(readSlot()?.value) !== undefined
}

/** Returns whether a wrapper is in force, around which formatter, and whether another can be set. */
function inForce () {
  const slot = readSlot()
  const original = originalOf(slot?.value)
  const formatter = original === undefined ? slot?.value : original.formatter
  return { isWrapped: original !== undefined, formatter, isSettable: isSettable(slot) }
}

/**
 * Reads a `stack` of longstack's own in V8's plain format, whatever formatter is in force.
 * @param {{ stack: any }} holder
 * @returns {string}
 */
function withPlainFormat (holder) {
  return readHolder(holder, plainFormat)
}

/**
 * Reads a `stack` of longstack's own as call sites; as text where a formatter runs already.
 * @param {{ stack: any }} holder
 * @returns {NodeJS.CallSite[] | string | undefined}
 */
function withCallSites (holder) {
  const value = readHolder(holder, sitesFormat)
  return Array.isArray(value) || typeof value === 'string' ? value : undefined
}

/**
 * @typedef {object} ReadStack
 * @property {unknown} text what the program would get as `.stack`
 * @property {NodeJS.CallSite[] | undefined} sites undefined where the stack was formatted before
 */

/**
 * Reads an error's stack as the program would: the formatter in force is called as Node calls it, and reads
 * itself from Error.prepareStackTrace. That of the error's realm comes first, where a vm context has one.
 *
 * V8 formats a stack when it is first read, with the message of that moment, and keeps the text. It keeps
 * none where the formatter throws (ErrorUtils::GetFormattedStack in src/execution/messages.cc), so the
 * program finds an error that was not read. What is no text is kept: the program may have noted it.
 * @param {any} error
 * @returns {ReadStack}
 */
function readStack (error) {
  const realm = realmOf(error)
  const slot = readSlot(realm)
  const formatter = typeof slot?.value === 'function' ? slot.value : nodeFormatter
  const isUnwrapped = originalOf(formatter) === undefined
  /** @type {ReadStack | undefined} */
  let unkept
  /** @this {unknown} @param {any} candidate @param {NodeJS.CallSite[]} sites */
  function prepareStackTrace (candidate, sites) {
    if (lent !== undefined) returnSlot(lent)
    const ownSites = withoutOwnSites(sites.slice())
    const text = apply(formatter, this, [candidate, sites])
    if (isUnwrapped && formatter !== nodeFormatter && typeof text === 'string') {
      noteFormatted(formatter, ownSites, text)
    }
    if (candidate !== error || typeof text !== 'string') return text
    unkept = { text, sites: ownSites }
    throw UNKEPT
  }
  const isLendable = !state.isAppending && formatter !== undefined && isSettable(slot)
  const lent = isLendable ? lendSlot(realm, slot, prepareStackTrace) : undefined
  try {
    return { text: error.stack, sites: undefined }
  } catch (thrown) {
    if (unkept === undefined || thrown !== UNKEPT) throw thrown
    return unkept
  } finally {
    if (lent !== undefined) returnSlot(lent)
  }
}

/** @type {Formatter} */
function plainFormat (_, sites) {
  return sites.map((site) => `    at ${site}`).join('\n')
}

/** @type {Formatter} */
const sitesFormat = (_, sites) => sites

module.exports = {
  disable,
  enable,
  inForce,
  installed,
  isInForce,
  preload,
  readStack,
  realms,
  setReporter,
  usesNodeFormatter,
  withCallSites,
  withPlainFormat
}
