'use strict'

// Which promises are waited for now. A promise that an await or a `then` made, and that has not run, waits.
// Of waits one behind another (an await of a function that awaits itself) only the innermost is where it
// hangs. Reads integers alone; wait-shapes.js says what settles what.

const { CURRENT_CAUSE, CURRENT_REF, current } = require('../core/current')
const {
  AWAITED, CAUSE, CHAIN, DISTANCE, FLAGS, LIVE, PASSED, REF, SETTLED, SHIFT, TIME, TRIGGER,
  allOlder, findRecord, promises, readWord, resources, usedOlder
} = require('../core/records')
const { getOrAdd, newList, newMap } = require('../group-by')
const { ELEMENT, JOB, NONE, NO_CLASS, PLAIN, WaitShapes } = require('./wait-shapes')

const WORDS = 1 << SHIFT
const MAX_SHAPES = 5000 // chains whose shapes are remembered from one query to the next
const CHUNK = 2048 // waits that are looked at, at once
const ROUNDS = 16 // of Promise.all within Promise.all

// What a wait is.
const INNERMOST = 0
const OUTER_WAIT = 1 // what it waits for is settled by another wait
const OVER = 2 // what it waits for is settled, or the program does not need it
const COMBINED = 3 // it waits for Promise.all or the like, or a promise that follows another one

const columns = /** @type {const} */ (['refs', 'chains', 'triggers', 'causes', 'times', 'flags'])

/** Records as columns of integers. */
class RecordCopies {
  length = 0
  refs = new Int32Array(256)
  chains = new Int32Array(256)
  triggers = new Int32Array(256)
  causes = new Int32Array(256)
  times = new Int32Array(256)
  flags = new Int32Array(256)

  /** @param {Int32Array} words @param {number} offset of a record */
  add (words, offset) {
    if (this.length === this.refs.length) this.#grow()
    const i = this.length++
    this.refs[i] = words[offset + REF]
    this.chains[i] = words[offset + CHAIN]
    this.triggers[i] = words[offset + TRIGGER]
    this.causes[i] = words[offset + CAUSE]
    this.times[i] = words[offset + TIME]
    this.flags[i] = words[offset + FLAGS]
  }

  #grow () {
    for (const name of columns) {
      const larger = new Int32Array(2 * this.length)
      larger.set(this[name])
      this[name] = larger
    }
  }
}

let shapes = new WaitShapes()

/** The waits of one moment. */
class Waits {
  waiting = new RecordCopies()
  /** what each of them is @type {Uint8Array} */
  states = new Uint8Array(0)
  #unsettled = new RecordCopies()
  /** classes that a wait settles @type {Set<number>} */
  #settledClasses = new Set()
  /** classes of Promise.all and the like @type {Set<number>} */
  #combinedClasses = new Set()
  /** functions' promises that follow another one, which is the wait of the function @type {Set<number>} */
  #following = new Set()
  /** other promises that do @type {Set<number>} */
  #transparent = new Set()
  /** by class: where the innermost function of its promises begins @type {Map<number, number>} */
  #entries = new Map()
  /** of Promise.all and the like, by class and step: references @type {Map<number, Map<number, number[]>>} */
  #combined = new Map()
  #shapes

  constructor () {
    if (shapes.size > MAX_SHAPES) shapes = new WaitShapes()
    this.#shapes = shapes
    this.#copy(promises, promises.length)
    this.#copy(resources, resources.length)
    this.#copy(allOlder(), usedOlder())
  }

