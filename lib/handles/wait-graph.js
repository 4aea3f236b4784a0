'use strict'

// Waits between requests. Edges come from two facts; no promise is inspected:
//
//   promise  a request awaits a promise that another request made
//   taken    a request waits in a function (taking-calls.js) that gave another request a resource, which that
//            one has not returned as far as is known. `settled`: requests that had taken before ended all
//            such recorded waits (flows.js). `name`: only the function's name suggests that its resource must
//            be returned
//
// A request that also waits for anything else (a timer, a file, a response) is not stuck. A cycle is reported
// if all requests around a lock are stuck; a convoy if one holds it and the others wait.

const { getOrAdd, groupBy } = require('../group-by')
const { placeText } = require('../text')
const { siteOf } = require('../spans/path-sites')
const { Flows, isForOthers } = require('./flows')
const { pendingNote } = require('./pending')

const MIN_MS = 1000 // shorter waits are ignored
const MIN_CONVOY = 3 // requests behind one
const MAX_CONVOYS = 20

/**
 * @typedef {import('./flows').Flow} Flow
 * @typedef {import('./flows').FlowWait} FlowWait
 * @typedef {import('./flows').Known} Known
 *
 * @typedef {object} Edge
 * @property {string} waits name of the waiting requests: `GET /a`
 * @property {string} for name of the requests they wait for
 * @property {string} at place of the wait: `acquire (/app/lock.js:10:12)`
 * @property {string | undefined} caller its caller: `a (/app/a.js:9:15)`
 * @property {number} count
 * @property {number} oldestMs
 * @property {import('./flows').KnownBy} by
 *
 * @typedef {object} Member requests of a cycle that took and wait at the same places
 * @property {string} request
 * @property {number} count
 * @property {string | undefined} took call that gave them the resource that others wait for
 * @property {string} at place of the wait
 * @property {string | undefined} caller
 * @property {number} oldestMs
 *
 * @typedef {Known & { members: Member[], behind: number }} Cycle
 *   behind: other requests that wait for these; a single member waits for itself
 *
 * @typedef {object} Holder requests that others wait for
 * @property {string} request
 * @property {number} count number of such requests
 * @property {string | undefined} took
 * @property {string | undefined} at place of its own wait
 * @property {string | undefined} uses connection or request in use: `TCP 127.0.0.1:5432`
 * @property {number} heldMs minimum time it has held the resource
 *
 * @typedef {Known & { requests: Array<{ request: string, count: number }>, count: number, at: string,
 *   caller: string | undefined, oldestMs: number, for: Holder }} Convoy
 *
 * @typedef {{ edges: Edge[], cycles: Cycle[], convoys: Convoy[] }} WaitGraph
 */

/**
 * Returns the graph of waits between requests. Yields between pieces of work.
 * @returns {Generator<void, WaitGraph, void>}
 */
function * waitGraph () {
  /** @type {WaitGraph} */
  const graph = { edges: [], cycles: [], convoys: [] }
  if (pendingNote() !== undefined) return graph
  const flows = new Flows()
  yield * flows.readWaits()
  if (!flows.hasWaits(MIN_MS)) return graph
  yield * flows.readOthers()
  yield * flows.readTaken()
  yield
  const stuck = yield * findStuck(flows)
  graph.edges = edgesOf(flows)
  yield
  graph.cycles = yield * cyclesOf(flows, stuck)
  graph.convoys = convoysOf(flows, stuck)
  return graph
}

/**
 * Returns the requests that a wait depends on.
 * @param {Flows} flows
 * @param {FlowWait} wait
 * @returns {Flow[]} empty if unknown
 */
function holdersOf (flows, { call, maker }) {
  if (maker !== undefined) return [maker]
  if (call === undefined || flows.known(call) === undefined) return []
  return flows.around(call.key).holders
}

/**
 * Returns the requests that wait only for each other.
 * @param {Flows} flows
 * @returns {Generator<void, Set<Flow>, void>}
 */
function * findStuck (flows) {
  const stuck = new Set([...flows.byRef.values()].filter(({ ref, waits, isBusy }) => ref !== 0 && !isBusy &&
    waits.length > 0 && waits.every((wait) => wait.ageMs >= MIN_MS && isForOthers(wait))))
  const areStuck = (/** @type {Flow[]} */ others) => others.every((other) => stuck.has(other))
  for (let size = -1; size !== stuck.size;) {
    size = stuck.size
    /** whether all requests around a function are stuck, by key @type {Map<string, boolean>} */
    const keys = new Map()
    /** @param {FlowWait} wait */
    const isBehindStuck = ({ call, maker }) => {
      if (maker !== undefined || call === undefined) return maker !== undefined && stuck.has(maker)
      return getOrAdd(keys, call.key, (key) => {
        const { holders, others } = flows.around(key)
        return flows.known(call) !== undefined && holders.length > 0 && areStuck([...holders, ...others])
      })
    }
    for (const flow of stuck) if (!flow.waits.every(isBehindStuck)) stuck.delete(flow)
    yield
  }
  return stuck
}

