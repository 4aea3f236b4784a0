'use strict'

// The hot path, whole: what Node and V8 tell of resources and promises. It writes numbers into the records
// (context/records.js), enters and leaves steps (context/current.js), and makes no object but a marker.
// bench/run.js measures it in whole, bench/awaits.js the promises. What few resources need is in special.js.
//
// A function that a hook calls is created once, its neighbours are constants of its closure, and what differs
// between modes is a bit in `current`: so V8 has their addresses in the code, and nothing is looked up.

const { executionAsyncId, executionAsyncResource } = require('node:async_hooks')
const { now } = require('../context/clock')
const guard = require('../context/guard')
const records = require('../context/records')
const { OnPromise } = require('../context/tag')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_RUN, CURRENT_SPAN, DEPTH, ORPHANED, TIMED,
  current, leaveAll, pop, push, take, unwind
} = require('../context/current')
const { recordEarly } = require('./lookup')
const { turnOf } = require('./loops')

const {
  MASK, SHIFT, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, DETAIL, FLAGS, RUN, SETTLED_RUN, SETTLED_SPAN,
  LIVE, PASSED, ONE_SHOT, SPECIAL, TICK, TIMER, ENTERED, SETTLED, CALLED, DETAILED, PARSER,
  NO_CHAIN, OWN_WORK_CHAIN, EARLY_CHAIN, CHAIN_BITS, TICKS, resources, promises
} = records
const PROMISES = 0x3fffffff // promises are numbered modulo this and one
const UNKNOWN = -1 // in place of a reference, for a promise from before enabling
const BEGINS = SPECIAL | DETAILED | ENTERED | PARSER

/**
 * @param {object} deps
 * @param {import('./async-hooks').AsyncParts} deps.rooms
 * @param {import('./async-hooks').Listener} deps.listener
 * @param {ReturnType<typeof import('./kind-table').createKindTable>} deps.table
 * @param {import('./light-carrier').Carrier} deps.carrier
 * @param {ReturnType<typeof import('./lookup').createLookup>} deps.lookup
 * @param {ReturnType<typeof import('./kind-handlers').createKindHandlers>} deps.special
 * @param {ReturnType<typeof import('./settlements').createSettlements>} deps.settlements
 * @param {() => import('../spans/loop-time').LoopTime} deps.loop while spans are timed
 */
