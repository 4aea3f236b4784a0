'use strict'

// One span while it is open: what it is called, and where its time goes. Pure data; it holds no object of the program
// but its own attributes, and lets all that go when it has been written: a connection or a timer may keep it for hours.
//
// What a span began may go on when it has ended: from then on that is its heir's, the innermost one around it that is
// open. An ended span holds its heir weakly, so that a chain of spans has an end.
//
// Its time is told by the loop's (loop-time.js): `busy` and `idle` grow for all; a span notes what they were when it
// began, when something of it began to wait and when nothing did any more. Where the loop runs, its idle time stands
// still, so none of that needs a clock.

const { OVER, PENDS } = require('./pending')

const LOOKS = 16 // at what is pending, after each run
const MOMENT = 100 // ms; most timers are over by then, and a WeakRef has the collector carry them into the old generation
const RUNS = 64 // runs remembered of one span, the longest
const LEAST = 0.02 // ms of a run that is remembered
const LINE = 63 // ancestors known
/** @type {number[]} */
const NONE = []

/**
 * @typedef {object} Wait one subsystem
 * @property {string} name
 * @property {number} count of what is pending
 * @property {number} since idle time of the loop, in ms, when the first of it began
 * @property {number} ms total
 *
 * @typedef {object} Pending a resource whose end nobody tells
 * @property {string} name of the subsystem
 * @property {string} type
 * @property {any} resource itself for a moment, then a WeakRef
 * @property {number} until ms, when that moment is over
 * @property {boolean} weak
 * @property {boolean} pends and is counted
 *
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of performance.now()
 */

/**
 * @typedef {object} Others how much a span delayed another one, while that asks; see LoopTime
 * @property {Span | undefined} span that did
 * @property {number} asked the number of the one that asks
 * @property {number} ms
 * @property {number} start of the longest run
 * @property {number} longest
 */

/** @param {Span | undefined} span @returns {Others} */
const sumOf = (span) => ({ span, asked: 0, ms: 0, start: 0, longest: 0 })

let last = 0

class Span {
  /**
   * @param {object} given
   * @param {string} given.name
   * @param {SpanKind} given.kind
   * @param {string} given.traceId 32 hex digits
   * @param {string} given.spanId 16 hex digits
   * @param {string | undefined} given.parentSpanId
   * @param {boolean} given.sampled
   * @param {Span | undefined} given.parent of this process
   * @param {number} given.start ms of performance.now()
   * @param {number} given.origin ms since 1970
   * @param {{ busy: number, idle: number }} given.loop
   */
  constructor ({ name, kind, traceId, spanId, parentSpanId, sampled, parent, start, origin, loop }) {
    last = last % 0xffffffff + 1
    /** its number in this thread @type {number} */
    this.seq = last
    this.name = name
    this.kind = kind
    this.traceId = traceId
    this.spanId = spanId
    this.parentSpanId = parentSpanId
    this.sampled = sampled
    /** @type {Span | undefined} */
    this.parent = parent
    /** the numbers of those that it is in, outermost first: they may be over before it is @type {number[]} */
    this.line = parent === undefined ? NONE : [...parent.line.slice(-LINE), parent.seq]
    this.start = start
    this.end = 0
    /** ms since 1970 at which performance.now() was 0, the same for a whole tree: the clock of the world may be set meanwhile */
    this.origin = origin
    /** the innermost one around it that was open when it ended @type {WeakRef<Span> | undefined} */
    this.heir = undefined
    /** @type {Record<string, unknown>} */
    this.attributes = {}
    /** @type {Status} */
    this.status = { code: 'UNSET' }
    /** @type {SpanEvent[] | undefined} */
    this.events = undefined
    /** its parent waits for it */
    this.awaited = false
    /** the place that made it @type {import('../context/context').Context | undefined} */
    this.context = undefined
    /** the span of OpenTelemetry's that was active when it began @type {string | undefined} */
    this.outerId = undefined
    /** told by hand @type {{ error: unknown } | undefined} */
    this.failure = undefined
    /** the last error that a promise was rejected with inside @type {WeakRef<object> | undefined} */
    this.rejection = undefined

    /** ms of its own runs and those of its descendants */
    this.run = 0
    /** longest runs: start in ms of performance.now(), length in ms, type @type {Array<[number, number, string]>} */
    this.runs = []
    this.busyAtStart = loop.busy
    /** ms of short runs since a time, in ms, for the log of LoopTime */
    this.crumbs = 0
    this.crumbsFrom = 0
    /** @type {Others | undefined} */
    this.delays = undefined
    /** ms in which the loop ran the code of others, once it has ended */
    this.delayed = 0
    /** @type {Wait[]} */
    this.waits = []
    /** what is pending, of all subsystems */
    this.pending = 0
    this.pendingSince = 0
    this.waited = 0
    /** by the id of the resource @type {Map<number, Pending> | undefined} */
    this.watched = undefined
    /** ids of those that this run has made @type {number[]} */
    this.fresh = []
    /** the loop's idle time and `waited`, in ms, when it ran last */
    this.idleSeen = loop.idle
    this.waitedSeen = 0
    /** idle time, in ms, by what came next @type {Record<string, number> | undefined} */
    this.idleUntil = undefined
  }

