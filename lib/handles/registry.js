'use strict'

// What is open: one entry for every resource of a type that stays open, held weakly. The entry of a socket or a
// server lives as long as that object, also when its handle is closed and gone: it is a stamp on it. Entries whose
// resource is gone stay here for a while (the newest GONE of them), for objects that were never seen in time.
//
// V8 takes a WeakRef for a strong one until the next full gc: one for every timer and file would carry them and their
// contexts into the old generation. Most are over soon, so they wait in a list until SETTLE ms have passed, and only
// what is still open then gets an entry.
//
// Entries are looked through by time and by count. A FinalizationRegistry would tell sooner which are gone, but V8 cleans up
// one registry a task (src/heap/finalization-registry-cleanup-task.cc), so that the program's own would come a turn late.

const guard = require('../context/guard')
const { contextAt, contextTag } = require('../context/context')
const { createTag } = require('../context/tag')
const { numberOf, endOf, handleOf, idOf, isOver, ownerOf } = require('../node-objects')
const { hiddenProperty } = require('../objects')

const GONE = 1000
const FIRST_SWEEP = 1024
const SWEEP_MS = 1000 // between two sweeps, where resources are opened or go
const MAX_SWEEP_MS = 32_000 // the same where sweeps find nothing
const SETTLE = 32 // ms
const YOUNG = 1024
const LOOKS = 4 // events of a handle on which its owner is looked for

const timerId = hiddenProperty('asyncId')
const sockets = new Set(['TCPWRAP', 'PIPEWRAP', 'TLSWRAP'])

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {ReturnType<typeof createRegistry>} Registry
 * @typedef {object} Use a request on a connection
 * @property {WeakRef<object>} request
 * @property {string} label
 * @property {Context | undefined} context that made it
 * @property {boolean} over
 */

class Entry {
  /** @param {Context} context @param {object} resource */
  constructor (context, resource) {
    this.context = context
    this.resource = new WeakRef(resource)
    /** ms of the clock: the last time that data went either way, an answer or an event came @type {number} */
    this.active = context.time
    /** @type {string | undefined} */
    this.local = undefined
    /** @type {string | undefined} */
    this.remote = undefined
    /** @type {Use | undefined} */
    this.use = undefined
    /** what the program holds is known @type {boolean} */
    this.met = context.type === 'Timeout'
    /** how often an event of it may still look for that; a bare handle has none @type {number} */
    this.looks = LOOKS
    /** the object of the program, where the handle does not tell it @type {WeakRef<object> | undefined} */
    this.owner = undefined
    /** the session of a stream: what is active on one is on the other @type {Entry | undefined} */
    this.upper = undefined
    /** it came to a server */
    this.accepted = false
    /** who wrote last: chain of the write, reference of the step that wrote, and when; 0: nobody yet @type {number} */
    this.writeChain = this.writeRef = this.writeTime = 0
    /** tracing was off for a while */
    this.gap = false
    /** bytes in and out when it was turned off, where they are counted @type {string | undefined} */
    this.seen = undefined
  }
}

/** @type {ReturnType<typeof createTag<Entry>>} the entry of what a program holds */
const memory = createTag()

