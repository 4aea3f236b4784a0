'use strict'

// The hot path: the functions that Node and V8 call for resources and promises. They write integers into
// records (core/records.js), enter steps (enter.js) and leave them (core/current.js), and create no object
// but a marker. bench/run.js measures the whole, bench/workloads/awaits.js the promises. Rare cases are in
// kind-handlers.js and callback-handlers.js, settled promises in settlements.js.
//
// Each function that a hook calls is created once, its dependencies are module constants, and modes differ
// by a bit in `current`. So V8 embeds their addresses in the code, and nothing is looked up.
//
// Hooks in C++, called directly by Node and V8, were measured and cost the same: V8 inlines these functions,
// and a hook in C++ that needs JavaScript (timers, handles, the first callback of an iteration) calls it for
// some 200 ns.

const { executionAsyncId } = require('node:async_hooks')
const { readClock } = require('./clock')
const guard = require('./guard')
const records = require('./records')
const { OnPromise } = require('./tag')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_REF, CURRENT_SPAN, DEPTH, LOGGED,
  PRESENT_ERA, RETURNS, SETTLING, current, leaveAll, pop, unwind
} = require('./current')
const registry = require('./registry')
const capture = require('../stacks/capture')
const formatter = require('../stacks/formatter')
const allocationClock = require('./allocation-clock')
const { handleOlderAfter, handleReturn, handleTimerAfter } = require('./callback-handlers')
const { UNKNOWN, enter, enterOlder, enterUnnumbered } = require('./enter')
const { failed } = require('./faults')
const { handleInit } = require('./kind-handlers')
const kindTable = require('./kind-table')
const { resolveCurrent } = require('./lookup')
const { noteRepetition } = require('./loops')
const { callbackListeners, emit, listeners } = require('./on')
const runLog = require('./run-log')
const { readLast } = require('./settled-hook')
const { read: readSettlements } = require('./settlements')

const {
  MASK, SHIFT, IDS, REF, CHAIN, CAUSE, TRIGGER, SPAN, TIME, DETAIL, FLAGS, RUN,
  LIVE, PASSED, ONE_SHOT, TICK, TIMER, LISTENED, CALLED,
  BRIEF, PART_START, SETTLED, NO_CHAIN, OWN_WORK_CHAIN, CHAIN_BITS, TICKS, WRAP
} = records
const { PROMISES, ids, promises, resources } = records
const { clock } = capture
const { installed: installedFormatter } = formatter
const { mark } = allocationClock
const SEPARATE = -1 // value instead of an iteration: see beginCallback
const AHEAD = 2 ** 20 // ids; more than pass until the first of `ids` is overwritten
const TRIM_MS = 1000 // between two checks of the budget
const MARK_MASK = 2047 // promises between two scans for waiting ones

let promiseNumber = 0
let promiseCount = 0 // promises that async_hooks reports, up to MARK_MASK
/** called by Node: stacks begin below it @type {Function} */
let initFunction = initResource
/**
 * [0]: iterations of the event loop, counted by the addon if possible, see native/loop-iterations.cc
 * @type {Uint32Array}
 */
let iterations = new Uint32Array(2)
let isCountedByLoop = false
let iteration = 0 // the current one, or SEPARATE
let begunIteration = 0
/** next check of the budget, ms of the clock */
let trimAt = 0

/**
 * @param {number} asyncId
 * @param {string} type
 * @param {number} trigger
 * @param {any} resource
 */
function initResource (asyncId, type, trigger, resource) {
  try {
    const offset = (asyncId & MASK) << SHIFT
    const previous = resources[offset + FLAGS]
    if ((previous & (LIVE | PASSED | BRIEF)) !== 0 && (previous & SETTLED) === 0) makeWay(previous, offset)
    if (guard.inOwnWork) return recordOwnWork(offset, asyncId, kindTable.kinds.get(type)?.flags ?? 0)
    if (current[DEPTH] === 0) resolveCurrent(trigger)
    const kind = type === 'TickObject'
      ? kindTable.tick
      : type === 'PROMISE' ? promiseKind(trigger) : kindTable.kinds.get(type) ?? kindTable.add(type)
    const chain = current[CURRENT_CHAIN]
    const isPassed = !kind.isSelected || chain === OWN_WORK_CHAIN
    // First the calls that V8 may terminate, then the record as a whole: see guard.js
    const step = isPassed ? 0 : capture.step(chain, kind.number, initFunction)
    resources[offset + REF] = asyncId << 1
    resources[offset + TRIGGER] = trigger << 1
    ids[offset >> IDS] = asyncId
    ids[(offset >> IDS) + 1] = trigger
    resources[offset + SPAN] = current[CURRENT_SPAN]
    resources[offset + CAUSE] = current[CURRENT_CAUSE]
    resources[offset + RUN] = current[CURRENT_ENTRY]
    if (isPassed) {
      resources[offset + CHAIN] = chain
      resources[offset + FLAGS] = PASSED | (kind.flags & (ONE_SHOT | CALLED | TICK))
      if (kind.carried) records.carry(resource, offset, asyncId, trigger, kind.embedded)
      return
    }
    resources[offset + CHAIN] = step & CHAIN_BITS
    resources[offset + TIME] = clock[0] * TICKS
    resources[offset + DETAIL] = 0
    resources[offset + FLAGS] = kind.flags | current[PRESENT_ERA]
    if (step > CHAIN_BITS) resources[offset + FLAGS] |= noteRepetition(resources, offset, step)
    if (kind.special) handleInit(kind, asyncId, offset, trigger, resource)
  } catch (error) {
    failed(error) // the resource stays without a record, and the program is unharmed
  }
}

