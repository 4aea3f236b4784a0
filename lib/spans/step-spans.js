'use strict'

// Makes steps part of spans, and notes in them what hooks do not tell.

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
const HEADROOM_KB = 64 // of stack, for what begins and ends a callback

const { apply, getPrototypeOf } = Reflect

/** what puts `write` back, by the prototype of a kind of stream @type {Map<object, () => boolean>} */
const wrapped = new Map()

/**
 * Makes the remainder of this callback part of a span. The requests of a connection come on one resource:
 * from now on that resource is this span's.
 * @param {import('./span').Span} next
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
  if (runLog.isOn()) runLog.turned(next.start)
  return step
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
 * @param {import('./span').Span} next
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
  words[offset + FLAGS] &= ~CARRIED // kept until `finish`, whatever becomes of the resource
  span.stepId = id
  const context = contextOfId(id)
  if (context?.ref === ref) words[offset + DETAIL] = span.seq
  if (context !== undefined) span.chain = context.chain
}

/**
 * A zlib stream has one resource for all that it is given, and no event says when a thread of the pool got a
 * piece to work on. So the handle's `write` notes in which run of the request it was called: there the wait
 * began that the stream's next callback ends.
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

/** Puts back what was there. */
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
