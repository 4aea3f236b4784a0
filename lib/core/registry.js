'use strict'

// What is open: an entry for each resource of a type that stays open, held weakly. The entry of a socket or a
// server lives as long as that object, also when its handle is closed and gone: it is a tag on the object.
// Entries whose resource is gone stay for a while (entry.js), for objects that had no event to be tagged
// in.

const guard = require('./guard')
const { contextTag } = require('./context')
const { source } = require('./source')
const { addressOf, handleOf, idOf, ownerOf } = require('../node-objects')
const { BriefResources, Entries, Entry, countBytes, entryTag } = require('./entry')

const sockets = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])

/** @typedef {import('./context').Context} Context */

/** Whether tracing has noticed all activity: it has not while it was disabled. */
class Watch {
  /** ms of the clock; Infinity while tracing is off */
  #since = Infinity
  /** called once there is a socket @type {(() => void) | undefined} */
  #onFirstSocket

  /** @param {number} time ms of the clock @param {() => void} onFirstSocket */
  start (time, onFirstSocket) {
    this.#since = time
    this.#onFirstSocket = onFirstSocket
  }

  /** From now on activity shows only in the count of bytes. @param {Iterable<Entry>} entries */
  stop (entries) {
    this.#since = Infinity
    this.#onFirstSocket = undefined
    for (const entry of entries) {
      entry.hadGap = true
      entry.bytesAtGap = countBytes(entry)
    }
  }

  /** @param {string} type of a resource */
  noteType (type) {
    if (this.#onFirstSocket === undefined || !sockets.has(type)) return
    this.#onFirstSocket()
    this.#onFirstSocket = undefined
  }

  /** @param {number} time ms of the clock */
  isSince (time) { return time >= this.#since }

  /** @param {Entry} entry @returns {number | undefined} ms of the clock; undefined where it is not known */
  lastActive (entry) {
    if (!entry.hadGap || this.isSince(entry.activeAt)) return entry.activeAt
    const bytes = entry.bytesAtGap
    return bytes !== undefined && bytes === countBytes(entry) ? entry.activeAt : undefined
  }
}

const entries = new Entries()
const coverage = new Watch()
/** when promises were last settled unseen, ms of the clock */
let missedAt = -Infinity
/** @type {((entry: Entry) => void) | undefined} */
let onTimer
const brief = new BriefResources((context, resource) => {
  if (entries.get(context.asyncId) === undefined) opened(context, resource)
})

/** @type {BriefResources['add']} */
const addBrief = (asyncId, type, time, resource) => brief.add(asyncId, type, time, resource)

/** @param {((entry: Entry) => void) | undefined} listener gets the entry of each timer that stays */
function listenToTimers (listener) {
  onTimer = listener
}

/** @param {number} asyncId */
function closed (asyncId) {
  entries.delete(asyncId)
}

/**
 * The record of a resource is overwritten: if it was just made, what is still open gets its entry now.
 * @param {number} asyncId
 */
function admitBrief (asyncId) {
  if (brief.mayHave(asyncId)) brief.settle(Infinity)
}

/** The event loop enters JavaScript. @param {number} time ms of the clock */
function startIteration (time) {
  if (brief.isDue(time)) brief.settle(time)
  entries.sweepByTime(time)
}

/** @param {number} asyncId */
function get (asyncId) { return entries.get(asyncId) }

/** @param {number} asyncId */
function openerOf (asyncId) { return entries.get(asyncId)?.context }

/** @param {object} object what the program holds @returns {Entry | undefined} */
function ofObject (object) {
  const handle = handleOf(object)
  if (!brief.isEmpty && contextTag.read(handle ?? object)?.kind.brief) brief.settle(Infinity)
  const tagged = entryTag.read(object)
  if (handle === undefined) return tagged ?? entries.get(idOf(object) ?? 0)
  if (tagged !== undefined && tagged.resource.deref() === handle) return tagged
  const entry = ofHandle(handle)
  if (entry !== undefined) tagOwner(entry, object)
  return entry
}

/** @returns {Entry[]} */
function list () {
  sweepAll()
  return [...entries.values()]
}

function size () {
  sweepAll()
  return entries.size
}

/**
 * Notes that a timer ran, and will run again.
 * @param {Context} context
 * @param {object} timer
 * @param {number} time
 */
function repeated (context, timer, time) {
  const entry = entries.get(context.asyncId) ?? opened(context, timer)
  entry.activeAt = time
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

/** @returns {number[]} references of the asks on connections: the present one of each, and the last */
function lastAsks () {
  const refs = []
  for (const entry of entries.values()) if (entry.ask !== 0) refs.push(entry.ask, entry.lastAsk)
  return refs
}

/** Notes data on a socket. @param {object} socket @param {number} time @returns {Entry | undefined} */
function noteTraffic (socket, time) {
  const entry = entryTag.read(socket) ?? ofObject(socket)
  if (entry !== undefined) entry.activeAt = time
  return entry
}

/**
 * Keeps the two ends of a connection, which cannot be asked after close.
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

/** @param {object} resource @param {object} owner what the program holds of it */
function setOwner (resource, owner) {
  const entry = ofHandle(resource)
  if (entry === undefined) return
  tagOwner(entry, owner)
  entry.owner = new WeakRef(owner)
}

/**
 * Tracing is enabled.
 * @param {number} time ms of the clock
 * @param {() => void} onFirstSocket called once there is a socket
 */
function watch (time, onFirstSocket) {
  coverage.start(time, onFirstSocket)
  for (const { context } of entries.values()) coverage.noteType(context.type)
}

/** Tracing is disabled. */
function unwatch () {
  brief.settle(Infinity)
  coverage.stop(entries.values())
}

/** Whether tracing was enabled from a time until now. @param {number} time ms of the clock */
function wasWatchingSince (time) { return coverage.isSince(time) }

/** Not all promises that were settled until now are known. @param {number} time ms of the clock */
function missSettled (time) { missedAt = time }

/** Whether each promise is known that was settled from a time until now. @param {number} time ms */
function sawSettledSince (time) { return time > missedAt && wasWatchingSince(time) }

/** @param {Entry} entry @returns {number | undefined} ms of the clock; undefined where it is not known */
function lastActive (entry) { return coverage.lastActive(entry) }

/** A resource that stays open was made. @param {Context} context @param {object} resource */
function opened (context, resource) {
  const entry = new Entry(context, resource)
  entries.add(entry)
  if (onTimer !== undefined && context.type === 'Timeout') onTimer(entry)
  coverage.noteType(context.type)
  if (entries.isFull) entries.sweep()
  return entry
}

/** @param {object} handle @returns {Entry | undefined} */
function ofHandle (handle) {
  const context = contextTag.read(handle)
  if (context !== undefined && context.kind.brief) brief.settle(Infinity)
  const entry = context === undefined ? undefined : entries.get(context.asyncId)
  return entry?.resource.deref() === handle ? entry : undefined
}

function sweepAll () {
  brief.settle(Infinity)
  entries.sweep()
}

/** @param {Entry} entry @param {object} owner what the program holds */
function tagOwner (entry, owner) {
  entry.isOwnerKnown = true
  entryTag.write(owner, entry)
}

Object.assign(source, { lastAsks })

module.exports = {
  addBrief,
  admitBrief,
  closed,
  connected,
  get,
  lastActive,
  list,
  listenToTimers,
  missSettled,
  noteActivity,
  noteTraffic,
  ofObject,
  opened,
  openerOf,
  repeated,
  sawSettledSince,
  setOwner,
  size,
  startIteration,
  unwatch,
  wasWatchingSince,
  watch
}
