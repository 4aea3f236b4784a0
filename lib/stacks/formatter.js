'use strict'

// Appends hops to `.stack`. The formatter that was there before is wrapped: it does the formatting, and hops
// are appended to its result, if that is a string. One that the program sets later wins at once; when the
// next callback begins it is wrapped in its turn. One that is swapped in and back (depd, callsites) is never
// touched, and gets its raw frames.
//
// With the option `errors: false` nothing is wrapped. Longstack then swaps a formatter in and back itself,
// for the moment in which it reads one stack, so that nothing of the program runs while it is there.

const { types } = require('node:util')
const guard = require('../core/guard')
const { settings } = require('../settings')
const { imitate } = require('../wrap')
const { noteStartUpError, readSites, textOfSite } = require('./call-sites')
const {
  captureInto, giveBack, isSettable, lendFormatter, limit, nodeFormatter, readSlot, readUnwrapped, realmOf,
  restoreFormatter, setFormatter
} = require('./error-slots')
const { forget, noteInstalled, observeFormatter } = require('./program-mapper')
const { ensureHeadroomToLoad, hasHeadroom } = require('./stack-headroom')
const { AT } = require('./text-scan')

const { apply } = Reflect

const DEFAULT_LIMIT = 10 // Error.stackTraceLimit of V8
const FRAME = `\n${AT}` // begins one
const UNKEPT = Object.freeze({}) // thrown so that V8 keeps nothing

/**
 * @typedef {import('./error-slots').Formatter} Formatter
 *
* @typedef {object} Original
 * @property {Formatter | undefined} formatter
 * @property {PropertyDescriptor | undefined} slot that it was in
 */

/** what Error.prepareStackTrace is while a wrapper is in force @type {{ format: Formatter | undefined }} */
const installed = { format: undefined }
/** false: wrappers pass everything through */
let isEnabled = false
/** hops are being appended: V8 does not enter a formatter twice */
let isAppending = false
/** a formatter of the program runs, and may call the wrapper that it replaced */
let isInProgram = false
/** a stack of longstack's own that is being read @type {object | undefined} */
let ownHolder
/** what the first hops need is loaded */
let isLoaded = false
/**
 * wrappers by originals, that around none by `format`: a formatter that is set again and again is wrapped
 * once
 * @type {WeakMap<Function, Formatter>}
 */
const wrappers = new WeakMap()
/** originals by wrappers @type {WeakMap<Function, Original>} */
const originals = new WeakMap()

/**
 * @typedef {object} Reporter
 * @property {(error: object, sites: NodeJS.CallSite[]) => string} report returns the text to append, or ''
 * @property {(error: object) => void} observe notes when an error was made, before anything is allocated
 *   for it
 */

/** @type {Reporter} */
let reporter = { report: () => '', observe () {} }

/** Sets what is told of errors, and appends to their stacks. @param {Reporter} next */
function setReporter (next) {
  reporter = next
}

guard.add({
  save: () => ({ isAppending, isInProgram }),
  restore (saved) {
    isAppending = saved?.isAppending === true
    isInProgram = saved?.isInProgram === true
  }
})

/** Reads a stack of longstack's own while a wrapper is in force. @param {{ stack: any }} holder */
function readOwn (holder) {
  const outerHolder = ownHolder
  ownHolder = holder
  try {
    return holder.stack
  } finally { // where this is not run, no other error is that holder
    ownHolder = outerHolder
  }
}

/** @param {unknown} wrapper @returns {Original | undefined} undefined: it is no wrapper */
function originalOf (wrapper) {
  return originals.get(/** @type {Function} */ (wrapper))
}

/** @param {PropertyDescriptor | undefined} slot @returns {Formatter} */
function wrapFormatter (slot) {
  const formatter = typeof slot?.value === 'function' ? /** @type {Formatter} */ (slot.value) : undefined
  const wrapper = wrappers.get(formatter ?? format)
  if (wrapper !== undefined) return wrapper

  /**
   * @this {unknown}
   * @param {any} error
   * @param {NodeJS.CallSite[]} allSites
   */
  function prepareStackTrace (error, allSites) {
    return format(formatter, this, error, allSites)
  }

  wrappers.set(formatter ?? format, prepareStackTrace)
  if (formatter !== undefined) {
    imitate(prepareStackTrace, formatter)
    noteInstalled(formatter)
  }
  originals.set(prepareStackTrace, { formatter, slot })
  return prepareStackTrace
}

