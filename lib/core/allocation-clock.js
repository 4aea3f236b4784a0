'use strict'

// The allocation clock: finds the callback in which an object was made. V8 keeps the frames of an error but
// no time; the address of a young object serves as a time, see native/allocation-clock.cc. A marker is a
// small object made when a callback begins and when it ends, stored with the step that runs from there on.
// The step of the first of two markers made any error between them.
//
// Objects older than the last collection cannot be located. `check` detects a heap that does not allocate
// upwards, at once and after the first collections, and then disables the clock for good.

/**
 * @typedef {object} MarkerBinding native/allocation-clock.cc
 * @property {(counters: Uint32Array) => void} start
 * @property {() => void} stop
 * @property {(marker: number) => void} mark
 * @property {(object: object) => number} locate markers since the object was made; negative if unknown
 * @property {() => void} forget
 *
 * @typedef {object} AllocationStep the step in which an object was made
 * @property {number} chain 0 if no step ran, or if it is unknown
 * @property {number} ref of the record of that step
 * @property {number} span number of its span
 * @property {AllocationStep | undefined} next the step that ran next, if it has begun
 */

const SIZE = 1024 // markers to keep, as in native/allocation-clock.cc
const MASK = SIZE - 1
const WORDS = 2 // shift: chain, ref, span
const NUMBERS = 0x3fffffff // markers are counted in a small integer
const [COLLECTIONS, UNMOVED, COLLECTED_US] = [0, 1, 2] // words of the counters
const DISORDERED = -2
const CHECKS = 4 // heap checks, each after another collection
const PROBES = 16 // objects per check
const GARBAGE = 24 // words between two of them

const steps = new Int32Array(SIZE << WORDS)
/**
 * Shared with native/allocation-clock.cc: number of collections; not 0 if one left objects in place; their
 * duration in µs, modulo 2^32.
 */
const counters = new Uint32Array(3)
/** @type {MarkerBinding | undefined} */
let binding
/** the addon's function @type {MarkerBinding['mark']} */
let makeMarker = () => {}
/** @type {import('../reasons').ClockCode} */
let code = 'NO_NATIVE_ENGINE'
let marked = 0
let checks = 0
let checkedCollections = 0 // number of collections at the last check

/** @param {import('../reasons').ClockCode} reason */
function disable (reason) {
  binding?.stop()
  binding = undefined
  clock.isOn = false
  code = reason
}

/** Checks that addresses are in allocation order; checks again later if a collection intervenes. */
function check () {
  if (binding === undefined || checks === CHECKS) return
  if (checks > 0 && checkedCollections === counters[COLLECTIONS]) return
  checkedCollections = counters[COLLECTIONS]
  const isUpwards = probe(binding)
  binding.forget() // the probe's markers belong to no callback
  if (counters[UNMOVED] !== 0) disable('NOT_MOVING')
  else if (checkedCollections !== counters[COLLECTIONS]) checkedCollections = -1
  else if (!isUpwards) disable('NOT_UPWARDS')
  else checks++
}

const clock = {
  /** markers are made @type {boolean} */
  isOn: false,

  /**
   * Marks that a step runs from here on. The hot path: bench/run.js, awaits and real.
   * @param {number} chain
   * @param {number} ref
   * @param {number} span
   */
  mark (chain, ref, span) {
    makeMarker(marked + 0.5) // a fraction is V8's smallest object, 16 bytes
    const index = (marked & MASK) << WORDS
    steps[index] = chain
    steps[index + 1] = ref
    steps[index + 2] = span
    marked = (marked + 1) & NUMBERS
  },

  /** @param {MarkerBinding | undefined} markers the addon's, if the native engine is in use */
  useBinding (markers) {
    if (markers === binding) return
    disable('NO_NATIVE_ENGINE')
    if (markers === undefined) return
    binding = markers
    makeMarker = markers.mark
    checks = 0
    counters[UNMOVED] = 0
    binding.start(counters)
    clock.isOn = true
    code = 'SELF_TEST_PASSED'
    check()
  },

  /** Begins an iteration of the event loop: checks again if there was a collection. */
  startIteration () {
    if (checks < CHECKS) check()
  },

  /** Returns the duration of all collections so far, in µs modulo 2^32; undefined if unknown. */
  collectedUs: () => binding && counters[COLLECTED_US],

  /** Invalidates all markers so far: the running step is unknown. */
  forget: () => binding?.forget(),

  /**
   * Returns the step in which an object was made.
   * @param {object} object
   * @returns {AllocationStep | undefined} undefined: unknown
   */
  locate (object) {
    if (binding === undefined) return undefined
    const back = binding.locate(object)
    if (back === DISORDERED || counters[UNMOVED] !== 0) disable('NOT_UPWARDS')
    if (back < 0 || binding === undefined) return undefined
    const step = stepAt(back)
    if (back > 0) step.next = stepAt(back - 1)
    return step
  },

  /** Returns the reason why it is on or off. */
  code: () => code
}

/** @param {number} back number of markers ago @returns {AllocationStep} */
function stepAt (back) {
  const index = ((marked - 1 - back) & MASK) << WORDS
  return { chain: steps[index], ref: steps[index + 1], span: steps[index + 2], next: undefined }
}

/**
 * Makes markers and objects alternately and locates each object: most must be found, and none in the wrong
 * step.
 * @param {MarkerBinding} binding
 */
function probe ({ mark, locate }) {
  const objects = []
  for (let i = 0; i < PROBES; i++) {
    mark(i + 0.5)
    objects.push({ i }, Array(GARBAGE).fill(i))
  }
  let located = 0
  for (let i = 0; i < PROBES; i++) {
    const back = locate(objects[2 * i])
    if (back === PROBES - 1 - i) located++
    else if (back !== -1) return false
  }
  return located >= PROBES / 2
}

module.exports = clock
