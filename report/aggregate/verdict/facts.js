'use strict'

// Facts about a route for the verdict, beyond its figures: places where its requests waited for their turn,
// for a response, or for both; their delayers; how many ran at a time.
//
// A turn is a wait that ends when another request is done: that request settled the promise or released the
// connection. Requests with and without a turn are summed separately: if both do something, it is work; if
// only requests without a turn do it, they did it for the others as well (a shared response).

const { FailedPath } = require('./failing')
const { pidOf } = require('./load')
const { amount, isRecord, list, text } = require('../../read/values')
const { MAX_ASKED, askedOf } = require('../asked')
const { turnsOf } = require('../convoys')
const { delayersOf } = require('../digest')
const { BoundedMap, Sums, getOrCreate, sum } = require('../lists')
const { processOf } = require('../recording')
const { endOf } = require('../route-names')
const { siteTextsOf } = require('../sites')
const { Unanswered } = require('./unanswered')

const WORK = /** @type {const} */ (['spans', 'ms', 'opening', 'delayed', 'count', 'sent', 'jobs', 'beside'])
const MIN_TURN_MS = 0.1
const MIN_LONG_MS = 25
const MAX_PLACES = 300 // per route
const MAX_NAMES = 50 // delaying routes, and retried calls
const MAX_INTERVALS = 2000 // requests per route
const MAX_CONNECTIONS = 4000 // per peer
const MAX_PEERS = 100
const MAX_GROUPS = 50 // per record of intervals
const MAX_PROCESSES = 1000
const MAX_SENDERS = 5000 // requests per route
const MAX_QUERIES = 5000 // per route
const MESSAGE = 'MESSAGE' // end of a wait for one

/**
 * @typedef {import('../sites').Place} Place
 * @typedef {import('../critical-paths').PathEntry} Wait
 * @typedef {import('../../read/span-line').Span} Span
 *
 * @typedef {object} TriesFacts requests that retried a call, weighted
 * @property {number} requests
 * @property {number} succeeded requests whose last try succeeded
 * @property {number} calls
 * @property {number} most of one request
 * @property {number} failedMs
 *
 * @typedef {object} Work waits for responses at one place, weighted
 * @property {number} spans requests that waited there
 * @property {number} ms
 * @property {number} opening ms of these until connections were open
 * @property {number} delayed ms, in addition
 * @property {number} count waits
 * @property {number} sent waits for which the request itself had sent something first
 * @property {number} jobs waits for which another request had sent it
 * @property {number} beside own callbacks that ran meanwhile
 */

/** Waits of a route's requests at one place. */
class PlaceFacts {
  /** for requests without a turn, and with one @type {[Work, Work]} */
  work = [noWork(), noWork()]
  turnMs = 0
  turnSpans = 0
  turnLines = 0

  /** @param {Place} place */
  constructor (place) {
    this.place = place
    /** request that gave the turn, and peer of the connection */
    const { settler, peer } = endOf(place.until)
    this.settler = settler
    this.peer = peer
  }

  /** Sums of all requests. */
  get allWork () {
    const sums = noWork()
    for (const work of this.work) addWork(sums, work, 1)
    return sums
  }
}

/** @returns {Work} */
function noWork () {
  return { spans: 0, ms: 0, opening: 0, delayed: 0, count: 0, sent: 0, jobs: 0, beside: 0 }
}

/** @param {Work} sums @param {Work} work @param {number} weight */
function addWork (sums, work, weight) {
  for (const name of WORK) sums[name] += work[name] * weight
}

class RouteFacts {
  lines = 0
  totalMs = 0
  undelayedMs = 0 // without time in which the loop ran others, which is no property of the route
  runMs = 0
  longRuns = 0 // requests that ran for MIN_LONG_MS or longer
  queuedMs = 0 // how long requests sat in the socket buffer before Node read them
  failedPath = new FailedPath()
  unanswered = new Unanswered()
  /** retried calls, by name @type {BoundedMap<string, TriesFacts>} */
  tries = new BoundedMap(MAX_NAMES)
  /** requests without a turn, and with one @type {[number, number]} */
  requests = [0, 0]
  /** ms by name of the delayer @type {Sums<string>} */
  delayedBy = new Sums(MAX_NAMES)
  /** requests with a turn: start, ms of turns, end; unused if lines are sampled @type {number[][]} */
  intervals = []
  isSampled = false
  /** @type {import('../convoys').Turn[]} */
  turns = []
  /** ms of waits after the last turn, by place @type {Sums<Place>} */
  held = new Sums(MAX_NAMES)
  heldMs = 0 // from the last turn until the end
  /** answered queries of the first requests @type {import('./shared').SentQuery[]} */
  queries = []
  /** the first requests @type {import('./stampede').Sender[]} */
  senders = []
  /** waits for messages of other threads @type {Array<import('../convoys').Turn & { pid: number }>} */
  messages = []
  /**
   * first and last use of each connection in ms since 1970, by peer, then by process and id
   * @type {BoundedMap<string, BoundedMap<string, [number, number]>>}
   */
  connections = new BoundedMap(MAX_PEERS)
  /** @type {BoundedMap<Place, PlaceFacts>} */
  #places = new BoundedMap(MAX_PLACES)

