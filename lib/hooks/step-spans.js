'use strict'

// Makes steps part of spans and of the requests that servers get.

const { AsyncResource, executionAsyncId } = require('node:async_hooks')
const { now } = require('../context/clock')
const records = require('../context/records')
const { contextOfId } = require('../context/context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_REF, CURRENT_RUN, CURRENT_SPAN, PROFILED, TIMED,
  current, profiled, timed
} = require('../context/current')
const registry = require('../handles/registry')
const capture = require('../stacks/capture')
const { ensureHeadroom } = require('../stacks/stack-headroom')
const allocationClock = require('./allocation-clock')
const { HEAD } = require('./callback-handlers')
const { enterResource } = require('./installer')
const { resolve } = require('./lookup')

const {
  CHAIN, SPAN, DETAIL, FLAGS, PARSER, CARRIED, INCOMING, OWN_WORK_CHAIN, TICKS
} = records
const { clock } = capture
const HEADROOM_KB = 64 // of stack, for what begins and ends a callback

const isTimed = () => (current[ATTENTION] & TIMED) !== 0

/** Notes data on a connection that no server accepted. @param {import('../handles/entry').Entry} entry */
function noteTraffic (entry) {
  if (!isTimed()) return
  resolve()
  timed.loop.noteTraffic(timed.loop, entry, current[CURRENT_REF], current[CURRENT_SPAN], current[CURRENT_RUN])
}

/**
 * Starts or stops the timing of spans.
 * @param {import('../spans/loop-time').LoopTime | undefined} loop what times them; undefined: no longer
 */
function timeSpans (loop) {
  if ((loop !== undefined) === isTimed()) return
  if (loop !== undefined) timed.loop = loop
  current[ATTENTION] ^= TIMED
  if (loop !== undefined) loop.start(now())
  else timed.loop.stop()
}

/**
 * Makes the remainder of this callback part of a span. The requests of a connection come on one resource:
 * from now on that resource is this span's.
 * @param {import('../spans/span').Span} next
 * @returns {{ chain: number, ref: number }} the current step
 */
function enterSpan (next) {
  resolve()
  const ref = current[CURRENT_REF]
  const cause = current[CURRENT_CAUSE]
  const step = { chain: current[CURRENT_CHAIN], ref: cause }
  const id = enteredId()
  if (ref === 0 && id === 0) return step // what runs there is no part of a request
  const span = current[CURRENT_SPAN] = next.seq
  if (id === 0) records.writeWord(ref, SPAN, span)
  else setSpan(id, span)
  if (records.isRequest(cause)) records.writeWord(cause, SPAN, span)
  if (isTimed()) {
    timed.loop.switchTo(span, now())
    current[CURRENT_RUN] = timed.loop.beginFirstRun()
  }
  return step
}

/**
 * Makes the remainder of this callback part of a request that a server got, and so what the connection's
 * parser brings of it later.
 * @param {number} name number of its name, see context/request-names.js
 * @returns {boolean} the first one of its connection
 */
function enterRequest (name) {
  const parser = records.findResource(enteredId())
  if (parser === undefined || (parser.words[parser.offset + FLAGS] & PARSER) === 0) return false
  const request = records.addRequest(parser, clock[0] * TICKS, name)
  const isFirst = parser.words[parser.offset + DETAIL] === 0
  parser.words[parser.offset + DETAIL] = request
  parser.words[parser.offset + INCOMING] = HEAD
  current[CURRENT_CAUSE] = request
  if ((current[ATTENTION] & PROFILED) !== 0) profiled.log.beginRequest()
  if (allocationClock.isOn) allocationClock.mark(current[CURRENT_CHAIN], request, current[CURRENT_SPAN])
  return isFirst
}

/**
 * Makes what runs on a resource from now on part of a span, or of none.
 * @param {number} asyncId
 * @param {number} number of the span
 */
function setSpan (asyncId, number) {
  const record = records.findResource(asyncId)
  if (record !== undefined) record.words[record.offset + SPAN] = number
  const opener = registry.openerOf(asyncId)
  if (opener !== undefined) opener.spanNumber = number
}

/** @param {number} asyncId @returns {number} of the span that a resource is part of */
function spanOf (asyncId) {
  const record = records.findResource(asyncId)
  const number = record === undefined ? 0 : record.words[record.offset + SPAN]
  return number || registry.openerOf(asyncId)?.spanNumber || 0
}

/**
 * Runs a function as part of a span, in a resource of its own.
 * @template T
 * @param {import('../spans/span').Span} next
 * @param {() => T} fn
 * @returns {T}
 */
function runInSpan (next, fn) {
  // Node aborts where an AsyncResource finds no stack left (node#19859 and src/api/callback.cc)
  ensureHeadroom(HEADROOM_KB)
  const resource = new AsyncResource('Span')
  const id = resource.asyncId()
  const record = records.findResource(id)
  if (record === undefined || record.words[record.offset + CHAIN] === OWN_WORK_CHAIN) {
    return fn()
  }
  recordSpan(id, record, next)
  const leave = enterResource(resource)
  try {
    return fn()
  } finally {
    leave()
    resolve()
    const span = current[CURRENT_SPAN]
    if (isTimed() && span !== timed.loop.spanNumber) timed.loop.switchTo(span, now())
  }
}

/** Returns the id of the resource that was entered last, 0: it was a promise, or none was. */
function enteredId () {
  const id = executionAsyncId()
  return id << 1 === current[CURRENT_REF] ? id : 0
}

/**
 * Writes a span into the record of its resource.
 * @param {number} id of the resource
 * @param {{ words: Int32Array, offset: number }} record
 * @param {import('../spans/span').Span} span
 */
function recordSpan (id, { words, offset }, span) {
  const ref = id << 1
  words[offset + SPAN] = span.seq
  words[offset + FLAGS] &= ~CARRIED // kept until `finish`, whatever becomes of the resource
  span.stepId = id
  const context = contextOfId(id)
  if (context?.ref === ref) words[offset + DETAIL] = span.seq
  if (context !== undefined) span.chain = context.chain
}

module.exports = { enterRequest, enterSpan, noteTraffic, runInSpan, setSpan, spanOf, timeSpans }
