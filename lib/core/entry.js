'use strict'

// What the registry keeps of open resources: one entry of each, all of them by asyncId, and apart from these
// what was made a moment ago.

const { createTag } = require('./tag')
const { isClosed, numberOf } = require('../node-objects')
const { hiddenProperty } = require('../objects')
const { contextOfId } = require('./context')

const OWNER_LOOKUPS = 4 // events of a handle on which its owner is looked for

const timerId = hiddenProperty('asyncId')

/**
 * @typedef {import('./context').Context} Context
 *
 * @typedef {object} Use a request on a connection
 * @property {WeakRef<object>} request
 * @property {string} label
 * @property {Context | undefined} context that made it
 * @property {boolean} isOver
 */

class Entry {
  /** @param {Context} context @param {object} resource */
  constructor (context, resource) {
    this.context = context
    this.resource = new WeakRef(resource)
    /** ms of the clock: the last time that data went either way, an answer or an event came @type {number} */
    this.activeAt = context.time
    /** @type {string | undefined} */
    this.local = undefined
    /** @type {string | undefined} */
    this.remote = undefined
    /** @type {Use | undefined} */
    this.use = undefined
    /** the object that the program holds has its tag @type {boolean} */
    this.isOwnerKnown = context.type === 'Timeout'
    /** how many events may still look for the owner: a bare handle has none @type {number} */
    this.ownerLookups = OWNER_LOOKUPS
    /** the object of the program, where the handle does not lead to it @type {WeakRef<object> | undefined} */
    this.owner = undefined
    /** the session of a stream: activity of one is activity of the other @type {Entry | undefined} */
    this.session = undefined
    /** a connection that a server accepted */
    this.isAccepted = false
    /** a connection that the program has made */
    this.isClient = false
    // Undefined, not NaN: V8 has an object on its heap for each number that is no small integer.
    /** references of the present ask, see core/asks.js, and of the last write; 0: none, or not known */
    this.ask = this.lastAsk = 0
    /** when the program wrote last, ms of the clock @type {number | undefined} */
    this.writeTime = undefined
    /** several flows have asked at once */
    this.isShared = false
    /** of a connection of the program: it has begun to connect */
    this.hasTraffic = false
    /**
     * what was sent last, while spans are timed: ms that the loop had waited by then, and the span that sent;
     * 0: none, or the connection's own callback
     * @type {number | undefined}
     */
    this.sentIdle = undefined
    this.sentSpan = 0
    /** the same when data last came, which was the answer to it @type {number | undefined} */
    this.answeredIdle = undefined
    this.answeredSpan = 0
    /** the program has asked on it, not its driver alone, while spans are timed */
    this.isAsked = false
    /** what was asked, of late @type {import('../spans/questions').Question[] | undefined} */
    this.questions = undefined
    /** when it is to be looked at next, whole ms of the clock */
    this.sweepAt = 0
    /** tracing was off for a while */
    this.hadGap = false
    /** bytes in and out when tracing was disabled, where they are counted @type {string | undefined} */
    this.bytesAtGap = undefined
  }
}

/** @type {ReturnType<typeof createTag<Entry>>} on the object that a program holds */
const entryTag = createTag()

/**
 * Whether a resource is still the one of a context: a timer that was cleared and refreshed is another
 * resource in the same object.
 * @param {object} resource
 * @param {Context} context
 */
function isResourceOf (resource, context) {
  return context.type !== 'Timeout' || timerId(resource) === context.asyncId
}

/**
 * Whether a timer was over and refreshed, which gave it another id: servers do that to one timer for each
 * request.
 * @param {string} type
 * @param {object} timer
 * @param {number} asyncId
 */
function isRefreshed (type, timer, asyncId) {
  return type === 'Timeout' && timerId(timer) !== asyncId
}

/** @param {Entry} entry @returns {string | undefined} bytes in and out */
function countBytes (entry) {
  const handle = entry.resource.deref()
  const bytesRead = handle && numberOf(handle, 'bytesRead')
  if (handle === undefined || bytesRead === undefined) return undefined
  return `${bytesRead},${numberOf(handle, 'bytesWritten')}`
}

// The entries of the registry by asyncId, and when to remove those whose resource is gone.
//
// They are swept by time and by count. By time an entry is looked at ever less often: a look keeps its
// resource until the job ends (see stacks/realms.js). A FinalizationRegistry would report sooner which are
// gone, but V8 cleans up one registry a task (src/heap/finalization-registry-cleanup-task.cc), so that the
// program's own would be late by an iteration of the event loop.

const MAX_GONE = 64
const MIN_SWEEP_SIZE = 256
const SWEEP_MS = 1000 // between two sweeps, where resources are opened or go
const MAX_SWEEP_MS = 32_000 // between two sweeps where they remove nothing

class Entries {
  /** oldest first @type {Map<number, Entry>} */
  #entries = new Map()
  #sweepSize = MIN_SWEEP_SIZE
  /** ms of the clock */
  #nextSweep = Infinity
  #sweepPause = SWEEP_MS

