'use strict'

// Estimates the gain of fixing a finding of the verdict: replays the recorded runs and waits without it.

const { callFramesOf, functionOf } = require('./frames')
const { getOrCreate, groupsOf, sum } = require('./lists')
const { endOf } = require('./route-names')
const { framesOf } = require('./sites')

/**
 * @typedef {import('./replay').Change} Change
 * @typedef {import('./recording').Recording} Recording
 * @typedef {import('./recording').Request} Request
 * @typedef {import('./recording').Step} Step
 * @typedef {import('./recording').Wait | undefined} Wait
 * @typedef {import('./replay').Replay} Replay
 * @typedef {import('./replay').Prediction} Prediction
 * @typedef {import('./verdict').Fault} Fault
 *
 * @typedef {object} WhatIf
 * @property {'offThread' | 'places' | 'atOnce'} change
 * @property {number} [places] size of the pool
 * @property {Prediction[]} predictions largest gain first
 */

const MIN_LONG_MS = 5 // run of a delaying route, if its function is unknown
const GROWTH = [1.5, 2, 3] // factors on the size of a pool
const MIN_WORK_MS = 0.1 // beyond the unsent time: a wait with more is not only for a turn
const MOST = 0.9 // share of the largest pool's gain that is enough
const MAX_MANY = 0.05 // share of a pool's users that hold several connections at once
const MAX_HANDLING = 0.1 // of a prediction: responses that arrive together take less time than one by one

/**
 * @param {Fault} fault
 * @param {Replay} replay
 * @returns {WhatIf | undefined} undefined if unknown or not worth it
 */
function whatIf (fault, replay) {
  const found = changes[fault.rule]?.(fault, replay)
  return found === undefined || found.predictions.length === 0 ? undefined : found
}

/** @type {{ [rule in Fault['rule']]?: (fault: Fault, replay: Replay) => WhatIf | undefined }} */
const changes = {
  blocker: movedOff,
  delayer: movedOff,
  sequence: allAtOnce,
  pool: largerPool
}

/**
 * Leaves out predictions that depend on how long the responses take to handle: several at once take less.
 * @param {Fault} fault
 * @param {Replay} replay
 * @returns {WhatIf}
 */
function allAtOnce (fault, replay) {
  const [predictions, least] = [false, true].map((isFree) =>
    replay.predict((recording) => atOnce(fault, recording, isFree)))
  const isKnown = (/** @type {Prediction} */ { route, figure, unread, afterMs }) => least.some((other) =>
    other.route === route && other.figure === figure && other.unread === unread &&
    other.afterMs >= afterMs * (1 - MAX_HANDLING))
  return { change: 'atOnce', predictions: predictions.filter(isKnown) }
}

/** @param {Fault} fault @param {Replay} replay @returns {WhatIf} */
function movedOff (fault, replay) {
  return { change: 'offThread', predictions: replay.predict((recording) => offThread(fault, recording)) }
}

/**
 * Moves a function off the main thread: only its own request still waits for it, as long as it ran.
 * @param {Fault} fault
 * @param {Recording} recording
 * @returns {ReturnType<Change>}
 */
function offThread ({ route, at: frame }, { requests, callbacks, outside }) {
  const name = frame === undefined ? undefined : functionOf(frame)
  const blocking = callbacks.filter(({ stack }) =>
    callFramesOf(stack).some((own) => functionOf(own) === name))
  const alone = blocking.filter(({ spanId }) => spanId === undefined)
  const ofRequests = groupsOf(blocking, ({ spanId }) => String(spanId))
  const bySpan = new Map(ofRequests.map((own) => [own[0].spanId, own]))
  const steps = new Map(requests.map((request) => {
    const own = bySpan.get(request.spanId) ?? []
    return [request, request.steps.flatMap((step) => {
      const isLong = blocking.length === 0 && request.name === route && step.run >= MIN_LONG_MS
      const taken = isLong ? step.run : overlap(step, own)
      const { after, gives, ...first } = step
      if (taken === 0) return [{ ...first, after, gives }]
      return [{ ...first, run: step.run - taken }, { ...step, wait: taken, takes: false, run: 0 }]
    })]
  }))
  return { steps, outside: outside.map((other) => ({ ...other, run: other.run - overlap(other, alone) })) }
}

