'use strict'

// Current waits: promises made by an await or a `then` that have not run yet. In a series of nested waits (an
// await of a function that is itself awaiting), only the innermost is where it hangs. Reads only integers;
// wait-shapes.js determines what settles what.

const { CURRENT_CAUSE, CURRENT_REF, current } = require('../core/current')
const {
  AWAITED, CAUSE, CHAIN, DISTANCE, FLAGS, LIVE, PASSED, REF, SETTLED, SHIFT, TIME, TRIGGER,
  allOlder, findRecord, promises, readWord, resources, usedOlder
} = require('../core/records')
const { getOrAdd, newList, newMap } = require('../group-by')
const { ELEMENT, JOB, NONE, NO_CLASS, PLAIN, WaitShapes } = require('./wait-shapes')

const WORDS = 1 << SHIFT
const MAX_SHAPES = 5000 // chains with cached shapes between queries
const CHUNK = 2048 // waits per piece of work
const ROUNDS = 16 // nesting of Promise.all

// States of a wait.
const INNERMOST = 0
const OUTER_WAIT = 1 // its promise is settled by another wait
const OVER = 2 // its promise is settled, or the wait is not the program's
const COMBINED = 3 // it waits for Promise.all and the like, or for a promise that follows another

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

/** Waits at one moment. */
class Waits {
  waiting = new RecordCopies()
  /** state of each wait @type {Uint8Array} */
  states = new Uint8Array(0)
  #unsettled = new RecordCopies()
  /** classes that a wait settles @type {Set<number>} */
  #settledClasses = new Set()
  /** classes of Promise.all and the like @type {Set<number>} */
  #combinedClasses = new Set()
  /** functions' promises that follow another one, so that the function waits for it @type {Set<number>} */
  #following = new Set()
  /** other promises that follow another one @type {Set<number>} */
  #transparent = new Set()
  /** entry position of the innermost function, by class @type {Map<number, number>} */
  #entries = new Map()
  /** references of Promise.all and the like, by class and step @type {Map<number, Map<number, number[]>>} */
  #combined = new Map()
  #shapes

  constructor () {
    if (shapes.size > MAX_SHAPES) shapes = new WaitShapes()
    this.#shapes = shapes
    this.#copy(promises, promises.length)
    this.#copy(resources, resources.length)
    this.#copy(allOlder(), usedOlder())
  }

  /** Copies the records of promises that have not run. @param {Int32Array} words @param {number} end */
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
   * Determines the innermost waits. Yields between chunks; the waits remain those of one moment.
   * @returns {Generator<void, void, void>}
   */
  * judge () {
    yield * this.#noteUnsettled()
    yield * this.#noteSettlers()
    const { waiting } = this
    this.states = new Uint8Array(waiting.length)
    /** waits for Promise.all and the like, with its reference @type {Map<number, number>} */
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
      if (kind !== PLAIN) continue // most resources are not promises
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

  /** Returns the class that a wait settles. @param {number} i */
  #settles (i) {
    const { chains, causes, flags } = this.waiting
    const { settles } = this.#shapes.of(chains[i])
    // In a loop, the chain is that of an earlier step
    if (settles === NO_CLASS || ((flags[i] >> DISTANCE) & 15) === 0) return settles
    const parent = readWord(causes[i], CHAIN)
    return parent === 0 ? settles : this.#shapes.settlesIn(chains[i], parent)
  }

  /**
   * Whether a promise that follows another one is not a function's own promise, as with resolve(promise). It
   * is then not the place that hangs.
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
    if (refs[i] === current[CURRENT_REF] || refs[i] === current[CURRENT_CAUSE]) return OVER // runs now
    if (trigger === 0) return INNERMOST
    if (this.#following.has(trigger)) return OUTER_WAIT
    if (this.#transparent.has(trigger)) return COMBINED
    const record = findRecord(trigger)
    if (record === undefined) return INNERMOST
    const flags = record.words[record.offset + FLAGS]
    if ((flags & SETTLED) !== 0) return OVER
    if ((flags & LIVE) === 0) return INNERMOST // it follows an object that is not a promise
    const { kind, settledBy, position } = this.#shapes.of(record.words[record.offset + CHAIN])
    if ((flags & AWAITED) !== 0) return kind === NONE ? INNERMOST : OUTER_WAIT
    if (kind !== PLAIN || settledBy === NO_CLASS) return INNERMOST
    if (this.#combinedClasses.has(settledBy)) return COMBINED
    // A promise that Node made in a function is positioned after the function's own promise
    if (position >= 0 && position !== this.#entries.get(settledBy)) return INNERMOST
    return this.#settledClasses.has(settledBy) ? OUTER_WAIT : INNERMOST
  }

  /**
   * Determines where Promise.all and the like hang: at their elements, else at their await. The same goes for
   * promises that follow another one.
   * @param {Map<number, number>} waits waits for combinations, with the reference of each
   */
  #judgeCombined (waits) {
    const { waiting, states } = this
    /** elements with the reference of their combination, 0 if settled @type {Map<number, number>} */
    const elements = new Map()
    /** combinations that have elements @type {Set<number>} */
    const withElements = new Set()
    /** combinations with an innermost element @type {Set<number>} */
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
   * Returns the promise of Promise.all or the like that an element belongs to: the last one made before it.
   * @param {number} i
   * @param {number} settles its class
   * @returns {number} reference, 0 if settled
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
 * Whether a record is older than another, by their references. References of promises numbered by longstack
 * are below 2 ** 31; those of resources are ids that grow past it and become negative.
 * @param {number} ref
 * @param {number} other of the same ring
 */
const isBefore = (ref, other) => (ref - other) << (ref & 1) < 0

module.exports = { INNERMOST, OVER, Waits }
