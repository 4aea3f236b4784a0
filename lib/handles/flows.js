'use strict'

// Current activity of each request: its waits, the resources it took and has not returned as far as is known,
// and whether anything else is pending for it.

const { now } = require('../core/clock')
const { connectionTypes, kindAt } = require('../core/kinds')
const {
  ANSWERED, AWAITED, CAUSE, CHAIN, DETAIL, FLAGS, LIVE, ONE_SHOT, OWN_WORK_CHAIN, PASSED, REF, SETTLED, SHIFT,
  SIZE, TRIGGER, findRecord, isAsk, isRequest, promises, readWord, resources
} = require('../core/records')
const registry = require('../core/registry')
const { requestOf } = require('../core/request-of')
const { nameOf } = require('../core/served-requests')
const { source } = require('../core/source')
const { getOrAdd, newMap } = require('../group-by')
const { isProgram } = require('../stacks/frames')
const { isTraced, walk } = require('./list')
const { visitWaits } = require('./pending')
const { servedWithUses } = require('./requests-in-flight')
const { heldSince, passedCalls, readCall, seenCallers } = require('./taking-calls')

const CHUNK = 2048 // records per piece of work
const MAX_STEPS = 4096 // from a step up to its request

/**
 * @typedef {import('./taking-calls').Call} Call
 * @typedef {'promise' | 'settled' | 'name'} KnownBy
 *
 * @typedef {object} Known
 * @property {KnownBy} by weakest evidence
 * @property {number} seen past waits that were ended by requests that had taken before; 0 unless `settled`
 *
 * @typedef {object} Endings waits for a function's resource, counted by the request that ended them
 * @property {number} byTakers ended by requests that had taken from it before
 * @property {number} byOthers ended by other or unknown requests
 *
 * @typedef {{ holders: Flow[], others: Flow[] }} Around holders of a function's resource, and others waiting
 *
 * @typedef {object} FlowWait
 * @property {number} ref
 * @property {number} chain
 * @property {number} ageMs
 * @property {Call | undefined} call in which it waits
 * @property {Flow | undefined} maker request that made the awaited promise, if another one
 * @property {Call | undefined} madeBy call by which the maker made it
 */

/** Current activity of one request. */
class Flow {
  /** @type {FlowWait[]} */
  waits = []
  /** a server has not answered it yet */
  isInFlight = false
  /** something other than a lock is pending for it */
  isBusy = false
  /** @type {string | undefined} */
  uses
  /** by call key: places where it took what it must return @type {Map<string, Map<string, string>>} */
  taken = new Map()

  /** @param {number} ref of the request, 0: work of no request */
  constructor (ref) {
    this.ref = ref
    this.name = nameOf(ref) ?? 'request'
  }

  /** @param {string} key @returns {string[]} frames where it took */
  holds (key) {
    return [...this.taken.get(key)?.values() ?? []]
  }

  /** @param {string} key */
  waitsIn (key) {
    return this.waits.some(({ call }) => call?.key === key)
  }
}

/**
 * Resources taken by requests: which functions gave them, and which requests ended the waits for them. Read
 * from the remaining records of settled promises, which cover the program's last 32,768 ones.
 */
class Taken {
  /** places by request and call key @type {Map<number, Map<string, Map<string, Call>>>} */
  #places = new Map()
  /** by call key @type {Map<string, Endings>} */
  endings = new Map()

  /** @param {number} request @param {Call} call */
  #note (request, call) {
    getOrAdd(getOrAdd(this.#places, request, newMap), call.key, newMap).set(call.path, call)
  }

  /**
   * Reads the records of promises that functions returned. Yields between pieces of work.
   * @param {Flows} flows
   * @param {Set<string>} keys call keys
   * @returns {Generator<void, void, void>}
   */
  * read (flows, keys) {
    /** key, and the request that ended a wait @type {Array<[string, number]>} */
    const enders = []
    for (const ring of [promises, resources]) {
      for (let slot = 0; slot < SIZE; slot++) {
        if (slot % CHUNK === CHUNK - 1) yield
        const offset = slot << SHIFT
        if ((ring[offset + FLAGS] & (SETTLED | AWAITED)) !== SETTLED) continue
        const call = flows.callOf(ring[offset + CHAIN])
        if (call?.name === undefined || !keys.has(call.key)) continue
        const request = requestOf(ring[offset + REF], flows.lookup)
        this.#note(request, call)
        const settler = ring[offset + DETAIL]
        if (!call.isPlain || settler === ring[offset + CAUSE]) continue // given at once
        const ender = this.#requestOfSettler(settler)
        if (ender !== request || ender === 0) enders.push([call.key, ender])
      }
    }
    for (const [key, ender] of enders) {
      const endings = getOrAdd(this.endings, key, () => ({ byTakers: 0, byOthers: 0 }))
      if (ender !== 0 && this.places(ender, key).size > 0) endings.byTakers++
      else endings.byOthers++
    }
  }

  /**
   * Returns the places where a request took something from a function.
   * @param {number} request 0: work of no request
   * @param {string} key of the function
   * @returns {Map<string, Call>}
   */
  places (request, key) {
    return this.#places.get(request)?.get(key) ?? new Map()
  }

  /**
   * Returns the request that settled a promise. Work caused by a connection's callback leads to the opener of
   * the connection, so its request is unknown unless the query is known.
   * @param {number} settler reference
   * @returns {number} 0 if unknown
   */
  #requestOfSettler (settler) {
    for (let step = settler, i = 0; step !== 0 && i < MAX_STEPS; i++) {
      if (isRequest(step)) return step
      const record = findRecord(step)
      if (record === undefined) return 0
      const { words, offset } = record
      const kind = kindAt(source.chainAt(words[offset + CHAIN])?.kind ?? 0)
      if (!isAsk(step) && kind !== undefined && connectionTypes.has(kind.type)) return 0
      step = words[offset + CAUSE]
    }
    return 0
  }
}