/**
 * Returns for how many ms of a run callbacks blocked.
 * @param {Pick<Step, 'at' | 'run'>} step
 * @param {Recording['callbacks']} callbacks
 */
function overlap ({ at: from, run }, callbacks) {
  return sum(callbacks, ({ start, ms }) =>
    Math.max(0, Math.min(from + run, start + ms) - Math.max(from, start)))
}

/**
 * Starts serial waits all at once.
 * @param {Fault} fault
 * @param {Recording} recording
 * @param {boolean} isFree whether handling their responses takes no time
 * @returns {ReturnType<Change>}
 */
function atOnce ({ route, details }, { requests }, isFree) {
  const frames = new Set(/** @type {string[]} */ (details?.frames))
  const steps = new Map(requests.filter(({ name }) => name === route).map((request) => {
    const asked = request.steps.filter(({ ended }) => {
      const { sent = 0, place } = request.waits[ended - 1] ?? {}
      return place !== undefined && sent > 0 && framesOf(place).some((frame) => frames.has(frame))
    })
    const waits = asked.map(({ wait }) => wait).sort((a, b) => a - b)
    let since = 0 // ms since all queries were sent: handling one response overlaps the wait for the next
    return [request, request.steps.map((step) => {
      if (waits.length === asked.length && step !== asked[0]) return step
      const isAsked = asked.includes(step)
      const wait = isAsked ? Math.max(0, Number(waits.shift()) - since) : step.wait
      const run = isFree && isAsked && waits.length > 0 ? 0 : step.run // the last one may be the route's work
      since += wait + run
      return { ...step, wait, run }
    })]
  }))
  return { steps }
}

/** @type {(fault: Fault, replay: Replay) => WhatIf | undefined} */
function largerPool ({ figures: { connections }, details }, replay) {
  if (typeof connections !== 'number' || details?.isQueue === true) return undefined
  if (details?.isCrowded === true) return undefined // more connections would not make it faster
  const peer = String(details?.peer)
  if (hasMany(peer, replay)) return undefined
  // Connections are released after each query or after the last: the better reproduction counts
  const found = [true, false].flatMap((isOfQuery) => {
    /** @type {Map<Recording, Map<Request, Step[]>>} */
    const steps = new Map()
    const poolOf = (/** @type {number} */ places) => (/** @type {Recording} */ recording) => ({
      steps: getOrCreate(steps, recording, () => pooled(recording, peer, isOfQuery)),
      places
    })
    const before = replay.run(poolOf(connections))
    return enough(GROWTH.map((factor) => {
      const places = Math.ceil(connections * factor)
      return { change: 'places', places, predictions: replay.predict(poolOf(places), before) }
    }))
  })
  return found.sort((a, b) => a.predictions[0].error - b.predictions[0].error)[0]
}

/**
 * Whether requests often have several queries to a peer at once. The replay does not know that each of these
 * holds a connection.
 * @param {string} peer
 * @param {Replay} replay
 */
function hasMany (peer, { recordings }) {
  const users = recordings.flatMap(({ requests }) => requests.filter((request) => isUser(request, peer)))
  return users.filter(({ manyTo }) => manyTo.has(peer)).length > users.length * MAX_MANY
}

/** @param {Request} request @param {string} peer */
const isUser = ({ waits }, peer) => waits.some((wait) => isAnswer(wait, peer))

/**
 * @typedef {object} PoolChange another number of connections, as somebody asks
 * @property {string} peer
 * @property {number} from
 * @property {number} to
 *
 * @typedef {PoolChange & { figures: Array<import('./replay').Checked> }} Resized figures: one per route that
 *   uses the pool and has enough requests
 */

/**
 * Predicts figures of requests with another number of connections, whatever they gain.
 * @param {PoolChange} change
 * @param {Replay} replay
 * @param {'starved' | 'crowded'} [doubt] why none of them is sure
 * @returns {Resized}
 */
