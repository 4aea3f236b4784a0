'use strict'

// The allocation clock: in which run was an object made? V8 notes frames and no time when an error is made, but a young
// object's address is a time, see native/markers.cc. A marker is a small object made where a run begins and where it ends;
// with it is noted the step that runs from there on. An error between two markers was made by the step of the first.
//
// Nothing is known of what is older than the last collection. A heap that does not allocate upwards is found out by `check`,
// at once and after the first collections, and the clock is off for good.

/**
 * @typedef {object} Doors native/markers.cc
 * @property {(counters: Uint32Array) => void} start
 * @property {() => void} stop
 * @property {(object: object, ring: unknown[], newest: number, count: number) => number} locate
 *
 * @typedef {object} Made where an object was made
 * @property {number} chain 0: no step ran, or nobody knows which
 * @property {number} ref of the record of that step
 * @property {number} span number of its span
 * @property {Made | undefined} next what ran next, where it has begun
 */

const SIZE = 1024 // markers, a power of two
const MASK = SIZE - 1
const NUMBERS = 0x3fffffff // markers are counted in a small integer
const WORDS = 2 // shift: chain, ref, span
const COLLECTIONS = 0
const UNMOVED = 1
const DISORDERED = -2
const CHECKS = 4 // looks at the heap after as many collections
const PROBES = 16 // objects that a look makes
const GARBAGE = 24 // words between two of them

class Marker {}

function createMarkers () {
  /** @type {unknown[]} */
  const ring = Array(SIZE).fill(undefined)
  const steps = new Int32Array(SIZE << WORDS)
  /** shared with native/markers.cc: collections so far; not 0 where one left objects where they were */
  const counters = new Uint32Array(2)
  /** @type {Doors | undefined} */
  let doors
  let why = 'only the native engine has one'
  let marked = 0
  let collections = 0
  let first = 0 // number of the first marker since the last collection
  let checks = 0
  let checked = 0 // collections at the last look

  /** @param {string} because */
  function off (because) {
    doors?.stop()
    doors = undefined
    markers.on = false
    why = because
    ring.fill(undefined)
  }

  /** Markers up to now say nothing: what runs is not known. */
  function forget () {
    first = marked
  }

  /** Is the order of addresses that of making? It takes a collection's moment to spoil a look: then there is another. */
  function check () {
    if (doors === undefined || checks === CHECKS || (checks > 0 && checked === counters[COLLECTIONS])) return
    checked = counters[COLLECTIONS]
    const found = probe(doors)
    if (counters[UNMOVED] !== 0) off('this V8 collects young objects without moving them')
    else if (checked !== counters[COLLECTIONS]) checked = -1
    else if (!found) off('this heap does not allocate upwards')
    else checks++
  }

  const markers = {
    /** there are markers @type {boolean} */
    on: false,

    /**
     * A step runs from here on. The hot path: bench/run.js, awaits and real.
     * @param {number} chain @param {number} ref @param {number} span
     */
    mark (chain, ref, span) {
      const slot = marked & MASK
      ring[slot] = new Marker()
      const at = slot << WORDS
      steps[at] = chain
      steps[at + 1] = ref
      steps[at + 2] = span
      if (counters[COLLECTIONS] !== collections) {
        collections = counters[COLLECTIONS]
        first = marked
      }
      marked = (marked + 1) & NUMBERS
    },

    /** @param {Doors | undefined} given the addon's, where the native engine is in force */
    use (given) {
      if (given === doors) return
      off('only the native engine has one')
      if (given === undefined) return
      doors = given
      checks = 0
      counters[UNMOVED] = 0
      doors.start(counters)
      forget()
      markers.on = true
      why = 'its test of itself passed'
      check()
    },

    /** The event loop came round: another look, where there was a collection. */
    turn () {
      if (checks < CHECKS) check()
    },

    forget,

    /**
     * In which run was it made?
     * @param {object} object
     * @returns {Made | undefined} undefined: nobody knows
     */
    locate (object) {
      if (doors === undefined || counters[COLLECTIONS] !== collections || marked === first) return undefined
      const count = Math.min((marked - first) & NUMBERS, SIZE)
      const back = doors.locate(object, ring, (marked - 1) & MASK, count)
      if (back === DISORDERED || counters[UNMOVED] !== 0) off('this heap does not allocate upwards')
      if (back < 0) return undefined
      const made = stepAt(back)
      if (back > 0) made.next = stepAt(back - 1)
      return made
    },

    /** Why it is on, or off. */
    why: () => why
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
function probe ({ locate }) {
  /** @type {unknown[]} */
  const ring = Array(PROBES).fill(undefined)
  const objects = []
  for (let i = 0; i < PROBES; i++) {
    ring[i] = new Marker()
    objects.push(new Marker(), Array(GARBAGE).fill(i))
  }
  let known = 0
  for (let i = 0; i < PROBES; i++) {
    const back = locate(objects[2 * i], ring, PROBES - 1, PROBES)
    if (back === PROBES - 1 - i) known++
    else if (back !== -1) return false
  }
  return known >= PROBES / 2
}

module.exports = { createMarkers }
