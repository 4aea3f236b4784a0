'use strict'

// Open resources: an entry for each resource of a type that stays open, held weakly. The entry of a socket or
// a server lives as long as that object, even after its handle is closed and gone: it is a tag on the object.
// Entries whose resource is gone stay for some time, for objects that no event has tagged. Timers are
// numerous, so they get an entry only when a query needs one (timers.js).

const guard = require('./guard')
const { contextOfId, contextOfTimer, contextTag } = require('./context')
const { connectionTypes } = require('./kinds')
const { PASSED, TIMER, copyOn, isAsk } = require('./records')
const { source } = require('./source')
const timers = require('./timers')
const { BRIEF, FIRST_BRIEF, keepWeak, weakAt } = require('./weak-slots')
const {
  addressOf, handleOf, idOf, isClosedFile, isClosedTimer, numberOf, ownerOf
} = require('../node-objects')
const { hiddenProperty } = require('../objects')
const { Entry, entryTag } = require('./entry')

const timerId = hiddenProperty('asyncId')

/** @typedef {import('./context').Context} Context */

/** by asyncId, oldest first @type {Map<number, Entry>} */
const entries = new Map()
/** tracing has seen all activity since then, ms of the clock; Infinity while it is off */
let watchedSince = Infinity
/** called when the first socket exists @type {(() => void) | undefined} */
let onFirstSocket
/** when promises last settled unseen, ms of the clock */
let missedAt = -Infinity

/** Begins an iteration of the event loop. @param {number} time ms of the clock */
function startIteration (time) {
  timers.settle()
  if (time >= settleAt) settleBrief(time)
  if (time >= nextSweep) sweepByTime(time)
}

/** @param {number} asyncId */
function get (asyncId) { return entries.get(asyncId) }

/** @param {number} asyncId */
function openerOf (asyncId) { return entries.get(asyncId)?.context }

/** @param {object} object the program's object @returns {Entry | undefined} */
function ofObject (object) {
  const handle = handleOf(object)
  if (briefCount > 0 && contextTag.read(handle ?? object)?.kind.brief) settleBrief(Infinity)
  const tagged = entryTag.read(object)
  if (handle === undefined) return tagged ?? entries.get(idOf(object) ?? 0) ?? ofTimer(object)
  if (tagged !== undefined && tagged.resource.deref() === handle) return tagged
  const entry = ofHandle(handle)
  if (entry !== undefined) tagOwner(entry, object)
  return entry
}

/** @returns {Entry[]} all entries except timers */
function list () {
  sweepAll()
  return [...entries.values()]
}

function size () {
  sweepAll()
  return entries.size + timersOfProgram().length
}

/** @returns {object[]} recorded pending timers, mostly newest last */
function timersOfProgram () {
  return timers.pending().filter((timer) => copyOfTimer(timer, timerId(timer)) !== undefined)
}

/**
 * Returns the copy of its record that a timer carries, or undefined if the filter excludes timers.
 * @param {object} timer
 * @param {number} [id]
 */
function copyOfTimer (timer, id) {
  const copy = id === undefined ? undefined : copyOn(timer, id)
  return copy === undefined || (copy.flags & (TIMER | PASSED)) !== TIMER ? undefined : copy
}

/** @param {object} object @returns {Entry | undefined} entry of a pending timer */
function ofTimer (object) {
  const copy = isClosedTimer(object) ? undefined : copyOfTimer(object, idOf(object))
  const context = copy && contextOfTimer(copy)
  if (copy === undefined || context === undefined) return undefined
  const entry = new Entry(context, object)
  entry.activeAt = copy.more?.ranAt ?? context.time
  entry.hadGap = !wasWatchingSince(context.time)
  return entry
}

/**
 * Notes an event of a handle. The hot path.
 * @param {number} asyncId
 * @param {number} time ms of the clock
 * @returns {boolean} whether it has an entry
 */
function noteActivity (asyncId, time) {
  const entry = entries.get(asyncId)
  if (entry === undefined) return false
  entry.activeAt = time
  if (entry.session !== undefined) entry.session.activeAt = time
  if (entry.isOwnerKnown || entry.ownerLookups === 0) return true
  entry.ownerLookups--
  guard.run(() => connected(entry))
  return true
}

/** @returns {number[]} references of the current and the last ask of each connection */
function lastAsks () {
  const refs = []
  for (const { ask, lastAsk } of entries.values()) if (isAsk(ask)) refs.push(ask, lastAsk)
  return refs
}

