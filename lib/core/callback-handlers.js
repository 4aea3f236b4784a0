'use strict'

// Slow path of callback begin and end: for handles, timers, parsers, logged runs and watched callbacks.

const { executionAsyncId, executionAsyncResource } = require('node:async_hooks')
const { now } = require('./clock')
const guard = require('./guard')
const { cachedContext, contextOf, contextOfId, root } = require('./context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_SPAN, DEPTH, LOGGED, MISSING, WATCHED, current
} = require('./current')
const {
  CALLED, CHAIN, COUNTED, DETAIL, DETAILED, FLAGS, INCOMING, LISTENED, LIVE, ONE_SHOT, OWN_WORK_CHAIN, PARSER,
  PASSED, RUNS, SHIFT, SPECIAL, TIMER, copyOn, countRun, ended, findRecord, findResource, isRequest, resources
} = require('./records')
const { idAt } = require('./record-ids')
const { counterTag } = require('./tag')
const registry = require('./registry')
const capture = require('../stacks/capture')
const { safely } = require('./faults')
const { callbackListeners, emit } = require('./on')
const orphans = require('./orphans')
const runLog = require('./run-log')
const { source } = require('./source')
const timers = require('./timers')

const HELD = 64 // contexts held for their detail; a power of two

// States of a parser's request, in INCOMING. 0: complete.
const HEAD = 1 // only the head was received
const BODY = 2

const NO_RECORD = { words: new Int32Array(1 << SHIFT), offset: 0 }

const { clock } = capture

/**
 * @typedef {import('./context').Context} Context
 */
/**
 * @template T
 * @typedef {(flags: number, words: Int32Array, offset: number) => T} Recorded
 */

/** contexts with a detail, held for some time: the detail lives in the object @type {Context[]} */
const held = []
let heldCount = 0

/**
 * Handles the end of a timer's callback: the timer is over, or will run again.
 * @param {number} asyncId
 * @param {Int32Array} words of its record
 * @param {number} offset
 */
function handleTimerAfter (asyncId, words, offset) {
  const timer = /** @type {any} */ (executionAsyncResource())
  if (timer._destroyed === true) {
    words[offset + FLAGS] &= ~LIVE
    return
  }
  timers.noteList(timer)
  words[offset + RUNS] = countRun(timer, asyncId, now())
  const context = cachedContext(asyncId << 1)
  if (context?.asyncId === asyncId) context.repeats++
}

/** Handles the end of a callback whose resource has no record in the ring. @param {number} asyncId */
function handleOlderAfter (asyncId) {
  const known = ended(asyncId << 1, asyncId)
  if (known !== undefined && (known & TIMER) === 0) return
  const copy = copyOn(executionAsyncResource(), asyncId)
  if (copy === undefined || (copy.flags & (TIMER | ONE_SHOT)) !== TIMER) return
  const { words, offset } = findResource(asyncId) ?? NO_RECORD
  handleTimerAfter(asyncId, words, offset)
}

/**
 * Handles the begin of a callback of a handle or parser.
 * @param {number} flags
 * @param {Int32Array} words of its record
 * @param {number} offset
 */
function handleBefore (flags, words, offset) {
  if ((flags & COUNTED) !== 0) countCallback()
  if ((flags & PARSER) !== 0 && words[offset + DETAIL] !== 0) resumeRequest(words, offset)
  if ((flags & SPECIAL) !== 0 && isRequest(words[offset + DETAIL])) resumeServed()
  if ((flags & (SPECIAL | DETAILED)) === 0) return
  if (guard.inOwnWork || current[CURRENT_CHAIN] === OWN_WORK_CHAIN) return
  const id = executionAsyncId()
  registry.noteActivity(id, clock[0])
  if ((flags & DETAILED) === 0) return
  safely(() => {
    const context = contextOfId(id)
    if (context === undefined) return
    if (context.kind.detail === undefined || context.detail !== undefined) return
    context.detail = context.kind.detail(executionAsyncResource())
    held[heldCount++ & (HELD - 1)] = context
    noteConnect(context)
  })
}

