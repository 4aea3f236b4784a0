'use strict'

// The threads that longstack top watches by their black boxes. Their processes are not queried: the figures
// come from the log, the table of open requests, and /proc.

const { setTimeout: sleep } = require('node:timers/promises')
const { LivingBox } = require('../../report/read/living-box')
const { RefusedError, endedError, hasEnded, nodeDescendants, usageOf } = require('../ask/system')
const { titleOf } = require('../cli/from-box')
const { getOrAdd, groupBy } = require('../group-by')
const { boxesOf } = require('../record/box-files')
const { addCounts, bucketOf, newCounts, pack } = require('./buckets')

const DISCOVER_MS = 5_000 // between two searches for new processes
const SILENT_MS = 1000 // that a callback runs, or a process does nothing, before it is reported
const ENDING_MS = 300 // between the end of a box and that of its process
const HINT = '--ask asks the process itself, which knows more: how late its timers are, blocking ' +
  'callbacks, awaits outside of requests.'

/**
 * @typedef {import('../../report/read/living-box').ThreadState} ThreadState
 * @typedef {import('./sampler').TopFigures} TopFigures
 * @typedef {import('./sampler').TopFacts} TopFacts
 *
 * @typedef {object} Look at a thread
 * @property {number} at ms
 * @property {number} aliveAt ms of its clock
 * @property {number} movedAt ms, when that last changed
 * @property {number} cpuMs of its process
 * @property {number} rss bytes
 * @property {number} loopMs time that its log covers
 * @property {number} busyMs of these, its event loop was busy
 */

class WatchedBoxes {
  /** by file @type {Map<string, { pid: number, box: LivingBox }>} */
  #boxes = new Map()
  /** by key of the thread @type {Map<string, Look>} */
  #earlier = new Map()
  #discoverAt = performance.now() + DISCOVER_MS
  #withChildren
  maxPauseMs = 1000 // between two polls: a busy process overwrites its log

  /**
   * @param {string} name a word of the command line
   * @param {Map<string, number>} files processes by box
   * @param {boolean} withChildren also those that start later
   */
  constructor (name, files, withChildren) {
    this.name = name
    this.#withChildren = withChildren
    const isRead = [...files].map(([file, pid]) => this.#add(file, pid))
    /** Whether there are boxes, and all can be read. */
    this.canRead = isRead.length > 0 && !isRead.includes(false)
  }

  /** @param {string} file @param {number} pid @returns {boolean} whether it can be read */
  #add (file, pid) {
    const box = new LivingBox(file)
    if (box.read() === undefined) return false
    this.#boxes.set(file, { pid, box })
    return true
  }

  /** @returns {Promise<string[]>} a sentence about where the figures come from */
  async connect () {
    return [`${titleOf([...this.#boxes.keys()]).replace(/:$/, '.')} ${HINT}`]
  }

