'use strict'

// One span while it is open: what it is called, and where its time goes. Pure data; it holds no object of the program
// but its own attributes, and lets its parent go when it ends, so that a chain of spans has an end.
//
// Its time is told by the loop's (loop-time.js): `busy` and `idle` grow for all; a span notes what they were when it
// began, when something of it began to wait and when nothing did any more. Where the loop runs, its idle time stands
// still, so none of that needs a clock.

const RUNS = 64 // runs remembered of one span, the longest
const LEAST = 0.02 // ms of a run that is remembered
const LINE = 15 // ancestors known
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
 * @property {any} resource itself within the run that made it, then a WeakRef
 * @property {boolean} weak
 *
 * @typedef {'SERVER' | 'CLIENT' | 'INTERNAL'} SpanKind
 * @typedef {{ code: 'UNSET' | 'OK' | 'ERROR', message?: string }} Status
 * @typedef {{ name: string, time: number, attributes: Record<string, unknown> }} SpanEvent time in ms of performance.now()
 */

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
   * @param {{ busy: number, idle: number }} given.loop
   */
  constructor ({ name, kind, traceId, spanId, parentSpanId, sampled, parent, start, loop }) {
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
    /** @type {Record<string, unknown>} */
    this.attributes = {}
    /** @type {Status} */
    this.status = { code: 'UNSET' }
    /** @type {SpanEvent[] | undefined} */
    this.events = undefined
    /** the place that made it @type {import('../context/context').Context | undefined} */
    this.context = undefined
    /** the span of OpenTelemetry's that was active when it began @type {string | undefined} */
    this.outerId = undefined
    /** the last error that a promise was rejected with inside @type {WeakRef<object> | undefined} */
    this.rejection = undefined

    /** ms of its own runs and those of its descendants */
    this.run = 0
    /** longest runs: start in ms of performance.now(), length in ms, type @type {Array<[number, number, string]>} */
    this.runs = []
    this.busyAtStart = loop.busy
    /** ms in which the loop ran the code of others, once it has ended */
    this.delayed = 0
    /** @type {Wait[]} */
    this.waits = []
    /** what is pending, of all subsystems */
    this.pending = 0
    this.pendingSince = 0
    this.waited = 0
    /** @type {Pending[]} */
    this.watched = []
    /** the loop's idle time and `waited`, in ms, when it ran last */
    this.idleSeen = loop.idle
    this.waitedSeen = 0
    /** idle time, in ms, by what came next @type {Record<string, number> | undefined} */
    this.idleUntil = undefined
  }

  get ended () { return this.end !== 0 }

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
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.parent) {
      one.run += ms
      one.rests(loop.idle)
    }
    if (ms >= LEAST && !this.ended) this.note(start, ms, loop.type)
    if (this.watched.length > 0) this.look(loop)
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
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.parent) {
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
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.parent) {
      if (one.pending++ === 0) one.pendingSince = idle
      const wait = one.waitOf(name)
      if (wait.count++ === 0) wait.since = idle
    }
  }

  /** It is no longer. @param {string} name @param {number} idle */
  got (name, idle) {
    for (let one = /** @type {Span | undefined} */ (this); one !== undefined; one = one.parent) {
      const wait = one.waitOf(name)
      if (wait.count === 0) continue // it began before this one did
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

  /** A connection that serves requests from now on: they tell what is waited for. @param {object} resource @param {number} idle */
  releases (resource, idle) {
    const at = this.watched.findIndex((one) => (one.weak ? one.resource.deref() : one.resource) === resource)
    if (at < 0) return
    const [{ name }] = this.watched.splice(at, 1)
    this.got(name, idle)
  }

  /**
   * A timer or handle is pending until a look finds it over.
   * @param {string} name
   * @param {string} type
   * @param {object} resource
   * @param {number} idle
   */
  watches (name, type, resource, idle) {
    this.waitsFor(name, idle)
    this.watched.push({ name, type, resource, weak: false })
  }

  /** Which of them are over? What is not, outlives this run: it is not to be kept alive. @param {import('./loop-time').LoopTime} loop */
  look ({ idle, isOver }) {
    const { watched } = this
    let kept = 0
    for (let i = 0; i < watched.length; i++) {
      const one = watched[i]
      const resource = one.weak ? one.resource.deref() : one.resource
      if (resource === undefined || isOver(one.type, resource)) {
        this.got(one.name, idle)
        continue
      }
      if (!one.weak) [one.resource, one.weak] = [new WeakRef(resource), true]
      watched[kept++] = one
    }
    watched.length = kept
  }

  /**
   * It is over; its figures stand.
   * @param {number} time ms
   * @param {{ busy: number, idle: number, type: string }} loop
   */
  finish (time, loop) {
    this.wakes(loop.idle, loop.type)
    this.waited = this.waitedUntil(loop.idle)
    this.delayed = loop.busy - this.busyAtStart - this.run
    for (const wait of this.waits) {
      if (wait.count > 0) wait.ms += loop.idle - wait.since
      for (; wait.count > 0; wait.count--) this.parent?.got(wait.name, loop.idle)
    }
    this.pending = 0
    this.watched = []
    this.parent = undefined
    this.end = Math.max(time, this.start)
  }
}

module.exports = { Span }
