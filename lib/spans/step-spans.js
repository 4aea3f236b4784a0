'use strict'

// Assigns steps to spans, and records in them what no hook reports.

const { AsyncResource } = require('node:async_hooks')
const { now } = require('../core/clock')
const records = require('../core/records')
const { contextOfId } = require('../core/context')
const {
  CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_ENTRY, CURRENT_REF, CURRENT_SPAN, DEPTH, current
} = require('../core/current')
const registry = require('../core/registry')
const { ensureHeadroom } = require('../stacks/stack-headroom')
const { enteredId } = require('../core/current-step')
const { enterResource } = require('../core/installer')
const { resolve } = require('../core/lookup')
const runLog = require('../core/run-log')
const { idOf } = require('../node-objects')
const { wrap } = require('../wrap')

const { CHAIN, SPAN, DETAIL, FLAGS, RUN, CARRIED, OWN_WORK_CHAIN } = records
const HEADROOM_KB = 64 // stack needed to begin and end a callback

const { apply, getPrototypeOf } = Reflect

/** functions that restore `write`, by prototype of the stream's handle @type {Map<object, () => boolean>} */
const wrapped = new Map()

/**
 * Makes the rest of this callback part of a span. All requests of a connection arrive on one resource, which
 * belongs to this span from now on.
 * @param {import('./span').Span} next
 * @returns {{ chain: number, ref: number }} the current step
 */
function enterSpan (next) {
  resolve()
  const ref = current[CURRENT_REF]
  const cause = current[CURRENT_CAUSE]
  const step = { chain: current[CURRENT_CHAIN], ref: cause }
  const id = enteredId()
  if (ref === 0 && id === 0) return step // code from here on is not part of a request
  const span = current[CURRENT_SPAN] = next.seq
  if (id === 0) records.writeWord(ref, SPAN, span)
  else setSpan(id, span)
  if (records.isRequest(cause)) records.writeWord(cause, SPAN, span)
  if (runLog.isOn()) runLog.turned(next.start)
  return step
}

/**
 * Makes later callbacks of a resource part of a span, or of none.
 * @param {number} asyncId
 * @param {number} number of the span, 0 for none
 */
function setSpan (asyncId, number) {
  const record = records.findResource(asyncId)
  if (record !== undefined) record.words[record.offset + SPAN] = number
  const opener = registry.openerOf(asyncId)
  if (opener !== undefined) opener.spanNumber = number
}

/** @param {number} asyncId @returns {number} number of the resource's span, 0 if none */
function spanOf (asyncId) {
  const record = records.findResource(asyncId)
  const number = record === undefined ? 0 : record.words[record.offset + SPAN]
  return number || registry.openerOf(asyncId)?.spanNumber || 0
}

/**
 * Runs a function as part of a span, in its own resource.
 * @template T
 * @param {import('./span').Span} next
 * @param {() => T} fn
 * @returns {T}
 */
function runInSpan (next, fn) {
  // Node aborts if an AsyncResource runs out of stack (node#19859 and src/api/callback.cc)
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
    if (current[DEPTH] === 0 && runLog.isOn()) runLog.resumed(now())
  }
}

/**
 * Writes a span into the record of its resource.
 * @param {number} id of the resource
 * @param {{ words: Int32Array, offset: number }} record
 * @param {import('./span').Span} span
 */
function recordSpan (id, { words, offset }, span) {
  const ref = id << 1
  words[offset + SPAN] = span.seq
  words[offset + FLAGS] &= ~CARRIED // kept until `finish`, even if the resource is gone
  span.stepId = id
  const context = contextOfId(id)
  if (context?.ref === ref) words[offset + DETAIL] = span.seq
  if (context !== undefined) span.chain = context.chain
}

/**
 * Wraps `write` of a zlib handle. A zlib stream has one resource for all its chunks, and no event reports
 * when the thread pool gets one. So `write` records the run that calls it: there the wait for the stream's
 * next callback begins.
 * @param {object} handle of a zlib stream, internal to Node
 */
function watchZlibWrites (handle) {
  const prototype = getPrototypeOf(handle)
  if (prototype === null || wrapped.has(prototype)) return
  const unwrap = wrap(prototype, 'write', (method) => ({
    /** @this {any} */
    write () {
      if (runLog.isOn()) noteWrite(this)
      return apply(method, this, arguments)
    }
  }).write)
  if (unwrap !== undefined) wrapped.set(prototype, unwrap)
}

/** Restores the original methods. */
function unwatchZlibWrites () {
  for (const [prototype, unwrap] of wrapped) if (unwrap()) wrapped.delete(prototype)
}

/** @param {any} handle */
function noteWrite (handle) {
  const record = records.findResource(idOf(handle) ?? 0)
  if (record === undefined) return
  record.words[record.offset + RUN] = current[CURRENT_ENTRY]
}

module.exports = {
  enterSpan,
  runInSpan,
  setSpan,
  spanOf,
  unwatchZlibWrites,
  watchZlibWrites
}
