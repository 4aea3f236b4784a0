'use strict'

// Figures of several threads and processes as those of one: counts and histograms are added, of delays the
// worst is named. What is kept is bounded, however long it runs.

const { quantiles } = require('../buckets')
const { Growth, History, addCounts, addRoute, newInterval } = require('./history')

const MAX_BLOCKERS = 100 // places

/**
 * @typedef {import('./sampler').TopFigures} TopFigures
 * @typedef {import('./sampler').TopFacts} TopFacts
 * @typedef {import('./history').RouteCounts} RouteCounts
 * @typedef {{ key: string, facts: TopFacts, figures: TopFigures | undefined, silentMs: number }} Answer of a
 *   thread; figures: undefined where it has not answered, silentMs: since when, 0 where it has
 *
 * @typedef {object} RouteRow
 * @property {string} name
 * @property {number} count
 * @property {number} perSecond
 * @property {number} errors
 * @property {number} lost
 * @property {number} meanMs NaN where nothing was finished, as all that follow
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} maxMs
 *
 * @typedef {object} WaitRow
 * @property {string} site
 * @property {string} label
 * @property {boolean} isOfRequest
 * @property {number} count mean number that waits there
 * @property {Place} place
 *
 * @typedef {object} HandleRow
 * @property {string} noun
 * @property {string} site
 * @property {number} count
 * @property {number | undefined} perMinute growth; undefined: not known yet
 * @property {Place} place
 *
 * @typedef {object} BlockerRow since the command looks
 * @property {string} site
 * @property {number} count
 * @property {number} ms
 * @property {number} worstMs
 * @property {number} lastUnixMs
 * @property {string} stack of the worst
 *
 * @typedef {object} ThreadRow
 * @property {string} key
 * @property {number} pid
 * @property {number} threadId
 * @property {string} name
 * @property {number | undefined} cpuShare of this thread, 1: a core
 * @property {number | undefined} processShare
 * @property {number} loopShare
 * @property {number} delayMs p99
 * @property {number} maxDelayMs
 * @property {number | undefined} rss bytes, of the process
 * @property {number} heap bytes
 * @property {number} perSecond requests
 * @property {number} silentMs it has not answered for as long
 *
 * @typedef {{ key: string, chain: number }} Place whom to ask for a chain
 *
 * @typedef {object} Frame what is shown
 * @property {number} unixMs
 * @property {number} ms observed so far
 * @property {number} windowMs what the figures of routes cover
 * @property {RouteRow} total
 * @property {RouteRow[]} routes
 * @property {number} inFlight
 * @property {{ ms: number, name: string } | undefined} oldest
 * @property {WaitRow[] | undefined} waits undefined: not known
 * @property {HandleRow[]} handles
 * @property {number} handleCount
 * @property {BlockerRow[]} blockers
 * @property {number | undefined} blockedMs from which callbacks are reported; undefined: they are not
 * @property {ThreadRow[]} threads
 */

class Model {
  history = new History()
  /** by thread @type {Map<string, Growth>} */
  #growths = new Map()
  /** @type {Map<string, BlockerRow>} */
  #blockers = new Map()
  #observedMs = 0
  /** @type {Answer[]} */
  #answers = []
  #unixMs = Date.now()

  /**
   * Adds the answers of an interval.
   * @param {Answer[]} answers of all threads
   * @param {number} unixMs
   */
  add (answers, unixMs) {
    const interval = newInterval()
    for (const { figures } of answers) {
      if (figures === undefined) continue
      interval.ms = Math.max(interval.ms, figures.ms)
      for (const { name, buckets, ...counts } of figures.routes) {
        addRoute(interval, name, counts, buckets)
        addCounts(interval.total, counts, buckets)
      }
      for (const blocker of figures.blockers) this.#addBlocker(blocker, unixMs)
    }
    this.#unixMs = unixMs
    this.#observedMs += interval.ms
    // One that does not answer keeps what it said last, but for what it has served
    const previous = new Map(this.#answers.map((answer) => [answer.key, answer.figures]))
    this.#answers = answers.map((answer) =>
      ({ ...answer, figures: answer.figures ?? withoutRoutes(previous.get(answer.key)) }))
    if (interval.ms > 0) this.history.add(interval)
    this.#noteGrowth()
  }

