'use strict'

// What requests of one process did, as steps that can be replayed (replay.js). A request is a sequence of
// runs of its own, each of which is ready a time after the one before: the length of its wait, without what
// the loop ran for others from then on. What ran for no request is known by what it delayed.

const { amount, text } = require('../read/values')
const { entriesOf } = require('./critical-paths')
const { spellsOf } = require('./digest')
const { getOrCreate, sum } = require('./lists')
const { siteTextsOf } = require('./sites')
const { firstIndex } = require('./summary')

/**
 * @typedef {import('../read/span-line').Span} Span
 * @typedef {ReturnType<typeof siteTextsOf>} Site
 * @typedef {Omit<import('./critical-paths').PathEntry, 'place'> & { place: Site }} Wait
 *
 * @typedef {object} Step times in ms
 * @property {number} at when its run began, since the recording did
 * @property {number} wait from the end of the run before until it was ready; of the first 0
 * @property {number} late from then on until it ran; of the first, in the socket
 * @property {number} doubt of the wait, may be a part of that
 * @property {number} run
 * @property {boolean} [isFirst] it runs before what was ready before it, and ran later
 * @property {number} [after] what ran right after it, for no request any more
 * @property {number} ended which of the waits of the request's line it ended, from 1; 0: not known
 * @property {boolean} [takes] its wait begins when a place in a pool is free
 * @property {boolean} [gives] from its run on a place is free
 *
 * @typedef {object} Request
 * @property {string} name
 * @property {string} spanId
 * @property {number} start ms since the recording's
 * @property {number} ms
 * @property {number} queued ms before, in which it lay unread in its socket
 * @property {string | undefined} client the connection on which it came
 * @property {Step[]} steps at least one
 * @property {number} rest ms from the end of its last run to its own
 * @property {Wait[]} waits of its line
 *
 * @typedef {Pick<Step, 'at' | 'late' | 'run' | 'isFirst'>} Outside what ran for no request
 * @typedef {[start: number, end: number]} Interval
 *
 * @typedef {object} Callback that blocked
 * @property {string | undefined} spanId of the request
 * @property {number} start
 * @property {number} ms
 * @property {string} stack
 */

const MAX_REQUESTS = 10_000
const MAX_RUNS = 1000 // of a line, see report/path/runs.js
const MAX_SERVICE_CHARS = 300
const MAX_OVERLAP = 0.02 // of the runs: one event loop has none
const ROUNDING_MS = 0.01
const KERNEL_MS = 4 // how exactly it is known when data had come

/** What one process recorded. */
class Recording {
  /** without their steps, until `finish` @type {Request[]} */
  requests = []
  /** @type {Callback[]} */
  callbacks = []
  /** code of no request: it delayed one, or is a callback that blocked @type {Outside[]} */
  outside = []
  /** by request @type {Array<{ runs: number[][], delays: number[][] }>} */
  #lines = []
  /** runs of requests, and of those that had not ended @type {Interval[]} */
  #runs = []
  #isPartial = false // lines are missing
  /** ms since 1970 */
  #zero

  /** @param {number} zero */
  constructor (zero) {
    this.#zero = zero
  }

  /** @param {Span} span that is in no other of its process @param {string} name */
  add ({ spanId, kind, ms, startMs, weight, open, attributes }, name) {
    if (weight !== 1) this.#isPartial = true
    const start = startMs - this.#zero
    const runs = sorted(attributes['longstack.runs'])
    const delays = sorted(attributes['longstack.delays'])
    for (const [from, length] of runs) this.#runs.push([start + from, start + from + length])
    if (open) return
    const { 'network.peer.address': address, 'network.peer.port': port } = attributes
    const isServed = kind === 'SERVER' && typeof address === 'string' && amount(port) !== undefined
    this.requests.push({
      name,
      spanId,
      start,
      ms,
      queued: amount(attributes['longstack.queued_ms']) ?? 0,
      client: isServed ? `${address}:${port}` : undefined,
      steps: [],
      rest: 0,
      waits: entriesOf(attributes['longstack.waits'], siteTextsOf)
    })
    this.#lines.push({ runs, delays })
  }