/**
 * Groups stuck requests that wait for each other.
 * @param {Flows} flows
 * @param {Set<Flow>} stuck
 * @returns {Generator<void, Cycle[], void>}
 */
function * cyclesOf (flows, stuck) {
  /** requests that each waits for, directly or not @type {Map<Flow, Set<Flow>>} */
  const reached = new Map()
  for (const flow of stuck) {
    yield
    reached.set(flow, reachedFrom(flows, flow))
  }
  const cycles = []
  const done = new Set()
  for (const flow of stuck) {
    if (done.has(flow) || !reached.get(flow)?.has(flow)) continue
    const waiting = [...stuck].filter((other) => reached.get(other)?.has(flow))
    const circle = waiting.filter((other) => reached.get(flow)?.has(other))
    for (const other of circle) done.add(other)
    const behind = waiting.length - circle.length
    const known = weakest(flows, circle.flatMap(({ waits }) => waits))
    cycles.push({ ...known, members: membersOf(circle), behind })
  }
  return cycles
}

/** @param {Flows} flows @param {Flow} flow @returns {Set<Flow>} */
function reachedFrom (flows, flow) {
  /** @type {Set<Flow>} */
  const reached = new Set()
  const keys = new Set()
  const queue = [flow]
  for (const next of queue) {
    for (const wait of next.waits) {
      if (wait.maker === undefined && keys.has(wait.call?.key)) continue
      if (wait.maker === undefined) keys.add(wait.call?.key)
      for (const holder of holdersOf(flows, wait)) {
        if (!reached.has(holder)) queue.push(holder)
        reached.add(holder)
      }
    }
  }
  return reached
}

/** @param {Flows} flows @param {FlowWait[]} waits @returns {Known} */
function weakest (flows, waits) {
  /** @type {Known} */
  let weakest = { by: 'promise', seen: 0 }
  for (const { call, maker } of waits) {
    const known = maker === undefined && call !== undefined ? flows.known(call) : undefined
    if (known === undefined || weakest.by === 'name') continue
    weakest = known.by === 'name' ? known : { by: known.by, seen: Math.max(known.seen, weakest.seen) }
  }
  return weakest
}

/** @param {Flow[]} circle @returns {Member[]} */
function membersOf (circle) {
  const members = circle.map((flow) => {
    const facts = { request: flow.name, count: 0, took: tookOf(flow, circle), ...placeOf(flow.waits[0]) }
    return { facts, oldestMs: Math.max(...flow.waits.map(({ ageMs }) => ageMs)) }
  })
  return groupBy(members, ({ facts }) => JSON.stringify(facts)).map((same) => {
    const oldestMs = Math.max(...same.map((member) => member.oldestMs))
    return { ...same[0].facts, count: same.length, oldestMs }
  }).sort((a, b) => b.oldestMs - a.oldestMs)
}

/**
 * Returns the place where a request took what others wait for.
 * @param {Flow} flow
 * @param {Iterable<Flow>} others
 */
function tookOf (flow, others) {
  for (const other of others) {
    for (const { call, maker, madeBy } of other.waits) {
      if (maker === flow) return madeBy?.caller ?? madeBy?.at
      const [took] = maker === undefined && call !== undefined ? flow.holds(call.key) : []
      if (took !== undefined) return took
    }
  }
  return undefined
}

/** @param {FlowWait} wait @returns {{ at: string, caller: string | undefined }} */
function placeOf ({ chain, call }) {
  if (call !== undefined) return { at: call.at, caller: call.caller }
  const { at: place, label = 'promise' } = siteOf(chain)
  return { at: place === undefined ? label : placeText(place), caller: undefined }
}

/** @param {Flows} flows @returns {Edge[]} */
function edgesOf (flows) {
  /** @type {Map<string, Edge & { flows: Set<Flow> }>} */
  const edges = new Map()
  for (const flow of flows.byRef.values()) {
    for (const wait of flow.ref === 0 ? [] : flow.waits) {
      for (const name of namesFor(flow, holdersOf(flows, wait))) {
        const { by } = weakest(flows, [wait])
        const facts = { waits: flow.name, for: name, ...placeOf(wait), by }
        const key = JSON.stringify(facts)
        const edge = getOrAdd(edges, key, () => ({ ...facts, count: 0, oldestMs: 0, flows: new Set() }))
        edge.oldestMs = Math.max(edge.oldestMs, wait.ageMs)
        edge.count = edge.flows.add(flow).size
      }
    }
  }
  return [...edges.values()].map(({ flows, ...edge }) => edge).sort((a, b) => b.count - a.count)
}