/**
 * @param {Formatter | undefined} formatter
 * @param {unknown} self
 * @param {any} error
 * @param {NodeJS.CallSite[]} allSites
 */
function format (formatter, self, error, allSites) {
  if (error === ownHolder) return allSites
  const isExtended = isEnabled && !isInProgram && !isAppending && hasHeadroom()
  if (isExtended) reporter.observe(error)
  const sites = isEnabled ? withoutOwnSites(allSites) : allSites
  const text = formatAsBefore(formatter, self, error, sites, isExtended)
  if (!isExtended || typeof text !== 'string') return text
  const room = roomForHops(sites)
  if (room < 1 || !isErrorLike(error)) return text
  isAppending = true
  try {
    if (noteStartUpError(error, sites)) return text
    if (!isLoaded) ensureHeadroomToLoad()
    const hops = firstFrames(reporter.report(error, sites), room)
    isLoaded = true
    return hops === '' ? text : `${text}\n${hops}`
  } catch {
    return text
  } finally {
    isAppending = false
  }
}

/**
 * Formats as without longstack.
 * @param {Formatter | undefined} formatter
 * @param {unknown} self
 * @param {any} error
 * @param {NodeJS.CallSite[]} sites
 * @param {boolean} hasRoom for source maps
 */
function formatAsBefore (formatter, self, error, sites, hasRoom) {
  if (formatter !== undefined && formatter !== nodeFormatter) {
    const wasInProgram = isInProgram
    isInProgram = true
    try {
      const text = apply(formatter, self, [error, sites.slice()]) // a formatter may remove some
      if (hasRoom && typeof text === 'string') observeFormatter(formatter, sites, text)
      return text
    } finally {
      isInProgram = wasInProgram
    }
  }
  forget()
  const lines = /** @type {unknown[]} */ (hasRoom ? mapSites(sites) : sites)
  if (nodeFormatter === undefined) {
    return [headOf(error), ...lines.map((line) => `${AT}${line}`)].join('\n')
  }
  // Node's own prints what it is given, call sites or strings.
  return apply(nodeFormatter, self, [error, lines])
}

/**
 * Returns how many frames hops may have: a limit that the program has lowered holds for the whole stack.
 * @param {NodeJS.CallSite[]} sites
 * @returns {number} below 1: there are to be no hops
 */
function roomForHops (sites) {
  const frames = Number(limit())
  return frames >= DEFAULT_LIMIT ? Infinity : frames >= 1 ? frames - sites.length : 0
}

/** Cuts hops behind a number of frames. @param {string} hops as text @param {number} count */
function firstFrames (hops, count) {
  if (count === Infinity) return hops
  let end = 0
  for (let frames = 0; frames < count; frames++) {
    const frame = hops.indexOf(FRAME, end)
    end = frame === -1 ? -1 : hops.indexOf('\n', frame + 1)
    if (end === -1) return hops
  }
  return hops.slice(0, end)
}

/**
 * Removes the frames that are there because of longstack: its own, where it calls the program (trace.span,
 * trace.intercept and so on), and the one by which Node calls into JavaScript while any hook is enabled.
 * @param {NodeJS.CallSite[]} sites
 */
function withoutOwnSites (sites) {
  try {
    if (!Array.isArray(sites) || sites.length === 0) return sites
    const { frames } = readSites(sites)
    const last = sites.length - 1
    const isTrampoline = frames[last].fileName === 'node:internal/async_hooks' &&
      sites[last].getFunctionName() === 'callbackTrampoline'
    const kept = isTrampoline ? sites.slice(0, -1) : sites
    if (settings.options.internals || !frames.some(({ kind }) => kind === 'own')) return kept
    const ofProgram = kept.filter((_, i) => frames[i].kind !== 'own')
    return ofProgram.length === 0 ? kept : ofProgram
  } catch {
    return sites // a program may have replaced any built-in
  }
}

/** @type {typeof import('./source-maps') | undefined} */
let sourceMaps

/** @throws {RangeError} where the stack has no room to load it */
function loadSourceMaps () {
  if (sourceMaps === undefined) {
    ensureHeadroomToLoad()
    sourceMaps = guard.run(() => require('./source-maps'))
  }
  return sourceMaps
}

/**
 * Returns the lines of call sites, mapped, or the call sites where Node maps them.
 * @param {NodeJS.CallSite[]} sites
 */
function mapSites (sites) {
  try {
    if (/** @type {any} */ (process).sourceMapsEnabled === true) return sites
    return loadSourceMaps().mapSites(sites)
  } catch {
    return sites
  }
}