function createRegistry () {
  /** @type {Map<number, Entry>} by asyncId, oldest first */
  const entries = new Map()
  let sweepAt = FIRST_SWEEP
  /** timers and files that were just made, held for a moment; beside it references of their records, ms, and types @type {any[]} */
  const young = Array(YOUNG).fill(undefined)
  const youngRefs = new Int32Array(YOUNG)
  const youngTimes = new Float64Array(YOUNG)
  /** @type {string[]} */
  const youngTypes = Array(YOUNG).fill('')
  let youngCount = 0
  let nextSweep = Infinity // ms of the clock
  let sweepPause = SWEEP_MS
  let settleAt = Infinity // ms of the clock
  /** since when all activity is seen; never, while tracing is off */
  let watchingSince = Infinity
  /** what is to be done for the first socket @type {(() => void) | undefined} */
  let firstSocket

  /** @param {Context} context @param {object} resource */
  function admit (context, resource) {
    const entry = new Entry(context, resource)
    if (context.type === 'HTTP2STREAM') entry.upper = entries.get(context.triggerAsyncId)
    if (entry.upper !== undefined) entry.upper.active = context.time
    entries.set(context.asyncId, entry)
    if (firstSocket !== undefined && sockets.has(context.type)) {
      firstSocket()
      firstSocket = undefined
    }
    if (entries.size >= sweepAt) sweep()
    sweepPause = SWEEP_MS
    nextSweep = Math.min(nextSweep, context.time + SWEEP_MS)
    return entry
  }

  /** Drops what is over; what has waited for long enough and is still open gets an entry. @param {number} time ms */
  function settle (time) {
    let left = 0
    for (let i = 0; i < youngCount; i++) {
      const resource = young[i]
      if (isOver(youngTypes[i], resource) || isAnother(youngTypes[i], resource, youngRefs[i])) continue
      if (time - youngTimes[i] >= SETTLE) {
        admitYoung(i)
        continue
      }
      young[left] = resource
      youngTypes[left] = youngTypes[i]
      youngTimes[left] = youngTimes[i]
      youngRefs[left++] = youngRefs[i]
    }
    for (let i = left; i < youngCount; i++) young[i] = undefined
    youngCount = left
    settleAt = left > 0 ? time + SETTLE : Infinity // all at once: to look at each in its time would look at most of them again and again
    if (left > YOUNG / 2) settle(Infinity) // there is no room for the next ones
  }

  /** @param {number} i */
  function admitYoung (i) {
    const context = contextAt(youngRefs[i])
    if (context !== undefined && context.kind.brief && !entries.has(context.asyncId) && is(young[i], context)) admit(context, young[i])
  }

  /** Removes what is gone, of what was opened by now. */
  function sweep () {
    settle(Infinity)
    sweepEntries()
  }

  /** Sweeps again later; the longer, the less there is to find. @param {number} time */
  function sweepByTime (time) {
    const before = entries.size
    sweepEntries()
    sweepPause = entries.size < before ? SWEEP_MS : Math.min(2 * sweepPause, MAX_SWEEP_MS)
    nextSweep = entries.size === 0 ? Infinity : time + sweepPause
  }

  /** Removes what is gone, but for the newest that a question may still come for. */
  function sweepEntries () {
    /** @type {number[]} */
    const gone = []
    for (const [asyncId, entry] of entries) {
      const resource = entry.resource.deref()
      if (resource !== undefined && is(resource, entry.context)) continue
      if (entry.met || resource !== undefined) entries.delete(asyncId)
      else gone.push(asyncId)
    }
    for (const asyncId of gone.slice(0, Math.max(0, gone.length - GONE))) entries.delete(asyncId)
    sweepAt = Math.max(FIRST_SWEEP, entries.size * 2)
  }

  /** @param {object} object what the program holds @returns {Entry | undefined} */
  function ofObject (object) {
    const handle = handleOf(object)
    if (youngCount > 0 && contextTag.read(handle ?? object)?.kind.brief) settle(Infinity)
    const known = memory.read(object)
    if (handle === undefined) return known ?? entries.get(idOf(object) ?? 0)
    if (known !== undefined && known.resource.deref() === handle) return known
    const entry = entryOf(handle)
    if (entry !== undefined) met(entry, object)
    return entry
  }

  /** @param {object} handle @returns {Entry | undefined} */
  function entryOf (handle) {
    const context = contextTag.read(handle)
    if (context !== undefined && context.kind.brief) settle(Infinity)
    const entry = context === undefined ? undefined : entries.get(context.asyncId)
    return entry?.resource.deref() === handle ? entry : undefined
  }

  /** @param {Entry} entry @param {object} owner */
  function met (entry, owner) {
    entry.met = true
    memory.write(owner, entry)
  }

  /** A connection has its two ends: keep them, they cannot be asked after close. @param {Entry | undefined} entry */
  function connected (entry) {
    const handle = entry?.resource.deref()
    if (entry === undefined || handle === undefined) return
    if (!entry.met) {
      const owner = ownerOf(handle)
      if (owner !== undefined) met(entry, owner)
    }
    entry.local ??= endOf(handle, 'getsockname')
    entry.remote = endOf(handle, 'getpeername') ?? entry.remote
  }

  const registry = {
    ofObject,
    connected,

    /** @param {Context} context @param {object} resource */
    opened (context, resource) {
      admit(context, resource)
    },

    /**
     * A timer or file was made, which is over soon, mostly. The hot path.
     * @param {number} ref of its record
     * @param {string} type
     * @param {number} time ms
     * @param {object} resource that is still being made: it is not asked anything
     */
    addBrief (ref, type, time, resource) {
      if (youngCount === YOUNG || time >= settleAt) settle(time)
      if (youngCount === 0) settleAt = time + SETTLE
      young[youngCount] = resource
      youngTypes[youngCount] = type
      youngTimes[youngCount] = time
      youngRefs[youngCount++] = ref
    },

    /** The event loop enters JavaScript. @param {number} time */
    startIteration (time) {
      if (time >= settleAt) settle(time)
      if (time >= nextSweep) sweepByTime(time)
    },

    /** A timer ran, and will again. @param {Context} context @param {object} timer @param {number} time */
    repeated (context, timer, time) {
      const entry = entries.get(context.asyncId) ?? admit(context, timer)
      entry.active = time
    },

    /** @param {number} asyncId */
    get: (asyncId) => entries.get(asyncId),

    /** @param {number} asyncId */
    openerOf: (asyncId) => entries.get(asyncId)?.context,

    /** An event of a handle. The hot path. @param {number} asyncId @param {number} time @returns {boolean} it has an entry */
    noteActivity (asyncId, time) {
      const entry = entries.get(asyncId)
      if (entry === undefined) return false
      entry.active = time
      if (entry.upper !== undefined) entry.upper.active = time
      if (entry.met || entry.looks === 0) return true
      entry.looks--
      guard.run(() => connected(entry))
      return true
    },

    /** Data goes out on a socket, or came in. @param {object} socket @param {number} time @returns {Entry | undefined} */
    noteTraffic (socket, time) {
      const entry = memory.read(socket) ?? ofObject(socket)
      if (entry !== undefined) entry.active = time
      return entry
    },

    /** @param {object} resource @param {object} owner what the program holds of it */
    setOwner (resource, owner) {
      const entry = entryOf(resource)
      if (entry === undefined) return
      met(entry, owner)
      entry.owner = new WeakRef(owner)
    },

    /** @param {number} asyncId */
    closed (asyncId) {
      entries.delete(asyncId)
    },

    all () {
      sweep()
      return [...entries.values()]
    },

    size () {
      sweep()
      return entries.size
    },

    /** @param {number} time @param {() => void} ready called once there is a socket */
    watch (time, ready) {
      watchingSince = time
      firstSocket = ready
      for (const { context } of entries.values()) {
        if (!sockets.has(context.type)) continue
        firstSocket()
        firstSocket = undefined
        break
      }
    },

    /** Tracing is off: what happens from now on shows only in the count of bytes. */
    unwatch () {
      settle(Infinity)
      watchingSince = Infinity
      firstSocket = undefined
      for (const entry of entries.values()) {
        entry.gap = true
        entry.seen = counted(entry)
      }
    },

    /** Was tracing on from then to now? @param {number} time */
    wasWatchingSince: (time) => time >= watchingSince,

    /** @param {Entry} entry @returns {number | undefined} when it was active last, if that is known */
    lastActive (entry) {
      if (!entry.gap || entry.active >= watchingSince) return entry.active
      return entry.seen !== undefined && entry.seen === counted(entry) ? entry.active : undefined
    }
  }
  return registry
}

/** One that was over and was refreshed has another id: servers do that to one timer for each request. @param {string} type @param {object} timer @param {number} ref */
const isAnother = (type, timer, ref) => type === 'Timeout' && timerId(timer) << 1 !== ref

/** A timer that was cleared and refreshed is another resource in the same object. @param {object} resource @param {Context} context */
function is (resource, context) {
  return context.type !== 'Timeout' || timerId(resource) << 1 === context.ref
}

/** @param {Entry} entry @returns {string | undefined} bytes in and out */
function counted (entry) {
  const handle = entry.resource.deref()
  const read = handle && numberOf(handle, 'bytesRead')
  return handle === undefined || read === undefined ? undefined : `${read},${numberOf(handle, 'bytesWritten')}`
}

module.exports = { createRegistry, Entry }
