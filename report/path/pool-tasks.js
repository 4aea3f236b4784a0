'use strict'

// Tasks of libuv's thread pool: file system, crypto, zlib and dns.lookup. The pool takes them in order, so
// their starts and ends show how long each was queued. They are summed by place, and reported in one record
// at the end.

const { textsOf } = require('../../lib/encoding/span-form')
const { BoundedMap } = require('../../lib/group-by')
const { subsystems } = require('../../lib/subsystems')
const { factsRecord } = require('./facts-record')
const { queuedOf } = require('./queue')

const MAX_TASKS = 1 << 14 // that are summed at once
const MAX_GROUPS = 200
const THREADS = 4 // libuv's default
const MAX_THREADS = 1024 // libuv's limit
const MIN_TASKS = 20 // that waited
const MIN_QUEUE_MS = 1 // mean of all
const MIN_LOOKUPS = 10 // of a place
const MIN_LOOKUP_MS = 5 // mean of a place
const LOOKUP = 'GETADDRINFOREQWRAP'
// Other types of these subsystems are not tasks: watchers, c-ares queries.
const TYPES = new Set([
  'FSREQCALLBACK', 'FSREQPROMISE', 'FILEHANDLECLOSEREQ', LOOKUP, 'GETNAMEINFOREQWRAP', 'ZLIB'
])
for (const type of subsystems.get('CRYPTO') ?? []) TYPES.add(type)

/**
 * @typedef {import('./source-texts').SourceTexts} SourceTexts
 *
 * @typedef {object} Group tasks of one place and subsystem
 * @property {string | undefined} at
 * @property {string[] | undefined} callers
 * @property {string | undefined} until subsystem
 * @property {number} tasks
 * @property {number} queuedMs total time in the queue
 * @property {number} ranMs total running time
 */

class PoolTasks {
  /**
   * the latest, not summed yet
   * @type {Array<{ start: number, end: number, chain: number, slow: boolean }>}
   */
  #tasks = []
  /** @type {BoundedMap<string, Group>} */
  #groups = new BoundedMap(MAX_GROUPS)
  #waited = 0 // tasks
  #most = 0
  #latest = 0 // end of a task, ms of the clock

  /**
   * @param {number} chain of the place that started it
   * @param {number} start ms of the clock
   * @param {number} end not before the start
   * @param {SourceTexts} texts
   */
  add (chain, start, end, texts) {
    const { type } = texts.chainAt(chain)
    if (!TYPES.has(type)) return
    this.#tasks.push({ chain, start, end, slow: type === LOOKUP })
    if (this.#tasks.length === MAX_TASKS) this.#sum(texts)
  }

  /** @param {SourceTexts} texts */
  #sum (texts) {
    const tasks = this.#tasks
    this.#tasks = []
    const threads = threadsOf(texts)
    // libuv runs lookups in half of its threads.
    const { queued, most } = queuedOf(tasks, threads)
    const { queued: slow } = queuedOf(tasks.filter((task) => task.slow), Math.ceil(threads / 2))
    this.#most = Math.max(this.#most, most)
    for (const task of tasks) {
      const ms = Math.max(queued.get(task) ?? 0, slow.get(task) ?? 0)
      this.#latest = Math.max(this.#latest, task.end)
      if (ms > 0) this.#waited++
      const { ends: until, site } = texts.chainAt(task.chain)
      const { at: place, callers } = textsOf(site)
      const group = this.#groups.find(JSON.stringify([place, callers, until]), () =>
        ({ at: place, callers, until, tasks: 0, queuedMs: 0, ranMs: 0 }))
      if (group === undefined) continue
      group.tasks++
      group.queuedMs += ms
      group.ranMs += task.end - task.start - ms
    }
  }

  /** @param {SourceTexts} texts @returns {object | undefined} undefined if there is nothing to report */
  record (texts) {
    this.#sum(texts)
    const groups = [...this.#groups.values()]
    const queuedMs = groups.reduce((sum, group) => sum + group.queuedMs, 0)
    const tasks = groups.reduce((sum, group) => sum + group.tasks, 0)
    const isFull = this.#waited >= MIN_TASKS && queuedMs >= tasks * MIN_QUEUE_MS
    if (!isFull && !groups.some(isSlowLookup)) return undefined
    const own = { most: this.#most, threads: threadsOf(texts) }
    const attributes = { 'longstack.tasks': groups.map((group) => ({ ...group, ...own })) }
    return factsRecord('thread pool', attributes, this.#latest, texts)
  }
}

/** @param {Group} group */
const isSlowLookup = ({ until, tasks, ranMs }) =>
  until === 'DNS' && tasks >= MIN_LOOKUPS && ranMs >= tasks * MIN_LOOKUP_MS

/** @param {SourceTexts} texts @returns {number} */
function threadsOf ({ source }) {
  const { threads } = source ?? {}
  return typeof threads === 'number' && threads >= 1 ? Math.min(threads, MAX_THREADS) : THREADS
}

module.exports = { PoolTasks }