/** Notes data on a socket. @param {object} socket @param {number} time @returns {Entry | undefined} */
function noteTraffic (socket, time) {
  const entry = entryTag.read(socket) ?? ofObject(socket)
  if (entry !== undefined) entry.activeAt = time
  return entry
}

/**
 * Stores both addresses of a connection, which are not available after close.
 * @param {Entry | undefined} entry
 */
function connected (entry) {
  const handle = entry?.resource.deref()
  if (entry === undefined || handle === undefined) return
  const owner = entry.isOwnerKnown ? undefined : ownerOf(handle)
  if (owner !== undefined) tagOwner(entry, owner)
  entry.local ??= addressOf(handle, 'getsockname')
  entry.remote = addressOf(handle, 'getpeername') ?? entry.remote
}

/** @param {object} resource @param {object} owner the program's object for it */
function setOwner (resource, owner) {
  const entry = ofHandle(resource)
  if (entry === undefined) return
  tagOwner(entry, owner)
  entry.owner = new WeakRef(owner)
}

/**
 * Starts watching: tracing is enabled.
 * @param {number} time ms of the clock
 * @param {() => void} listener called when the first socket exists
 */
function watch (time, listener) {
  watchedSince = time
  onFirstSocket = listener
  for (const entry of entries.values()) {
    noteType(entry.context.type)
    if (!entry.isClient) continue
    entry.unseenUntil = time
    entry.ask = 0
  }
}

/** Stops watching: tracing is disabled. From now on only byte counts reveal activity. */
function unwatch () {
  settleBrief(Infinity)
  watchedSince = Infinity
  onFirstSocket = undefined
  for (const entry of entries.values()) {
    entry.hadGap = true
    entry.bytesAtGap = countBytes(entry)
  }
}

/** @param {string} type of a resource */
function noteType (type) {
  if (onFirstSocket === undefined || !connectionTypes.has(type)) return
  onFirstSocket()
  onFirstSocket = undefined
}

/** Returns whether tracing has been on since a given time. @param {number} time ms of the clock */
function wasWatchingSince (time) { return time >= watchedSince }

/** Notes that some settled promises may be unknown. @param {number} time now, ms of the clock */
function missSettled (time) { missedAt = time }

/** Returns whether every promise settled since a given time is known. @param {number} time ms */
function sawSettledSince (time) { return time > missedAt && wasWatchingSince(time) }

/** @param {Entry} entry @returns {number | undefined} ms of the clock; undefined: unknown */
function lastActive (entry) {
  if (!entry.hadGap || wasWatchingSince(entry.activeAt)) return entry.activeAt
  const bytes = entry.bytesAtGap
  return bytes !== undefined && bytes === countBytes(entry) ? entry.activeAt : undefined
}

/** Adds a new resource that stays open. @param {Context} context @param {object} resource */
function opened (context, resource) {
  const entry = new Entry(context, resource)
  if (context.type === 'HTTP2STREAM') entry.session = entries.get(context.triggerAsyncId)
  if (entry.session !== undefined) entry.session.activeAt = context.time
  entries.set(context.asyncId, entry)
  sweepPause = SWEEP_MS
  nextSweep = Math.min(nextSweep, context.time + SWEEP_MS)
  noteType(context.type)
  if (entries.size >= sweepSize) sweep()
  return entry
}

/** @param {object} handle @returns {Entry | undefined} */
function ofHandle (handle) {
  const context = contextTag.read(handle)
  if (context !== undefined && context.kind.brief) settleBrief(Infinity)
  const entry = context === undefined ? undefined : entries.get(context.asyncId)
  return entry?.resource.deref() === handle ? entry : undefined
}

function sweepAll () {
  settleBrief(Infinity)
  sweep()
}

/** @param {Entry} entry @param {object} owner the program's object */
function tagOwner (entry, owner) {
  entry.isOwnerKnown = true
  entryTag.write(owner, entry)
}

/** @param {Entry} entry @returns {string | undefined} bytes in and out */
function countBytes (entry) {
  const handle = entry.resource.deref()
  const bytesRead = handle && numberOf(handle, 'bytesRead')
  if (handle === undefined || bytesRead === undefined) return undefined
  return `${bytesRead},${numberOf(handle, 'bytesWritten')}`
}

// Entries whose resource is gone are swept by time and by count. The sweep by time checks an entry less and
// less often: each check keeps its resource alive until the job ends (see stacks/realms.js). A
// FinalizationRegistry would report earlier, but V8 cleans up one registry per task, so the program's own
// would be late by an iteration of the event loop (src/heap/finalization-registry-cleanup-task.cc).