function resized (change, replay, doubt) {
  const { peer, from, to } = change
  const users = new Set(replay.recordings.flatMap(({ requests }) =>
    requests.filter((request) => isUser(request, peer)).map(({ name }) => name)))
  const unsure = doubt ?? (hasMany(peer, replay) ? 'many' : undefined)
  // Connections are released after each query or after the last: the better reproduction counts
  const found = [true, false].map((isOfQuery) => {
    const poolOf = (/** @type {number} */ places) => (/** @type {Recording} */ recording) =>
      ({ steps: pooled(recording, peer, isOfQuery), places })
    return replay.compare(poolOf(to), replay.run(poolOf(from))).map(({ figures: [first] }) => first)
      .filter(({ route }) => users.has(route))
      .map((figure) => ({ ...figure, unsure: unsure ?? figure.unsure }))
  })
  const [figures] = found.sort((a, b) => sum(a, ({ error }) => error) - sum(b, ({ error }) => error))
  return { ...change, figures }
}

/** Lists the peers that requests query. @param {Recording[]} recordings @returns {string[]} */
function peersOf (recordings) {
  const waits = recordings.flatMap(({ requests }) => requests.flatMap((request) => request.waits))
  const peers = waits.filter(({ sent = 0 }) => sent > 0).map(({ place }) => endOf(place.until).peer)
  return [...new Set(peers.filter((peer) => peer !== undefined))]
}

/**
 * Returns the smallest pool with most of the gain of the largest.
 * @param {WhatIf[]} sizes
 * @returns {WhatIf[]} empty if there is no gain
 */
function enough (sizes) {
  const gained = (/** @type {WhatIf} */ { predictions: [best] }) =>
    best === undefined ? 0 : best.beforeMs - best.afterMs
  const min = Math.max(0, ...sizes.map(gained)) * MOST
  return min === 0 ? [] : sizes.filter((size) => gained(size) >= min).slice(0, 1)
}

/**
 * Derives waits for a free connection from which requests hold one.
 * @param {Recording} recording
 * @param {string} peer
 * @param {boolean} isOfQuery whether a connection is released after each query
 * @returns {Map<Request, Step[]>}
 */
function pooled ({ requests }, peer, isOfQuery) {
  return new Map(requests.map((request) => {
    const steps = request.steps.map((step) => ({ ...step }))
    const waits = steps.map(({ ended }) => request.waits[ended - 1])
    /** @type {Step | undefined} */
    let last // last query on the held connection
    let isTaken = false
    steps.forEach((step, i) => {
      const isAsked = isAnswer(waits[i], peer)
      const isOfTurn = isTurn(waits[i]) && isAnswer(waits.slice(i + 1).find(isOfPool), peer)
      if (!isAsked && !isOfTurn) return
      if (isTaken && (isOfTurn || isOfQuery) && last !== undefined) {
        last.gives = true
        isTaken = false
        last = undefined
      }
      step.takes = !isTaken
      isTaken = true
      if (isOfTurn) step.wait = 0
      else last = step
      const { ms = 0, count = 1, unsent = 0 } = waits[i] ?? {}
      if (isAsked && unsent > 0) step.wait = Math.min(step.wait, (ms - unsent) / count)
    })
    if (last !== undefined) last.gives = true
    return [request, steps]
  }))
}

/** @param {Wait} wait @param {string} peer */
const isAnswer = (wait, peer) =>
  wait !== undefined && (wait.sent ?? 0) > 0 && endOf(wait.place.until).peer === peer

/** Whether a whole wait was for a turn. @param {Wait} wait */
function isTurn (wait) {
  if (wait === undefined) return false
  const { ms, sent = 0, unsent = 0, place } = wait
  return endOf(place.until).settler !== undefined || (sent === 0 && unsent > 0 && unsent >= ms - MIN_WORK_MS)
}

/** @param {Wait} wait */
const isOfPool = (wait) => wait !== undefined && (isTurn(wait) || (wait.sent ?? 0) > 0)

module.exports = { peersOf, resized, whatIf }