/**
 * Returns the names of the requests that a request waits for; its own if there are no others.
 * @param {Flow} flow
 * @param {Flow[]} holders
 */
function namesFor (flow, holders) {
  const others = holders.length === 1 ? holders : holders.filter((holder) => holder !== flow)
  return new Set(others.filter(({ ref }) => ref !== 0).map(({ name }) => name))
}

/**
 * Finds requests that many others wait for and that are not stuck.
 * @param {Flows} flows
 * @param {Set<Flow>} stuck
 * @returns {Convoy[]}
 */
function convoysOf (flows, stuck) {
  /** by holder and function @type {Map<string, { holders: Flow[], waiting: Array<[Flow, FlowWait]> }>} */
  const groups = new Map()
  for (const flow of flows.byRef.values()) {
    if (flow.ref === 0 || stuck.has(flow)) continue
    for (const wait of flow.waits) {
      const holders = headsOf(flows, flow, wait)
      if (holders === undefined) continue
      const key = `${holders[0].ref} ${wait.call?.key}`
      getOrAdd(groups, key, () => ({ holders, waiting: [] })).waiting.push([flow, wait])
    }
  }
  return [...groups.values()].filter(({ waiting }) => flowsOf(waiting).size >= MIN_CONVOY && isQueue(waiting))
    .map(({ holders, waiting }) => convoyOf(flows, holders, waiting))
    .filter((convoy) => Math.min(convoy.oldestMs, convoy.for.heldMs) >= MIN_MS)
    .sort((a, b) => b.count - a.count).slice(0, MAX_CONVOYS)
}

/**
 * Returns the head of the queue that a request waits in, if known: requests of one name.
 * @param {Flows} flows
 * @param {Flow} flow
 * @param {FlowWait} wait
 * @returns {Flow[] | undefined}
 */
function headsOf (flows, flow, wait) {
  if (wait.maker !== undefined) {
    const seen = new Set([flow])
    let head = wait.maker
    for (let next; !seen.has(head) && (next = head.waits.find(({ maker }) => maker !== undefined)?.maker);) {
      seen.add(head)
      head = next
    }
    return seen.has(head) || !head.isInFlight ? undefined : [head]
  }
  if (wait.call === undefined || flows.known(wait.call) === undefined) return undefined
  const { key } = wait.call
  if (flow.holds(key).length > 0) return undefined
  const { holders, others } = flows.around(key)
  const isKnown = holders.length > 0 && !others.some(({ ref }) => ref === 0) &&
    holders.every((holder) => holder.isInFlight && holder.name === holders[0].name && !holder.waitsIn(key))
  return isKnown ? holders : undefined
}

/**
 * Whether some wait for a lock or for another waiting request. Many that await one promise share its result.
 * @param {Array<[Flow, FlowWait]>} waiting
 */
function isQueue (waiting) {
  return waiting.some(([, { maker }]) => maker === undefined || waiting.some(([flow]) => flow === maker))
}

/**
 * Returns the waiting requests. One may have several pending awaits for the same holder.
 * @param {Array<[Flow, FlowWait]>} waiting
 */
const flowsOf = (waiting) => new Set(waiting.map(([flow]) => flow))

/**
 * @param {Flows} flows
 * @param {Flow[]} holders
 * @param {Array<[Flow, FlowWait]>} waiting
 * @returns {Convoy}
 */
function convoyOf (flows, holders, waiting) {
  const behind = flowsOf(waiting)
  const requests = groupBy([...behind], ({ name }) => name)
    .map((same) => ({ request: same[0].name, count: same.length }))
  const [head] = holders
  const [own] = head.waits
  const oldest = waiting.reduce((a, b) => a[1].ageMs >= b[1].ageMs ? a : b)[1]
  const held = oldest.maker === undefined ? oldest.call : undefined
  return {
    ...weakest(flows, waiting.map(([, wait]) => wait)),
    ...placeOf(oldest),
    count: behind.size,
    requests: requests.sort((a, b) => b.count - a.count),
    oldestMs: oldest.ageMs,
    for: {
      request: head.name,
      count: holders.length,
      took: tookOf(head, behind),
      at: own && placeOf(own).at,
      uses: head.uses,
      heldMs: Math.min(...holders.map((holder) => flows.heldMs(holder, held)))
    }
  }
}

module.exports = { waitGraph }
