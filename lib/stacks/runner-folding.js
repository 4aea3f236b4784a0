'use strict'

// Folds what a chain has of a test runner: its own hops are one line, and the chain ends where the runner
// called the test. What another test did before is no part of it.

const { findRunner } = require('./test-runners')

/**
 * @typedef {import('./chain').PrintedHop} PrintedHop
 * @typedef {import('./frames').Frame} Frame
 * @typedef {NonNullable<ReturnType<typeof findRunner>>} RunnerFrames
 */

/** Collects the hops of one chain, newest first. */
class RunnerFolding {
  /** @type {PrintedHop[]} */
  hops = []
  /** no more hops are needed */
  isOver = false
  #depth
  /** hops of the runner since the last hop of the program */
  #pending = 0
  #runnerName = ''
  /** among these, some with which the runner goes from test to test */
  #isBetweenTests = false
  /** how many hops there were when it did: what follows may be another test's; -1: it did not */
  #ownHops = -1
  /** the hop in which the runner called the test is added */
  #isComplete = false

  /** @param {number} depth hops that a chain may have @param {Frame[]} above printed above the chain */
  constructor (depth, above) {
    this.#depth = depth
    if (above.length > 0 && findRunner(above, true)?.role === 'entry') this.isOver = true
  }

  /** Whether the next hop is needed. */
  get isOpen () {
    if (this.isOver) return false
    return this.hops.length < this.#depth || (this.#ownHops !== -1 && !this.#isComplete)
  }

  /** @param {PrintedHop} hop @param {RunnerFrames | undefined} runner what its frames have of a runner */
  add (hop, runner) {
    if (runner !== undefined && runner.role !== 'entry') {
      this.#pending += hop.repeats
      this.#runnerName = runner.name
      if (runner.role === 'runner') this.#isBetweenTests = true
    } else if (this.#isComplete) {
      this.isOver = true
    } else {
      this.#addOfProgram(hop, runner !== undefined)
    }
  }

  /**
   * Notes a hop that is not printed: of the runner, or one whose frames are printed already.
   * @param {RunnerFrames | undefined} runner what its frames have of a runner
   */
  pass (runner) {
    if (runner?.role === 'runner') this.#isBetweenTests = true
    else if (runner?.role === 'entry' && !this.#isComplete) this.#addOfProgram(undefined, true)
  }

  /** @param {PrintedHop | undefined} hop undefined: it is not printed @param {boolean} isEntry */
  #addOfProgram (hop, isEntry) {
    const wasBetweenTests = this.#isBetweenTests
    this.#appendPending()
    if (wasBetweenTests && this.#ownHops === -1) this.#ownHops = this.hops.length
    if (isEntry && this.#ownHops !== -1) {
      this.hops.length = Math.min(this.#ownHops, this.hops.length)
      this.isOver = true
    } else if (this.hops.length < this.#depth) {
      if (hop !== undefined) this.hops.push(hop)
      this.#isComplete = isEntry
    }
  }

  #appendPending () {
    const count = this.#pending
    this.#isBetweenTests = false
    if (count === 0) return
    this.#pending = 0
    const label = `${count} hop${count === 1 ? '' : 's'} in ${this.#runnerName}`
    this.hops.push({
      asyncId: 0,
      triggerAsyncId: 0,
      type: 'RUNNER',
      label,
      ageMs: NaN,
      repeats: count,
      origin: this.hops.at(-1)?.origin ?? 'registered',
      frames: [],
      lines: [`    ... ${label}`],
      isFolded: true
    })
  }

  /** @returns {PrintedHop[]} none where there are only hops of the runner */
  finish () {
    this.#appendPending()
    return this.hops.every(({ isFolded }) => isFolded) ? [] : this.hops
  }
}

module.exports = { RunnerFolding }