  get size () { return this.#entries.size }

  values () { return this.#entries.values() }

  /** @param {number} asyncId @returns {Entry | undefined} */
  get (asyncId) { return this.#entries.get(asyncId) }

  /** @param {number} asyncId */
  delete (asyncId) { this.#entries.delete(asyncId) }

  /** @param {Entry} entry */
  add (entry) {
    const { context } = entry
    if (context.type === 'HTTP2STREAM') entry.session = this.#entries.get(context.triggerAsyncId)
    if (entry.session !== undefined) entry.session.activeAt = context.time
    this.#entries.set(context.asyncId, entry)
    this.#sweepPause = SWEEP_MS
    this.#nextSweep = Math.min(this.#nextSweep, context.time + SWEEP_MS)
  }

  get isFull () { return this.#entries.size >= this.#sweepSize }

  /** Sweeps if it is time to; later again if that removes nothing. @param {number} time ms of the clock */
  sweepByTime (time) {
    if (time < this.#nextSweep) return
    const before = this.#entries.size
    this.sweep(time)
    const hasRemoved = this.#entries.size < before
    this.#sweepPause = hasRemoved ? SWEEP_MS : Math.min(2 * this.#sweepPause, MAX_SWEEP_MS)
    this.#nextSweep = this.#entries.size === 0 ? Infinity : time + this.#sweepPause
  }

  /**
   * Removes entries whose resource is gone, but for the newest that a query may still ask for.
   * @param {number} [time] ms of the clock: only of those that are to be looked at by then
   */
  sweep (time = Infinity) {
    /** @type {number[]} */
    const gone = []
    for (const [asyncId, entry] of this.#entries) {
      if (entry.sweepAt > time) continue
      const resource = entry.resource.deref()
      if (resource !== undefined && isResourceOf(resource, entry.context)) {
        if (time !== Infinity) entry.sweepAt = Math.ceil(time + Math.max(SWEEP_MS, time - entry.context.time))
        continue
      }
      const hasOwner = entry.context.type !== 'SIGNALWRAP' // of which the program holds no object
      if (!hasOwner || entry.isOwnerKnown || resource !== undefined) this.#entries.delete(asyncId)
      else gone.push(asyncId)
    }
    for (const asyncId of gone.slice(0, Math.max(0, gone.length - MAX_GONE))) this.#entries.delete(asyncId)
    this.#sweepSize = Math.max(MIN_SWEEP_SIZE, this.#entries.size * 2)
  }
}

// Timers and files that were just made. V8 takes a WeakRef for a strong reference until the next mark-sweep:
// one for each timer and file would promote them, with their contexts, to the old generation. Most are over
// soon, so they wait in a list until SETTLE_MS have passed, and only what is still open then gets an entry.

const SETTLE_MS = 32
const CAPACITY = 1024

class BriefResources {
  /** @type {any[]} */
  #resources = Array(CAPACITY).fill(undefined)
  #ids = new Float64Array(CAPACITY)
  /** ms of the clock */
  #times = new Float64Array(CAPACITY)
  /** @type {string[]} */
  #types = Array(CAPACITY).fill('')
  #count = 0
  /** ms of the clock */
  #settleAt = Infinity
  #admit

  /** @param {(context: Context, resource: object) => void} admit called for what is still open */
  constructor (admit) {
    this.#admit = admit
  }

  get isEmpty () { return this.#count === 0 }

  /** Whether a resource may be among them: ids grow. @param {number} asyncId @returns {boolean} */
  mayHave (asyncId) { return this.#count > 0 && asyncId >= this.#ids[0] }

  /**
   * Adds a resource that was just made. The hot path.
   * @param {number} asyncId
   * @param {string} type
   * @param {number} time ms of the clock
   * @param {object} resource that is still being made: it must not be asked anything
   */
  add (asyncId, type, time, resource) {
    if (this.#count === CAPACITY || time >= this.#settleAt) this.settle(time)
    if (this.#count === 0) this.#settleAt = time + SETTLE_MS
    const index = this.#count++
    this.#resources[index] = resource
    this.#types[index] = type
    this.#times[index] = time
    this.#ids[index] = asyncId
  }

  /** @param {number} time ms of the clock @returns {boolean} whether some have waited for long enough */
  isDue (time) { return time >= this.#settleAt }

  /**
   * Drops what is over, and admits what has waited for long enough.
   * @param {number} time ms of the clock; Infinity: all have
   */
  settle (time) {
    let kept = 0
    for (let i = 0; i < this.#count; i++) {
      const resource = this.#resources[i]
      const type = this.#types[i]
      if (isClosed(type, resource) || isRefreshed(type, resource, this.#ids[i])) continue
      if (time - this.#times[i] >= SETTLE_MS) {
        this.#admitAt(i)
        continue
      }
      this.#resources[kept] = resource
      this.#types[kept] = type
      this.#times[kept] = this.#times[i]
      this.#ids[kept++] = this.#ids[i]
    }
    for (let i = kept; i < this.#count; i++) this.#resources[i] = undefined
    this.#count = kept
    // All at once: to settle each in its time would look at most of them again and again.
    this.#settleAt = kept > 0 ? time + SETTLE_MS : Infinity
    if (kept > CAPACITY / 2) this.settle(Infinity) // there is no room for the next ones
  }

  /** @param {number} index */
  #admitAt (index) {
    const context = contextOfId(this.#ids[index])
    const resource = this.#resources[index]
    if (context === undefined || !context.kind.brief || !isResourceOf(resource, context)) return
    this.#admit(context, resource)
  }
}

module.exports = { BriefResources, Entries, Entry, countBytes, entryTag }