/** Whether hops belong on it: Error.captureStackTrace puts a stack on any object. @param {any} error */
function isErrorLike (error) {
  try {
    return types.isNativeError(error) || error instanceof Error
  } catch {
    return false // a prototype that is a proxy
  }
}

/** @param {any} error */
function headOf (error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return 'Error'
  }
}

/** Returns whether Error.prepareStackTrace is the wrapper that was installed last. */
function isInstalled () {
  return installed.format !== undefined && Error.prepareStackTrace === installed.format
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
  isEnabled = true
  installed.format = wrapIn(Error, readSlot())
  return installed.format !== undefined
}

/**
 * Wraps the formatter of a realm.
 * @param {ErrorConstructor} realm
 * @param {PropertyDescriptor | undefined} slot of it
 * @returns {Formatter | undefined} the wrapper; undefined where none can be set
 */
function wrapIn (realm, slot) {
  if (originalOf(slot?.value) !== undefined) return slot?.value
  const wrapper = isSettable(slot) ? wrapFormatter(slot) : undefined
  return wrapper !== undefined && setFormatter(wrapper, slot, realm) ? wrapper : undefined
}

/** Removes the wrapper; under a formatter that was set on top of it, it passes everything through. */
function disable () {
  isEnabled = false
  installed.format = undefined
  forget()
  unwrapIn(Error)
}

/** Removes the wrapper of a realm's formatter. @param {ErrorConstructor} realm */
function unwrapIn (realm) {
  const original = originalOf(readSlot(realm)?.value)
  if (original !== undefined) restoreFormatter(original.slot, realm)
}

/** Returns whether a wrapper is in force, around which formatter, and whether another can be set. */
function inForce () {
  const slot = readSlot()
  const original = originalOf(slot?.value)
  const formatter = original === undefined ? slot?.value : original.formatter
  return { isWrapped: original !== undefined, formatter, isSettable: isSettable(slot) }
}

/** Whether Node's own formatter is in force, maybe in a wrapper. */
function usesNodeFormatter () {
  const { formatter } = inForce()
  return typeof formatter !== 'function' || formatter === nodeFormatter
}

/**
 * Whether a wrapper is in force. V8 reads the property at every error, too; other formatters are not called.
 */
const isInForce = () => isInstalled() || inForce().isWrapped

/**
 * Returns the present stack in V8's plain format, whatever formatter is in force.
 * @param {Function} outermost frames from this function on are left out
 * @param {number} frames
 * @returns {string} empty where it has no text
 */
function captureText (outermost, frames) {
  const sites = captureSites(outermost, frames)
  return Array.isArray(sites) ? sites.map((site) => `${AT}${textOfSite(site)}`).join('\n') : sites ?? ''
}

/**
 * Returns the present stack as call sites; as text where a formatter runs already. The wrapper knows that it
 * is longstack's, another formatter is replaced for the moment.
 * @param {Function} outermost frames from this function on are left out
 * @param {number} frames
 * @returns {NodeJS.CallSite[] | string | undefined}
 */
function captureSites (outermost, frames) {
  const holder = /** @type {any} */ ({ __proto__: null })
  captureInto(holder, outermost, frames)
  const value = isAppending ? holder.stack : isInstalled() ? readOwn(holder) : readUnwrapped(holder)
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
    if (lent !== undefined) giveBack(lent)
    const ownSites = withoutOwnSites(sites.slice())
    const text = apply(formatter, this, [candidate, sites])
    if (isUnwrapped && formatter !== nodeFormatter && typeof text === 'string') {
      observeFormatter(formatter, ownSites, text)
    }
    if (candidate !== error || typeof text !== 'string') return text
    unkept = { text, sites: ownSites }
    throw UNKEPT
  }
  const isLendable = !isAppending && formatter !== undefined && isSettable(slot)
  const lent = isLendable ? lendFormatter(realm, prepareStackTrace) : undefined
  try {
    return { text: error.stack, sites: undefined }
  } catch (thrown) {
    if (unkept === undefined || thrown !== UNKEPT) throw thrown
    return unkept
  } finally {
    if (lent !== undefined) giveBack(lent)
  }
}

module.exports = {
  captureSites,
  captureText,
  disable,
  enable,
  inForce,
  installed,
  isInForce,
  preload,
  readStack,
  setReporter,
  unwrapIn,
  usesNodeFormatter,
  wrapIn
}
