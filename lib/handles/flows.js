'use strict'

// What goes on for each request, now: what it waits for, what it was given before and has to give back as far
// as is known, and whether anything else is pending for it.

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

const CHUNK = 2048 // records that are looked at, at once
const MAX_STEPS = 4096 // from a step up to its request

/**
 * @typedef {import('./taking-calls').Call} Call
 * @typedef {'promise' | 'settled' | 'name'} KnownBy
 *
 * @typedef {object} Known
 * @property {KnownBy} by the weakest of what it rests on
 * @property {number} seen waits of the past that were ended by such as had taken before; 0 unless `settled`
 *
 * @typedef {object} Endings who ended the waits for what a function gives
 * @property {number} byTakers requests that had it given something before
 * @property {number} byOthers other requests, or who is not known
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

/**
 * What requests have taken: which functions gave them what they asked for, and who ended the waits for it.
 * Read from the records that there still are, of promises that were settled: the program's last 32,768 ones.
 */
class Taken {
  /** by request, and key of the call: the places @type {Map<number, Map<string, Map<string, Call>>>} */
  #places = new Map()
  /** by key of the call @type {Map<string, Endings>} */
  endings = new Map()

  /** @param {number} request @param {Call} call */
  #note (request, call) {
    getOrAdd(getOrAdd(this.#places, request, newMap), call.key, newMap).set(call.path, call)
  }

  /**
   * Reads the records of promises that functions gave. Yields between pieces of work.
   * @param {Flows} flows
   * @param {Set<string>} keys of calls
   * @returns {Generator<void, void, void>}
   */
  * read (flows, keys) {
    /** who ended a wait, by key @type {Array<[string, number]>} */
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
   * Returns where a function gave something to a request.
   * @param {number} request 0: to what is of none
   * @param {string} key of the function
   * @returns {Map<string, Call>}
   */
  places (request, key) {
    return this.#places.get(request)?.get(key) ?? new Map()
  }

  /**
   * Returns the request in which a promise was settled. What a connection's callback causes is of whoever has
   * opened it, unless it is known who has asked.
   * @param {number} settler reference
   * @returns {number} 0: it is not known
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

/** All that goes on, by request. */
class Flows {
  /** by reference of the request @type {Map<number, Flow>} */
  byRef = new Map()
  lookup = new Map()
  time = now()
  taken = new Taken()
  /** by chain of a promise @type {Map<number, Call | undefined>} */
  #calls = new Map()
  /** by key of a call @type {Map<string, Around>} */
  #around = new Map()
  /** frames from which a function is called, by its key @type {Map<string, Set<string>>} */
  #callers = new Map()
  /** files of the program that have a timer: it may give what is waited for @type {Set<string>} */
  timedFiles = new Set()

  /** @param {number} ref @returns {Flow} */
  of (ref) {
    return getOrAdd(this.byRef, ref, () => new Flow(ref))
  }

  /** @param {number} chain of a promise @returns {Call | undefined} undefined: it is Node's, or not known */
  callOf (chain) {
    return getOrAdd(this.#calls, chain, readCall)
  }

  /** Reads what waits. @returns {Generator<void, void, void>} */
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

  /** Whether a request waits for another one for so long. @param {number} minMs */
  hasWaits (minMs) {
    for (const { ref, waits } of this.byRef.values()) {
      if (ref !== 0 && waits.some((wait) => wait.ageMs >= minMs && isForOthers(wait))) return true
    }
    return false
  }

  /** Reads what else is pending. @returns {Generator<void, void, void>} */
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

  /** @param {import('../core/context').Context} context of something that is open */
  #noteOpen (context) {
    this.#noteBusy(context.ref)
    if (context.type !== 'Timeout') return
    const maker = context.stack?.frames.find(isProgram)
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
    yield * this.taken.read(this, keys)
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
  return isTraced(type) && !connectionTypes.has(type) && !type.endsWith('SERVERWRAP') &&
    type !== 'HTTP2STREAM'
}

module.exports = { Flow, Flows, isForOthers }
