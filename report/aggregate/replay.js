'use strict'

// Replays requests on the event loop of their process, as recorded or with a change. The loop runs one step
// at a time, in the order in which they are ready, and delays follow from that. A request arrives at its
// recorded time or, if the client sends the next request after each response, a pause after the previous
// response on its connection.

const { getOrCreate, groupsOf } = require('./lists')
const { KERNEL_MS } = require('./recording')
const { quantile } = require('./summary')

/**
 * @typedef {import('./recording').Recording} Recording
 * @typedef {import('./recording').Request} Request
 * @typedef {import('./recording').Step} Step
 *
 * @typedef {object} Quantiles ms
 * @property {number} median
 * @property {number} p99
 * @property {{ median: number, p99: number }} drift relative difference of its halves
 *
 * @typedef {object} Durations
 * @property {number} count
 * @property {Quantiles} span
 * @property {Quantiles} client from the arrival of a request, including the time it was unread
 *
 * @typedef {Pick<Request, 'name' | 'ms' | 'queued' | 'start'>} Duration
 *
 * @typedef {'error' | 'drift' | 'many' | 'starved' | 'crowded'} Doubt
 * @typedef {Prediction & { unsure: Doubt | undefined }} Checked error: the replay does not reproduce the
 *   recording; drift: the halves of the replay differ; many: requests have several queries at once; starved:
 *   the process waited for a CPU; crowded: the peer has none for more queries at once
 */

const MIN_REQUESTS = 30
const MIN_FOR_P99 = 500 // requests: five are beyond it
const MAX_ERROR = 0.05 // relative error of a replay
const MIN_GAIN = 0.05 // relative gain of a reported change
const MIN_QUEUED = 0.05 // unread time relative to a figure, from which on the figure includes it
const MAX_DRIFT = 0.15 // between the halves of a replay; above it, another run gives another figure
const FIGURES = /** @type {const} */ (['median', 'p99'])
const OF = /** @type {const} */ (['client', 'span'])
const SAME_MS = 0.1 // steps that are ready within this time run in recorded order
const MIN_ANSWERS = 3 // responses on a connection, for its client's rhythm
const MAX_SPREAD = 0.1 // spread of a client's pauses, relative to the time between its requests

/** @param {Request} request */
const arrivalOf = ({ steps: [{ at: time, late }] }) => time - late

/**
 * Returns the requests that arrive a pause after a response: those on keep-alive connections, if the clients'
 * pauses are more regular than the times between their requests.
 * @param {Request[]} requests
 * @returns {Map<Request, { before: Request, pause: number }>} empty if all arrive at their recorded times
 */
function rhythmOf (requests) {
  /** @type {Map<string, Request[]>} */
  const connections = new Map()
  for (const request of requests) {
    if (request.client !== undefined) getOrCreate(connections, request.client, () => []).push(request)
  }
  const rhythm = new Map()
  /** @type {number[]} */
  const gaps = []
  /** @type {number[][]} */
  const spreads = [[], []]
  for (const served of connections.values()) {
    served.sort((a, b) => a.start - b.start)
    const follows = served.slice(1).map((request, i) => {
      const before = served[i]
      const pause = arrivalOf(request) - before.start - before.ms
      return { request, before, pause, gap: arrivalOf(request) - arrivalOf(before) }
    }).filter(({ pause }) => pause >= -2 * KERNEL_MS)
    if (follows.length < MIN_ANSWERS) continue
    const pauseMs = medianOf(follows.map(({ pause }) => pause))
    const gapMs = medianOf(follows.map(({ gap }) => gap))
    for (const { request, before, pause, gap } of follows) {
      rhythm.set(request, { before, pause })
      gaps.push(gap)
      spreads[0].push(Math.abs(pause - pauseMs))
      spreads[1].push(Math.abs(gap - gapMs))
    }
  }
  const [spread, gapSpread] = spreads.map(medianOf)
  return spread <= gapSpread && spread <= medianOf(gaps) * MAX_SPREAD ? rhythm : new Map()
}

/** @param {number[]} numbers */
function medianOf (numbers) {
  return numbers.sort((a, b) => a - b)[numbers.length >> 1]
}

/**
 * @typedef {object} Changed changed parts of a recording
 * @property {Map<Request, Step[]>} [steps]
 * @property {import('./recording').Outside[]} [outside] code outside any request
 * @property {number} [places] size of the pool
 *
 * @typedef {(recording: Recording) => Changed} Change
 *
 * @typedef {object} Prediction
 * @property {string} route
 * @property {'median' | 'p99'} figure
 * @property {number} beforeMs as recorded
 * @property {number} afterMs
 * @property {boolean} [unread] both include the time in which requests were unread
 * @property {number} error of the unchanged replay, relative to the figure
 */