  /** @param {{ busy: number, idle: number, since: number }} loop whose present run is its first */
  begin (loop) {
    this.start = loop.since
    this.busyAtStart = loop.busy
    this.idleSeen = loop.idle
  }

  get sum () {
    this.delays ??= sumOf(this)
    return this.delays
  }

  get ended () { return this.end !== 0 }

  /** Whose it is what this one began: its own, or its heir's. @returns {Span | undefined} */
  get live () {
    let one = /** @type {Span | undefined} */ (this)
    while (one !== undefined && one.end !== 0) one = one.heir === undefined ? undefined : one.heir.deref()
    return one
  }

  /** Who runs and waits where this one is asked to. @returns {Span} */
  get owner () {
    return this.end === 0 ? this : this.live ?? this
  }

  /** The innermost one around it that is open. @returns {Span | undefined} */
  get above () {
    const { parent } = this
    if (parent === undefined || parent.end === 0) return parent
    this.parent = parent.live
    return this.parent
  }

  /** Is it this one, or one inside of it? @param {Span} other */
  within (other) {
    return this === other || this.line.includes(other.seq)
  }

  /**
   * It ran.
   * @param {number} start ms
   * @param {number} ms
   * @param {import('./loop-time').LoopTime} loop
   */
  ran (start, ms, loop) {
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.above) {
      one.run += ms
      one.rests(loop.idle)
    }
    if (ms >= LEAST && !this.ended) this.note(start, ms, loop.type)
    if (this.watched !== undefined) this.look(loop)
  }

  /** @param {number} start @param {number} ms @param {string} type */
  note (start, ms, type) {
    const { runs } = this
    const before = runs[runs.length - 1]
    if (before !== undefined && start - before[0] - before[1] < 0.01) {
      before[1] += ms
    } else if (runs.length < RUNS) {
      runs.push([start, ms, type])
    } else {
      let least = 0
      for (let i = 1; i < RUNS; i++) if (runs[i][1] < runs[least][1]) least = i
      if (runs[least][1] >= ms) return
      runs.splice(least, 1)
      runs.push([start, ms, type])
    }
  }

  /** A run of it begins, or its end is told: what the loop waited for meanwhile is what came. @param {number} idle of the loop @param {string} type of what came */
  wakes (idle, type) {
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.above) {
      const ms = idle - one.idleSeen - (one.waitedUntil(idle) - one.waitedSeen)
      if (ms > 0.001) {
        one.idleUntil ??= {}
        one.idleUntil[type] = (one.idleUntil[type] ?? 0) + ms
      }
      one.rests(idle)
    }
  }

  /** @param {number} idle */
  rests (idle) {
    this.idleSeen = idle
    this.waitedSeen = this.waitedUntil(idle)
  }

  /** @param {number} idle */
  waitedUntil (idle) {
    return this.pending === 0 ? this.waited : this.waited + idle - this.pendingSince
  }

  /**
   * Something of it is pending.
   * @param {string} name of the subsystem
   * @param {number} idle of the loop
   */
  waitsFor (name, idle) {
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.above) {
      if (one.pending++ === 0) one.pendingSince = idle
      const wait = one.waitOf(name)
      if (wait.count++ === 0) wait.since = idle
    }
  }

  /** It is no longer. @param {string} name @param {number} idle */
  got (name, idle) {
    for (let one = this.live; one !== undefined; one = one.above) {
      const wait = one.waitOf(name)
      if (wait.count === 0) continue // nothing of it is known
      if (--wait.count === 0) wait.ms += idle - wait.since
      if (--one.pending === 0) one.waited += idle - one.pendingSince
    }
  }

  /** @param {string} name */
  waitOf (name) {
    const { waits } = this
    for (let i = 0; i < waits.length; i++) if (waits[i].name === name) return waits[i]
    const wait = { name, count: 0, since: 0, ms: 0 }
    waits.push(wait)
    return wait
  }

  /**
   * A timer or handle may be pending until a look finds it over.
   * @param {number} id of the resource
   * @param {string} name
   * @param {string} type
   * @param {object} resource
   * @param {import('./loop-time').LoopTime} loop
   */
  watches (id, name, type, resource, loop) {
    this.waitsFor(name, loop.idle)
    this.watched ??= new Map()
    this.watched.set(id, { name, type, resource, until: loop.since + MOMENT, weak: false, pends: true })
    this.fresh.push(id)
  }

  /**
   * It is over, or tells no more what is waited for: a connection that serves requests from now on.
   * @param {number} id
   * @param {number} idle
   */
  over (id, idle) {
    const one = this.live
    const found = one?.watched?.get(id)
    if (one === undefined || found === undefined) return
    one.watched?.delete(id)
    if (found.pends) one.got(found.name, idle)
  }

  /** What is pending when a run is over? All that is new, and some of the rest. @param {import('./loop-time').LoopTime} loop */
  look (loop) {
    const { watched, fresh } = this
    if (watched === undefined) return
    for (const id of fresh) this.lookAt(id, watched.get(id), loop)
    fresh.length = 0
    const all = watched.size <= LOOKS
    let left = LOOKS
    for (const [id, one] of watched) {
      if (left === 0) break
      if (!this.lookAt(id, one, loop)) continue // it is not looked at again
      left--
      if (all) continue
      watched.delete(id) // to the end of the line
      watched.set(id, one)
    }
  }

  /** It has not run for long: what it waits for may be over, and is not to be kept alive. @param {import('./loop-time').LoopTime} loop */
  sweep (loop) {
    for (const [id, one] of this.watched ?? []) if (!one.weak) this.lookAt(id, one, loop)
  }

  /**
   * What is not over soon is not to be kept alive.
   * @param {number} id
   * @param {Pending | undefined} one
   * @param {import('./loop-time').LoopTime} loop
   * @returns {boolean} is it still to be watched?
   */
  lookAt (id, one, { idle, since, stateOf }) {
    if (one === undefined) return false
    const resource = one.weak ? one.resource.deref() : one.resource
    const state = resource === undefined ? OVER : stateOf(one.type, resource)
    if (one.pends !== (state === PENDS)) {
      one.pends = !one.pends
      if (one.pends) this.waitsFor(one.name, idle)
      else this.got(one.name, idle)
    }
    if (state === OVER) this.watched?.delete(id)
    else if (!one.weak && since > one.until) [one.resource, one.weak] = [new WeakRef(resource), true]
    return state !== OVER
  }

  /**
   * It is over; its figures stand. What is pending is its heir's from now on, who counts it already.
   * @param {number} time ms
   * @param {{ busy: number, idle: number, type: string }} loop
   */
  finish (time, loop) {
    this.wakes(loop.idle, loop.type)
    this.waited = this.waitedUntil(loop.idle)
    this.delayed = loop.busy - this.busyAtStart - this.run
    for (const wait of this.waits) if (wait.count > 0) wait.ms += loop.idle - wait.since
    this.pending = 0
    const heir = this.above
    if (heir !== undefined) {
      if (this.watched !== undefined) heir.inherits(this.watched)
      this.heir = new WeakRef(heir)
    }
    this.watched = undefined
    this.parent = undefined
    this.end = Math.max(time, this.start)
  }

  /** @param {Map<number, Pending>} watched */
  inherits (watched) {
    this.watched ??= new Map()
    for (const [id, one] of watched) {
      this.watched.set(id, one)
      if (!one.weak) this.fresh.push(id)
    }
  }

  /** It has been written: who it was is all that anybody still asks. */
  forget () {
    this.attributes = {}
    this.events = this.context = this.failure = this.rejection = this.idleUntil = undefined
    this.waits = []
    this.runs = []
  }
}

module.exports = { Span, sumOf }
