'use strict'

// One attempt to make the data of a page small enough: its limits, its table of stacks, and sentences on what
// is missing.

const { count, plural } = require('./client/format')
const { records, text } = require('./values')

/**
 * @typedef {object} Limits
 * @property {number} routes
 * @property {number} rows of the other tables
 * @property {number} traces
 * @property {number} spans of one trace
 * @property {number} text characters of a stack
 * @property {number} value characters of an attribute
 * @property {number} points of a density
 * @property {number} outliers of a box
 * @property {number} nodes of a tree of critical paths
 * @property {number} sites of a route
 * @property {number} timedRoutes routes with sums along time
 * @property {number} sums along time of failures and blockers, numbers in all
 * @property {number} histogramSums the same of routes' durations
 * @property {number} siteSums the same of sites
 * @property {number} treeSums the same of trees
 *
 * @typedef {'sums' | 'histogramSums' | 'siteSums' | 'treeSums'} SumsKind
 */

class Thinning {
  /** Each stack once. @type {string[]} */
  stacks = []
  /** Each name of a tree once. @type {string[]} */
  names = []
  #notes = new Set()
  /** @type {Map<string, number>} */
  #indexes = new Map()
  /** @type {Map<string, number>} */
  #nameIndexes = new Map()
  #cutStacks = 0
  #reserved = { sums: 0, histogramSums: 0, siteSums: 0, treeSums: 0 }

  /** @param {Limits} limits */
  constructor (limits) {
    this.limits = limits
  }

  /** @returns {string[]} sentences on what is not on the page */
  get notes () {
    const chars = count(this.limits.text)
    return this.#cutStacks === 0
      ? [...this.#notes]
      : [...this.#notes, `${plural(this.#cutStacks, 'stack')} truncated to ${chars} characters.`]
  }

  /** @param {string} sentence */
  note (sentence) {
    this.#notes.add(sentence)
  }

  /**
   * Returns the first records of a list, and notes if it has more.
   * @param {unknown} list
   * @param {number} max
   * @param {string} noun
   * @returns {any[]}
   */
  first (list, max, noun) {
    const valid = records(list)
    if (valid.length > max) {
      this.note(`Only the first ${count(max)} of ${count(valid.length)} ${noun} are shown.`)
    }
    return valid.slice(0, max)
  }

  /**
   * Returns whether there is room for so many numbers of sums along time, and takes it.
   * @param {SumsKind} kind
   * @param {number} length
   */
  reserve (kind, length) {
    if (this.#reserved[kind] + length > this.limits[kind]) return false
    this.#reserved[kind] += length
    return true
  }

  /** Adds a name of a tree. @param {string} name @returns {number} index in `names` */
  addName (name) {
    const existing = this.#nameIndexes.get(name)
    if (existing !== undefined) return existing
    const index = this.names.push(name) - 1
    this.#nameIndexes.set(name, index)
    return index
  }

  /**
   * Adds a stack, truncated if it is too long.
   * @param {unknown} stack
   * @returns {number | undefined} index in `stacks`
   */
  addStack (stack) {
    if (typeof stack !== 'string' || stack === '') return undefined
    const kept = text(stack, this.limits.text)
    const existing = this.#indexes.get(kept)
    if (existing !== undefined) return existing
    if (stack.length > this.limits.text) this.#cutStacks++
    const index = this.stacks.push(kept) - 1
    this.#indexes.set(kept, index)
    return index
  }
}

module.exports = { Thinning }
