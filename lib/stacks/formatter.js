'use strict'

// The only owner of Error.prepareStackTrace. V8 calls it at the first read of `.stack`; the formatter that was
// there before still does the formatting, longstack appends its hops to what comes out, and only if that is a
// string. A formatter that the program sets later wins at once; when the next callback begins it is wrapped
// in its turn. One that is swapped in and back (depd, callsites) is never touched, and gets its raw frames.
//
// With the option `errors: false` none of that happens. Longstack then swaps a formatter in and back itself, for the
// moment in which it reads one stack, so that nothing of the program runs while it is there.

const { types } = require('node:util')
const guard = require('../context/guard')
const { forget, observeFormatter } = require('./program-mapper')
const { noteStartUpError, readSites } = require('./call-sites')
const { hasHeadroom, ensureHeadroomToLoad } = require('./stack-headroom')
const { limit } = require('./trace-limit')

const { apply } = Reflect

/**
 * @typedef {(error: any, sites: NodeJS.CallSite[]) => any} Prepare
 */

/** Node's own formatter, where it was there first. */
const initial = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
const nodes = initial?.value?.name === 'ErrorPrepareStackTrace' ? initial.value : undefined

/**
 * @param {object} deps
 * @param {(error: object, sites: NodeJS.CallSite[]) => string} deps.report the text to append, or ''
 * @param {(error: object) => void} deps.observe looks when an error was made, before anything is allocated for it
 * @param {() => boolean} deps.internals whether longstack's own frames are shown
 */