  /** @param {Span} span of a callback that blocked */
  addCallback ({ parentSpanId, startMs, ms, attributes }) {
    const stack = text(attributes['code.stacktrace'], 8000)
    if (stack === undefined) return
    this.callbacks.push({ spanId: parentSpanId, start: startMs - this.#zero, ms, stack })
  }

  /**
   * Finds the steps of all requests, and what ran besides.
   * @returns {boolean} false: lines are missing, or are of several processes that look like one
   */
  finish () {
    const runMs = sum(this.#runs, lengthOf)
    const runs = united(this.#runs)
    if (this.#isPartial || sum(runs, lengthOf) < runMs * (1 - MAX_OVERLAP)) return false
    /** @type {Interval[]} */
    const delays = []
    this.requests.forEach((request, i) => {
      const { start, ms, queued } = request
      const { runs: ownRuns, delays: ownDelays } = this.#lines[i]
      const late = ownDelays.map(([from, length, certain = length]) => {
        const end = start + from + length
        return withoutLead([end - Math.min(length, certain), end], runs)
      })
      delays.push(...late, [start - queued, start])
      Object.assign(request, stepsOf(start, ms, queued, ownRuns, late))
    })
    const alone = this.callbacks.filter(({ spanId }) => spanId === undefined)
    /** @type {Interval[]} */
    const callbacks = without(united(alone.map(({ start, ms }) => [start, start + ms])), runs)
    const others = without(without(united(delays), runs), callbacks)
    const steps = this.requests.flatMap((request) => request.steps)
    this.outside = [...callbacks, ...addToRuns(others, steps)]
      .map(([start, end]) => ({ at: start, late: 0, run: end - start }))
    putInOrder(this.requests, this.outside)
    this.#lines = []
    this.#runs = []
    return true
  }
}

/**
 * Adds what ran right after a run of a request to it: it is what that left to do.
 * @param {Interval[]} intervals in order
 * @param {Step[]} steps
 * @returns {Interval[]} the others
 */
function addToRuns (intervals, steps) {
  steps.sort((a, b) => a.at + a.run - b.at - b.run)
  let next = 0
  return intervals.filter(([start, end]) => {
    while (next < steps.length && steps[next].at + steps[next].run < start - ROUNDING_MS) next++
    const step = steps[next]
    if (step === undefined || step.at + step.run > start + ROUNDING_MS) return true
    step.after = end - start
    return false
  })
}

/**
 * Lets the order in which all is ready be that in which it ran: when data had come is known to KERNEL_MS
 * only. What ran before something else that had been ready for longer does so in the replay, too: timers and
 * immediates run before the loop polls.
 * @param {Request[]} requests
 * @param {Outside[]} outside
 */
function putInOrder (requests, outside) {
  /** @type {Array<{ step: Outside & { wait?: number }, from: number }>} */
  const begun = requests.flatMap(({ steps }) => steps.map((step, i) =>
    ({ step, from: i === 0 ? -Infinity : steps[i - 1].at + steps[i - 1].run })))
  for (const step of outside) begun.push({ step, from: -Infinity })
  begun.sort((a, b) => b.step.at - a.step.at)
  let earliest = Infinity // of those that began later
  for (const { step, from } of begun) {
    const ready = step.at - step.late
    if (earliest < ready) {
      const late = step.at - Math.max(from, earliest - ROUNDING_MS)
      const earlier = late - step.late
      step.isFirst = earlier > KERNEL_MS || step.at - late > earliest
      if (!step.isFirst) {
        if (step.wait !== undefined) step.wait = Math.max(0, step.wait - earlier)
        step.late = late
      }
    }
    earliest = Math.min(earliest, step.at - step.late)
  }
}

/** @param {unknown} spells @returns {number[][]} in order of time */
function sorted (spells) {
  return spellsOf(spells, MAX_RUNS)
    .sort((a, b) => a[0] - b[0])
}

/**
 * @param {number} start
 * @param {number} ms
 * @param {number} queued ms before
 * @param {number[][]} runs ms since the start
 * @param {Interval[]} delays
 * @returns {Pick<Request, 'steps' | 'rest'>}
 */
function stepsOf (start, ms, queued, runs, delays) {
  /** @type {Step[]} */
  const steps = []
  let end = start // of the run before
  let next = 0
  const add = (/** @type {number} */ at, /** @type {number} */ run, delay = 0, ended = 0) => {
    const gap = Math.max(0, at - end)
    const late = steps.length === 0 ? queued : Math.min(gap, delay)
    const wait = steps.length === 0 ? 0 : gap - late
    const doubt = late < 2 * KERNEL_MS ? 0 : Math.min(wait, KERNEL_MS / 2)
    steps.push({ at, wait, late, doubt, run, ended })
    end = Math.max(end, at + run)
  }
  /** Adds what was delayed and is no listed run, and returns how late that is which begins then. */
  const lateAt = (/** @type {number} */ time) => {
    for (; next < delays.length && delays[next][1] <= time + ROUNDING_MS; next++) {
      const [from, until] = delays[next]
      if (until >= time - ROUNDING_MS) return delays[next++][1] - from
      if (until > end) add(until, 0, until - from)
    }
    return 0
  }
  if (runs.length === 0 || runs[0][0] > ROUNDING_MS) add(start, 0)
  for (const [from, length, , ended] of runs) add(start + from, length, lateAt(start + from), amount(ended))
  const late = lateAt(start + ms)
  if (late > 0 && start + ms - end > ROUNDING_MS) add(start + ms, 0, late)
  return { steps, rest: Math.max(0, start + ms - end) }
}

/** @param {Interval} interval */
const lengthOf = ([start, end]) => end - start

/** Unites intervals. @param {Interval[]} intervals @returns {Interval[]} in order, none touches another */
function united (intervals) {
  /** @type {Interval[]} */
  const result = []
  for (const [start, end] of intervals.sort((a, b) => a[0] - b[0])) {
    const last = result[result.length - 1]
    if (last !== undefined && start <= last[1]) last[1] = Math.max(last[1], end)
    else result.push([start, end])
  }
  return result
}

/** @param {Interval[]} intervals in order @param {Interval[]} others in order @returns {Interval[]} */
function without (intervals, others) {
  /** @type {Interval[]} */
  const result = []
  let next = 0
  for (let [start, end] of intervals) {
    while (next < others.length && others[next][1] <= start) next++
    for (let i = next; i < others.length && others[i][0] < end; i++) {
      if (others[i][0] > start) result.push([start, others[i][0]])
      start = Math.max(start, others[i][1])
    }
    if (start < end) result.push([start, end])
  }
  return result
}

/**
 * Returns a delay without what of its beginning is less than the precision of the kernel's time: in it
 * no request ran, and what was waited for may not have come.
 * @param {Interval} delay
 * @param {Interval[]} runs in order
 * @returns {Interval}
 */
function withoutLead ([start, end], runs) {
  const next = firstIndex(runs.length, (i) => runs[i][1] > start)
  const first = runs[next]?.[0] ?? Infinity
  const isLead = first > start && first - start <= KERNEL_MS && first < end
  return isLead ? [first + ROUNDING_MS, end] : [start, end]
}

/** Returns a key of the process, or thread, that wrote a span. @param {Span} span */
function processOf ({ record: { resource } }) {
  const [pid, thread] = ['process.pid', 'longstack.thread'].map((name) => amount(resource?.[name]))
  return [text(resource?.['service.name'], MAX_SERVICE_CHARS), pid, thread].join()
}

/** What all processes recorded. */
class Recordings {
  /** by process @type {Map<string, Recording>} */
  #processes = new Map()
  #count = 0

  /** @param {Span} span */
  #recordingOf (span) {
    return getOrCreate(this.#processes, processOf(span), () => new Recording(span.startMs))
  }

  /** Adds a span that is in no other of its process. @param {Span} span @param {string} name */
  add (span, name) {
    if (this.#count < MAX_REQUESTS && !span.open) this.#count++
    if (this.#count < MAX_REQUESTS) this.#recordingOf(span).add(span, name)
  }

  /** Adds a callback that blocked. @param {Span} span */
  addCallback (span) {
    if (this.#count < MAX_REQUESTS) this.#recordingOf(span).addCallback(span)
  }

  /** Returns that of each process. @returns {Recording[] | undefined} undefined: lines are missing */
  list () {
    const recordings = [...this.#processes.values()].filter(({ requests }) => requests.length > 0)
    return recordings.every((recording) => recording.finish()) ? recordings : undefined
  }
}

module.exports = { KERNEL_MS, Recording, Recordings, processOf }
