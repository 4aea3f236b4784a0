'use strict'

// Enters steps when their callbacks begin. Steps in the ring come first, on the hot path (events.js); then
// steps that the ring no longer holds or never held: kept records, handles of the registry, and resources
// older than longstack.

const { executionAsyncResource } = require('node:async_hooks')
const { answer } = require('./asks')
const { now } = require('./clock')
const guard = require('./guard')
const { OnPromise, idOfTracked } = require('./tag')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_SPAN, LOGGED, SETTLING, current, push, setCurrent
} = require('./current')
const {
  CALLED, CAUSE, CHAIN, COUNTED, DETAIL, DETAILED, EARLY_CHAIN, FLAGS, NO_CHAIN, NO_REF, OWN_WORK_CHAIN,
  PARSER, PASSED, REF, SHIFT, SPAN, SPECIAL, findCarried, findRecord, findResource, isRequest, resources
} = require('./records')
const { idAt } = require('./record-ids')
const registry = require('./registry')
const capture = require('../stacks/capture')
const allocationClock = require('./allocation-clock')
const { countCallback, handleAttention, handleBefore, resumeServed } = require('./callback-handlers')
const { recordEarly } = require('./lookup')
const runLog = require('./run-log')
const { readBeforeStep } = require('./settled-hook')

const { clock } = capture
const { mark } = allocationClock

const HANDLED = SPECIAL | DETAILED | PARSER | COUNTED // flags of records with a handler
const NO_ID = Infinity // instead of an asyncId
const NO_WORDS = new Int32Array(1 << SHIFT) // an empty record
const UNKNOWN = NO_REF // instead of a reference, for a promise made before longstack was enabled

/** @typedef {import('./context').Context} Context */

/**
 * Makes a resource or promise the current step: its callback begins.
 * @param {number} ref
 * @param {Int32Array} words
 * @param {number} offset
 */
function enter (ref, words, offset) {
  if ((current[ATTENTION] & SETTLING) !== 0) readBeforeStep()
  push(ref)
  const flags = words[offset + FLAGS]
  const isAsked = (flags & SPECIAL) !== 0 && words[offset + DETAIL] !== 0
  if (!isAsked || !beginAnswer(words[offset + DETAIL])) begin(ref, flags, words, offset)
  if ((flags & HANDLED) !== 0) handleBefore(flags, words, offset)
  if (allocationClock.isOn) mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
}

/**
 * Begins a callback.
 * @param {number} ref
 * @param {number} flags
 * @param {Int32Array} words
 * @param {number} offset
 */
function begin (ref, flags, words, offset) {
  current[CURRENT_CHAIN] = words[offset + CHAIN]
  current[CURRENT_CAUSE] = (flags & PASSED) !== 0 ? words[offset + CAUSE] : ref
  current[CURRENT_SPAN] = words[offset + SPAN]
  if (current[ATTENTION] !== 0) handleAttention(ref, flags, words, offset)
}

/**
 * Begins a connection's callback as part of the step that sent the query.
 * @param {number} ref of the query
 * @returns {boolean} whether it owns the data: a response is outstanding
 */
function beginAnswer (ref) {
  const record = answer(ref, clock[0])
  if (record === undefined) return false
  const { words, offset } = record
  begin(words[offset + REF], words[offset + FLAGS], words, offset)
  return true
}

/**
 * Enters a step whose record is not in the ring.
 * @param {number} ref
 * @param {number} asyncId 0: a promise
 */
function enterOlder (ref, asyncId) {
  const record = asyncId === 0 ? findPromise(ref) : findResource(asyncId) ?? findOfExecuting(asyncId)
  if (record === undefined) enterUnrecorded(ref, asyncId)
  else enter(ref, record.words, record.offset)
  if (asyncId !== 0 && current[CURRENT_CAUSE] === ref && isReused(ref, asyncId)) current[CURRENT_CAUSE] = 0
}

/** @param {number} ref @param {number} asyncId 0: a promise */
function enterUnrecorded (ref, asyncId) {
  const opener = asyncId === 0 ? undefined : registry.openerOf(asyncId)
  if (opener === undefined && asyncId > 1 && !guard.inOwnWork) recordEarly(asyncId)
  push(ref)
  const asked = opener === undefined ? 0 : registry.get(asyncId)?.ask ?? 0
  if (asked === 0 || !beginAnswer(asked)) beginUnrecorded(ref, asyncId, opener)
  if (isRequest(asked)) resumeServed()
  if (asyncId !== 0) countCallback()
  if (opener !== undefined) handleBefore(SPECIAL | DETAILED, resources, 0)
  if (!allocationClock.isOn) return
  mark(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
}

/** @param {number} ref @param {number} asyncId 0: a promise @param {Context | undefined} opener */
function beginUnrecorded (ref, asyncId, opener) {
  if (opener !== undefined) setCurrent(opener.chain, opener.ref, opener.spanNumber)
  else if (asyncId > 1) setCurrent(EARLY_CHAIN, ref, 0)
  else setCurrent(chainOfUnrecorded(ref), 0, 0)
  const flags = asyncId === 0 ? 0 : CALLED
  if ((current[ATTENTION] & LOGGED) === 0) return
  runLog.called(flags, NO_WORDS, 0, now(), asyncId === 0 ? NO_ID : asyncId, opener?.chain ?? 0)
}

/**
 * Enters a promise that V8's hooks have not seen: it is older than longstack, or async_hooks reported
 * promises when it was made.
 * @param {any} promise
 */
function enterUnnumbered (promise) {
  const id = idOfTracked(promise)
  const record = id === 0 ? undefined : findResource(id)
  if (record === undefined) return enterOlder(UNKNOWN, 0)
  enter(UNKNOWN, record.words, record.offset)
  if (current[CURRENT_CAUSE] === UNKNOWN) current[CURRENT_CAUSE] = isReused(id << 1, id) ? 0 : id << 1
}

/** @param {number} ref */
const findPromise = (ref) => ref === 0 || ref === UNKNOWN ? undefined : findRecord(ref)

/**
 * Finds a record through the executing resource: that of a promise reported by V8's hooks, or the copy that
 * the resource carries.
 * @param {number} asyncId
 */
function findOfExecuting (asyncId) {
  const resource = executionAsyncResource()
  const tag = OnPromise.read(resource)
  const record = tag === undefined ? undefined : findRecord(tag)
  return record ?? findCarried(resource, asyncId)
}

/**
 * Returns whether a resource's reference leads to a newer one. Its children then have a chain but no cause.
 * @param {number} ref
 * @param {number} asyncId
 */
function isReused (ref, asyncId) {
  const record = findRecord(ref)
  return record !== undefined && idAt(record.words, record.offset) !== asyncId
}

/**
 * Returns the chain of a promise without a record: longstack's own, one made before enabling, or one whose
 * record was evicted (older-records.js) and is unknown.
 * @param {number} ref
 */
function chainOfUnrecorded (ref) {
  if (ref === 0) return OWN_WORK_CHAIN
  return ref === UNKNOWN ? EARLY_CHAIN : NO_CHAIN
}

module.exports = { UNKNOWN, enter, enterOlder, enterUnnumbered }