const MAX_GONE = 64
const MIN_SWEEP_SIZE = 256
const SWEEP_MS = 1000 // between two sweeps, while resources are opened or go
const MAX_SWEEP_MS = 32_000 // between two sweeps that remove nothing

let sweepSize = MIN_SWEEP_SIZE
/** ms of the clock */
let nextSweep = Infinity
let sweepPause = SWEEP_MS

/** Sweeps, and postpones the next sweep if nothing was removed. @param {number} time ms of the clock */
function sweepByTime (time) {
  const before = entries.size
  sweep(time)
  const hasRemoved = entries.size < before
  sweepPause = hasRemoved ? SWEEP_MS : Math.min(2 * sweepPause, MAX_SWEEP_MS)
  nextSweep = entries.size === 0 ? Infinity : time + sweepPause
}

/**
 * Removes entries whose resource is gone, except the newest, which a query may still need.
 * @param {number} [time] ms of the clock: limits the sweep to entries due by then
 */
function sweep (time = Infinity) {
  /** @type {number[]} */
  const gone = []
  for (const [asyncId, entry] of entries) {
    if (entry.sweepAt > time) continue
    const resource = entry.resource.deref()
    if (resource !== undefined) {
      if (time !== Infinity) entry.sweepAt = Math.ceil(time + Math.max(SWEEP_MS, time - entry.context.time))
      continue
    }
    const hasOwner = entry.context.type !== 'SIGNALWRAP' // a signal has no object that the program holds
    if (!hasOwner || entry.isOwnerKnown) entries.delete(asyncId)
    else gone.push(asyncId)
  }
  for (const asyncId of gone.slice(0, Math.max(0, gone.length - MAX_GONE))) entries.delete(asyncId)
  sweepSize = Math.max(MIN_SWEEP_SIZE, entries.size * 2)
}

// Recently opened files wait in weak slots (weak-slots.js): most are closed soon. Only files still open after
// SETTLE_MS get an entry.

const SETTLE_MS = 32

const briefIds = new Float64Array(BRIEF)
/** ms of the clock */
const briefTimes = new Float64Array(BRIEF)
let briefCount = 0
/** ms of the clock */
let settleAt = Infinity

/**
 * Handles a record that is about to be overwritten: if it is recent, waiting files that are still open get
 * their entries now. Ids only grow.
 * @param {number} asyncId
 */
function admitBrief (asyncId) {
  if (briefCount > 0 && asyncId >= briefIds[0]) settleBrief(Infinity)
}

/**
 * Adds a new resource. The hot path.
 * @param {number} asyncId
 * @param {number} time ms of the clock
 * @param {object} resource under construction, so it must not be inspected
 */
function addBrief (asyncId, time, resource) {
  if (briefCount === BRIEF || time >= settleAt) settleBrief(time)
  if (briefCount === 0) settleAt = time + SETTLE_MS
  const index = briefCount++
  keepWeak(FIRST_BRIEF + index, resource)
  briefTimes[index] = time
  briefIds[index] = asyncId
}

/**
 * Drops closed files, and gives entries to those that have waited long enough.
 * @param {number} time ms of the clock; Infinity for all
 */
function settleBrief (time) {
  let kept = 0
  for (let i = 0; i < briefCount; i++) {
    const resource = weakAt(FIRST_BRIEF + i)
    if (resource === undefined || isClosedFile(resource)) continue // closed or collected
    if (time - briefTimes[i] >= SETTLE_MS) {
      admit(i, resource)
      continue
    }
    if (kept !== i) keepWeak(FIRST_BRIEF + kept, resource)
    briefTimes[kept] = briefTimes[i]
    briefIds[kept++] = briefIds[i]
  }
  briefCount = kept
  // All at once: with separate times, most of them would be checked again and again.
  settleAt = kept > 0 ? time + SETTLE_MS : Infinity
  if (kept > BRIEF / 2) settleBrief(Infinity) // no room for the next ones
}

/** @param {number} index @param {object} resource */
function admit (index, resource) {
  const context = contextOfId(briefIds[index])
  if (context?.kind.brief && !entries.has(context.asyncId)) opened(context, resource)
}

Object.assign(source, { lastAsks })

module.exports = {
  addBrief,
  admitBrief,
  connected,
  get,
  lastActive,
  list,
  missSettled,
  noteActivity,
  noteTraffic,
  ofObject,
  ofTimer,
  opened,
  openerOf,
  sawSettledSince,
  setOwner,
  size,
  timersOfProgram,
  startIteration,
  unwatch,
  wasWatchingSince,
  watch
}
