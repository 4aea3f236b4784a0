'use strict'

// Keeps the slowest requests of a route, with the parts of their critical paths, so that the slowest 1 % are
// there when all were read.

const { CriticalPaths } = require('./critical-paths')

/**
 * @typedef {import('./critical-paths').Part} Part
 * @typedef {{ ms: number, weight: number, traceId: string, parts: Part[] }} Request
 */

const PART = 0.01
const MIN_KEPT = 1000
const SPARE = 1.25 // times 1 %, since the beginning of a run may be slower than its end
const MAX_KEPT = 100_000 // of all routes

/** How many requests all routes keep together. */
class Budget {
  kept = 0
}

class SlowestRequests {
  /** A heap whose first is the fastest. @type {Request[]} */
  #heap = []
  #count = 0
  #weight = 0
  #fastestLoss = -Infinity // ms of the slowest that was discarded
  #budget

  /** @param {Budget} budget */
  constructor (budget) {
    this.#budget = budget
  }

  /**
   * Counts a request, and returns whether it is one of the slowest.
   * @param {number} ms
   * @param {number} weight
   */
  accepts (ms, weight) {
    this.#count++
    this.#weight += weight
    const isAccepted = this.#hasSpace() || ms > this.#heap[0].ms
    if (!isAccepted && ms > this.#fastestLoss) this.#fastestLoss = ms
    return isAccepted
  }

  /** Adds one that was accepted. @param {Request} request */
  add (request) {
    const heap = this.#heap
    if (this.#hasSpace()) {
      this.#budget.kept++
      heap.push(request)
      siftUp(heap)
    } else {
      this.#fastestLoss = Math.max(this.#fastestLoss, heap[0].ms)
      heap[0] = request
      siftDown(heap)
    }
  }

  #hasSpace () {
    const { length } = this.#heap
    if (length === 0) return true
    return length < Math.max(MIN_KEPT, this.#count * PART * SPARE) && this.#budget.kept < MAX_KEPT
  }

  /**
   * Returns the slowest 1 %, at least one.
   * @returns {{ paths: CriticalPaths, weight: number, isExact: boolean }}
   */
  list () {
    const sorted = this.#heap.sort((a, b) => b.ms - a.ms)
    const paths = new CriticalPaths()
    let weight = 0
    let threshold = Infinity
    for (const request of sorted) {
      if (weight > 0 && weight + request.weight > this.#weight * PART * (1 + 1e-9)) break
      weight += request.weight
      threshold = request.ms
      paths.add(request.parts, request.weight, request.traceId)
    }
    return { paths, weight, isExact: this.#fastestLoss <= threshold }
  }
}

/** @param {Request[]} heap whose last is in no order yet */
function siftUp (heap) {
  let index = heap.length - 1
  while (index > 0) {
    const parent = (index - 1) >> 1
    if (heap[parent].ms <= heap[index].ms) return
    swap(heap, index, parent)
    index = parent
  }
}

/** @param {Request[]} heap whose first is in no order yet */
function siftDown (heap) {
  let index = 0
  for (;;) {
    let smallest = index
    for (const child of [2 * index + 1, 2 * index + 2]) {
      if (child < heap.length && heap[child].ms < heap[smallest].ms) smallest = child
    }
    if (smallest === index) return
    swap(heap, index, smallest)
    index = smallest
  }
}

/** @param {Request[]} heap @param {number} a @param {number} b */
function swap (heap, a, b) {
  [heap[a], heap[b]] = [heap[b], heap[a]]
}

module.exports = { Budget, SlowestRequests }
