'use strict'

// The allocation clock: in which run was an object made? V8 notes frames and no time when an error is made, but a young
// object's address is a time, see native/allocation-clock.cc. A marker is a small object made where a run begins and where it ends;
// with it is noted the step that runs from there on. An error between two markers was made by the step of the first.
//
// Nothing is known of what is older than the last collection. A heap that does not allocate upwards is found out by `check`,
// at once and after the first collections, and the clock is off for good.

/**
 * @typedef {object} Doors native/allocation-clock.cc
 * @property {(counters: Uint32Array) => void} start
 * @property {() => void} stop
 * @property {(marker: number) => void} mark
 * @property {(object: object) => number} locate
 * @property {() => void} forget
 *
 * @typedef {object} Made where an object was made
 * @property {number} chain 0: no step ran, or nobody knows which
 * @property {number} ref of the record of that step
 * @property {number} span number of its span
 * @property {Made | undefined} next what ran next, where it has begun
 */

const SIZE = 1024 // markers that are kept, as in native/allocation-clock.cc
const MASK = SIZE - 1
const WORDS = 2 // shift: chain, ref, span
const NUMBERS = 0x3fffffff // markers are counted in a small integer
const COLLECTIONS = 0
const UNMOVED = 1
const DISORDERED = -2
const CHECKS = 4 // looks at the heap, each after another collection
const PROBES = 16 // objects that a look makes
const GARBAGE = 24 // words between two of them

function createAllocationClock () {
  const steps = new Int32Array(SIZE << WORDS)
  /** shared with native/allocation-clock.cc: collections so far; not 0 where one left objects where they were */
  const counters = new Uint32Array(2)
  /** @type {Doors | undefined} */
  let doors
  /** the addon's @type {Doors['mark']} */
  let note = () => {}
  /** @type {import('../reasons').ClockCode} */
  let code = 'NO_NATIVE_ENGINE'
  let marked = 0
  let checks = 0
  let checked = 0 // collections at the last look

  /** @param {import('../reasons').ClockCode} reason */
  function off (reason) {
    doors?.stop()
    doors = undefined
    markers.isOn = false
    code = reason
  }

  /** Is the order of addresses that of making? Where a collection comes meanwhile, there is another look. */
  function check () {
    if (doors === undefined || checks === CHECKS || (checks > 0 && checked === counters[COLLECTIONS])) return
    checked = counters[COLLECTIONS]
    const isUpwards = probe(doors)
    doors.forget() // the probe's are no markers of runs
    if (counters[UNMOVED] !== 0) off('NOT_MOVING')
    else if (checked !== counters[COLLECTIONS]) checked = -1
    else if (!isUpwards) off('NOT_UPWARDS')
    else checks++
  }

  const markers = {
    /** there are markers @type {boolean} */
    isOn: false,

    /**
     * A step runs from here on. The hot path: bench/run.js, awaits and real.
     * @param {number} chain @param {number} ref @param {number} span
     */
    mark (chain, ref, span) {
      note(marked + 0.5) // V8 has an object for a number with a fraction, the smallest that there is: 16 bytes
      const at = (marked & MASK) << WORDS
      steps[at] = chain
      steps[at + 1] = ref
      steps[at + 2] = span
      marked = (marked + 1) & NUMBERS
    },

    /** @param {Doors | undefined} given the addon's, where the native engine is in force */
    useBinding (given) {
      if (given === doors) return
      off('NO_NATIVE_ENGINE')
      if (given === undefined) return
      doors = given
      note = given.mark
      checks = 0
      counters[UNMOVED] = 0
      doors.start(counters)
      markers.isOn = true
      code = 'SELF_TEST_PASSED'
      check()
    },

    /** The event loop came round: another look, where there was a collection. */
    startIteration () {
      if (checks < CHECKS) check()
    },

    /** Markers up to now say nothing: what runs is not known. */
    forget: () => doors?.forget(),

    /**
     * In which run was it made?
     * @param {object} object
     * @returns {Made | undefined} undefined: nobody knows
     */
    locate (object) {
      if (doors === undefined) return undefined
      const back = doors.locate(object)
      if (back === DISORDERED || counters[UNMOVED] !== 0) off('NOT_UPWARDS')
      if (back < 0 || doors === undefined) return undefined
      const made = stepAt(back)
      if (back > 0) made.next = stepAt(back - 1)
      return made
    },

    /** Returns why it is on or off. */
    code: () => code
  }

  /** @param {number} back @returns {Made} */
  function stepAt (back) {
    const at = ((marked - 1 - back) & MASK) << WORDS
    return { chain: steps[at], ref: steps[at + 1], span: steps[at + 2], next: undefined }
  }

  return markers
}

/**
 * Makes markers and objects in turns and asks for each object; most have to be found, and none elsewhere.
 * @param {Doors} doors
 */
function probe ({ mark, locate }) {
  const objects = []
  for (let i = 0; i < PROBES; i++) {
    mark(i + 0.5)
    objects.push({ i }, Array(GARBAGE).fill(i))
  }
  let known = 0
  for (let i = 0; i < PROBES; i++) {
    const back = locate(objects[2 * i])
    if (back === PROBES - 1 - i) known++
    else if (back !== -1) return false
  }
  return known >= PROBES / 2
}

module.exports = { createAllocationClock }
