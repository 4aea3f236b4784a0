'use strict'

// Appends hops to `.stack`. Wraps the existing formatter, which does the formatting; hops are appended to its
// result if that is a string. A formatter that the program sets later takes effect at once, and is wrapped
// when the next callback begins. One that is swapped in and back (depd, callsites) is never touched, and gets
// its raw frames.
//
// With `errors: false` nothing is wrapped. longstack then swaps its own formatter in only while it reads one
// stack, so no code of the program runs in between.

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
const FRAME = `\n${AT}` // start of a frame
const UNKEPT = Object.freeze({}) // thrown so that V8 keeps nothing

/**
 * @typedef {import('./error-slots').Formatter} Formatter
 *
* @typedef {object} Original
 * @property {Formatter | undefined} formatter
 * @property {PropertyDescriptor | undefined} slot the property that held it
 */

/** value of Error.prepareStackTrace while a wrapper is in force @type {{ format: Formatter | undefined }} */
const installed = { format: undefined }
/** false: wrappers pass everything through */
let isEnabled = false
/** true while hops are appended: V8 does not enter a formatter twice */
let isAppending = false
/** true while a formatter of the program runs, which may call the wrapper it replaced */
let isInProgram = false
/** longstack's own object whose stack is being read @type {object | undefined} */
let ownHolder
/** whether the modules for the first hops are loaded */
let isLoaded = false
/**
 * wrappers by originals, or by `format` if there is none: a formatter that is set repeatedly is wrapped once
 * @type {WeakMap<Function, Formatter>}
 */
const wrappers = new WeakMap()
/** originals by wrappers @type {WeakMap<Function, Original>} */
const originals = new WeakMap()

/**
 * @typedef {object} Reporter
 * @property {(error: object, sites: NodeJS.CallSite[]) => string} report returns the text to append, or ''
 * @property {(error: object) => void} observe notes when an error was created, before anything is
 *   allocated for it
 */

/** @type {Reporter} */
let reporter = { report: () => '', observe () {} }

/** Sets the reporter that observes errors and provides their hops. @param {Reporter} next */
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

/** Reads the stack of longstack's own holder while a wrapper is in force. @param {{ stack: any }} holder */
function readOwn (holder) {
  const outerHolder = ownHolder
  ownHolder = holder
  try {
    return holder.stack
  } finally { // if V8 skips this, no other error equals the holder
    ownHolder = outerHolder
  }
}

/** @param {unknown} wrapper @returns {Original | undefined} undefined if it is no wrapper */
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
 * @param {boolean} hasRoom whether the stack has room for source maps
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
  // Node's formatter prints whatever it gets, call sites or strings.
  return apply(nodeFormatter, self, [error, lines])
}

/**
 * Returns how many frames hops may have. A limit that the program lowered applies to the whole stack.
 * @param {NodeJS.CallSite[]} sites
 * @returns {number} below 1: no hops
 */
function roomForHops (sites) {
  const frames = Number(limit())
  return frames >= DEFAULT_LIMIT ? Infinity : frames >= 1 ? frames - sites.length : 0
}

/** Cuts hops after a number of frames. @param {string} hops as text @param {number} count */
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
 * Removes the frames that exist because of longstack: its own ones that call the program (trace.span,
 * trace.intercept and so on), and Node's trampoline into JavaScript while any hook is enabled.
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

/** @throws {RangeError} if the stack has no room to load it */
function loadSourceMaps () {
  if (sourceMaps === undefined) {
    ensureHeadroomToLoad()
    sourceMaps = guard.run(() => require('./source-maps'))
  }
  return sourceMaps
}

/**
 * Returns the mapped lines of call sites, or the call sites if Node maps them.
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

/** Whether an object gets hops: Error.captureStackTrace puts a stack on any object. @param {any} error */
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

/** Returns whether Error.prepareStackTrace is the last installed wrapper. */
function isInstalled () {
  return installed.format !== undefined && Error.prepareStackTrace === installed.format
}

/** Loads the modules that the program's first error needs. */
function preload () {
  try {
    loadSourceMaps()
  } catch {} // that error tries again
}

/**
 * Wraps the formatter in force.
 * @returns {boolean} false if Error.prepareStackTrace cannot be set (--frozen-intrinsics)
 */
function enable () {
  isEnabled = true
  installed.format = wrapIn(Error, readSlot())
  return installed.format !== undefined
}

/**
 * Wraps the formatter of a realm.
 * @param {ErrorConstructor} realm
 * @param {PropertyDescriptor | undefined} slot its formatter property
 * @returns {Formatter | undefined} the wrapper, or undefined if none can be set
 */
function wrapIn (realm, slot) {
  if (originalOf(slot?.value) !== undefined) return slot?.value
  const wrapper = isSettable(slot) ? wrapFormatter(slot) : undefined
  return wrapper !== undefined && setFormatter(wrapper, slot, realm) ? wrapper : undefined
}

/** Removes the wrapper. Below a formatter set on top of it, the wrapper passes everything through. */
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

/** Whether Node's own formatter is in force, wrapped or not. */
function usesNodeFormatter () {
  const { formatter } = inForce()
  return typeof formatter !== 'function' || formatter === nodeFormatter
}

/**
 * Whether a wrapper is in force. Calls no other formatter; V8 reads the property at every error, too.
 */
const isInForce = () => isInstalled() || inForce().isWrapped

/**
 * Returns the current stack in V8's plain format, whatever formatter is in force.
 * @param {Function} outermost this function's frame and those above it are left out
 * @param {number} frames
 * @returns {string} empty if it has no text
 */
function captureText (outermost, frames) {
  const sites = captureSites(outermost, frames)
  return Array.isArray(sites) ? sites.map((site) => `${AT}${textOfSite(site)}`).join('\n') : sites ?? ''
}

/**
 * Returns the current stack as call sites, or as text if a formatter is already running. The wrapper
 * recognizes longstack's object; any other formatter is replaced temporarily.
 * @param {Function} outermost this function's frame and those above it are left out
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
 * @property {unknown} text value that the program would get as `.stack`
 * @property {NodeJS.CallSite[] | undefined} sites undefined if the stack was formatted before
 */

/**
 * Reads an error's stack as the program would. The formatter in force is called as Node calls it, and sees
 * itself in Error.prepareStackTrace. A formatter of the error's own realm (vm context) comes first.
 *
 * V8 formats a stack at the first read, with the message at that time, and keeps the text. It keeps nothing
 * if the formatter throws (ErrorUtils::GetFormattedStack in src/execution/messages.cc), so to the program the
 * error is still unread. A result that is no text is kept: the program may have noted it.
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