/**
 * Replays a recording.
 * @param {Recording} recording
 * @param {ReturnType<typeof rhythmOf>} rhythm
 * @param {Changed} changed
 * @returns {Duration[]} one per request
 */
function simulate ({ requests, outside: recorded }, rhythm, changed) {
  const { steps: others, outside = recorded, places = 0 } = changed
  /** @type {Duration[]} */
  const durations = []
  const followers = new Map([...rhythm].map(([request, { before, pause }]) => [before, { request, pause }]))
  const queue = new Ready()
  const pool = new Pool(places)
  for (const other of outside) queue.push(other.at - other.late, other, () => other.run)
  const arrive = (/** @type {Request} */ request, /** @type {number} */ time) => {
    const steps = others?.get(request) ?? request.steps
    const comesAt = time + request.steps[0].late - request.queued
    let begin = 0
    let index = 0
    const run = (/** @type {number} */ now) => {
      const { run: length, after = 0, gives } = steps[index]
      if (index === 0) begin = now
      if (gives) pool.give(now)
      const next = steps[++index]
      if (next === undefined) {
        const end = now + length + request.rest
        const queued = Math.max(0, begin - comesAt)
        durations.push({ name: request.name, ms: end - begin, queued, start: request.start })
        const follower = followers.get(request)
        if (follower !== undefined) arrive(follower.request, end + follower.pause)
      } else {
        const wait = (/** @type {number} */ since) => { queue.push(since + next.wait, next, run) }
        if (next.takes) pool.take(now + length, wait)
        else wait(now + length)
      }
      return length + after
    }
    queue.push(time, steps[0], run)
  }
  for (const request of requests) if (!rhythm.has(request)) arrive(request, arrivalOf(request))
  let free = -Infinity // time from which the loop is free
  for (let event = queue.pop(free); event !== undefined; event = queue.pop(free)) {
    const now = Math.max(event.time, free)
    free = now + event.run(now)
  }
  return durations
}

/** Places that are each held by one request at a time; waiting requests get one in order. */
class Pool {
  #free
  /** @type {Array<{ since: number, start: (time: number) => void }>} */
  #waiting = []

  /** @param {number} places */
  constructor (places) {
    this.#free = places
  }

  /** @param {number} since @param {(time: number) => void} start receives the time when it gets a place */
  take (since, start) {
    if (this.#free > 0) {
      this.#free--
      start(since)
    } else {
      this.#waiting.push({ since, start })
    }
  }

  /** @param {number} time */
  give (time) {
    const next = this.#waiting.shift()
    if (next === undefined) this.#free++
    else next.start(Math.max(time, next.since))
  }
}

/** @typedef {{ time: number, at: number, run: (now: number) => number }} Event */

/** Steps that are ready, or will be. */
class Ready {
  #all = new Queue()
  /** steps that run before others that ran later */
  #first = new Queue()

  /**
   * @param {number} time
   * @param {import('./recording').Outside} step
   * @param {Event['run']} run receives the time, returns how long it takes
   */
  push (time, { at: ran, isFirst }, run) {
    const queue = isFirst ? this.#first : this.#all
    queue.push({ time, at: ran, run })
  }

  /** @param {number} free time from which the loop is free @returns {Event | undefined} next one to run */
  pop (free) {
    const [other, first] = [this.#all.first, this.#first.first]
    if (other === undefined || first === undefined) return this.#all.pop() ?? this.#first.pop()
    const now = Math.max(free, Math.min(other.time, first.time))
    const isFirst = first.time <= now && (first.at < other.at || other.time > now)
    return isFirst ? this.#first.pop() : this.#all.pop()
  }
}

/** A binary heap of events. */
class Queue {
  /** @type {Event[]} */
  #heap = []

  get first () { return this.#heap.length === 0 ? undefined : this.#heap[0] }

  /** @param {Event} event */
  push (event) {
    const heap = this.#heap
    let i = heap.length
    for (; i > 0; i = (i - 1) >> 1) {
      const parent = heap[(i - 1) >> 1]
      if (!isBefore(event, parent)) break
      heap[i] = parent
    }
    heap[i] = event
  }

  /** @returns {Event | undefined} the earliest */
  pop () {
    const heap = this.#heap
    const [first] = heap
    const last = heap.pop()
    if (last === undefined || heap.length === 0) return first
    let i = 0
    for (;;) {
      let child = 2 * i + 1
      if (child + 1 < heap.length && isBefore(heap[child + 1], heap[child])) child++
      if (child >= heap.length || !isBefore(heap[child], last)) break
      heap[i] = heap[child]
      i = child
    }
    heap[i] = last
    return first
  }
}

/** @param {Event} a @param {Event} b */
const isBefore = (a, b) => Math.abs(a.time - b.time) < SAME_MS ? a.at < b.at : a.time < b.time

class Replay {
  #rhythms
  #recorded
  /** the unchanged replay @type {Map<string, Durations> | undefined} */
  #unchanged