  /** Copies the records of what has not run. @param {Int32Array} words @param {number} end */
  #copy (words, end) {
    const { waiting } = this
    for (let offset = 0; offset < end; offset += WORDS) {
      const flags = words[offset + FLAGS]
      if ((flags & (LIVE | PASSED)) !== LIVE) continue
      if ((flags & AWAITED) !== 0) waiting.add(words, offset)
      else this.#unsettled.add(words, offset)
    }
  }

  /**
   * Decides which are innermost. Yields between chunks; the waits stay those of one moment.
   * @returns {Generator<void, void, void>}
   */
  * judge () {
    yield * this.#noteUnsettled()
    yield * this.#noteSettlers()
    const { waiting } = this
    this.states = new Uint8Array(waiting.length)
    /** waits for Promise.all and the like, with what each waits for @type {Map<number, number>} */
    const combined = new Map()
    for (let i = 0; i < waiting.length; i++) {
      if (i % CHUNK === CHUNK - 1) yield
      const state = this.states[i] = this.#stateOf(i)
      if (state === COMBINED) combined.set(i, waiting.triggers[i])
    }
    this.#judgeCombined(combined)
  }

  * #noteUnsettled () {
    const { length, chains, causes, refs } = this.#unsettled
    for (let i = 0; i < length; i++) {
      if (i % CHUNK === CHUNK - 1) yield
      const { kind, settledBy, position } = this.#shapes.of(chains[i])
      if (kind !== PLAIN) continue // of resources, most are no promises
      if (position >= 0) {
        const entry = this.#entries.get(settledBy)
        if (entry === undefined || position < entry) this.#entries.set(settledBy, position)
        continue
      }
      getOrAdd(getOrAdd(this.#combined, settledBy, newMap), causes[i], newList).push(refs[i])
    }
  }

  * #noteSettlers () {
    const { length, chains, causes } = this.waiting
    for (let i = 0; i < length; i++) {
      if (i % CHUNK === CHUNK - 1) yield
      const { kind } = this.#shapes.of(chains[i])
      if (kind === JOB) (this.#isTransparent(i) ? this.#transparent : this.#following).add(causes[i])
      else if (kind === ELEMENT) this.#combinedClasses.add(this.#settles(i))
      else this.#settledClasses.add(this.#settles(i))
    }
  }

  /** Returns the class of what a wait settles. @param {number} i */
  #settles (i) {
    const { chains, causes, flags } = this.waiting
    const { settles } = this.#shapes.of(chains[i])
    // In a loop a chain is that of an earlier step
    if (settles === NO_CLASS || ((flags[i] >> DISTANCE) & 15) === 0) return settles
    const parent = readWord(causes[i], CHAIN)
    return parent === 0 ? settles : this.#shapes.settlesIn(chains[i], parent)
  }

  /**
   * Whether a promise that follows another one is none of a function's own, as of resolve(promise): it is not
   * where it hangs.
   * @param {number} i a wait
   */
  #isTransparent (i) {
    const { kind, settledBy, position } = this.#shapes.of(this.#shapes.of(this.waiting.chains[i]).follower)
    return kind === PLAIN && (position < 0 || position > (this.#entries.get(settledBy) ?? position))
  }

  /** @param {number} i @returns {number} */
  #stateOf (i) {
    const { chains, triggers, refs } = this.waiting
    const trigger = triggers[i]
    if (this.#shapes.of(chains[i]).kind === NONE) return OVER
    if (refs[i] === current[CURRENT_REF] || refs[i] === current[CURRENT_CAUSE]) return OVER // it runs now
    if (trigger === 0) return INNERMOST
    if (this.#following.has(trigger)) return OUTER_WAIT
    if (this.#transparent.has(trigger)) return COMBINED
    const record = findRecord(trigger)
    if (record === undefined) return INNERMOST
    const flags = record.words[record.offset + FLAGS]
    if ((flags & SETTLED) !== 0) return OVER
    if ((flags & LIVE) === 0) return INNERMOST // it follows something that is no promise
    const { kind, settledBy, position } = this.#shapes.of(record.words[record.offset + CHAIN])
    if ((flags & AWAITED) !== 0) return kind === NONE ? INNERMOST : OUTER_WAIT
    if (kind !== PLAIN || settledBy === NO_CLASS) return INNERMOST
    if (this.#combinedClasses.has(settledBy)) return COMBINED
    // A promise that Node made in a function, and not the function's own, begins further down
    if (position >= 0 && position !== this.#entries.get(settledBy)) return INNERMOST
    return this.#settledClasses.has(settledBy) ? OUTER_WAIT : INNERMOST
  }

  /**
   * Decides where Promise.all and the like hang: where their elements do, else where they are awaited. So do
   * promises that follow another one.
   * @param {Map<number, number>} waits for a combination, with its reference
   */
  #judgeCombined (waits) {
    const { waiting, states } = this
    /** elements, with the reference of their combination; 0: that is settled @type {Map<number, number>} */
    const elements = new Map()
    /** combinations that have elements @type {Set<number>} */
    const withElements = new Set()
    /** those of which an element is innermost @type {Set<number>} */
    const hanging = new Set()
    for (let i = 0; i < waiting.length; i++) {
      const { kind, settles } = this.#shapes.of(waiting.chains[i])
      if (kind !== ELEMENT && (kind !== JOB || !this.#isTransparent(i))) continue
      const combination = kind === JOB ? waiting.causes[i] : this.#combinationOf(i, settles)
      elements.set(i, combination)
      withElements.add(combination)
      if (states[i] === INNERMOST) hanging.add(combination)
    }
    for (const [i, trigger] of waits) if (!withElements.has(trigger)) states[i] = INNERMOST
    for (let round = 0, size = -1; round < ROUNDS && size !== hanging.size; round++) {
      size = hanging.size
      for (const [i, trigger] of waits) {
        if (!withElements.has(trigger) || hanging.has(trigger)) hanging.add(elements.get(i) ?? 0)
      }
    }
    const awaited = new Set(waits.values())
    for (const [i, trigger] of waits) {
      if (withElements.has(trigger)) states[i] = hanging.has(trigger) ? INNERMOST : OUTER_WAIT
    }
    for (const [i, combination] of elements) {
      if (combination === 0) states[i] = OVER
      else if (states[i] === INNERMOST && awaited.has(combination)) states[i] = OUTER_WAIT
    }
  }

  /**
   * Returns the promise of Promise.all or the like that an element belongs to: the last one before it.
   * @param {number} i
   * @param {number} settles its class
   * @returns {number} reference, 0: it is settled
   */
  #combinationOf (i, settles) {
    const { causes, refs } = this.waiting
    let last = 0
    for (const ref of this.#combined.get(settles)?.get(causes[i]) ?? []) {
      if (isBefore(ref, refs[i]) && (last === 0 || isBefore(last, ref))) last = ref
    }
    return last
  }
}

/**
 * Whether a record is older than another, by their references: those of promises with a number of longstack's
 * own are below 2 ** 31, those of resources, ids that grow past it, become negative.
 * @param {number} ref
 * @param {number} other of the same ring
 */
const isBefore = (ref, other) => (ref - other) << (ref & 1) < 0

module.exports = { INNERMOST, OVER, Waits }