  get places () { return [...this.#places.values()] }

  get count () { return this.requests[0] + this.requests[1] }

  /**
   * Adds a request.
   * @param {Span} span
   * @param {import('../digest').Split} split
   * @param {Wait[]} waits
   * @param {import('../calls').Tries[]} tries
   */
  add (span, split, waits, tries) {
    const { ms, startMs, weight, kind, attributes } = span
    this.lines++
    if (weight !== 1) this.isSampled = true
    this.totalMs += ms * weight
    this.undelayedMs += Math.max(0, ms - split.delayed) * weight
    this.runMs += split.run * weight
    if (split.run >= MIN_LONG_MS) this.longRuns += weight
    this.queuedMs += (amount(attributes['longstack.queued_ms']) ?? 0) * weight
    this.failedPath.add(span)
    this.unanswered.add(span, waits)
    for (const each of tries) this.#addTries(each, weight)
    if (this.turns.length < MAX_INTERVALS) this.#addTurns(span, waits)
    if (this.messages.length < MAX_INTERVALS) {
      const messages = turnsOf(span, waits, (until) => until === MESSAGE)
      this.messages.push(...messages.map((wait) => ({ ...wait, pid: pidOf(span) })))
    }
    const places = waits.map(({ place }) => this.#places.find(place, () => new PlaceFacts(place)))
    // part of each wait that was for a turn
    const turns = waits.map(({ ms, unsent = 0 }, i) =>
      places[i]?.settler === undefined ? Math.min(unsent, ms) : ms)
    const turn = sum(turns, Number)
    const group = turn >= MIN_TURN_MS ? 1 : 0
    this.requests[group] += weight
    for (const { name, ms } of delayersOf(attributes)) {
      if (name !== undefined) this.delayedBy.add(name, ms * weight)
    }
    const { intervals } = this
    if (group === 1 && intervals.length < MAX_INTERVALS) intervals.push([startMs, turn, startMs + ms])
    const { 'network.peer.address': address, 'network.peer.port': port } = attributes
    if (this.queries.length < MAX_QUERIES) this.queries.push(...queriesOf(span))
    if (this.senders.length < MAX_SENDERS) {
      const sent = waits.filter(({ place, sent = 0 }) => sent > 0 && endOf(place.until).peer !== undefined)
      const sender = { process: processOf(span), start: startMs, end: startMs + ms }
      this.senders.push({ ...sender, places: sent.map(({ place }) => place) })
    }
    places.forEach((facts, i) => {
      const isOfClient = kind === 'SERVER' && facts?.peer === `${address}:${port}`
      if (facts !== undefined && !isOfClient) this.#addWait(facts, waits[i], turns[i], group, span)
    })
  }

  /**
   * Adds turns, and what the request waits for after the last one.
   * @param {Span} span
   * @param {Wait[]} waits
   */
  #addTurns (span, waits) {
    const turns = turnsOf(span, waits)
    if (turns.length === 0) return
    this.turns.push(...turns)
    const since = Math.max(...turns.map(({ end }) => end))
    this.heldMs += span.startMs + span.ms - since
    for (const { place, start, end } of turnsOf(span, waits, () => true)) {
      if (start >= since) this.held.add(place, end - start)
    }
  }

  /** @param {import('../calls').Tries} tries @param {number} weight */
  #addTries ({ name, count, failedMs, succeeded }, weight) {
    const none = () => ({ requests: 0, succeeded: 0, calls: 0, most: 0, failedMs: 0 })
    const facts = this.tries.find(name, none)
    if (facts === undefined) return
    facts.requests += weight
    facts.calls += count * weight
    facts.failedMs += failedMs * weight
    facts.most = Math.max(facts.most, count)
    if (succeeded) facts.succeeded += weight
  }

  /**
   * Applies the final names of requests; the places have them already.
   * @param {(name: string) => string} nameOf
   */
  rename (nameOf) {
    for (const facts of this.#places.values()) facts.settler = endOf(facts.place.until).settler
    const before = [...this.delayedBy]
    this.delayedBy.clear()
    for (const [name, ms] of before) this.delayedBy.add(nameOf(name), ms)
  }

  /**
   * @param {PlaceFacts} facts
   * @param {Wait} wait
   * @param {number} turn ms
   * @param {number} group
   * @param {Span} span
   */
  #addWait (facts, wait, turn, group, span) {
    const { ms, opening = 0, delayed, count, sent = 0, jobs = 0, beside = 0, on: ids } = wait
    const { weight } = span
    if (turn > 0) {
      facts.turnMs += turn * weight
      facts.turnSpans += weight
      facts.turnLines++
    }
    if (sent === 0 && turn > ms - MIN_TURN_MS) return
    const work = { spans: 1, ms: ms - turn, opening, delayed, count, sent, jobs, beside }
    addWork(facts.work[group], work, weight)
    if (facts.peer !== undefined && ids !== undefined) this.#addConnections(facts.peer, span, ids)
  }

  /** @param {string} peer @param {Span} span @param {number[]} ids */
  #addConnections (peer, { record, startMs, ms }, ids) {
    const pid = amount(record.resource?.['process.pid']) ?? 0
    const uses = this.connections.find(peer, () => new BoundedMap(MAX_CONNECTIONS))
    /** @returns {[number, number]} */
    const use = () => [startMs, startMs + ms]
    for (const id of ids) widen(uses?.find(`${pid} ${id}`, use), use())
  }
}