  /** @param {Recording[]} recordings complete ones */
  constructor (recordings) {
    this.recordings = recordings
    this.#rhythms = recordings.map(({ requests }) => rhythmOf(requests))
    this.#recorded = figuresOf(recordings.flatMap(({ requests }) => requests))
  }

  /**
   * Replays all recordings with a change.
   * @param {Change} change
   * @returns {Map<string, Durations>} by request name
   */
  run (change) {
    return figuresOf(this.recordings.flatMap((recording, i) =>
      simulate(recording, this.#rhythms[i], change(recording))))
  }

  /**
   * Predicts the effect of a change, if the replay without it reproduces the recording.
   * @param {Change} change
   * @param {Map<string, Durations>} [before] the replay without it, if it is not the unchanged one
   * @returns {Prediction[]} figures that fall, largest gain first
   */
  predict (change, before = this.#unchanged ??= this.run(() => ({}))) {
    const predictions = this.compare(change, before).flatMap(({ count, figures }) => {
      const [best] = figures.filter(({ unsure, beforeMs, afterMs }) =>
        unsure === undefined && afterMs <= beforeMs * (1 - MIN_GAIN))
      if (best === undefined) return []
      const { unsure, ...prediction } = best
      return [{ prediction, gainedMs: count * (best.beforeMs - best.afterMs) }]
    })
    return predictions.sort((a, b) => b.gainedMs - a.gainedMs).map(({ prediction }) => prediction)
  }

  /**
   * Compares the figures of each route with those after a change.
   * @param {Change} change
   * @param {Map<string, Durations>} before the replay without it
   * @returns {Array<{ count: number, figures: Checked[] }>}
   */
  compare (change, before) {
    const after = this.run(change)
    return [...this.#recorded].flatMap(([route, recorded]) => {
      const [from, to] = [before.get(route), after.get(route)]
      if (recorded.count < MIN_REQUESTS || from === undefined || to?.count !== from.count) return []
      // The median first: the figure of a few requests is less reproducible
      const names = FIGURES.slice(0, recorded.count < MIN_FOR_P99 ? 1 : 2)
      const figures = names.flatMap((figure) => OF.flatMap((of) => {
        const beforeMs = recorded[of][figure]
        const isUnread = [recorded, to].some(({ client, span }) =>
          client[figure] >= span[figure] * (1 + MIN_QUEUED))
        if (of === 'client' && !isUnread) return []
        const afterMs = beforeMs * to[of][figure] / from[of][figure]
        const error = Math.abs(from[of][figure] / beforeMs - 1)
        /** @type {Checked['unsure']} */
        const drifts = to[of].drift[figure] > MAX_DRIFT ? 'drift' : undefined
        const unsure = error > MAX_ERROR ? 'error' : drifts
        /** @type {Checked} */
        const checked = { route, figure, beforeMs, afterMs, error, unsure }
        return [of === 'client' ? { ...checked, unread: true } : checked]
      }))
      return [{ count: recorded.count, figures }]
    })
  }
}

/**
 * @param {Duration[]} durations
 * @returns {Map<string, Durations>} by request name
 */
function figuresOf (durations) {
  return new Map(groupsOf(durations, ({ name }) => name).map((group) => {
    group.sort((a, b) => a.start - b.start)
    const span = withDrift(group.map(({ ms }) => ms))
    const client = withDrift(group.map(({ ms, queued }) => queued + ms))
    return [group[0].name, { count: group.length, span, client }]
  }))
}

/** @param {number[]} times in order of start @returns {Quantiles} */
function withDrift (times) {
  const middle = times.length >> 1
  const [first, second] = [quantilesOf(times.slice(0, middle)), quantilesOf(times.slice(middle))]
  const differ = (/** @type {'median' | 'p99'} */ figure) => Math.abs(first[figure] / second[figure] - 1)
  return { ...quantilesOf(times), drift: { median: differ('median'), p99: differ('p99') } }
}

/** @param {number[]} times */
function quantilesOf (times) {
  const values = Float64Array.from(times).sort()
  const sample = { values, total: values.length }
  return { median: quantile(sample, 0.5), p99: quantile(sample, 0.99) }
}

module.exports = { Replay }