/**
 * Records a promise that V8's own hooks report.
 * @param {object} promise
 * @param {object | undefined} parent the promise that this one waits for
 */
function initPromise (promise, parent) {
  try {
    if (guard.inOwnWork) return OnPromise.write(promise, 0)
    if ((current[ATTENTION] & SETTLING) !== 0) readLast()
    promiseNumber = (promiseNumber + 1) & PROMISES
    let offset = (promiseNumber & MASK) << SHIFT
    if ((promises[offset + FLAGS] & (LIVE | PART_START)) !== 0) {
      promiseNumber = records.makeRoom(promiseNumber)
      offset = (promiseNumber & MASK) << SHIFT
    }
    const ref = promiseNumber << 1 | 1
    if (current[DEPTH] === 0) resolveCurrent(0)
    OnPromise.write(promise, ref)
    const chain = current[CURRENT_CHAIN]
    const kind = parent === undefined ? kindTable.promise : kindTable.awaited
    const isOwnWork = chain === OWN_WORK_CHAIN
    const step = isOwnWork || !kind.isSelected ? chain : capture.step(chain, kind.number, initPromise)
    const triggerRef = parent === undefined ? 0 : OnPromise.read(parent) ?? 0
    promises[offset + REF] = ref
    promises[offset + SPAN] = current[CURRENT_SPAN]
    promises[offset + CAUSE] = current[CURRENT_CAUSE]
    promises[offset + RUN] = current[CURRENT_ENTRY]
    promises[offset + CHAIN] = step & CHAIN_BITS
    if (isOwnWork) {
      promises[offset + FLAGS] = PASSED
      return
    }
    promises[offset + TIME] = clock[0] * TICKS
    promises[offset + DETAIL] = 0
    promises[offset + TRIGGER] = triggerRef
    promises[offset + FLAGS] = kind.flags | current[PRESENT_ERA]
    if (step > CHAIN_BITS) promises[offset + FLAGS] |= noteRepetition(promises, offset, step)
  } catch (error) {
    failed(error)
  }
}

/** Enters a resource, whose callback is about to run. @param {number} asyncId */
function beforeResource (asyncId) {
  try {
    if (iterations[0] !== iteration) beginCallback(asyncId)
    else if (current[DEPTH] === 0 && isFormatterReplaced()) emit('formatterReplaced')
    const ref = asyncId << 1
    const offset = ((ref >> 1) & MASK) << SHIFT
    if (resources[offset + REF] === ref) enter(ref, resources, offset)
    else enterOlder(ref, asyncId)
  } catch (error) {
    failed(error)
  }
}

/** Enters a promise: the code that waits for it is about to run. @param {object} promise */
function beforePromise (promise) {
  try {
    const ref = OnPromise.read(promise)
    if (ref === undefined) return enterUnnumbered(promise)
    const offset = ((ref >> 1) & MASK) << SHIFT
    if (promises[offset + REF] === ref) enter(ref, promises, offset)
    else enterOlder(ref, 0)
  } catch (error) {
    failed(error)
  }
}

/** Leaves a resource, whose callback has returned. @param {number} asyncId */
function afterResource (asyncId) {
  try {
    const ref = asyncId << 1
    const offset = ((ref >> 1) & MASK) << SHIFT
    let flags = LISTENED // assumed unless the record says otherwise
    if (resources[offset + REF] === ref) {
      flags = resources[offset + FLAGS]
      if ((flags & ONE_SHOT) !== 0) resources[offset + FLAGS] = flags & ~(LIVE | PASSED)
      else if ((flags & TIMER) !== 0) handleTimerAfter(asyncId, resources, offset)
    } else {
      handleOlderAfter(asyncId)
    }
    leave(ref)
    if ((flags & LISTENED) !== 0 && callbackListeners.size > 0) callbackListeners.get(asyncId)?.(true)
  } catch (error) {
    failed(error)
  }
}

