'use strict'

// Formatters of stacks in a wrapper of longstack's: the formatter that was there before does the formatting,
// and hops are appended to its result, if that is a string.

const { types } = require('node:util')
const guard = require('../core/guard')
const { noteStartUpError, readSites } = require('./call-sites')
const { nodeFormatter } = require('./formatter-slot')
const { forget, noteInstalled, observeFormatter } = require('./program-mapper')
const { settings } = require('../settings')
const { ensureHeadroomToLoad, hasHeadroom } = require('./stack-headroom')
const { limit } = require('./trace-limit')

const { apply } = Reflect

const DEFAULT_LIMIT = 10 // Error.stackTraceLimit of V8
const FRAME = '\n    at ' // begins one

/**
 * @typedef {import('./formatter-slot').Formatter} Formatter
 *
 * @typedef {object} Original
 * @property {Formatter | undefined} formatter
 * @property {PropertyDescriptor | undefined} slot that it was in
 */

const state = {
  /** false: wrappers pass everything through */
  isEnabled: false,
  /** hops are being appended: V8 does not enter a formatter twice */
  isAppending: false
}
/** a formatter of the program runs, and may call the wrapper that it replaced */
let isInProgram = false
/** a stack of longstack's own that is being read @type {object | undefined} */
let ownHolder
/** formats it @type {Formatter} */
let ownFormat = (_, sites) => sites
/** what the first hops need is loaded */
let isLoaded = false
/**
 * wrappers by originals: a formatter that is set again and again is wrapped once
 * @type {WeakMap<Function, Formatter>}
 */
const wrappers = new WeakMap()
/** originals by wrappers @type {WeakMap<Function, Original>} */
const originals = new WeakMap()
/** the wrapper around no formatter @type {Formatter | undefined} */
let bareWrapper

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
  save: () => ({ isAppending: state.isAppending, isInProgram }),
  restore (saved) {
    state.isAppending = saved?.isAppending === true
    isInProgram = saved?.isInProgram === true
  }
})

/**
 * Reads a stack of longstack's own while a wrapper is in force.
 * @param {{ stack: any }} holder
 * @param {Formatter} formatter
 */
function readOwn (holder, formatter) {
  const [outerHolder, outerFormat] = [ownHolder, ownFormat]
  ownFormat = formatter
  ownHolder = holder
  try {
    return holder.stack
  } finally { // where this is not run, no other error is that holder
    ownHolder = outerHolder
    ownFormat = outerFormat
  }
}

/** @param {unknown} wrapper @returns {Original | undefined} undefined: it is no wrapper */
function originalOf (wrapper) {
  return originals.get(/** @type {Function} */ (wrapper))
}

/** @param {PropertyDescriptor | undefined} slot @returns {Formatter} */
function wrapFormatter (slot) {
  const formatter = typeof slot?.value === 'function' ? /** @type {Formatter} */ (slot.value) : undefined
  const wrapper = formatter === undefined ? bareWrapper : wrappers.get(formatter)
  return wrapper ?? createWrapper(formatter, slot)
}

/** @param {Formatter | undefined} formatter @param {PropertyDescriptor | undefined} slot */
function createWrapper (formatter, slot) {
  /**
   * @this {unknown}
   * @param {any} error
   * @param {NodeJS.CallSite[]} allSites
   */
  function prepareStackTrace (error, allSites) {
    return format(formatter, this, error, allSites)
  }

  if (formatter === undefined) bareWrapper = prepareStackTrace
  else wrappers.set(formatter, prepareStackTrace)
  if (formatter !== undefined) noteInstalled(formatter)
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
  if (error === ownHolder) return apply(ownFormat, self, [error, allSites])
  const isExtended = state.isEnabled && !isInProgram && !state.isAppending && hasHeadroom()
  if (isExtended) reporter.observe(error)
  const sites = state.isEnabled ? withoutOwnSites(allSites) : allSites
  const text = formatAsBefore(formatter, self, error, sites, isExtended)
  if (!isExtended || typeof text !== 'string') return text
  const room = roomForHops(sites)
  if (room < 1 || !isErrorLike(error)) return text
  state.isAppending = true
  try {
    if (noteStartUpError(error, sites)) return text
    if (!isLoaded) ensureHeadroomToLoad()
    const hops = firstFrames(reporter.report(error, sites), room)
    isLoaded = true
    return hops === '' ? text : `${text}\n${hops}`
  } catch {
    return text
  } finally {
    state.isAppending = false
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
      if (hasRoom && typeof text === 'string') noteFormatted(formatter, sites, text)
      return text
    } finally {
      isInProgram = wasInProgram
    }
  }
  forget()
  const lines = /** @type {unknown[]} */ (hasRoom ? mapSites(sites) : sites)
  if (nodeFormatter === undefined) {
    return [headOf(error), ...lines.map((line) => `    at ${line}`)].join('\n')
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
    if (frame === -1) return hops
    const lineEnd = hops.indexOf('\n', frame + 1)
    if (lineEnd === -1) return hops
    end = lineEnd
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
    if (settings.options.internals || !frames.some(isOwn)) return kept
    const ofProgram = kept.filter((_, i) => !isOwn(frames[i]))
    return ofProgram.length === 0 ? kept : ofProgram
  } catch {
    return sites // a program may have replaced any built-in
  }
}

/** @param {import('./frames').Frame} frame */
function isOwn (frame) {
  return frame.kind === 'own'
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

/**
 * Notes whether a formatter maps frames.
 * @param {Formatter} formatter
 * @param {NodeJS.CallSite[]} sites
 * @param {string} text that it made of them
 */
function noteFormatted (formatter, sites, text) {
  try {
    observeFormatter(formatter, sites, text)
  } catch {} // no room on the stack
}

/** @param {any} error */
function headOf (error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return 'Error'
  }
}

module.exports = {
  loadSourceMaps, noteFormatted, originalOf, readOwn, setReporter, state, withoutOwnSites, wrapFormatter
}
