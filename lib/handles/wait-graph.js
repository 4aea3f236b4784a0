'use strict'

// Which request waits for which. Two facts are read, and no promise is asked:
//
//   promise  a request awaits a promise that another one has made
//   taken    a request waits in a function (taking-calls.js) that gave another one what it asked for, which
//            that one has not given back, as far as is known: `settled` where requests that had taken before
//            ended all such waits that are recorded (taken.js), `name` where only the function's name says
//            that it gives what is to be given back
//
// A request that waits for anything else too is not stuck: for a timer, a file, an answer. A cycle is
// reported where all who have to do with a lock are stuck; a convoy where one has it and the others wait.

const { now } = require('../core/clock')
const { connectionTypes, kindAt } = require('../core/kinds')
const {
  ANSWERED, CHAIN, FLAGS, LIVE, ONE_SHOT, OWN_WORK_CHAIN, PASSED, REF, SHIFT, SIZE, TRIGGER,
  readWord, resources
} = require('../core/records')
const registry = require('../core/registry')
const { requestOf } = require('../core/request-of')
const { nameOf } = require('../core/served-requests')
const { source } = require('../core/source')
const { placeText } = require('../text')
const { siteOf } = require('../spans/path-sites')
const { walk } = require('./list')
const { pendingNote, visitWaits } = require('./pending')
const { servedWithUses } = require('./requests-in-flight')
const { Taken } = require('./taken')
const { Calls, heldSince, passedCalls, seenCallers } = require('./taking-calls')

const CHUNK = 2048 // records that are looked at, at once
const MIN_MS = 1000 // waits that are shorter are no news
const MIN_CONVOY = 3 // requests behind one
const MAX_CONVOYS = 20

/**
 * @typedef {import('./taking-calls').Call} Call
 * @typedef {'promise' | 'settled' | 'name'} KnownBy
 *
 * @typedef {object} Edge
 * @property {string} waits name of the requests that wait: `GET /a`
 * @property {string} for name of the requests for which they do
 * @property {string} at where they wait: `acquire (/app/lock.js:10:12)`
 * @property {string | undefined} caller who called that: `a (/app/a.js:9:15)`
 * @property {number} count
 * @property {number} oldestMs
 * @property {KnownBy} by
 *
 * @typedef {object} Member requests of a cycle that have taken and wait at the same places
 * @property {string} request
 * @property {number} count
 * @property {string | undefined} took where they called what gave them what others wait for
 * @property {string} at where they wait
 * @property {string | undefined} caller
 * @property {number} oldestMs
 *
 * @typedef {object} Known
 * @property {KnownBy} by the weakest of what it rests on
 * @property {number} seen waits of the past that were ended by such as had taken before; 0 unless `settled`
 *
 * @typedef {Known & { members: Member[], behind: number }} Cycle
 *   behind: other requests, that wait for these; one member: they wait for themselves
 *
 * @typedef {object} Holder for which others wait
 * @property {string} request
 * @property {number} count of such requests
 * @property {string | undefined} took
 * @property {string | undefined} at where it waits itself
 * @property {string | undefined} uses what it uses: `TCP 127.0.0.1:5432`
 * @property {number} heldMs for how long it has had it, at least
 *
 * @typedef {Known & { requests: Array<{ request: string, count: number }>, count: number, at: string,
 *   caller: string | undefined, oldestMs: number, for: Holder }} Convoy
 *
 * @typedef {{ edges: Edge[], cycles: Cycle[], convoys: Convoy[] }} WaitGraph
 *
 * @typedef {{ holders: Flow[], others: Flow[] }} Around a function: who has what it gives, and who waits
 *
 * @typedef {object} FlowWait
 * @property {number} ref
 * @property {number} chain
 * @property {number} ageMs
 * @property {Call | undefined} call that it waits in
 * @property {Flow | undefined} maker of the promise that it awaits, if that is another request
 * @property {Call | undefined} madeBy the call by which that one made it
 */

/** What goes on for one request. */
class Flow {
  /** @type {FlowWait[]} */
  waits = []
  /** a server has to answer it */
  isInFlight = false
  /** something that is not a lock is pending for it */
  isBusy = false
  /** @type {string | undefined} */
  uses
  /** by key of a call: where it was given what it is to give back @type {Map<string, Map<string, string>>} */
  taken = new Map()

  /** @param {number} ref of the request, 0: what is of none */
  constructor (ref) {
    this.ref = ref
    this.name = nameOf(ref) ?? 'request'
  }

  /** @param {string} key @returns {string[]} where it has taken: frames */
  holds (key) {
    return [...this.taken.get(key)?.values() ?? []]
  }

