'use strict'

// Settled promises: the step that settled each, and rejections with their reasons.
//
// V8 reports a settlement before the promise has a state, and JavaScript cannot read the state without
// marking a rejection as handled; the addon can. One call of the addon costs more than all other work for a
// promise, so it reads several at once: BATCH of them, or those pending when a query comes, a span ends, or
// an iteration of the event loop begins.
//
// While terminable code runs: settled-hook.js.

const { noteSettled } = require('./asks')
const guard = require('./guard')
const { contextAt, contextOf, root } = require('./context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, DEPTH, LOGGED, ORPHANED, current
} = require('./current')
const {
  CHAIN, DETAIL, FLAGS, IDS, LIVE, MASK, NO_CHAIN, OWN_WORK_CHAIN, PASSED, REF, SETTLED,
  SHIFT, SPAN, ended, findRecord, findResource, isAsk, ids, promises, resources
} = require('./records')
const { OnPromise, idOfTracked } = require('./tag')
const capture = require('../stacks/capture')
const { failed } = require('./faults')
const { resolveCurrent } = require('./lookup')
const { emit } = require('./on')
const orphans = require('./orphans')
const runLog = require('./run-log')

const NO_RECORD = { ref: 0, chain: 0, span: 0 }
const BATCH = 8 // the addon reads its arguments, not an array

/** @type {any[]} */
const pending = Array(BATCH).fill(undefined)
const settlers = new Int32Array(BATCH)
/** chains of the settlers: a handled message continues its sender's chain, not its port's */
const chains = new Int32Array(BATCH)
let count = 0

/** Notes a promise that V8's own hooks report, before it has a state. @param {object} promise */
function settlePromise (promise) {
  try {
    if (guard.inOwnWork) return
    // No number: older than these hooks. It may still be rejected
    const ref = OnPromise.read(promise) ?? 0
    const offset = ((ref >> 1) & MASK) << SHIFT
    if ((current[ATTENTION] & ORPHANED) !== 0) orphans.claim(ref)
    const isOwnWork = promises[offset + CHAIN] === OWN_WORK_CHAIN
    if (promises[offset + REF] !== ref) settleOlder(ref === 0 ? undefined : findRecord(ref), ref, 0)
    else if (!isOwnWork) noteSettler(promises, offset)
    addPending(promise)
  } catch (error) {
    failed(error)
  }
}

/** Does the same if async_hooks reports promises. @param {any} promise */
function settleResource (promise) {
  try {
    if (guard.inOwnWork) return
    const id = idOfTracked(promise)
    const offset = (id & MASK) << SHIFT
    if ((current[ATTENTION] & ORPHANED) !== 0) orphans.claim(id << 1)
    if (ids[offset >> IDS] !== id) settleOlder(findResource(id), id << 1, id)
    else if (resources[offset + CHAIN] !== OWN_WORK_CHAIN) noteSettler(resources, offset)
    if (capture.rejection !== undefined) addPending(promise)
  } catch (error) {
    failed(error)
  }
}

/**
 * Keeps a promise until its state is read; it has none before this hook returns. The hot path.
 * @param {object} promise
 */
function addPending (promise) {
  if (current[CURRENT_CHAIN] === OWN_WORK_CHAIN) return
  if (count === BATCH) readPending()
  pending[count] = promise
  const isEntered = current[DEPTH] !== 0
  chains[count] = isEntered ? current[CURRENT_CHAIN] : NO_CHAIN
  if (!isEntered) resolveCurrent(0)
  settlers[count++] = current[CURRENT_CAUSE]
}

/** Reads the states of pending promises and reports rejections. Runs no code of the program. */
function readPending () {
  if (count === 0) return
  count = 0
  const [p0, p1, p2, p3, p4, p5, p6, p7] = pending
  const rejected = capture.rejected === undefined ? 0 : capture.rejected(p0, p1, p2, p3, p4, p5, p6, p7)
  for (let i = 0; i < BATCH; i++) {
    const promise = pending[i]
    pending[i] = undefined
    if ((rejected >> i & 1) !== 0) reportRejection(promise, settlers[i], chains[i])
  }
}

/**
 * @param {object} promise
 * @param {number} settler reference of the step that rejected it, 0: none, or the main script
 * @param {number} chain of that step
 */
function reportRejection (promise, settler, chain) {
  const reason = capture.rejection?.(promise)
  const byChain = chain === NO_CHAIN ? undefined : contextOf(chain, settler, 0)
  const context = byChain ?? (settler === 0 ? root : contextAt(settler))
  if (context !== undefined) emit('rejected', reason, context, recordOf(promise))
}

/** Reports all rejections so far. */
function read () {
  try {
    readPending()
  } catch (error) {
    failed(error)
  }
}

function forget () {
  count = 0
  pending.fill(undefined)
}

/** Notes the settling step in a promise's record. @param {Int32Array} words @param {number} offset */
function noteSettler (words, offset) {
  words[offset + FLAGS] = (words[offset + FLAGS] & ~LIVE) | SETTLED
  words[offset + DETAIL] = current[DEPTH] === 0 ? 0 : current[CURRENT_CAUSE]
  if ((current[ATTENTION] & LOGGED) !== 0) runLog.settled(words, offset)
  if (isAsk(current[CURRENT_CAUSE])) noteSettled(words, offset)
}

/**
 * Does the same for a record that is no longer in the ring.
 * @param {ReturnType<typeof findRecord>} record
 * @param {number} ref
 * @param {number} asyncId 0: the promise has none
 */
function settleOlder (record, ref, asyncId) {
  if (record === undefined || record.words[record.offset + CHAIN] === OWN_WORK_CHAIN) return
  ended(ref, asyncId)
  noteSettler(record.words, record.offset)
}

/** Returns the recorded data of a promise. @param {any} promise @returns {import('./on').PromiseRecord} */
function recordOf (promise) {
  const record = findRecord(OnPromise.read(promise) ?? 0) ?? findResource(idOfTracked(promise))
  if (record === undefined) return NO_RECORD
  const { words, offset } = record
  if ((words[offset + FLAGS] & PASSED) !== 0) return NO_RECORD
  return { ref: words[offset + REF], chain: words[offset + CHAIN], span: words[offset + SPAN] }
}

module.exports = { forget, read, settlePromise, settleResource }
