'use strict'

// Requests of one process as steps that can be replayed (replay.js). A request is a sequence of own runs.
// Each becomes ready some time after the previous one: the length of its wait, without the time in which the
// loop ran others while it was ready. Code outside requests is known from the delays it caused.

const { amount, text } = require('../read/values')
const { MAX_ASKED, askedOf } = require('./asked')
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
 * @property {number} at start of its run, since the start of the recording
 * @property {number} wait from the end of the previous run until it was ready; 0 for the first
 * @property {number} late from ready until it ran; for the first, time in the socket
 * @property {number} run
 * @property {boolean} [isFirst] runs before a step that was ready earlier but ran later
 * @property {number} [after] time that ran right after it, outside any request
 * @property {number} ended number of the wait in the request's line that it ended, from 1; 0 if unknown
 * @property {boolean} [takes] its wait begins when a place in a pool is free
 * @property {boolean} [gives] its run frees a place
 *
 * @typedef {object} Request
 * @property {string} name
 * @property {string} spanId
 * @property {number} start ms since the start of the recording
 * @property {number} ms
 * @property {number} queued ms before, in which it was unread in its socket
 * @property {string | undefined} client connection on which it arrived
 * @property {Step[]} steps at least one
 * @property {number} rest ms from the end of its last run to its own end
 * @property {Wait[]} waits of its line
 * @property {Set<string>} manyTo peers to which it had several queries at once, sent or not
 *
 * @typedef {Pick<Step, 'at' | 'late' | 'run' | 'isFirst'>} Outside code outside any request
 * @typedef {[start: number, end: number]} Interval
 *
 * @typedef {object} Callback a blocking callback
 * @property {string | undefined} spanId of the request
 * @property {number} start
 * @property {number} ms
 * @property {string} stack
 */

const MAX_REQUESTS = 10_000
const MAX_RUNS = 1000 // per line, see report/path/runs.js
const MAX_SERVICE_CHARS = 300
const MAX_OVERLAP = 0.02 // share of the runs; a single event loop has no overlap
const ROUNDING_MS = 0.01
const KERNEL_MS = 4 // precision of the arrival time of data

/** Recording of one process. */
class Recording {
  /** without steps until `finish` @type {Request[]} */
  requests = []
  /** @type {Callback[]} */
  callbacks = []
  /** code outside any request: it delayed one, or is a blocking callback @type {Outside[]} */
  outside = []
  /** one per request @type {Array<{ runs: number[][], delays: number[][] }>} */
  #lines = []
  /** runs of ended and open requests @type {Interval[]} */
  #runs = []
  #isPartial = false // lines are missing
  /** ms since 1970 */
  #zero

  /** @param {number} zero */
  constructor (zero) {
    this.#zero = zero
  }

  /** @param {Span} span outermost in its process @param {string} name */
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
      waits: entriesOf(attributes['longstack.waits'], siteTextsOf),
      manyTo: manyOf(askedOf(attributes['longstack.asked'], MAX_ASKED))
    })
    this.#lines.push({ runs, delays })
  }

  /** @param {Span} span of a blocking callback */
  addCallback ({ parentSpanId, startMs, ms, attributes }) {
    const stack = text(attributes['code.stacktrace'], 8000)
    if (stack === undefined) return
    this.callbacks.push({ spanId: parentSpanId, start: startMs - this.#zero, ms, stack })
  }

  /**
   * Finds the steps of all requests, and the code outside them.
   * @returns {boolean} false if lines are missing, or come from several processes that look like one
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
 * Adds code that ran right after a request's run to that run, which left it to do.
 * @param {Interval[]} intervals in order
 * @param {Step[]} steps
 * @returns {Interval[]} the remaining ones
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
 * Aligns the order in which steps are ready with the order in which they ran, since arrival times of data are
 * only known to KERNEL_MS. A step that ran before one that had been ready for longer does so in the replay,
 * too: timers and immediates run before the loop polls.
 * @param {Request[]} requests
 * @param {Outside[]} outside
 */
function putInOrder (requests, outside) {
  /** @type {Array<{ step: Outside & { wait?: number }, from: number }>} */
  const begun = requests.flatMap(({ steps }) => steps.map((step, i) =>
    ({ step, from: i === 0 ? -Infinity : steps[i - 1].at + steps[i - 1].run })))
  for (const step of outside) begun.push({ step, from: -Infinity })
  begun.sort((a, b) => b.step.at - a.step.at)
  let earliest = Infinity // ready time of the steps that began later
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

/**
 * Returns the peers to which a request had several queries at once.
 * @param {import('./asked').Asked[]} asked
 * @returns {Set<string>}
 */
function manyOf (asked) {
  /** @type {Map<string, number>} */
  const ends = new Map()
  /** @type {Set<string>} */
  const many = new Set()
  const times = asked.map(({ peer, start, ms, unsent = 0 }) =>
    ({ peer, from: start - unsent, to: start + ms }))
  for (const { peer, from, to } of times.sort((a, b) => a.from - b.from)) {
    if (peer === undefined) continue
    const end = ends.get(peer) ?? -Infinity
    if (from < end - ROUNDING_MS) many.add(peer)
    ends.set(peer, Math.max(end, to))
  }
  return many
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
  let end = start // end of the previous run
  let next = 0
  const add = (/** @type {number} */ at, /** @type {number} */ run, delay = 0, ended = 0) => {
    const gap = Math.max(0, at - end)
    const late = steps.length === 0 ? queued : Math.min(gap, delay)
    const wait = steps.length === 0 ? 0 : gap - late
    steps.push({ at, wait, late, run, ended })
    end = Math.max(end, at + run)
  }
  /** Adds delayed steps that are not listed runs, and returns how late a step is that begins at a time. */
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
 * Returns a delay without its lead, if that is shorter than the precision of the kernel's time: no request
 * ran in it, and the awaited data may not have arrived yet.
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

/** Recordings of all processes. */
class Recordings {
  /** by process @type {Map<string, Recording>} */
  #processes = new Map()
  #count = 0
  /** @type {{ list: Recording[] | undefined } | undefined} */
  #finished

  /** @param {Span} span */
  #recordingOf (span) {
    return getOrCreate(this.#processes, processOf(span), () => new Recording(span.startMs))
  }

  /** Adds an outermost span of a process. @param {Span} span @param {string} name */
  add (span, name) {
    if (this.#count < MAX_REQUESTS && !span.open) this.#count++
    if (this.#count < MAX_REQUESTS) this.#recordingOf(span).add(span, name)
  }

  /** Adds a blocking callback. @param {Span} span */
  addCallback (span) {
    if (this.#count < MAX_REQUESTS) this.#recordingOf(span).addCallback(span)
  }

  /**
   * Returns one recording per process, once all is added.
   * @returns {Recording[] | undefined} undefined if lines are missing
   */
  list () {
    if (this.#finished === undefined) {
      const recordings = [...this.#processes.values()].filter(({ requests }) => requests.length > 0)
      this.#finished = { list: recordings.every((recording) => recording.finish()) ? recordings : undefined }
    }
    return this.#finished.list
  }
}

module.exports = { KERNEL_MS, Recording, Recordings, processOf }