  /** Adds the boxes of new child processes, if a search is due. */
  discover () {
    if (!this.#withChildren || performance.now() < this.#discoverAt) return
    this.#discoverAt = performance.now() + DISCOVER_MS
    const pids = new Set([...this.#boxes.values()].flatMap(({ pid }) => nodeDescendants(pid)))
    for (const pid of pids) {
      for (const file of boxesOf(pid)) if (!this.#boxes.has(file)) this.#add(file, pid)
    }
  }

  /**
   * @returns {Promise<import('./model').Answer[]>}
   * @throws {RefusedError} if all processes have ended, or a box is gone
   */
  async poll () {
    /** @type {import('./model').Answer[]} */
    const answers = []
    for (const [file, { pid, box }] of this.#boxes) {
      const states = box.read()
      if (states === undefined) {
        this.#boxes.delete(file)
        if (!hasEnded(pid)) await sleep(ENDING_MS)
        if (!hasEnded(pid)) throw new RefusedError(`The black box of process ${pid} was closed or removed.`)
      } else {
        const [{ latest: { service } }] = states
        answers.push(...states.map((state) => this.#answerOf(state, { pid, name: service, box: file })))
      }
    }
    if (this.#boxes.size === 0) throw endedError(this.name)
    return answers
  }

  /**
   * @param {ThreadState} state
   * @param {Pick<TopFacts, 'pid' | 'name' | 'box'>} process
   * @returns {import('./model').Answer}
   */
  #answerOf (state, process) {
    const { aliveAt, end: { thread: threadId, inside, request, runningMs = 0 } } = state
    const key = `${process.pid} ${threadId}`
    const earlier = this.#earlier.get(key)
    const at = performance.now()
    const movedAt = earlier?.aliveAt === aliveAt ? earlier.movedAt : at
    const look = { at, aliveAt, movedAt, ...usageOf(process.pid), ...loopOf(state) }
    this.#earlier.set(key, look)
    /** @type {TopFacts} */
    const facts = {
      ...process,
      threadId,
      blockedMs: undefined,
      handles: handlesOf(state),
      stuck: runningMs >= SILENT_MS && threadId === 0 ? { ms: runningMs, inside, request } : undefined
    }
    const silentMs = Math.max(runningMs, at - movedAt)
    const figures = earlier && figuresOf(state, look, earlier)
    return { key, facts, figures, silentMs: silentMs >= SILENT_MS ? silentMs : 0 }
  }

  /** @returns {Promise<string>} */
  async describe () { return 'Its chain is not in the black box.\n--ask asks the process, which knows it.' }

  async close () {}
}

/**
 * @param {ThreadState} state
 * @param {Look} look
 * @param {Look} earlier
 * @returns {TopFigures}
 */
function figuresOf (state, look, earlier) {
  const { end: { runningMs = 0, thread }, latest: { vitals } } = state
  const wallMs = look.at - earlier.at
  const loopMs = look.loopMs - earlier.loopMs
  // The log is some 100 ms behind, unless the process is stopped
  const ms = look.at - look.movedAt < SILENT_MS ? Math.max(1, loopMs) : wallMs
  // A worker may wait for messages in a callback (Atomics.wait)
  const isWaiting = thread !== 0 && runningMs >= SILENT_MS
  const share = isWaiting ? NaN : (look.busyMs - earlier.busyMs) / loopMs
  const cpuMs = (look.cpuMs - earlier.cpuMs) * ms / wallMs
  return {
    ms,
    enabled: true,
    routes: routesOf(state),
    ...openOf(state),
    thread: {
      loop: { share: Math.max(0, Math.min(1, share)), p50Ms: NaN, p99Ms: NaN, maxMs: NaN },
      cpuMs: undefined,
      process: thread === 0 ? { cpuMs, rss: look.rss } : undefined,
      heap: { used: vitals?.used ?? NaN, limit: vitals?.limit ?? NaN }
    },
    blockers: [],
    handles: handlesOf(state),
    waitsFor: { cycles: [], convoys: [] }
  }
}

/** @param {ThreadState} state @returns {Pick<Look, 'loopMs' | 'busyMs'>} */
function loopOf ({ aliveAt, busyMs, end: { runningMs = 0 }, lostMs, readTo }) {
  const moreMs = runningMs >= SILENT_MS ? Math.max(0, aliveAt - readTo) : 0
  return { loopMs: readTo + moreMs - lostMs, busyMs: busyMs + Math.min(runningMs, moreMs) }
}

/** @param {ThreadState} state @returns {TopFigures['handles']} as last counted */
function handlesOf ({ aliveAt, latest: { handles, handleCount, countedAt } }) {
  const groups = handles.map(({ noun, at, count, keeping }) =>
    ({ chain: 0, noun, site: at, count, keeping: Number(keeping) }))
  return { count: handleCount, groups, agoMs: aliveAt - countedAt }
}

/** Counts the requests that ended, by route. @param {ThreadState} state @returns {TopFigures['routes']} */
function routesOf ({ spans }) {
  /** @type {Map<string, import('./buckets').RouteCounts>} */
  const routes = new Map()
  for (const { kind, name, start, end, attributes, shared } of spans) {
    const { 'http.response.status_code': status, 'longstack.end': how } = { ...shared, ...attributes }
    if (kind !== 'SERVER' || how === 'upgraded' || how === 'unknown' || how === 'open') continue
    const counts = getOrAdd(routes, name, newCounts)
    if (how !== undefined) { // its connection was closed
      counts.lost++
      continue
    }
    const us = Math.round((end - start) * 1000)
    const errors = Number(status) >= 500 ? 1 : 0
    addCounts(counts, { count: 1, errors, lost: 0, sumUs: us, maxUs: us, buckets: [bucketOf(us), 1] })
  }
  return [...routes].map(([name, { buckets, ...counts }]) => ({ name, ...counts, buckets: pack(buckets) }))
}

/**
 * Returns the open requests, and what they waited for when last looked at.
 * @param {ThreadState} state
 * @returns {Pick<TopFigures, 'inFlight' | 'oldest' | 'waits'>}
 */
function openOf ({ aliveAt, end, latest, open }) {
  const oldest = open.find(({ isServer }) => isServer)
  const numbers = new Set(open.map(({ number }) => number))
  const looked = latest.waits.filter(({ span }) => numbers.has(span)) // without open ones there is no look
  const whats = looked.flatMap(({ waits }) => waits.map(([what]) => String(what)))
  return {
    inFlight: end.requests,
    oldest: oldest && { ms: aliveAt - oldest.start, name: oldest.name },
    waits: groupBy(whats, String).map((same) => {
      const [, label = same[0], site = same[0]] = /^(.*?) at (.+)$/.exec(same[0]) ?? []
      return { chain: 0, site, label, isOfRequest: true, count: same.length }
    })
  }
}

module.exports = { WatchedBoxes }
