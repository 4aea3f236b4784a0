'use strict'

// What waits, and what is open, by the number of the chain that began it. Counted now and then; names are
// made of those that are read, and remembered.

const { now } = require('../context/clock')
const { nounOf } = require('../handles/describe')
const { walk } = require('../handles/list')
const { sample } = require('../handles/pending')
const { settings } = require('../settings')
const { siteOf } = require('../spans/sites')
const { placeText } = require('../text')

const MAX_WAITS = 60 // sites in an answer, those with the most
const MAX_GROUPS = 200 // of handles in an answer, likewise
const NAMES = 10 // made in one go
const MAX_CHAINS = 2000 // of waits in an interval
const MIN_HANDLES_MS = 1000 // between two counts of what is open
const REST = 1000 // ms of rest for a ms of counting: each kind takes 0.1 % of the time at most

/**
 * @typedef {import('../handles/subject').Subject} Subject
 *
 * @typedef {{ chain: number, isOfRequest: boolean, count: number }} CountedWait
 *
 * @typedef {object} WaitFigures a site at which something waits
 * @property {number} chain
 * @property {string} site the innermost frame of the program, or what was called there
 * @property {string} label
 * @property {boolean} isOfRequest
 * @property {number} count mean number of what waits there: its share of the time, by Little's law
 *
 * @typedef {object} HandleFigures handles of a type and a chain
 * @property {number} chain
 * @property {string} noun `TCP connection`
 * @property {string} site where they were opened
 * @property {number} count that are open
 *
 * @typedef {{ count: number, groups: HandleFigures[] }} OpenFigures
 */

function createSiteFigures () {
  /** what was seen waiting, by chain, and whether for a request @type {Map<string, CountedWait>} */
  let waits = new Map()
  let samples = 0
  let nextSample = 0
  let nextHandles = 0
  let isLoaded = false
  /** @type {HandleFigures[]} */
  let groups = []
  let handleCount = 0

  /** @param {number} chain */
  function nameOf (chain) {
    const { at: place, label = '' } = siteOf(chain)
    return { site: place === undefined ? label : placeText(place), label }
  }

  /** @param {number} chain @param {boolean} isOfRequest @param {number} count */
  function addWait (chain, isOfRequest, count) {
    if (count === 0) return
    const key = `${isOfRequest} ${chain}`
    const wait = waits.get(key)
    if (wait !== undefined) wait.count += count
    else if (waits.size < MAX_CHAINS) waits.set(key, { chain, isOfRequest, count })
  }

  /**
   * Counts what is open, if it is time to.
   * @returns {Generator<undefined, void>} with pauses, in which the event loop may go on
   */
  function * countHandles () {
    if (now() < nextHandles) return
    let took = 0
    /** @type {Map<string, { subject: Subject, chain: number, count: number }>} */
    const counts = new Map()
    let start = now()
    let total = 0
    for (const subject of walk(() => true)) {
      if (subject === undefined) {
        took += now() - start
        yield
        start = now()
        continue
      }
      total++
      const chain = subject.context?.chain ?? 0
      const key = `${subject.type} ${chain}`
      const group = counts.get(key)
      if (group === undefined) counts.set(key, { subject, chain, count: 1 })
      else group.count++
    }
    handleCount = total
    /** @type {HandleFigures[]} */
    const named = []
    for (const { subject, chain, count } of largest([...counts.values()], MAX_GROUPS)) {
      named.push({ chain, noun: nounOf(subject, undefined), site: nameOf(chain).site, count })
      if (named.length % NAMES !== 0) continue
      took += now() - start
      yield
      start = now()
    }
    groups = named
    took += now() - start
    nextHandles = now() + Math.max(MIN_HANDLES_MS, isLoaded ? took * REST : 0)
    isLoaded = true
  }

  /** Returns what was open when it was counted last. @returns {OpenFigures} */
  const open = () => ({ count: handleCount, groups })

  return {
    /**
     * Looks at what waits, if it is time to.
     * @returns {Generator<undefined, void>} with pauses, in which the event loop may go on
     */
    * sample () {
      let start = now()
      if (start < nextSample || !settings.isSelected('PROMISE')) return
      const isFirst = nextSample === 0 // it loads
      let took = 0
      const pieces = sample()
      let piece = pieces.next()
      for (; !piece.done; piece = pieces.next()) {
        took += now() - start
        yield
        start = now()
      }
      for (const { chain, requests } of piece.value) {
        const ofRequests = requests.filter((ref) => ref !== 0).length
        addWait(chain, true, ofRequests)
        addWait(chain, false, requests.length - ofRequests)
      }
      took += now() - start
      nextSample = start + (isFirst ? 0 : took * REST)
      samples++
    },

    /**
     * Returns what waited since the last call, and what was open.
     * @returns {{ waits: WaitFigures[] | undefined, handles: OpenFigures }}
     */
    read () {
      const present = [...waits.values()].map((wait) => ({ ...wait, count: wait.count / samples }))
      const named = samples === 0
        ? undefined
        : largest(present, MAX_WAITS).map((wait) => ({ ...wait, ...nameOf(wait.chain) }))
      waits = new Map()
      samples = 0
      return { waits: named, handles: open() }
    },

    countHandles,
    open
  }
}

/** @template {{ count: number }} T @param {T[]} items @param {number} max */
function largest (items, max) {
  return items.sort((a, b) => b.count - a.count).slice(0, max)
}

module.exports = { createSiteFigures }