function createEvents ({ rooms, listener, table, carrier, lookup, special, settlements, loop }) {
  const { capture, callbackListeners, registry, installedFormatter, allocationClock } = rooms
  const { clock } = capture
  const { mark } = allocationClock
  const { look, causeNow } = lookup
  let promiseNumber = 0
  /** the function that Node calls: frames from it on are left out @type {Function} */
  let outermost = initResource
  /**
   * how often the event loop came round; counted by the addon where it can, see native/loop-iterations.cc
   * @type {Uint32Array}
   */
  let iterations = new Uint32Array(2)
  let isCounted = false
  let iteration = 0

  /**
   * @param {number} asyncId
   * @param {string} type
   * @param {number} trigger
   * @param {any} resource
   */
  function initResource (asyncId, type, trigger, resource) {
    try {
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if ((resources[at + FLAGS] & (LIVE | PASSED)) !== 0) records.keep(resources, at)
      if (guard.inOwnWork) return mute(at, ref)
      if (current[DEPTH] === 0) look(trigger)
      const kind = type === 'TickObject'
        ? table.tick
        : type === 'PROMISE' ? promiseKind(trigger) : table.kinds.get(type) ?? table.add(type)
      const chain = current[CURRENT_CHAIN]
      resources[at + REF] = ref
      resources[at + TRIGGER] = trigger << 1
      resources[at + SPAN] = current[CURRENT_SPAN]
      resources[at + CAUSE] = current[CURRENT_CAUSE]
      resources[at + RUN] = current[CURRENT_RUN]
      if (!kind.isSelected || chain === OWN_WORK_CHAIN) {
        resources[at + CHAIN] = chain
        resources[at + FLAGS] = PASSED | (kind.flags & (ONE_SHOT | CALLED | ENTERED | TICK))
        return
      }
      const step = capture.step(chain, kind.number, outermost)
      resources[at + CHAIN] = step & CHAIN_BITS
      resources[at + TIME] = clock[0] * TICKS
      resources[at + DETAIL] = 0
      resources[at + FLAGS] = step <= CHAIN_BITS ? kind.flags : kind.flags | turnOf(resources, at, step)
      if (kind.special) special.made(kind, asyncId, at, trigger, resource)
    } catch (error) {
      listener.failed(error) // the resource then stays without a record, the program unharmed
    }
  }

  /**
   * A promise was made, where V8's own hooks tell.
   * @param {object} promise
   * @param {object | undefined} parent that it waits for
   */
  function initPromise (promise, parent) {
    try {
      if (guard.inOwnWork) return OnPromise.write(promise, 0)
      promiseNumber = (promiseNumber + 1) & PROMISES
      const ref = promiseNumber << 1 | 1
      const at = (promiseNumber & MASK) << SHIFT
      if ((promises[at + FLAGS] & LIVE) !== 0) records.keep(promises, at)
      if (current[DEPTH] === 0) look(0)
      OnPromise.write(promise, ref)
      const chain = current[CURRENT_CHAIN]
      promises[at + REF] = ref
      promises[at + SPAN] = current[CURRENT_SPAN]
      promises[at + CAUSE] = current[CURRENT_CAUSE]
      promises[at + RUN] = current[CURRENT_RUN]
      if (chain === OWN_WORK_CHAIN) {
        promises[at + CHAIN] = chain
        promises[at + FLAGS] = PASSED
        return
      }
      const kind = parent === undefined ? table.promise : table.awaited
      const step = capture.step(chain, kind.number, initPromise)
      promises[at + CHAIN] = step & CHAIN_BITS
      promises[at + TIME] = clock[0] * TICKS
      promises[at + DETAIL] = 0
      promises[at + TRIGGER] = parent === undefined ? 0 : OnPromise.read(parent) ?? 0
      promises[at + FLAGS] = step <= CHAIN_BITS ? kind.flags : kind.flags | turnOf(promises, at, step)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {number} asyncId its callback is about to run */
  function beforeResource (asyncId) {
    try {
      if (iterations[0] !== iteration) cameRound()
      else if (current[DEPTH] === 0 && isReplaced()) listener.formatterReplaced()
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if (resources[at + REF] === ref) enter(ref, resources, at)
      else enterOlder(ref, asyncId)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {object} promise what waits for it is about to run */
  function beforePromise (promise) {
    try {
      const ref = OnPromise.read(promise)
      if (ref === undefined) return enterUnnumbered(promise)
      const at = ((ref >> 1) & MASK) << SHIFT
      if (promises[at + REF] === ref) enter(ref, promises, at)
      else enterOlder(ref, 0)
    } catch (error) {
      listener.failed(error)
    }
  }

  /**
   * A callback of a resource or promise begins.
   * @param {number} ref
   * @param {Int32Array} words
   * @param {number} at
   */
  function enter (ref, words, at) {
    push(ref)
    const flags = words[at + FLAGS]
    current[CURRENT_CHAIN] = words[at + CHAIN]
    current[CURRENT_CAUSE] = (flags & PASSED) !== 0 ? words[at + CAUSE] : ref
    current[CURRENT_SPAN] = words[at + SPAN]
    if (current[ATTENTION] !== 0) special.attend(ref, flags, words, at)
    if ((flags & BEGINS) !== 0) special.begins(ref, flags, words, at)
    if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
  }

  /** @param {number} asyncId its callback is over */
  function afterResource (asyncId) {
    try {
      const ref = asyncId << 1
      const at = ((ref >> 1) & MASK) << SHIFT
      if (resources[at + REF] === ref) {
        const flags = resources[at + FLAGS]
        if ((flags & ONE_SHOT) !== 0) resources[at + FLAGS] = flags & ~(LIVE | PASSED)
        else if ((flags & TIMER) !== 0) special.timerRan(ref, asyncId, at)
      } else {
        records.ended(ref)
      }
      leave(ref)
      if (callbackListeners.size > 0) callbackListeners.get(asyncId)?.()
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {object} promise what waited for it has run */
  function afterPromise (promise) {
    try {
      const ref = OnPromise.read(promise) ?? UNKNOWN
      const at = ((ref >> 1) & MASK) << SHIFT
      if (promises[at + REF] === ref) promises[at + FLAGS] &= ~LIVE
      else records.ended(ref)
      leave(ref)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** @param {number} ref of what was entered */
  function leave (ref) {
    if (current[CURRENT_REF] !== ref) {
      if (!unwind(ref)) return
      allocationClock.forget() // what ran since has no markers of its own
    }
    // A muted promise, whose reference is 0, was entered before the loop came round
    if (current[DEPTH] === 0) return
    pop()
    if (current[DEPTH] === 0) {
      if (!isCounted) iterations[0]++
      if (allocationClock.isOn) mark(NO_CHAIN, current[CURRENT_CAUSE], current[CURRENT_SPAN])
      return
    }
    if ((current[ATTENTION] & TIMED) !== 0) {
      const timed = loop()
      if (current[CURRENT_SPAN] !== timed.spanNumber) timed.switchTo(current[CURRENT_SPAN], now())
    }
    if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
  }

  /** A promise is settled, where V8's own hooks tell: before it has its state. @param {object} promise */
  function settlePromise (promise) {
    try {
      if (guard.inOwnWork) return
      // No number: older than these hooks. It may be rejected all the same
      const ref = OnPromise.read(promise) ?? 0
      const at = ((ref >> 1) & MASK) << SHIFT
      if ((current[ATTENTION] & ORPHANED) !== 0) special.claim(ref)
      if (promises[at + REF] === ref && promises[at + CHAIN] !== OWN_WORK_CHAIN) noteSettler(promises, at)
      noteSettlement(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** The same where async_hooks tells of promises. @param {any} promise */
  function settleResource (promise) {
    try {
      if (guard.inOwnWork) return
      const ref = refOfTracked(promise)
      const at = ((ref >> 1) & MASK) << SHIFT
      if ((current[ATTENTION] & ORPHANED) !== 0) special.claim(ref)
      const isRecorded = ref !== 0 && resources[at + REF] === ref
      if (isRecorded && resources[at + CHAIN] !== OWN_WORK_CHAIN) noteSettler(resources, at)
      if (capture.rejection !== undefined) noteSettlement(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** The same where nothing is recorded of promises: in light mode. @param {object} promise */
  function settleUnknown (promise) {
    try {
      if (guard.inOwnWork) return
      if ((current[ATTENTION] & ORPHANED) !== 0) special.disown()
      noteSettlement(promise)
    } catch (error) {
      listener.failed(error)
    }
  }

  /** Notes who settled a promise in its record. @param {Int32Array} words @param {number} at */
  function noteSettler (words, at) {
    words[at + FLAGS] = (words[at + FLAGS] & ~LIVE) | SETTLED
    words[at + DETAIL] = current[DEPTH] === 0 ? 0 : current[CURRENT_CAUSE]
    words[at + SETTLED_RUN] = current[CURRENT_RUN]
    words[at + SETTLED_SPAN] = current[CURRENT_SPAN]
  }

  /** It may be rejected: that is looked at later. @param {object} promise */
  function noteSettlement (promise) {
    if (current[CURRENT_CHAIN] === OWN_WORK_CHAIN) return
    settlements.note(promise, current[DEPTH] === 0 ? causeNow() : current[CURRENT_CAUSE])
  }

  /** Says whether the program has set a formatter of stacks. */
  function isReplaced () {
    return installedFormatter.format !== undefined && Error.prepareStackTrace !== installedFormatter.format
  }

  // What is done seldom.

  /** @param {number} trigger another promise, where `then` or `await` made it */
  function promiseKind (trigger) {
    return trigger === executionAsyncId() ? table.promise : table.awaited
  }

  /** The event loop came round: nothing of what was entered before goes on, however it ended. */
  function cameRound () {
    iteration = iterations[0]
    leaveAll()
    guard.inOwnWork = false
    if ((current[ATTENTION] & TIMED) !== 0) loop().mayHavePolled = true
    readSettlements()
    clock[0] = now()
    allocationClock.startIteration()
    listener.iterationStarted(clock[0])
  }

  /** Who rejected is known up to now. */
  function readSettlements () {
    try {
      settlements.read()
    } catch (error) {
      listener.failed(error)
    }
  }

  /**
   * A callback of what the ring does not hold any more, or never held.
   * @param {number} ref
   * @param {number} asyncId 0: a promise
   */
  function enterOlder (ref, asyncId) {
    const kept = ref === 0 || ref === UNKNOWN ? undefined : records.findRecord(ref)
    if (kept !== undefined) return enter(ref, kept.words, kept.offset)
    // Made while V8's hooks told of promises
    const before = asyncId === 0 ? undefined : OnPromise.read(executionAsyncResource())
    const record = before === undefined ? undefined : records.findRecord(before)
    if (record !== undefined) return enter(ref, record.words, record.offset)
    const opener = asyncId === 0 ? undefined : registry.openerOf(asyncId)
    if (opener === undefined && asyncId > 1 && !guard.inOwnWork) recordEarly(asyncId)
    push(ref)
    if (opener !== undefined) take(opener.chain, opener.ref, opener.spanNumber)
    else if (asyncId > 1) take(EARLY_CHAIN, ref, 0)
    else take(ref === UNKNOWN ? EARLY_CHAIN : OWN_WORK_CHAIN, 0, 0)
    current[CURRENT_RUN] = 0
    if ((current[ATTENTION] & TIMED) !== 0) {
      const timed = loop()
      timed.enterCallback(current[CURRENT_SPAN], now())
      timed.callbackRef = ref
      timed.callbackChain = opener?.chain ?? 0
    }
    if (opener !== undefined || carrier.on) special.begins(ref, SPECIAL | DETAILED | ENTERED, resources, 0)
    if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
  }

  /**
   * A promise that V8's hooks have not seen: it is older than longstack, or async_hooks told of promises
   * then.
   * @param {any} promise
   */
  function enterUnnumbered (promise) {
    const tracked = refOfTracked(promise)
    const found = tracked === 0 ? undefined : records.findRecord(tracked)
    if (found === undefined) return enterOlder(UNKNOWN, 0)
    enter(UNKNOWN, found.words, found.offset)
    if (current[CURRENT_CAUSE] === UNKNOWN) current[CURRENT_CAUSE] = tracked
  }

  return {
    initResource,
    initPromise,
    beforeResource,
    beforePromise,
    afterResource,
    afterPromise,
    settlePromise,
    settleResource,
    settleUnknown,
    readSettlements,

    /** @param {Function} init what async_hooks calls for a resource */
    beneath (init) {
      outermost = init
    },

    /**
     * @param {Uint32Array} counters where the event loop's iterations are counted
     * @param {boolean} byLoop the addon counts
     */
    count (counters, byLoop) {
      iterations = counters
      isCounted = byLoop
      iteration = counters[0]
    }
  }
}

/** Records what longstack itself makes. @param {number} at index in `resources` @param {number} ref */
function mute (at, ref) {
  resources[at + REF] = ref
  resources[at + CHAIN] = OWN_WORK_CHAIN
  resources[at + SPAN] = 0
  resources[at + FLAGS] = PASSED | CALLED
}

/** under which async_hooks keeps the id of a promise @type {symbol | undefined} */
let idSymbol

/**
 * @param {any} promise
 * @returns {number} reference of a promise to which async_hooks gave an id, 0: it gave none
 */
function refOfTracked (promise) {
  idSymbol ??= Object.getOwnPropertySymbols(promise)
    .find((symbol) => symbol.description === 'async_id_symbol')
  const id = idSymbol === undefined ? undefined : promise[idSymbol]
  return typeof id === 'number' ? id << 1 : 0
}

module.exports = { createEvents, refOfTracked }