function createFormatter ({ report, observe, internals }) {
  /** wrapped -> wrapper, so that a formatter set again and again is wrapped once @type {WeakMap<Function, Prepare>} */
  const wrappers = new WeakMap()
  /** wrapper -> wrapped @type {WeakMap<Function, { formatter: Prepare | undefined, descriptor: PropertyDescriptor | undefined }>} */
  const wrapped = new WeakMap()
  /** @type {Prepare | undefined} */
  let bare
  /** what Error.prepareStackTrace is while a wrapper is in force @type {{ format: Prepare | undefined }} */
  const installed = { format: undefined }
  let enabled = false
  let formatting = false
  /** what the first story needs */
  let loaded = false
  /** a formatter of the program's runs, and may call the one that it found in its place: ours */
  let inner = false

  /** @param {PropertyDescriptor | undefined} descriptor */
  function wrap (descriptor) {
    const formatter = typeof descriptor?.value === 'function' ? /** @type {Prepare} */ (descriptor.value) : undefined
    const made = formatter === undefined ? bare : wrappers.get(formatter)
    if (made !== undefined) return made

    /**
     * @this {unknown}
     * @param {any} error
     * @param {NodeJS.CallSite[]} allSites
     */
    function prepareStackTrace (error, allSites) {
      const extended = enabled && !inner && !formatting && hasHeadroom()
      if (extended) observe(error)
      const sites = enabled ? programs(allSites, internals()) : allSites
      const plain = format(formatter, this, error, sites, extended)
      if (!extended || typeof plain !== 'string') return plain
      if (!(Number(limit()) >= 1) || !isErrorLike(error)) return plain
      formatting = true
      try {
        if (noteStartUpError(error, sites)) return plain
        if (!loaded) ensureHeadroomToLoad()
        const hops = report(error, sites)
        loaded = true
        return hops === '' ? plain : `${plain}\n${hops}`
      } catch {
        return plain
      } finally {
        formatting = false
      }
    }

    if (formatter === undefined) bare = prepareStackTrace
    else wrappers.set(formatter, prepareStackTrace)
    wrapped.set(prepareStackTrace, { formatter, descriptor })
    return prepareStackTrace
  }

  /**
   * @param {Prepare | undefined} formatter
   * @param {unknown} self
   * @param {any} error
   * @param {NodeJS.CallSite[]} sites
   * @param {boolean} maps whether there is room for source maps
   */
  function format (formatter, self, error, sites, maps) {
    if (formatter !== undefined && formatter !== nodes) {
      const before = inner
      inner = true
      try {
        const plain = apply(formatter, self, [error, sites.slice()]) // a formatter may take some out
        if (maps && typeof plain === 'string') see(formatter, sites, plain)
        return plain
      } finally {
        inner = before
      }
    }
    forget()
    const lines = /** @type {unknown[]} */ (maps ? written(sites) : sites)
    if (nodes === undefined) return `${headOf(error)}${lines.map((line) => `\n    at ${line}`).join('')}`
    // Node's own prints what it is given, call sites or strings.
    return apply(nodes, self, [error, lines])
  }

  /**
   * @template T
   * @param {() => T} read
   * @param {Prepare} format
   * @returns {T}
   */
  function reading (read, format) {
    if (formatting) return read() // V8 does not re-enter a formatter
    const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
    if (present?.writable !== true) return read()
    Error.prepareStackTrace = format
    try {
      return read()
    } finally {
      Error.prepareStackTrace = present.value
    }
  }

  return {
    installed,

    /** Loads what the program's first error needs. */
    preload () {
      try {
        loadSourceMaps()
      } catch {} // it is tried again with that error
    },

    /**
     * Puts a wrapper in force around whatever formatter is.
     * @returns {boolean} false where Error.prepareStackTrace cannot be set (--frozen-intrinsics)
     */
    enable () {
      enabled = true
      const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
      if (present !== undefined && wrapped.has(present.value)) {
        installed.format = present.value
        return true
      }
      installed.format = undefined
      // An accessor or a constant is somebody's decision.
      if (present !== undefined && present.writable !== true) return false
      installed.format = wrap(present)
      return Reflect.defineProperty(Error, 'prepareStackTrace', {
        value: installed.format,
        writable: true,
        enumerable: present?.enumerable ?? true,
        configurable: present?.configurable ?? true
      })
    },

    /**
     * Reads an error's stack where no wrapper is in force, as the program would: whoever formats it is called as Node calls
     * it, and finds its own formatter in place. That of the error's own realm comes first, where a vm context has one
     * (prepareStackTraceCallback in Node's lib/internal/errors.js).
     * @param {any} error
     * @returns {NodeJS.CallSite[] | undefined} undefined where the stack was formatted before
     */
    readStack (error) {
      const home = homeOf(error)
      const present = Object.getOwnPropertyDescriptor(home, 'prepareStackTrace')
      const formatter = typeof present?.value === 'function' ? present.value : nodes
      /** @type {NodeJS.CallSite[] | undefined} */
      let seen
      const isFree = !formatting && formatter !== undefined && !wrapped.has(formatter)
      /** @this {unknown} @param {any} other @param {NodeJS.CallSite[]} sites */
      function prepareStackTrace (other, sites) {
        putBack(home, present)
        if (other === error) seen = programs(sites.slice(), internals())
        const plain = apply(formatter, this, [other, sites])
        if (seen !== undefined && formatter !== nodes && typeof plain === 'string') see(formatter, seen, plain)
        return plain
      }
      const lent = isFree && lend(home, present, prepareStackTrace)
      try {
        error.stack // eslint-disable-line no-unused-expressions
      } finally {
        if (lent !== false && home.prepareStackTrace === lent) putBack(home, present)
      }
      return seen
    },

    /** Takes the wrapper out again; under a formatter that was set on top of it, it passes everything through. */
    disable () {
      enabled = false
      installed.format = undefined
      forget()
      const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
      const found = present === undefined ? undefined : wrapped.get(present.value)
      if (found === undefined) return
      if (found.descriptor === undefined) Reflect.deleteProperty(Error, 'prepareStackTrace')
      else Reflect.defineProperty(Error, 'prepareStackTrace', found.descriptor)
    },

    /** Says whether Node's own formatter is in force, maybe in a wrapper. */
    usesNodeFormatter () {
      const value = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')?.value
      const formatter = wrapped.has(value) ? wrapped.get(value)?.formatter : value
      return typeof formatter !== 'function' || formatter === nodes
    },

    /** A formatter of ours is in force. V8 reads the property at every error, too; the descriptor is asked where it is not ours. */
    isInForce () {
      if (installed.format !== undefined && Error.prepareStackTrace === installed.format) return true
      const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
      return present !== undefined && wrapped.has(present.value)
    },

    /** Who formats: is it a wrapper of ours, around which formatter, and may anybody set another? */
    state () {
      const present = Object.getOwnPropertyDescriptor(Error, 'prepareStackTrace')
      const found = wrapped.get(present?.value)
      return { isWrapped: found !== undefined, formatter: found === undefined ? present?.value : found.formatter, isSettable: present === undefined || present.writable === true }
    },

    /**
     * Reads a `stack` of longstack's own with V8's plain format, whoever's formatter is in force.
     * @param {() => string} read
     */
    withPlainFormat: (read) => reading(read, plainFormat),

    /**
     * The same, read as call sites; as text where a formatter runs already.
     * @param {() => any} read
     * @returns {NodeJS.CallSite[] | string | undefined}
     */
    withCallSites (read) {
      const value = reading(read, sitesFormat)
      return Array.isArray(value) || typeof value === 'string' ? value : undefined
    }
  }
}

