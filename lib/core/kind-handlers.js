'use strict'

// Slow path of resource creation, beyond recording: for handles, ticks and timers.

const { types } = require('node:util')
const records = require('./records')
const { contextOf, contextOfId, contextTag } = require('./context')
const {
  ATTENTION, CURRENT_CAUSE, CURRENT_CHAIN, CURRENT_SPAN, LOGGED, current
} = require('./current')
const { poolTasks } = require('./kinds')
const registry = require('./registry')
const capture = require('../stacks/capture')
const { safely } = require('./faults')
const { emit, listeners } = require('./on')
const orphans = require('./orphans')
const { streamed } = require('./served-requests')
const timers = require('./timers')

const { CHAIN, CAUSE, DETAIL, RUNS, TICKS, resources } = records
const { clock } = capture

/** @type {(value: any) => boolean} */
// Error.isError is a V8 built-in from Node 24 on
const isError = /** @type {any} */ (Error).isError ?? types.isNativeError

/**
 * @typedef {import('./context').Context} Context
 * @typedef {import('./kinds').Kind} Kind
 */

/** closed timers that run again under a new id (timer.refresh) @type {WeakSet<object>} */
const reusedTimers = new WeakSet()

/**
 * @param {Kind} kind
 * @param {number} asyncId
 * @param {number} offset of its record in `resources`
 * @param {number} trigger
 * @param {any} resource
 */
function handleInit (kind, asyncId, offset, trigger, resource) {
  if (kind.tick) return handleTick(asyncId, offset, resource)
  if (kind.timer) handleTimer(asyncId, offset, resource)
  if (kind.carried) {
    if (kind.embedded && poolTasks.has(kind.type)) safely(() => emit('taskMade', asyncId, resource))
    return records.carry(resource, offset, asyncId, trigger, kind.embedded)
  }
  orphans.note(asyncId, kind.type, trigger)
  if (!kind.handle) return
  // Done last: a callback might inspect the handle, which must not happen during construction.
  if (kind.brief) registry.addBrief(asyncId, clock[0], resource)
  else safely(() => openHandle(asyncId, resource))
}

/**
 * Tags a handle with its context: its id may change (Node's agent resets the id of a connection that it
 * reuses), and some handles do not expose theirs.
 * @param {number} asyncId
 * @param {object} resource
 */
function openHandle (asyncId, resource) {
  const context = contextOfId(asyncId)
  if (context === undefined) return
  contextTag.write(resource, context)
  registry.opened(context, resource)
  emit('opened', context, resource)
}

/** @param {number} asyncId @param {number} offset @param {any} timer */
function handleTimer (asyncId, offset, timer) {
  timers.made(timer)
  resources[offset + RUNS] = 0
  if (timer._repeat !== null && listeners.intervalMade.length > 0) {
    safely(() => emit('intervalMade', /** @type {Context} */ (contextOfId(asyncId)), timer))
  }
  // Set when Node puts the timer into a list (lib/internal/timers.js)
  if (timer._idleStart !== null) reusedTimers.add(timer)
  const delay = timer._idleTimeout
  if (typeof delay !== 'number') return
  resources[offset + DETAIL] = delay
  records.noteDelay(resources[offset + CHAIN], delay)
}

/**
 * Notes the errors that Node's core passes to nextTick: they were just created there. Other errors may be
 * old; attribution uses this only for errors without a frame of the program.
 * @param {number} asyncId
 * @param {number} offset
 * @param {any} tick
 */
function handleTick (asyncId, offset, tick) {
  const { args } = tick
  const isList = Array.isArray(args)
  if (isList && args.length > 3 && args[1] === 'stream') safely(() => handleHttp2Stream(offset, args))
  if (listeners.ticked.length > 0 && (current[ATTENTION] & LOGGED) !== 0) {
    safely(() => emit('ticked', /** @type {Context} */ (contextOfId(asyncId)), tick))
  }
  if (!isList) return
  for (let i = 0; i < args.length; i++) {
    const value = args[i]
    if (typeof value !== 'object' || value === null || !isError(value)) continue
    const context = contextOf(current[CURRENT_CHAIN], current[CURRENT_CAUSE], current[CURRENT_SPAN])
    if (context !== undefined) emit('passedToTick', value, context, args[0])
  }
}

/**
 * Adds the record of an HTTP/2 request: Node emits it in a tick (onSessionHeaders in
 * lib/internal/http2/core.js).
 * @param {number} offset of the tick's record
 * @param {unknown[]} args
 */
function handleHttp2Stream (offset, args) {
  const session = records.findRecord(current[CURRENT_CAUSE])
  if (session === undefined) return
  const request = streamed(args[2], args[3], session, clock[0] * TICKS)
  if (request === 0) return
  resources[offset + CAUSE] = request
}

/** Returns whether a timer had an earlier id. @param {object} timer */
const isReusedTimer = (timer) => reusedTimers.has(timer)

module.exports = { handleInit, isReusedTimer }