  /** @param {string} key */
  waitsIn (key) {
    return this.waits.some(({ call }) => call?.key === key)
  }
}

/** All that goes on, by request. */
class Flows {
  /** by reference of the request @type {Map<number, Flow>} */
  byRef = new Map()
  lookup = new Map()
  calls = new Calls()
  time = now()
  taken = new Taken(this.calls, this.lookup)
  /** by key of a call @type {Map<string, Around>} */
  #around = new Map()
  /** frames from which a function is called, by its key @type {Map<string, Set<string>>} */
  #callers = new Map()
  /** files of the program that have a timer: it may give what is waited for @type {Set<string>} */
  timedFiles = new Set()

  /** @param {number} ref @returns {Flow} */
  of (ref) {
    let flow = this.byRef.get(ref)
    if (flow === undefined) this.byRef.set(ref, flow = new Flow(ref))
    return flow
  }

  /** Reads what waits. @returns {Generator<void, void, void>} */
  * readWaits () {
    yield * visitWaits(this.time, (chain, ref, ageMs, isInnermost) => {
      const request = requestOf(ref, this.lookup)
      const awaited = readWord(ref, TRIGGER)
      const maker = requestOf(awaited, this.lookup)
      const isOfAnother = maker !== request && maker !== 0 && request !== 0
      if (!isInnermost && !isOfAnother) return
      const madeBy = this.calls.of(readWord(awaited, CHAIN))
      this.of(request).waits.push(isOfAnother
        ? { ref, chain, ageMs, call: this.calls.of(chain) ?? madeBy, maker: this.of(maker), madeBy }
        : { ref, chain, ageMs, call: madeBy?.name && madeBy, maker: undefined, madeBy: undefined })
    })
  }

  /** Whether anything waits long enough for a word. */
  get isWorthALook () {
    for (const { ref, waits } of this.byRef.values()) {
      if (ref !== 0 && waits.some((wait) => wait.ageMs >= MIN_MS && isForOthers(wait))) return true
    }
    return false
  }

  /** Reads what else is pending. @returns {Generator<void, void, void>} */
  * readOthers () {
    const { requests, uses } = yield * servedWithUses(this.lookup, this.time)
    for (const { ref } of requests.values()) if (ref !== 0) this.of(ref).isInFlight = true
    for (const [ref, [{ what }]] of uses) {
      const flow = this.of(ref)
      flow.isBusy = true
      flow.uses = what
    }
    for (const entry of registry.list()) if (isUnanswered(entry)) this.#noteBusy(entry.context.ref)
    for (const subject of walk(isOther)) {
      yield
      if (subject?.context !== undefined) this.#noteOpen(subject.context)
    }
    for (let slot = 0; slot < SIZE; slot++) {
      if (slot % CHUNK === CHUNK - 1) yield
      const offset = slot << SHIFT
      const isOnce = (resources[offset + FLAGS] & (LIVE | ONE_SHOT | PASSED)) === (LIVE | ONE_SHOT)
      if (!isOnce || resources[offset + CHAIN] === OWN_WORK_CHAIN) continue
      const kind = kindAt(source.chainAt(resources[offset + CHAIN])?.kind ?? 0)
      if (kind?.promise === false) this.#noteBusy(resources[offset + REF])
    }
  }

