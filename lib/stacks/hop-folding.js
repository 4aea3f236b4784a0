'use strict'

// Collects the hops of one chain, newest first. Neighbours that show nothing of the program are one line and
// count once: those of a test runner, those with frames of packages only, and those that were printed above.
// The first hop is whole, since it says what came, and so is one that names what a package called: an
// address, a file. A chain ends where a runner called the test: what another test did is no part of it.

const { isTelling } = require('./labels')
const { findRunner } = require('./test-runners')

/**
 * @typedef {import('./chain').PrintedHop} PrintedHop
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./test-runners').RunnerFrames} RunnerFrames
 * @typedef {'RUNNER' | 'PACKAGES' | 'ABOVE' | 'MORE'} Reason why hops are folded; the type of the hop that
 *   stands for them. MORE: past the depth, before the request
 */

class HopFolding {
  /** @type {PrintedHop[]} */
  hops = []
  /** no more hops are needed */
  isOver = false
  #depth
  #printed
  /** neighbours that will be one line @type {PrintedHop[]} */
  #pending = []
  /** @type {Reason} */
  #reason = 'RUNNER'
  /** what these are in @type {Set<string>} */
  #names = new Set()
  /** hops past the depth @type {PrintedHop[]} */
  #beyond = []
  /** among those pending, some with which the runner goes from test to test */
  #isBetweenTests = false
  /** how many hops there were when it did: what follows may be another test's; -1: it did not */
  #ownHops = -1
  /** the hop in which the runner called the test is added */
  #isComplete = false
  #hasRequest = false

  /**
   * @param {number} depth hops that a chain may have
   * @param {Frame[]} above printed above the chain
   * @param {PrintedHop[]} printed above the chain as well
   */
  constructor (depth, above, printed) {
    this.#depth = depth
    this.#printed = new Set(unfold(printed).filter(isForPeople).map(keyOf))
    if (above.length > 0 && findRunner(above, true)?.role === 'entry') this.isOver = true
  }

  /** Whether the next hop is needed. */
  get isOpen () {
    if (this.isOver) return false
    return !this.#isFull || (this.#ownHops !== -1 && !this.#isComplete)
  }

  get #isFull () { return this.hops.length >= this.#depth }

  /** Whether the request with which the chain began is still to come, if it has one. */
  get isBeforeRequest () {
    return !this.isOver && this.#ownHops === -1 && !this.#hasRequest
  }

  /** @param {PrintedHop} hop @param {RunnerFrames | undefined} runner what its frames have of a runner */
  add (hop, runner) {
    if (runner !== undefined && runner.role !== 'entry') {
      this.#fold(hop, 'RUNNER', [runner.name])
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
    if (hop?.isRequest === true) this.#hasRequest = true
    const reason = hop === undefined || isEntry ? undefined : this.#reasonToFold(hop)
    if (hop !== undefined && reason !== undefined && !this.#isBetweenTests) {
      return this.#fold(hop, reason, hop.packages ?? [])
    }
    const wasBetweenTests = this.#isBetweenTests
    this.#appendPending()
    if (wasBetweenTests && this.#ownHops === -1) this.#ownHops = this.hops.length
    if (isEntry && this.#ownHops !== -1) {
      this.hops.length = Math.min(this.#ownHops, this.hops.length)
      this.isOver = true
    } else if (!this.#isFull) {
      if (hop !== undefined) this.hops.push(hop)
      this.#isComplete = isEntry
    } else if (hop !== undefined) {
      this.#beyond.push(hop)
    }
  }

  /** @param {PrintedHop} hop of the program or its packages @returns {Reason | undefined} */
  #reasonToFold (hop) {
    const isFirst = this.hops.length + this.#pending.length === 0
    if (isFirst || hop.isRequest === true || this.#isFull) return undefined
    if (this.#printed.has(keyOf(hop))) return 'ABOVE'
    return hop.packages === undefined || isTelling(hop.type) ? undefined : 'PACKAGES'
  }

  /** @param {PrintedHop} hop @param {Reason} reason @param {string[]} names */
  #fold (hop, reason, names) {
    if (this.#pending.length > 0 && this.#reason !== reason) this.#appendPending()
    this.#reason = reason
    this.#pending.push(hop)
    for (const name of names) this.#names.add(name)
  }

  #appendPending () {
    const [members, reason, names] = [this.#pending, this.#reason, [...this.#names]]
    this.#isBetweenTests = false
    this.#pending = []
    this.#names = new Set()
    if (members.length === 0 || this.#isFull) return
    const isWhole = members.length === 1 && reason !== 'RUNNER'
    this.hops.push(isWhole ? members[0] : foldedHop(reason, members, names, this.hops.at(-1)))
  }

  /** @returns {PrintedHop[]} none where there are only hops of the runner */
  finish () {
    this.#appendPending()
    if (this.hops.every(({ type, isFolded }) => isFolded && type === 'RUNNER')) return []
    const request = this.#beyond.findIndex(({ isRequest }) => isRequest)
    if (this.hops.some(({ isRequest }) => isRequest)) return this.hops
    if (request > 0) this.hops.push(foldedHop('MORE', this.#beyond.slice(0, request), [], this.hops.at(-1)))
    if (request >= 0) this.hops.push(this.#beyond[request])
    return this.hops
  }
}

/**
 * @param {Reason} reason
 * @param {PrintedHop[]} members
 * @param {string[]} names what they are in
 * @param {PrintedHop | undefined} previous
 * @returns {PrintedHop}
 */
function foldedHop (reason, members, names, previous) {
  const count = members.reduce((sum, { repeats }) => sum + repeats, 0)
  const hops = `${count} ${reason === 'MORE' ? 'more ' : ''}hop${count === 1 ? '' : 's'}`
  const remark = reason === 'ABOVE' ? ' as above' : reason === 'MORE' ? '' : ` in ${names.join(', ')}`
  return {
    asyncId: 0,
    triggerAsyncId: 0,
    type: reason,
    label: hops + remark,
    ageMs: NaN,
    repeats: count,
    origin: previous?.origin ?? 'registered',
    frames: [],
    lines: [`    ... ${hops}${remark}`],
    isFolded: true,
    ...(reason === 'RUNNER' ? undefined : { members })
  }
}

/** Returns hops one by one; those of a test runner stay folded. @param {PrintedHop[]} hops */
const unfold = (hops) => hops.flatMap((hop) => hop.members ?? [hop])

/** @param {PrintedHop} hop */
const isForPeople = ({ isBehindRequest, isFolded }) => isBehindRequest !== true && isFolded !== true

/** @param {PrintedHop} hop */
function keyOf ({ asyncId, type, label, lines }) {
  return asyncId === 0 ? `${type} ${label}\n${lines.join('\n')}` : `${asyncId} ${type}`
}

module.exports = { HopFolding, unfold }