/**
 * Handles the begin of a callback while a bit of ATTENTION is set: callbacks are watched, runs are logged,
 * an orphan waits for its cause, or terminable code has run.
 * @param {number} ref
 * @param {number} flags
 * @param {Int32Array} words
 * @param {number} offset
 */
function handleAttention (ref, flags, words, offset) {
  orphans.claim(current[CURRENT_CAUSE])
  const span = current[CURRENT_SPAN]
  const isCallback = current[DEPTH] === 1 && (flags & CALLED) !== 0
  if (isCallback) current[ATTENTION] &= ~MISSING
  if (isCallback && (current[ATTENTION] & WATCHED) !== 0) {
    emit('callback', now(), contextOf(current[CURRENT_CHAIN], current[CURRENT_CAUSE], span) ?? root)
  }
  if ((current[ATTENTION] & LOGGED) === 0) return
  if (isCallback) {
    runLog.called(flags, words, offset, now(), idAt(words, offset), chainOfOwn(flags, words, offset))
  } else {
    runLog.entered(flags, words, offset, now())
  }
  const isPromise = ref > 0 && (ref & 1) !== 0
  const isListened = !isPromise && (words !== resources || (flags & LISTENED) !== 0)
  if (isListened && callbackListeners.size > 0) callbackListeners.get(idAt(words, offset))?.(false)
}

/** Returns the chain of a resource, 0: its record has its maker's chain. @type {Recorded<number>} */
const chainOfOwn = (flags, words, offset) => (flags & PASSED) !== 0 ? 0 : words[offset + CHAIN]

/** Handles the end of a nested step while runs are logged. */
function handleReturn () {
  runLog.resumed(now())
}

/** Notes the first run of a connect request. @param {Context} context */
function noteConnect (context) {
  const entry = registry.get(context.triggerAsyncId)
  if (entry === undefined || !context.type.endsWith('CONNECTWRAP')) return
  entry.isClient = true
  entry.remote ??= context.detail
  entry.context.detail ??= context.detail
  emit('connecting', context, entry)
}

/** Counts a counted callback, which may continue with another chain. */
function countCallback () {
  counterTag.read(executionAsyncResource())?.receive()
}

/**
 * Continues the last request on a connection: its parser reads more of it, or is done with it. The first
 * callback after the head has the body or the end; telling them apart would cost more than the rest of this
 * function.
 * @param {Int32Array} words of the parser's record
 * @param {number} offset
 */
function resumeRequest (words, offset) {
  const state = words[offset + INCOMING]
  if (state === HEAD) words[offset + INCOMING] = BODY
  else if (state === BODY && !isIncoming(executionAsyncResource())) words[offset + INCOMING] = 0
  if (words[offset + INCOMING] !== 0) current[CURRENT_CAUSE] = words[offset + DETAIL]
}

/** Makes the callback of an accepted connection part of the request in flight on it. */
function resumeServed () {
  const ref = source.servedOn(executionAsyncId())
  const record = findRecord(ref)
  if (record === undefined) return
  current[CURRENT_CAUSE] = ref
  current[CURRENT_CHAIN] = record.words[record.offset + CHAIN]
}

/**
 * Returns whether a request is still coming in on a connection. Upgrades are not: no channel reports them.
 * Properties that Node itself reads with every callback (lib/_http_server.js, lib/_http_common.js) are read
 * as plain properties.
 * @param {any} resource of a parser: HTTPServerAsyncResource
 */
function isIncoming (resource) {
  const incoming = resource?.socket?.parser?.incoming
  if (typeof incoming !== 'object' || incoming === null) return false
  return incoming.complete === false && incoming.upgrade !== true
}

module.exports = {
  HEAD,
  countCallback,
  handleAttention,
  handleBefore,
  handleOlderAfter,
  handleReturn,
  handleTimerAfter,
  resumeServed
}