  #noteGrowth () {
    const growths = this.#growths
    this.#growths = new Map()
    for (const answer of this.#answers) {
      const growth = growths.get(answer.key) ?? growthSinceStart(answer, this.#observedMs)
      this.#growths.set(answer.key, growth)
      growth.add(countsOf(answer), this.#observedMs)
    }
  }

  /** @param {HandleRow} row @returns {number | undefined} */
  #growthOf (row) {
    const key = keyOf(row)
    const growths = [...this.#growths.values()].map((growth) => growth.perMinute(key))
    const figures = growths.filter((perMinute) => perMinute !== undefined)
    return figures.length === 0 ? undefined : figures.reduce((sum, perMinute) => sum + perMinute, 0)
  }

  /** @param {import('./blocker-figures').BlockerFigures} blocker @param {number} unixMs */
  #addBlocker ({ site, count, ms, worstMs, stack }, unixMs) {
    const row = this.#blockers.get(site) ?? { site, count: 0, ms: 0, worstMs: 0, lastUnixMs: 0, stack }
    this.#blockers.delete(site) // the last one comes last
    this.#blockers.set(site, row)
    row.count += count
    row.ms += ms
    row.lastUnixMs = unixMs
    if (worstMs >= row.worstMs) Object.assign(row, { worstMs, stack })
    if (this.#blockers.size <= MAX_BLOCKERS) return
    const [oldest] = this.#blockers.keys()
    this.#blockers.delete(oldest)
  }

  /** Whether no thread has told figures yet. */
  get isEmpty () { return this.#observedMs === 0 }

  /** @param {number} windowMs what the figures of routes are to cover @returns {Frame} */
  frame (windowMs) {
    const sum = this.history.sum(windowMs)
    const answers = this.#answers
    const handles = handleRows(answers)
    const oldest = answers.map(({ figures }) => figures?.oldest).filter((request) => request !== undefined)
    const blockedMs = answers.map(({ facts }) => facts.blockedMs).filter((ms) => ms !== undefined)
    return {
      unixMs: this.#unixMs,
      ms: this.#observedMs,
      windowMs: sum.ms,
      total: routeRow('total', sum.total, sum.ms),
      routes: [...sum.routes].map(([name, counts]) => routeRow(name, counts, sum.ms)),
      inFlight: answers.reduce((count, { figures }) => count + (figures?.inFlight ?? 0), 0),
      oldest: oldest.sort((a, b) => b.ms - a.ms)[0],
      waits: waitRows(answers),
      handles: handles.map((row) => ({ ...row, perMinute: this.#growthOf(row) })),
      handleCount: answers.reduce((count, { facts, figures }) => count + (figures ?? facts).handles.count, 0),
      blockers: [...this.#blockers.values()],
      blockedMs: blockedMs.length === 0 ? undefined : Math.min(...blockedMs),
      threads: answers.map(threadRow)
    }
  }
}

/**
 * Returns the growth of a thread that is new: what was open when its figures were started is known as well.
 * @param {Answer} answer
 * @param {number} time ms
 */
function growthSinceStart (answer, time) {
  const growth = new Growth()
  const { figures } = answer
  if (figures !== undefined) growth.add(countsOf({ ...answer, figures: undefined }), time - figures.ms)
  return growth
}

/** @param {Answer} answer @returns {Map<string, number>} what is open, by group */
function countsOf (answer) {
  return new Map(handleRows([answer]).map((row) => [keyOf(row), row.count]))
}

/** @param {TopFigures | undefined} figures @returns {TopFigures | undefined} */
function withoutRoutes (figures) {
  return figures === undefined ? undefined : { ...figures, routes: [], blockers: [] }
}

/** @param {string} name @param {RouteCounts} counts @param {number} ms @returns {RouteRow} */
function routeRow (name, { count, errors, lost, sumUs, maxUs, buckets }, ms) {
  const maxMs = count === 0 ? NaN : maxUs / 1000
  const [p50Ms, p99Ms] = quantiles(buckets, [0.5, 0.99]).map((us) => Math.min(us / 1000, maxMs))
  const perSecond = ms === 0 ? 0 : count / ms * 1000
  return { name, count, perSecond, errors, lost, meanMs: sumUs / count / 1000, p50Ms, p99Ms, maxMs }
}

/** @param {Answer[]} answers @returns {WaitRow[] | undefined} */
function waitRows (answers) {
  /** @type {Map<string, WaitRow>} */
  const rows = new Map()
  let isKnown = false
  for (const { key, figures } of answers) {
    if (figures?.waits === undefined) continue
    isKnown = true
    for (const { site, label, isOfRequest, count, chain } of figures.waits) {
      const id = `${isOfRequest} ${label} ${site}`
      const row = rows.get(id)
      if (row === undefined) rows.set(id, { site, label, isOfRequest, count, place: { key, chain } })
      else row.count += count
    }
  }
  return isKnown ? [...rows.values()] : undefined
}

/** @param {Answer[]} answers @returns {HandleRow[]} */
function handleRows (answers) {
  /** @type {Map<string, HandleRow>} */
  const rows = new Map()
  for (const { key, facts, figures } of answers) {
    for (const { noun, site, count, chain } of (figures ?? facts).handles.groups) {
      const id = keyOf({ noun, site })
      const row = rows.get(id)
      if (row === undefined) rows.set(id, { noun, site, count, perMinute: undefined, place: { key, chain } })
      else row.count += count
    }
  }
  return [...rows.values()]
}

/** @param {{ noun: string, site: string }} row */
const keyOf = ({ noun, site }) => `${noun} ${site}`

/** @param {Answer} answer @returns {ThreadRow} */
function threadRow ({ key, facts: { pid, threadId, name }, figures, silentMs }) {
  const { ms = 0, thread } = figures ?? {}
  const share = (/** @type {number | undefined} */ cpuMs) =>
    cpuMs === undefined || ms === 0 ? undefined : cpuMs / ms
  const count = (figures?.routes ?? []).reduce((sum, route) => sum + route.count, 0)
  return {
    key,
    pid,
    threadId,
    name,
    cpuShare: share(thread?.cpuMs),
    processShare: share(thread?.process?.cpuMs),
    loopShare: thread?.loop.share ?? NaN,
    delayMs: thread?.loop.p99Ms ?? NaN,
    maxDelayMs: thread?.loop.maxMs ?? NaN,
    rss: thread?.process?.rss,
    heap: thread?.heap.used ?? NaN,
    perSecond: ms === 0 ? 0 : count / ms * 1000,
    silentMs
  }
}

module.exports = { Model }