/** Current activity, by request. */
class Flows {
  /** by reference of the request @type {Map<number, Flow>} */
  byRef = new Map()
  lookup = new Map()
  time = now()
  taken = new Taken()
  /** by chain of the promise @type {Map<number, Call | undefined>} */
  #calls = new Map()
  /** by call key @type {Map<string, Around>} */
  #around = new Map()
  /** frames that call a function, by its key @type {Map<string, Set<string>>} */
  #callers = new Map()
  /** program files that have a timer, which may end waits @type {Set<string>} */
  timedFiles = new Set()

  /** @param {number} ref @returns {Flow} */
  of (ref) {
    return getOrAdd(this.byRef, ref, () => new Flow(ref))
  }

  /** @param {number} chain of a promise @returns {Call | undefined} undefined: Node's, or unknown */
  callOf (chain) {
    return getOrAdd(this.#calls, chain, readCall)
  }

  /** Reads the waits. @returns {Generator<void, void, void>} */
  * readWaits () {
    yield * visitWaits(this.time, (chain, ref, ageMs, isInnermost) => {
      const request = requestOf(ref, this.lookup)
      const awaited = readWord(ref, TRIGGER)
      const maker = requestOf(awaited, this.lookup)
      const isOfAnother = maker !== request && maker !== 0 && request !== 0
      if (!isInnermost && !isOfAnother) return
      const madeBy = this.callOf(readWord(awaited, CHAIN))
      this.of(request).waits.push(isOfAnother
        ? { ref, chain, ageMs, call: this.callOf(chain) ?? madeBy, maker: this.of(maker), madeBy }
        : { ref, chain, ageMs, call: madeBy?.name && madeBy, maker: undefined, madeBy: undefined })
    })
  }

  /** Whether a request has waited at least this long for another one. @param {number} minMs */
  hasWaits (minMs) {
    for (const { ref, waits } of this.byRef.values()) {
      if (ref !== 0 && waits.some((wait) => wait.ageMs >= minMs && isForOthers(wait))) return true
    }
    return false
  }

  /** Reads all other pending work. @returns {Generator<void, void, void>} */
  * readOthers () {
    const { requests, uses } = yield * servedWithUses(this.lookup, this.time)
    for (const { ref } of requests) if (ref !== 0) this.of(ref).isInFlight = true
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

  /** @param {import('../core/context').Context} context of an open resource */
  #noteOpen (context) {
    this.#noteBusy(context.ref)
    if (context.type !== 'Timeout') return
    const maker = context.stack?.frames.find(isProgram)
    this.timedFiles.add(String(maker?.fileName))
  }

  /** @param {number} ref of pending work */
  #noteBusy (ref) {
    const request = requestOf(ref, this.lookup)
    if (request !== 0) this.of(request).isBusy = true
  }

  /** Reads which resources requests have taken. @returns {Generator<void, void, void>} */
  * readTaken () {
    const keys = new Set()
    for (const { call, maker } of [...this.byRef.values()].flatMap(({ waits }) => waits)) {
      if (call !== undefined && maker === undefined) keys.add(call.key)
    }
    yield * this.taken.read(this, keys)
    const callers = this.#callers = yield * seenCallers()
    for (const flow of this.byRef.values()) {
      yield
      for (const key of keys) this.#noteTaken(flow, key, callers.get(key) ?? new Set())
    }
    for (const key of keys) this.#around.set(key, this.#listAround(key))
  }

  /** @param {Flow} flow @param {string} key @param {Set<string>} callers frames that call it */
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
    // Of nested calls, the request waits in the inner one
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

  /** Returns requests that wait in a function or hold its resource. @param {string} key @returns {Around} */
  around (key) {
    return this.#around.get(key) ?? { holders: [], others: [] }
  }

  /**
   * Returns how long, at least, a request has held what others wait for.
   * @param {Flow} flow
   * @param {Call | undefined} call undefined: others await its promise
   */
  heldMs ({ waits }, call) {
    const held = waits.map(({ ref, ageMs }) => {
      const since = call && heldSince(ref, call.key, this.#callers.get(call.key) ?? new Set())
      return since === undefined ? ageMs : this.time - since
    })
    return Math.max(0, ...held)
  }

  /** @param {Call} call @returns {Known | undefined} undefined: no lock; others (may) end such waits */
  known ({ key, file }) {
    const { byTakers = 0, byOthers = 0 } = this.taken.endings.get(key) ?? {}
    if (byOthers > 0 || (byTakers === 0 && this.timedFiles.has(file))) return undefined
    return { by: byTakers > 0 ? 'settled' : 'name', seen: byTakers }
  }
}

/** @param {FlowWait} wait */
const isForOthers = ({ call, maker }) => call !== undefined || maker !== undefined

/**
 * Whether a client connection may end a wait: the last query on it, if any, has no response yet. A pending
 * query counts as a use by its request.
 * @param {import('../core/entry').Entry} entry
 */
function isUnanswered ({ isClient, lastAsk }) {
  return isClient && (readWord(lastAsk, FLAGS) & ANSWERED) === 0
}

/** Whether open resources of a type, except connections, may end a wait. @param {string} type */
function isOther (type) {
  return isTraced(type) && !connectionTypes.has(type) && !type.endsWith('SERVERWRAP') &&
    type !== 'HTTP2STREAM'
}

module.exports = { Flow, Flows, isForOthers }
