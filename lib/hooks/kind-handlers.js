'use strict'

// What is done beyond recording a resource: for handles, ticks, timers and parsers, and where spans are
// timed.

const { executionAsyncResource } = require('node:async_hooks')
const { types } = require('node:util')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { adopt, cachedContext, contextAt, contextOf, OWN_WORK, root, contextTag } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_RUN, CURRENT_SPAN, DEPTH, ORPHANED, TIMED, current
} = require('../context/current')

const {
  CHAIN, CAUSE, DETAIL, FLAGS, REF, INCOMING, LIVE, PASSED, SPECIAL, TICK, ENTERED, CALLED, DETAILED, PARSER,
  NO_CHAIN, OWN_WORK_CHAIN, FIRST_CHAIN, CHAIN_BITS, TICKS, resources
} = records
const HELD = 64 // contexts with a detail that are held; a power of two
const HEAD = 1 // of a request has come, and nothing of it since
const BODY = 2

/** @type {(value: any) => boolean} */
// The first is a built-in of V8's from Node 24 on
const isError = /** @type {any} */ (Error).isError ?? types.isNativeError

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../context/kinds').Kind} Kind
 */

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts} deps.rooms
 * @param {import('./async-hooks').Listener} deps.listener
 * @param {import('./light-carrier').Carrier} deps.carrier
 * @param {() => import('../spans/loop-time').LoopTime} deps.loop while spans are timed
 */