/**
 * Returns the Error whose formatter Node asks first: that of the error's realm, where it has one.
 * @param {object} error
 * @returns {ErrorConstructor}
 */
function homeOf (error) {
  for (let at = Object.getPrototypeOf(error); at !== null && !types.isProxy(at); at = Object.getPrototypeOf(at)) {
    const maker = Object.getOwnPropertyDescriptor(at, 'constructor')?.value
    if (maker === Error) break
    if (typeof maker !== 'function' || types.isProxy(maker) || !Object.hasOwn(maker, 'captureStackTrace')) continue
    return typeof Object.getOwnPropertyDescriptor(maker, 'prepareStackTrace')?.value === 'function' ? maker : Error
  }
  return Error
}

/**
 * Puts a formatter in place of the program's for the moment.
 * @param {ErrorConstructor} home
 * @param {PropertyDescriptor | undefined} present the descriptor of the program's
 * @param {Prepare} format
 * @returns {Prepare | false} false where it cannot be set
 */
function lend (home, present, format) {
  if (present !== undefined && present.writable !== true) return false
  const own = { value: format, writable: true, enumerable: present?.enumerable ?? true, configurable: true }
  return Reflect.defineProperty(home, 'prepareStackTrace', present === undefined ? own : { value: format }) && format
}

/** @param {ErrorConstructor} home @param {PropertyDescriptor | undefined} present */
function putBack (home, present) {
  if (present === undefined) Reflect.deleteProperty(home, 'prepareStackTrace')
  else Reflect.defineProperty(home, 'prepareStackTrace', { value: present.value })
}

/**
 * The frames without those that are there because of longstack: its own, where it calls the program (trace.span, trace.intercept ...),
 * and that through which Node calls into JavaScript while any hook is on.
 * @param {NodeJS.CallSite[]} sites
 * @param {boolean} internals longstack's own are shown
 */
function programs (sites, internals) {
  try {
    if (!Array.isArray(sites) || sites.length === 0) return sites
    const { frames } = readSites(sites)
    const last = sites.length - 1
    const { fileName } = frames[last]
    const inHooks = fileName === 'node:internal/async_hooks'
    const hooked = inHooks && sites[last].getFunctionName() === 'callbackTrampoline'
    const kept = hooked ? sites.slice(0, -1) : sites
    if (internals || !frames.some(isOurs)) return kept
    const theirs = kept.filter((_, i) => !isOurs(frames[i]))
    return theirs.length === 0 ? kept : theirs
  } catch {
    return sites // a program may have put its own in place of any built-in
  }
}

/** @param {import('./frames').Frame} frame */
function isOurs (frame) {
  return frame.kind === 'own'
}

/** @type {typeof import('./source-maps') | undefined} */
let sourceMaps

/** @throws {RangeError} where there is no room on the stack to load it */
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
function written (sites) {
  try {
    if (/** @type {any} */ (process).sourceMapsEnabled === true) return sites
    return loadSourceMaps().mapSites(sites)
  } catch {
    return sites
  }
}

/** What Error.captureStackTrace put a stack on may be anything; the story is for errors. @param {any} error */
function isErrorLike (error) {
  try {
    return types.isNativeError(error) || error instanceof Error
  } catch {
    return false // a prototype that is a proxy
  }
}

/** Does it map frames? @param {Prepare} formatter @param {NodeJS.CallSite[]} sites @param {string} text that it made of them */
function see (formatter, sites, text) {
  try {
    observeFormatter(formatter, sites, text)
  } catch {} // no room
}

/** @type {Prepare} */
function plainFormat (_, sites) {
  return sites.map((site) => `    at ${site}`).join('\n')
}

/** @type {Prepare} */
const sitesFormat = (_, sites) => sites

/** @param {any} error */
function headOf (error) {
  try {
    return Error.prototype.toString.call(error)
  } catch {
    return 'Error'
  }
}

module.exports = { createFormatter }
