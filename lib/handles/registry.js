'use strict'

// What is open: an entry for each resource of a type that stays open, held weakly. The entry of a socket or a
// server lives as long as that object, also when its handle is closed and gone: it is a tag on the object.
// Entries whose resource is gone stay for a while (entries.js), for objects that had no event to be tagged
// in.

const guard = require('../context/guard')
const { contextTag } = require('../context/context')
const { addressOf, handleOf, idOf, ownerOf } = require('../node-objects')
const { BriefResources } = require('./brief-resources')
const { Entries } = require('./entries')
const { Entry, countBytes, entryTag } = require('./entry')

const sockets = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])

/** @typedef {import('../context/context').Context} Context */

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

class Registry {
  #entries = new Entries()
  #watch = new Watch()
  /** when promises were last settled unseen, ms of the clock */
  #missedAt = -Infinity
  /**
   * Called with the entry of each timer that stays, while it is set.
   * @type {((entry: Entry) => void) | undefined}
   */
  onTimer
  #brief = new BriefResources((context, resource) => {
    if (this.#entries.get(context.asyncId) === undefined) this.#admit(context, resource)
  })

  /** @param {Context} context @param {object} resource */
  opened (context, resource) {
    this.#admit(context, resource)
  }

  /** @type {BriefResources['add']} */
  addBrief (asyncId, type, time, resource) {
    this.#brief.add(asyncId, type, time, resource)
  }

  /** @param {number} asyncId */
  closed (asyncId) {
    this.#entries.delete(asyncId)
  }

  /** The event loop enters JavaScript. @param {number} time ms of the clock */
  startIteration (time) {
    if (this.#brief.isDue(time)) this.#brief.settle(time)
    this.#entries.sweepByTime(time)
  }

  /** @param {number} asyncId */
  get (asyncId) { return this.#entries.get(asyncId) }

  /** @param {number} asyncId */
  openerOf (asyncId) { return this.#entries.get(asyncId)?.context }

  /** @param {object} object what the program holds @returns {Entry | undefined} */
  ofObject (object) {
    const handle = handleOf(object)
    if (!this.#brief.isEmpty && contextTag.read(handle ?? object)?.kind.brief) this.#brief.settle(Infinity)
    const tagged = entryTag.read(object)
    if (handle === undefined) return tagged ?? this.#entries.get(idOf(object) ?? 0)
    if (tagged !== undefined && tagged.resource.deref() === handle) return tagged
    const entry = this.#ofHandle(handle)
    if (entry !== undefined) tagOwner(entry, object)
    return entry
  }

  /** @returns {Entry[]} */
  list () {
    this.#sweep()
    return [...this.#entries.values()]
  }

  size () {
    this.#sweep()
    return this.#entries.size
  }

  /**
   * Notes that a timer ran, and will run again.
   * @param {Context} context
   * @param {object} timer
   * @param {number} time
   */
  repeated (context, timer, time) {
    const entry = this.#entries.get(context.asyncId) ?? this.#admit(context, timer)
    entry.activeAt = time
  }

  /**
   * Notes an event of a handle. The hot path.
   * @param {number} asyncId
   * @param {number} time ms of the clock
   * @returns {boolean} whether it has an entry
   */
  noteActivity (asyncId, time) {
    const entry = this.#entries.get(asyncId)
    if (entry === undefined) return false
    entry.activeAt = time
    if (entry.session !== undefined) entry.session.activeAt = time
    if (entry.isOwnerKnown || entry.ownerLookups === 0) return true
    entry.ownerLookups--
    guard.run(() => this.connected(entry))
    return true
  }

  /** @returns {number[]} references of the asks on connections: the present one of each, and the last */
  lastAsks () {
    const refs = []
    for (const entry of this.#entries.values()) if (entry.ask !== 0) refs.push(entry.ask, entry.lastAsk)
    return refs
  }

  /** Notes data on a socket. @param {object} socket @param {number} time @returns {Entry | undefined} */
  noteTraffic (socket, time) {
    const entry = entryTag.read(socket) ?? this.ofObject(socket)
    if (entry !== undefined) entry.activeAt = time
    return entry
  }

  /**
   * Keeps the two ends of a connection, which cannot be asked after close.
   * @param {Entry | undefined} entry
   */
  connected (entry) {
    const handle = entry?.resource.deref()
    if (entry === undefined || handle === undefined) return
    const owner = entry.isOwnerKnown ? undefined : ownerOf(handle)
    if (owner !== undefined) tagOwner(entry, owner)
    entry.local ??= addressOf(handle, 'getsockname')
    entry.remote = addressOf(handle, 'getpeername') ?? entry.remote
  }

  /** @param {object} resource @param {object} owner what the program holds of it */
  setOwner (resource, owner) {
    const entry = this.#ofHandle(resource)
    if (entry === undefined) return
    tagOwner(entry, owner)
    entry.owner = new WeakRef(owner)
  }

  /**
   * Tracing is enabled.
   * @param {number} time ms of the clock
   * @param {() => void} onFirstSocket called once there is a socket
   */
  watch (time, onFirstSocket) {
    this.#watch.start(time, onFirstSocket)
    for (const { context } of this.#entries.values()) this.#watch.noteType(context.type)
  }

  /** Tracing is disabled. */
  unwatch () {
    this.#brief.settle(Infinity)
    this.#watch.stop(this.#entries.values())
  }

  /** Whether tracing was enabled from a time until now. @param {number} time ms of the clock */
  wasWatchingSince (time) { return this.#watch.isSince(time) }

  /** Not all promises that were settled until now are known. @param {number} time ms of the clock */
  missSettled (time) { this.#missedAt = time }

  /** Whether each promise is known that was settled from a time until now. @param {number} time ms */
  sawSettledSince (time) { return time > this.#missedAt && this.wasWatchingSince(time) }

  /** @param {Entry} entry @returns {number | undefined} ms of the clock; undefined where it is not known */
  lastActive (entry) { return this.#watch.lastActive(entry) }

  /** @param {Context} context @param {object} resource */
  #admit (context, resource) {
    const entry = new Entry(context, resource)
    this.#entries.add(entry)
    if (this.onTimer !== undefined && context.type === 'Timeout') this.onTimer(entry)
    this.#watch.noteType(context.type)
    if (this.#entries.isFull) this.#entries.sweep()
    return entry
  }

  /** @param {object} handle @returns {Entry | undefined} */
  #ofHandle (handle) {
    const context = contextTag.read(handle)
    if (context !== undefined && context.kind.brief) this.#brief.settle(Infinity)
    const entry = context === undefined ? undefined : this.#entries.get(context.asyncId)
    return entry?.resource.deref() === handle ? entry : undefined
  }

  #sweep () {
    this.#brief.settle(Infinity)
    this.#entries.sweep()
  }
}

/** @param {Entry} entry @param {object} owner what the program holds */
function tagOwner (entry, owner) {
  entry.isOwnerKnown = true
  entryTag.write(owner, entry)
}

module.exports = { Registry }