  /** @param {import('../core/context').Context} context of something that is open */
  #noteOpen (context) {
    this.#noteBusy(context.ref)
    if (context.type !== 'Timeout') return
    const maker = context.stack?.frames.find(({ kind }) => kind === 'user' || kind === 'module')
    this.timedFiles.add(String(maker?.fileName))
  }

  /** @param {number} ref of something that is pending */
  #noteBusy (ref) {
    const request = requestOf(ref, this.lookup)
    if (request !== 0) this.of(request).isBusy = true
  }

  /** Reads what the requests have taken. @returns {Generator<void, void, void>} */
  * readTaken () {
    const keys = new Set()
    for (const { call, maker } of [...this.byRef.values()].flatMap(({ waits }) => waits)) {
      if (call !== undefined && maker === undefined) keys.add(call.key)
    }
    yield * this.taken.read(keys)
    const callers = this.#callers = yield * seenCallers()
    for (const flow of this.byRef.values()) {
      yield
      for (const key of keys) this.#noteTaken(flow, key, callers.get(key) ?? new Set())
    }
    for (const key of keys) this.#around.set(key, this.#listAround(key))
  }

  /** @param {Flow} flow @param {string} key @param {Set<string>} callers frames from which it is called */
  #noteTaken (flow, key, callers) {
    /** @type {Map<string, string>} */
    const places = new Map()
    for (const [path, { name, caller, at }] of this.taken.places(flow.ref, key)) {
      if (name === 'takes') places.set(path, caller ?? at)
    }
    for (const { chain, call } of flow.waits) {
      for (const { path, caller } of passedCalls(chain, key, callers)) {
        if (path !== call?.path) places.set(path, caller)
      }
    }
    // Of calls one inside another the inner one is where it waits
    flow.waits = flow.waits.filter(({ call, maker }) =>
      maker !== undefined || call?.key !== key || call.name !== 'runs' || !places.has(call.path))
    for (const { call } of flow.waits) if (call?.key === key) places.delete(call.path)
    if (places.size > 0) flow.taken.set(key, places)
  }

  /** @param {string} key @returns {Around} */
  #listAround (key) {
    /** @type {Around} */
    const around = { holders: [], others: [] }
    for (const flow of this.byRef.values()) {
      const wasGiven = flow.ref === 0 && this.taken.places(0, key).size > 0
      if (flow.holds(key).length > 0) around.holders.push(flow)
      else if (flow.waitsIn(key) || wasGiven) around.others.push(flow)
    }
    return around
  }

  /** Returns all who wait in a function or have what it gives. @param {string} key @returns {Around} */
  around (key) {
    return this.#around.get(key) ?? { holders: [], others: [] }
  }

  /**
   * Returns for how long a request has had what others wait for, at least.
   * @param {Flow} flow
   * @param {Call | undefined} call undefined: they await its promise
   */
  heldMs ({ waits }, call) {
    const held = waits.map(({ ref, ageMs }) => {
      const since = call && heldSince(ref, call.key, this.#callers.get(call.key) ?? new Set())
      return since === undefined ? ageMs : this.time - since
    })
    return Math.max(0, ...held)
  }

  /** @param {Call} call @returns {Known | undefined} undefined: others end such waits, or may: no lock */
  known ({ key, file }) {
    const { byTakers = 0, byOthers = 0 } = this.taken.endings.get(key) ?? {}
    if (byOthers > 0 || (byTakers === 0 && this.timedFiles.has(file))) return undefined
    return { by: byTakers > 0 ? 'settled' : 'name', seen: byTakers }
  }
}

/** @param {FlowWait} wait */
const isForOthers = ({ call, maker }) => call !== undefined || maker !== undefined

/**
 * Whether a client's connection may end a wait: nothing was asked on it and answered yet. What is asked and
 * not answered is a use of its request.
 * @param {import('../core/entry').Entry} entry
 */
function isUnanswered ({ isClient, lastAsk }) {
  return isClient && (readWord(lastAsk, FLAGS) & ANSWERED) === 0
}

/** Whether what is open of a type may end a wait, and is no connection. @param {string} type */
function isOther (type) {
  return !connectionTypes.has(type) && !type.endsWith('SERVERWRAP') && type !== 'HTTP2STREAM'
}

/**
 * Returns who waits for whom. Yields between pieces of work.
 * @returns {Generator<void, WaitGraph, void>}
 */