function createKindHandlers ({ rooms, listener, carrier, loop }) {
  const { capture, registry, callbackListeners } = rooms
  const { clock } = capture
  /** a handle that was just made while nothing executed: reference */
  let orphan = 0
  let orphanType = ''
  /** contexts with a detail, held for a while @type {Context[]} */
  const held = []
  let heldCount = 0
  /** timers that were closed and run again (timer.refresh), with another id @type {WeakSet<object>} */
  const reused = new WeakSet()

  /** @param {() => void} work */
  function guarded (work) {
    guard.inOwnWork = true
    try {
      work()
    } catch (error) {
      listener.failed(error)
    } finally {
      guard.inOwnWork = false
    }
  }

  /**
   * A resource of a kind that asks for more was made.
   * @param {Kind} kind
   * @param {number} asyncId
   * @param {number} at
   * @param {number} trigger
   * @param {any} resource
   */
  function made (kind, asyncId, at, trigger, resource) {
    if (kind.tick) return tickMade(at, resource)
    if (kind.timer) timerMade(at, resource)
    if (current[CURRENT_CHAIN] === NO_CHAIN && trigger === 0 && mayBeOrphan(kind.type)) {
      orphan = asyncId << 1
      orphanType = kind.type
      current[ATTENTION] |= ORPHANED
    }
    if (!kind.handle) return
    // Last: a handle that is still being made must not be asked anything, a callback might.
    if (kind.brief) registry.addBrief(asyncId << 1, kind.type, clock[0], resource)
    else guarded(() => open(asyncId << 1, resource))
  }

  /**
   * A handle bears its context: its id may change (Node's agent resets that of a connection that it uses
   * again), and some do not tell it.
   * @param {number} ref
   * @param {object} resource
   */
  function open (ref, resource) {
    const context = contextAt(ref)
    if (context === undefined) return
    contextTag.write(resource, context)
    listener.opened(context, resource)
  }

  /** @param {number} at @param {any} timer */
  function timerMade (at, timer) {
    // Set when the timer is put into a list (lib/internal/timers.js)
    if (timer._idleStart !== null) reused.add(timer)
    const delay = timer._idleTimeout
    if (typeof delay !== 'number') return
    resources[at + DETAIL] = delay
    records.noteDelay(resources[at + CHAIN], delay)
  }

  /**
   * An error that Node's core hands to nextTick was just made there. Others may be old; attribution uses this
   * for errors without a frame of the program only.
   * @param {number} at
   * @param {any} tick
   */
  function tickMade (at, tick) {
    const { args } = tick
    const isList = Array.isArray(args)
    if (isList && args.length > 3 && args[1] === 'stream') guarded(() => streamMade(at, args))
    if (listener.tickScheduled !== undefined && (current[ATTENTION] & TIMED) !== 0) {
      guarded(() => listener.tickScheduled?.(/** @type {Context} */ (contextAt(resources[at + REF])), tick))
    }
    if (!isList) return
    for (let i = 0; i < args.length; i++) {
      const value = args[i]
      if (typeof value !== 'object' || value === null || !isError(value)) continue
      const context = contextOf(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
      if (context !== undefined) listener.errorPassedToTick(value, context)
    }
  }

  /**
   * HTTP/2 tells the program of a request in a tick (onSessionHeaders in Node's lib/internal/http2/core.js).
   * @param {number} at index of the tick's record
   * @param {unknown[]} args
   */
  function streamMade (at, args) {
    const session = records.findRecord(current[CURRENT_CAUSE])
    const number = session === undefined ? 0 : listener.http2StreamStarted(args[2], args[3])
    if (session !== undefined && number !== 0) {
      resources[at + CAUSE] = records.addRequest(session, clock[0] * TICKS, number)
    }
  }

  /**
   * A timer's turn is over: it is closed, or its next turn comes.
   * @param {number} ref
   * @param {number} asyncId
   * @param {number} at
   */
  function timerRan (ref, asyncId, at) {
    const timer = /** @type {any} */ (executionAsyncResource())
    if (timer._destroyed === true) {
      resources[at + FLAGS] &= ~LIVE
      registry.closed(asyncId)
    } else {
      const context = contextAt(ref)
      if (context === undefined) return
      context.repeats++
      guarded(() => registry.repeated(context, timer, now()))
    }
  }

  /**
   * A callback of a handle begins, or any in light mode.
   * @param {number} ref
   * @param {number} flags
   * @param {Int32Array} words of its record
   * @param {number} at
   */
  function begins (ref, flags, words, at) {
    if ((flags & PARSER) !== 0 && words[at + DETAIL] !== 0) resumeRequest(words, at)
    if ((flags & ENTERED) !== 0 && carrier.on) {
      if ((flags & TICK) === 0 || isOfProgram(current[CURRENT_CHAIN])) carrier.enter()
    }
    if ((flags & (SPECIAL | DETAILED)) === 0 || guard.inOwnWork || current[CURRENT_CHAIN] === OWN_WORK_CHAIN) return
    const isKnown = registry.noteActivity(ref >>> 1, clock[0])
    if (isKnown && (flags & DETAILED) === 0) return
    guarded(() => {
      const context = contextAt(ref)
      if (context === undefined) return
      if (!isKnown) registry.noteActivity(context.asyncId, now())
      if (context.kind.detail === undefined || context.detail !== undefined) return
      context.detail = context.kind.detail(executionAsyncResource())
      held[heldCount++ & (HELD - 1)] = context // its detail lives in the object
      listener.connectStarted(context)
    })
  }

  /**
   * A tick that Node made for itself is no part of a chain, and to carry it copies a map.
   * @param {number} number of a chain
   */
  function isOfProgram (number) {
    return number >= FIRST_CHAIN && capture.hasProgramFrame(number)
  }

  /**
   * Where spans are timed, or callbacks watched, or a handle's maker is looked for.
   * @param {number} ref
   * @param {number} flags
   * @param {Int32Array} words
   * @param {number} at
   */
  function attend (ref, flags, words, at) {
    if (orphan !== 0) claim(current[CURRENT_CAUSE])
    const span = current[CURRENT_SPAN]
    const isCallback = current[DEPTH] === 1 && (flags & CALLED) !== 0
    if (listener.callbackStarted !== undefined && isCallback) {
      listener.callbackStarted(now(), contextOf(current[CURRENT_CHAIN], current[CURRENT_CAUSE], span) ?? root)
    }
    if ((current[ATTENTION] & TIMED) === 0) return
    const timed = loop()
    if (isCallback) {
      if (timed.mayHavePolled || span !== timed.spanNumber) timed.enterCallback(span, now())
      timed.callbackRef = ref
      timed.callbackChain = (flags & PASSED) !== 0 ? 0 : words[at + CHAIN]
    } else if (span !== timed.spanNumber) timed.switchTo(span, now())
    current[CURRENT_RUN] = span === 0 ? 0 : timed.beginRun(flags, words, at)
    if ((ref & 1) === 0 && callbackListeners.size > 0) callbackListeners.get(ref >>> 1)?.()
  }

  /**
   * fs makes the handle of an opened file or directory before it enters the callback, or resolves the
   * promise, of the one who asked for it; HTTP/2 the stream of a request before it enters the session's.
   * Where anything else runs first, the request's head came in pieces, and nobody knows.
   * @param {number} ref of the callback, promise or session
   */
  function claim (ref) {
    if (orphan === 0) return
    const handle = orphan
    disown()
    if (handle === ref) return
    if (orphanType === 'FILEHANDLE' && cachedContext(handle) === undefined) return claimFile(handle, ref)
    const orphaned = contextAt(handle)
    const context = contextAt(ref)
    const isHttp2 = orphanType === 'HTTP2STREAM'
    if (orphaned === undefined || context === undefined || context === orphaned || context === OWN_WORK) return
    if (!isHttp2 || context.type === 'HTTP2SESSION') adopt(orphaned, context)
  }

  /**
   * A server opens some for each request: no context is made for them.
   * @param {number} handle
   * @param {number} ref
   */
  function claimFile (handle, ref) {
    const file = records.findRecord(handle)
    const opener = records.findRecord(ref)
    if (file === undefined || opener === undefined) return
    const above = opener.words[opener.offset + CHAIN]
    const own = capture.partsOf(file.words[file.offset + CHAIN])
    if (above === NO_CHAIN || above === OWN_WORK_CHAIN || own === undefined) return
    const joined = capture.intern(above, own[1], own[2]) & CHAIN_BITS
    if (joined === NO_CHAIN) return
    file.words[file.offset + CHAIN] = joined
    const isPassed = (opener.words[opener.offset + FLAGS] & PASSED) !== 0
    file.words[file.offset + CAUSE] = isPassed ? opener.words[opener.offset + CAUSE] : ref
  }

  function disown () {
    orphan = 0
    current[ATTENTION] &= ~ORPHANED
  }

  return {
    guarded,
    made,
    begins,
    timerRan,
    attend,
    claim,
    disown,

    /** Had a timer an id before its present one? @param {object} timer */
    isReused: (timer) => reused.has(timer)
  }
}

/** @param {string} type */
const mayBeOrphan = (type) => type === 'FILEHANDLE' || type === 'DIRHANDLE' || type === 'HTTP2STREAM'

/**
 * The parser of a connection brings more of the request that came last, or is done with it. What comes next
 * after the head of a request is its body or its end; to look costs more than all else here.
 * @param {Int32Array} words of the parser's record
 * @param {number} at
 */
function resumeRequest (words, at) {
  const state = words[at + INCOMING]
  if (state === HEAD) words[at + INCOMING] = BODY
  else if (state === BODY && !isIncoming(executionAsyncResource())) words[at + INCOMING] = 0
  if (words[at + INCOMING] !== 0) current[CURRENT_CAUSE] = words[at + DETAIL]
}

/**
 * Is a request still coming in on a connection? Upgrades are none that a channel told of. What Node itself
 * reads with every callback (lib/_http_server.js, lib/_http_common.js) is read plainly.
 * @param {any} resource of a parser: HTTPServerAsyncResource
 */
function isIncoming (resource) {
  const incoming = resource?.socket?.parser?.incoming
  if (typeof incoming !== 'object' || incoming === null) return false
  return incoming.complete === false && incoming.upgrade !== true
}

module.exports = { HEAD, createKindHandlers }