/** @param {Span} span @returns {import('./shared').SentQuery[]} answered queries with known connections */
function queriesOf (span) {
  const process = processOf(span)
  return askedOf(span.attributes['longstack.asked'], MAX_ASKED).flatMap((query) => {
    const { at: frame, peer, connection, unanswered } = query
    if (unanswered || peer === undefined || connection === undefined) return []
    const start = span.startMs + query.start
    return [{ at: frame, peer, connection: `${process} ${connection}`, start, end: start + query.ms }]
  })
}

/**
 * Extends a range to contain another one.
 * @param {[number, number] | undefined} range
 * @param {[number, number]} other
 */
function widen (range, [start, end]) {
  if (range === undefined) return
  range[0] = Math.min(range[0], start)
  range[1] = Math.max(range[1], end)
}

/**
 * @typedef {object} IntervalGroup
 * @property {string} key same for intervals of one site and request name
 * @property {string | undefined} at
 * @property {string | undefined} label
 * @property {number} count
 * @property {number} oldestMs
 * @property {string} name of the requests that set most of them
 *
 * @typedef {{ startMs: number, groups: IntervalGroup[] }} IntervalRecord
 */

/** Open intervals: the first and the last record of each process. */
class IntervalFacts {
  /** @type {BoundedMap<string, { first: IntervalRecord, last: IntervalRecord }>} */
  #histories = new BoundedMap(MAX_PROCESSES)

  /** @param {Span} record */
  add (record) {
    const { startMs, attributes: { 'longstack.open_intervals': intervals } } = record
    if (intervals === undefined) return
    const latest = { startMs, groups: intervalGroupsOf(intervals) }
    const history = this.#histories.find(processOf(record), () => ({ first: latest, last: latest }))
    if (history === undefined) return
    if (startMs < history.first.startMs) history.first = latest
    if (startMs >= history.last.startMs) history.last = latest
  }

  /** Returns the groups of all processes, without those that did not grow. @returns {IntervalGroup[]} */
  list () {
    /** @type {Map<string, IntervalGroup>} */
    const sums = new Map()
    for (const { first, last } of this.#histories.values()) {
      const countBefore = new Map(first.groups.map(({ key, count }) => [key, count]))
      for (const group of last.groups) {
        if (last.startMs > first.startMs && group.count <= (countBefore.get(group.key) ?? 0)) continue
        const all = getOrCreate(sums, group.key, () => ({ ...group, count: 0 }))
        all.count += group.count
        all.oldestMs = Math.max(all.oldestMs, group.oldestMs)
      }
    }
    return [...sums.values()]
  }
}

/** @param {unknown} groups @returns {IntervalGroup[]} */
function intervalGroupsOf (groups) {
  return list(groups, MAX_GROUPS).filter(isRecord).map((group) => {
    const requests = Object.entries(isRecord(group.requests) ? group.requests : {})
      .map(([request, count]) => /** @type {const} */ ([request, amount(count) ?? 0]))
    const [request, count] = requests.reduce((max, entry) => entry[1] > max[1] ? entry : max, ['', 0])
    const { at: frame, callers, label } = siteTextsOf(group)
    const name = text(request, 300) ?? ''
    return {
      key: JSON.stringify([frame, name, ...callers]),
      at: frame,
      label,
      count,
      oldestMs: amount(group.oldest_ms) ?? 0,
      name
    }
  })
}

module.exports = { IntervalFacts, MIN_LONG_MS, PlaceFacts, RouteFacts, widen }