/** Leaves a promise: the code that waited for it has run. @param {object} promise */
function afterPromise (promise) {
  try {
    const ref = OnPromise.read(promise) ?? UNKNOWN
    const offset = ((ref >> 1) & MASK) << SHIFT
    if (promises[offset + REF] === ref) promises[offset + FLAGS] &= ~LIVE
    else records.ended(ref)
    leave(ref)
  } catch (error) {
    failed(error)
  }
}

/** Leaves an entered step and restores the one before it. @param {number} ref of the entered step */
function leave (ref) {
  if ((current[ATTENTION] & SETTLING) !== 0) readLast()
  if (current[CURRENT_REF] !== ref) {
    if (!unwind(ref)) return
    allocationClock.forget() // code that has run since has no markers of its own
  }
  // A promise of longstack's own (reference 0) was entered before the iteration began
  if (current[DEPTH] === 0) return
  pop()
  if (current[DEPTH] === 0) {
    if (!isCountedByLoop) iterations[0]++
    if (allocationClock.isOn) mark(NO_CHAIN, current[CURRENT_CAUSE], current[CURRENT_SPAN])
    if ((current[ATTENTION] & RETURNS) !== 0) runLog.returned()
    return
  }
  if ((current[ATTENTION] & LOGGED) !== 0) handleReturn()
  if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
}

/** Returns whether the program has set its own stack formatter. */
function isFormatterReplaced () {
  return installedFormatter.format !== undefined && Error.prepareStackTrace !== installedFormatter.format
}

// Called rarely.

/** Keeps a record that is about to be overwritten. @param {number} flags of it @param {number} offset */
function makeWay (flags, offset) {
  if ((flags & BRIEF) !== 0) registry.admitBrief(ids[offset >> IDS])
  else records.keep(resources, offset)
}

/** @param {number} trigger another promise, if `then` or `await` made it */
function promiseKind (trigger) {
  if ((current[ATTENTION] & SETTLING) !== 0) readLast()
  // One iteration may fill the ring; promises in their own ring are handled by startPart in records.js
  promiseCount = (promiseCount + 1) & MARK_MASK
  if (promiseCount === 0) records.markWaits(true)
  return trigger === executionAsyncId() ? kindTable.promise : kindTable.awaited
}

/**
 * Prepares the first callback of an iteration of the event loop; every callback once ids have passed WRAP.
 * @param {number} asyncId
 */
function beginCallback (asyncId) {
  if (iterations[0] !== begunIteration) startIteration()
  else if (current[DEPTH] === 0 && isFormatterReplaced()) emit('formatterReplaced')
  if (iteration === SEPARATE) records.separate(asyncId)
}

/** Begins an iteration of the event loop: steps entered before are over, however they ended. */
function startIteration () {
  begunIteration = iterations[0]
  iteration = ids[0] < WRAP - AHEAD ? begunIteration : SEPARATE
  leaveAll()
  guard.reset()
  if ((current[ATTENTION] & LOGGED) !== 0) runLog.startIteration()
  readSettlements()
  readClock()
  allocationClock.startIteration()
  registry.startIteration(clock[0])
  records.markWaits(false)
  const heard = listeners.iteration // instead of `emit`, whose calls V8 cannot inline
  for (let i = 0; i < heard.length; i++) heard[i](clock[0])
  if (clock[0] < trimAt) return
  trimAt = clock[0] + TRIM_MS
  capture.trim()
}

/** Sets the function that async_hooks calls for a new resource. @param {Function} init */
function setInitFunction (init) {
  initFunction = init
}

/**
 * @param {Uint32Array} counters [0]: iterations of the event loop
 * @param {boolean} byLoop the addon counts them
 */
function countIterations (counters, byLoop) {
  iterations = counters
  isCountedByLoop = byLoop
  iteration = begunIteration = counters[0] - 1 // the next callback begins one
}

/** Records longstack's own work. @param {number} offset @param {number} asyncId @param {number} flags */
function recordOwnWork (offset, asyncId, flags) {
  resources[offset + REF] = asyncId << 1
  ids[offset >> IDS] = asyncId
  resources[offset + RUN] = 0
  resources[offset + CHAIN] = OWN_WORK_CHAIN
  resources[offset + SPAN] = 0
  resources[offset + FLAGS] = PASSED | CALLED | (flags & ONE_SHOT)
}

module.exports = {
  afterPromise,
  afterResource,
  beforePromise,
  beforeResource,
  countIterations,
  initPromise,
  initResource,
  setInitFunction
}
