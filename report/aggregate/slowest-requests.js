'use strict'

// Keeps the slowest requests of a route, with their critical paths, so that the slowest 1 % are
// there when all were read.

const { CriticalPaths } = require('./critical-paths')
const { PackedPaths } = require('./packed-paths')

/**
 * @typedef {import('./critical-paths').RequestPath} RequestPath
 * @typedef {{ ms: number, weight: number, traceId: string, slot: number }} Request slot: of its path
 */

const PART = 0.01
const MIN_KEPT = 1000
const SPARE = 1.25 // times 1 %, since the beginning of a run may be slower than its end
const MAX_KEPT = 50_000 // of all routes

/** How many requests all routes keep together. */
class Budget {
  kept = 0
}

class SlowestRequests {
  /** A heap whose first is the fastest. @type {Request[]} */
  #heap = []
  #count = 0
  #weight = 0
  #slowestLoss = -Infinity // ms of the slowest that was discarded
  #budget
  #paths

  /** @param {Budget} budget @param {import('./sites').Places} places */
  constructor (budget, places) {
    this.#budget = budget
    this.#paths = new PackedPaths(places)
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
    if (!isAccepted && ms > this.#slowestLoss) this.#slowestLoss = ms
    return isAccepted
  }

  /**
   * Adds one that was accepted.
   * @param {number} ms
   * @param {number} weight
   * @param {string} traceId
   * @param {RequestPath} path
   */
  add (ms, weight, traceId, path) {
    const heap = this.#heap
    const hasSpace = this.#hasSpace()
    const slot = hasSpace ? heap.length : heap[0].slot
    this.#paths.set(slot, path)
    if (hasSpace) {
      this.#budget.kept++
      heap.push({ ms, weight, traceId, slot })
      siftUp(heap)
    } else {
      this.#slowestLoss = Math.max(this.#slowestLoss, heap[0].ms)
      Object.assign(heap[0], { ms, weight, traceId })
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
      paths.add(this.#paths.get(request.slot), request.weight, request.traceId)
    }
    return { paths, weight, isExact: this.#slowestLoss <= threshold }
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
