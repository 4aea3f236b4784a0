'use strict'

// Collects the hops of one chain, newest first. Adjacent hops that show nothing of the program become one
// line and count once: hops of a test runner, hops with frames of packages only, and hops printed above. The
// first hop is kept whole because it shows the event; so is a hop that names the address or file a package
// called. A chain ends at the runner's call of the test, so it contains nothing from another test.

const { isTelling } = require('./labels')
const { findRunner } = require('./test-runners')

/**
 * @typedef {import('./chain').PrintedHop} PrintedHop
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./test-runners').RunnerFrames} RunnerFrames
 * @typedef {'RUNNER' | 'PACKAGES' | 'ABOVE' | 'MORE'} Reason reason for folding hops, and the type of the
 *   hop that replaces them. MORE: past the depth, before the request
 */

class HopFolding {
  /** @type {PrintedHop[]} */
  hops = []
  /** true if no more hops are needed */
  isOver = false
  #depth
  #printed
  /** adjacent hops that will become one line @type {PrintedHop[]} */
  #pending = []
  /** @type {Reason} */
  #reason = 'RUNNER'
  /** names of their packages or runners @type {Set<string>} */
  #names = new Set()
  /** hops past the depth @type {PrintedHop[]} */
  #beyond = []
  /** whether the runner moves from test to test in one of the pending hops */
  #isBetweenTests = false
  /** number of hops before that; the rest may belong to another test; -1 if it did not happen */
  #ownHops = -1
  /** whether the hop with the runner's call of the test is added */
  #isComplete = false
  #hasRequest = false

  /**
   * @param {number} depth maximum number of hops
   * @param {Frame[]} above frames printed above the chain
   * @param {PrintedHop[]} printed hops printed above the chain
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

  /** Whether the request that started the chain, if any, is still to come. */
  get isBeforeRequest () {
    return !this.isOver && this.#ownHops === -1 && !this.#hasRequest
  }

  /** @param {PrintedHop} hop @param {RunnerFrames | undefined} runner runner found in its frames */
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
   * Notes a hop that is not printed: the runner's, or one with frames that are already printed.
   * @param {RunnerFrames | undefined} runner runner found in its frames
   */
  pass (runner) {
    if (runner?.role === 'runner') this.#isBetweenTests = true
    else if (runner?.role === 'entry' && !this.#isComplete) this.#addOfProgram(undefined, true)
  }

  /** @param {PrintedHop | undefined} hop undefined if it is not printed @param {boolean} isEntry */
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

  /** @returns {PrintedHop[]} empty if all hops belong to the runner */
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
 * @param {string[]} names of their packages or runners
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

/** Unfolds hops; a test runner's hops stay folded. @param {PrintedHop[]} hops */
const unfold = (hops) => hops.flatMap((hop) => hop.members ?? [hop])

/** @param {PrintedHop} hop */
const isForPeople = ({ isBehindRequest, isFolded }) => isBehindRequest !== true && isFolded !== true

/** @param {PrintedHop} hop */
function keyOf ({ asyncId, type, label, lines }) {
  return asyncId === 0 ? `${type} ${label}\n${lines.join('\n')}` : `${asyncId} ${type}`
}

module.exports = { HopFolding, unfold }
