'use strict'

// What is added up of each route: durations, and means of where the time went.

const { amount } = require('../read/span-line')
const { splitOf } = require('./digest')
const { Numbers } = require('./numbers')
const { boxOf, densityOf, logDensityOf, summarize } = require('./summary')

/**
 * @typedef {import('../read/span-line').Span} Span
 *
 * @typedef {object} Route a kind and name of spans; figures are of those that ended, in ms
 * @property {string} name
 * @property {import('../read/span-line').Kind} kind
 * @property {number} count lines
 * @property {number} weighted spans that they stand for; more than count where lines were sampled
 * @property {number | undefined} rate of these a second, over the time of the whole report
 * @property {number} errors failed spans, weighted
 * @property {number} open not ended when they were written; in none of the other figures
 * @property {import('./summary').Summary | undefined} summary nothing where all are open
 * @property {import('./summary').Box | undefined} box
 * @property {import('./summary').Density | undefined} density nothing for less than two
 * @property {{ x: number[], y: number[] } | undefined} logDensity of the logarithms: x in ms, y per decade
 * @property {import('./digest').Split | undefined} split means; nothing where no line has it
 */

const MOST = 2000 // routes told apart
const OTHERS = '(other names)'
const FINE = 60 // routes whose curve has all points
const ranks = ['SERVER', 'CONSUMER', 'INTERNAL', 'CLIENT', 'PRODUCER']

class Sums {
  durations = new Numbers()
  weighted = 0
  errors = 0
  open = 0
  splits = 0
  parts = { run: 0, waited: 0, delayed: 0 }
  /** @type {Map<string, number>} */
  wait = new Map()

  /** @param {string} name @param {import('../read/span-line').Kind} kind */
  constructor (name, kind) {
    this.name = name
    this.kind = kind
  }

  /** @param {Span} span */
  add ({ ms, weight, failed, attributes }) {
    this.durations.add(ms, weight)
    this.weighted += weight
    if (failed) this.errors += weight
    if (amount(attributes['longstack.run_ms']) !== undefined) this.#split(attributes, weight)
  }

  /** @param {Record<string, any>} attributes @param {number} weight */
  #split (attributes, weight) {
    const split = splitOf(attributes)
    if (split === undefined) return
    this.splits += weight
    this.parts.run += split.run * weight
    this.parts.waited += split.waited * weight
    this.parts.delayed += split.delayed * weight
    for (const name in split.wait) this.wait.set(name, (this.wait.get(name) ?? 0) + split.wait[name] * weight)
  }

  /** @param {number | undefined} seconds @param {number} points of the curve @returns {Route} */
  route (seconds, points) {
    const { name, kind, weighted, errors, open } = this
    const base = { name, kind, count: this.durations.size, weighted, rate: seconds === undefined ? undefined : weighted / seconds, errors, open, split: this.#means() }
    if (base.count === 0) return { ...base, summary: undefined, box: undefined, density: undefined, logDensity: undefined }
    const sample = this.durations.sorted()
    return { ...base, summary: summarize(sample), box: boxOf(sample), density: densityOf(sample, points), logDensity: logDensityOf(sample, points) }
  }

  #means () {
    const { splits, parts } = this
    if (splits === 0) return undefined
    const wait = [...this.wait].map(([name, sum]) => [name, sum / splits])
    return {
      run: parts.run / splits,
      waited: parts.waited / splits,
      delayed: parts.delayed / splits,
      wait: /** @type {Record<string, number>} */ (Object.fromEntries(wait))
    }
  }
}

function createRoutes () {
  /** @type {Map<string, Sums>} */
  const all = new Map()
  let others = 0

  /** @param {Span} span */
  function find (span) {
    const name = labelOf(span)
    return all.get(`${span.kind} ${name}`) ?? make(name, span.kind)
  }

  /** @param {string} name @param {import('../read/span-line').Kind} kind @returns {Sums} */
  function make (name, kind) {
    const full = all.size >= MOST
    if (full) others++
    const key = `${kind} ${full ? OTHERS : name}`
    const sums = all.get(key) ?? new Sums(full ? OTHERS : name, kind)
    all.set(key, sums)
    return sums
  }

  return {
    /** @param {Span} span that ended */
    add: (span) => find(span).add(span),

    /** @param {Span} span that is open */
    open (span) {
      find(span).open++
    },

    /** @param {number | undefined} seconds that the report is about @returns {Route[]} servers first, then by the number of spans */
    list (seconds) {
      const sorted = [...all.values()].sort((a, b) => ranks.indexOf(a.kind) - ranks.indexOf(b.kind) || b.weighted - a.weighted || (a.name < b.name ? -1 : 1))
      return sorted.map((sums, i) => sums.route(seconds, i < FINE ? 256 : 64))
    },

    /** Spans whose name came when there was no more room for names. */
    others: () => others
  }
}

/** A client's span has only the method as its name: the place it asks tells more. @param {Span} span */
function labelOf ({ name, kind, attributes }) {
  const address = attributes['server.address']
  if (kind !== 'CLIENT' || name.includes(' ') || typeof address !== 'string') return name
  const port = amount(attributes['server.port'])
  return `${name} ${address.slice(0, 255)}${port === undefined ? '' : `:${port}`}`
}

module.exports = { createRoutes }