function * waitGraph () {
  /** @type {WaitGraph} */
  const graph = { edges: [], cycles: [], convoys: [] }
  if (pendingNote() !== undefined) return graph
  const flows = new Flows()
  yield * flows.readWaits()
  if (!flows.isWorthALook) return graph
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
 * Returns for whom a wait is.
 * @param {Flows} flows
 * @param {FlowWait} wait
 * @returns {Flow[]} none: it is not known
 */
function holdersOf (flows, { call, maker }) {
  if (maker !== undefined) return [maker]
  if (call === undefined || flows.known(call) === undefined) return []
  return flows.around(call.key).holders
}

/**
 * Returns the requests that only each other can let go on.
 * @param {Flows} flows
 * @returns {Generator<void, Set<Flow>, void>}
 */
function * findStuck (flows) {
  const stuck = new Set([...flows.byRef.values()].filter(({ ref, waits, isBusy }) => ref !== 0 && !isBusy &&
    waits.length > 0 && waits.every((wait) => wait.ageMs >= MIN_MS && isForOthers(wait))))
  const areStuck = (/** @type {Flow[]} */ others) => others.every((other) => stuck.has(other))
  for (let size = -1; size !== stuck.size;) {
    size = stuck.size
    /** functions all around which are stuck, by key @type {Map<string, boolean>} */
    const keys = new Map()
    /** @param {FlowWait} wait */
    const isBehindStuck = ({ call, maker }) => {
      if (maker !== undefined || call === undefined) return maker !== undefined && stuck.has(maker)
      let isStuck = keys.get(call.key)
      if (isStuck === undefined) {
        const { holders, others } = flows.around(call.key)
        isStuck = flows.known(call) !== undefined && holders.length > 0 && areStuck([...holders, ...others])
        keys.set(call.key, isStuck)
      }
      return isStuck
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
  /** whom each waits for, however indirectly @type {Map<Flow, Set<Flow>>} */
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
  /** @type {Map<string, Member>} */
  const members = new Map()
  for (const flow of circle) {
    const [wait] = flow.waits
    const took = tookOf(flow, circle)
    const { at, caller } = placeOf(wait)
    const oldestMs = Math.max(...flow.waits.map(({ ageMs }) => ageMs))
    const key = JSON.stringify([flow.name, took, at, caller])
    const member = members.get(key)
    const count = (member?.count ?? 0) + 1
    const longestMs = Math.max(member?.oldestMs ?? 0, oldestMs)
    members.set(key, { request: flow.name, count, took, at, caller, oldestMs: longestMs })
  }
  return [...members.values()].sort((a, b) => b.oldestMs - a.oldestMs)
}

/**
 * Returns where a request took what others wait for.
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
        const edge = edges.get(key) ?? { ...facts, count: 0, oldestMs: 0, flows: new Set() }
        edges.set(key, edge)
        edge.oldestMs = Math.max(edge.oldestMs, wait.ageMs)
        edge.count = edge.flows.add(flow).size
      }
    }
  }
  return [...edges.values()].map(({ flows, ...edge }) => edge).sort((a, b) => b.count - a.count)
}

/**
 * Returns the names of those for whom a request waits; its own if there are no others.
 * @param {Flow} flow
 * @param {Flow[]} holders
 */
function namesFor (flow, holders) {
  const others = holders.length === 1 ? holders : holders.filter((holder) => holder !== flow)
  return new Set(others.filter(({ ref }) => ref !== 0).map(({ name }) => name))
}

/**
 * Finds those for whom many wait, and who are not stuck.
 * @param {Flows} flows
 * @param {Set<Flow>} stuck
 * @returns {Convoy[]}
 */
function convoysOf (flows, stuck) {
  /** by holder, and function @type {Map<string, { holders: Flow[], waiting: Array<[Flow, FlowWait]> }>} */
  const groups = new Map()
  for (const flow of flows.byRef.values()) {
    if (flow.ref === 0 || stuck.has(flow)) continue
    for (const wait of flow.waits) {
      const holders = headsOf(flows, flow, wait)
      if (holders === undefined) continue
      const key = `${holders[0].ref} ${wait.call?.key}`
      const group = groups.get(key)
      if (group === undefined) groups.set(key, { holders, waiting: [[flow, wait]] })
      else group.waiting.push([flow, wait])
    }
  }
  return [...groups.values()].filter(({ waiting }) => waiting.length >= MIN_CONVOY && isQueue(waiting))
    .map(({ holders, waiting }) => convoyOf(flows, holders, waiting))
    .filter((convoy) => Math.min(convoy.oldestMs, convoy.for.heldMs) >= MIN_MS)
    .sort((a, b) => b.count - a.count).slice(0, MAX_CONVOYS)
}

/**
 * Returns who is at the head of what a request waits in, if that is known: requests of one name.
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
 * Whether each waits for the one before it, or in a lock: many that await one promise share what it brings.
 * @param {Array<[Flow, FlowWait]>} waiting
 */
function isQueue (waiting) {
  return waiting.some(([, { maker }]) => maker === undefined || waiting.some(([flow]) => flow === maker))
}

/**
 * @param {Flows} flows
 * @param {Flow[]} holders
 * @param {Array<[Flow, FlowWait]>} waiting
 * @returns {Convoy}
 */
function convoyOf (flows, holders, waiting) {
  /** @type {Map<string, number>} */
  const names = new Map()
  for (const [{ name }] of waiting) names.set(name, (names.get(name) ?? 0) + 1)
  const [head] = holders
  const [own] = head.waits
  const oldest = waiting.reduce((a, b) => a[1].ageMs >= b[1].ageMs ? a : b)[1]
  const held = oldest.maker === undefined ? oldest.call : undefined
  return {
    ...weakest(flows, waiting.map(([, wait]) => wait)),
    ...placeOf(oldest),
    count: waiting.length,
    requests: [...names].map(([request, count]) => ({ request, count })).sort((a, b) => b.count - a.count),
    oldestMs: oldest.ageMs,
    for: {
      request: head.name,
      count: holders.length,
      took: tookOf(head, waiting.map(([flow]) => flow)),
      at: own && placeOf(own).at,
      uses: head.uses,
      heldMs: Math.min(...holders.map((holder) => flows.heldMs(holder, held)))
    }
  }
}

module.exports = { waitGraph }
