'use strict'

// The threads that longstack top watches: those of the processes that the user named, and of the Node
// processes that these start, even later. Worker threads that start later are found by their sockets. All
// threads are polled for figures. A thread that does not respond in time delays no other: a late response
// counts for the interval in which it arrives.

const { setTimeout: sleep } = require('node:timers/promises')
const { ask, blockedSentences } = require('../ask/processes')
const {
  GoneError, RefusedError, endedError, findTarget, nodeDescendants, socketFiles, socketsOf
} = require('../ask/system')
const { BlockedError, connectTo } = require('../ask/threads')

const BUSY_MS = 10_000 // for a busy event loop to become free
const DISCOVER_MS = 5_000 // between two searches for new processes
const YOUNG_BUSY_MS = 1_000 // for the event loop of a process that started meanwhile
const MAX_FAILURES = 3 // in a row, after which a thread counts as gone, even with an open connection
const ANSWER_MS = 500 // that an interval waits for responses, at most half of the interval

/**
 * @typedef {import('../ask/threads').AskedThread} AskedThread
 *
 * @typedef {object} Asked a thread and its last responses
 * @property {AskedThread} thread
 * @property {string} key
 * @property {import('./sampler').TopFacts} [facts]
 * @property {import('./sampler').TopFigures} [figures] not yet given to the model
 * @property {Promise<void>} [question] the query in flight
 * @property {number} heardAt ms, time of the last response
 * @property {number} failures queries in a row that failed
 */

class Watched {
  /** @type {Map<string, Asked>} */
  #asked = new Map()
  /** pids that were queried @type {Set<number>} */
  #pids = new Set()
  /** pids with new children that are to be queried @type {number[]} */
  #roots = []
  /** LONGSTACK_SOCKET that the user named @type {string | undefined} */
  #socket
  /** sockets of known threads @type {Set<string>} */
  #files = new Set()
  #discoverAt = 0
  /** @type {Promise<void> | undefined} */
  #discovering
  #isClosed = false
  #options
  maxPauseMs = Infinity // between two polls
  /** Whether any thread has ever responded. */
  #hasAnswered = false
  /** The last error of a query. @type {Error | undefined} */
  #failure

  /**
   * @param {string} name a word of the command line
   * @param {{ intervalMs: number, blockedMs: number | undefined, rest?: number,
   *   begin?: (thread: AskedThread) => Promise<void> }} options begin: sends further queries to a new thread
   */
  constructor (name, options) {
    this.name = name
    this.#options = options
  }

  /**
   * Connects to the processes that the user named.
   * @param {boolean} withChildren
   * @returns {Promise<string[]>} sentences about processes that do not respond
   * @throws {RefusedError} if none responds
   */
  async connect (withChildren) {
    const target = findTarget(this.name)
    const asked = await ask(target, { children: withChildren, busyMs: BUSY_MS })
    const blocked = blockedSentences(asked)
    const sentences = [...asked.refused.map(({ sentence }) => sentence), ...blocked]
    if (blocked.length === asked.processes.length) throw new RefusedError(sentences.join('\n'))
    this.watch(target, asked, withChildren)
    return sentences
  }

  /**
   * Starts the figures of threads that were queried.
   * @param {import('../ask/system').Target} target
   * @param {import('../ask/processes').Asked} asked
   * @param {boolean} withChildren also those that start later
   */
  watch (target, asked, withChildren) {
    this.#socket = target.socket
    for (const { pid } of [...asked.processes, ...asked.refused]) this.#pids.add(pid)
    for (const { threads } of asked.processes) threads.forEach(this.#add)
    for (const { files } of this.#sockets()) for (const file of files) this.#files.add(file)
    if (withChildren) this.#roots = target.pids
    this.#discoverAt = performance.now() + DISCOVER_MS
  }

  get threads () { return [...this.#asked.values()].map(({ thread }) => thread) }

  /** Lists the sockets of threads. @returns {Array<{ pid: number | undefined, files: string[] }>} */
  #sockets () {
    if (this.#socket !== undefined) return [{ pid: undefined, files: socketFiles(this.#socket) }]
    return [...this.#pids].map((pid) => ({ pid, files: socketsOf(pid) }))
  }

  /** Adds a thread, and starts its figures. @param {AskedThread} thread */
  #add = (thread) => {
    if (this.#isClosed) return thread.close()
    if (thread.file !== undefined) this.#files.add(thread.file)
    const key = `${thread.pid} ${thread.facts.threadId}`
    /** @type {Asked} */
    const asked = { thread, key, heardAt: performance.now(), failures: 0 }
    this.#asked.set(key, asked)
    thread.onClose = () => this.#remove(asked)
    this.#ask(asked)
  }

  /** @param {Asked} asked */
  #remove (asked) {
    if (this.#asked.get(asked.key) === asked) this.#asked.delete(asked.key)
  }

  /** Starts a search for new processes and threads if one is due; does not wait for it. */
  discover () {
    if (performance.now() < this.#discoverAt) return
    this.#discoverAt = Infinity
    this.#discovering = this.#findNew().catch(() => {}).finally(() => {
      this.#discoverAt = performance.now() + DISCOVER_MS
    })
  }

  async #findNew () {
    const pids = this.#roots.flatMap((pid) => nodeDescendants(pid)).filter((pid) => !this.#pids.has(pid))
    for (const pid of new Set(pids)) {
      this.#pids.add(pid)
      const { processes } = await ask({ pids: [pid] }, { children: false, busyMs: YOUNG_BUSY_MS })
      processes.flatMap(({ threads }) => threads).forEach(this.#add)
    }
    for (const { pid, files } of this.#sockets()) {
      const { threads } = await connectTo(files.filter((file) => !this.#files.has(file)), pid)
      threads.forEach(this.#add)
    }
  }

  /**
   * Queries all threads.
   * @returns {Promise<import('./model').Answer[]>}
   * @throws {Error} if all are gone, or none has ever responded
   */
  async poll () {
    const present = [...this.#asked.values()]
    const questions = Promise.all(present.map((asked) => this.#ask(asked)))
    await Promise.race([questions, pause(Math.min(ANSWER_MS, this.#options.intervalMs / 2))])
    if (!this.#hasAnswered && this.#failure !== undefined) throw this.#failure
    if (this.#asked.size === 0) {
      if (this.#failure instanceof RefusedError && !(this.#failure instanceof GoneError)) throw this.#failure
      throw endedError(this.name)
    }
    return present.flatMap((asked) => {
      const { key, facts, figures, question, heardAt } = asked
      if (facts === undefined || !this.#asked.has(key)) return []
      asked.figures = undefined
      return { key, facts, figures, silentMs: question === undefined ? 0 : performance.now() - heardAt }
    })
  }

  /**
   * Queries a thread unless a query is in flight, or a late response to it was not returned yet: the next one
   * would replace its figures.
   * @param {Asked} asked
   * @returns {Promise<void>}
   */
  async #ask (asked) {
    if (asked.figures !== undefined) return
    asked.question ??= this.#question(asked).then(() => {
      asked.heardAt = performance.now()
      asked.failures = 0
      this.#hasAnswered = true
    }, (error) => {
      this.#failure = error
      if (!(error instanceof BlockedError) && ++asked.failures === MAX_FAILURES) this.#remove(asked)
    }).finally(() => { asked.question = undefined })
    await asked.question
  }

  /** @param {Asked} asked */
  async #question (asked) {
    const { thread } = asked
    asked.figures = asked.facts && await thread.call('readTop')
    if (asked.figures !== undefined) return
    if (thread.facts.tracing === 'off') await thread.call('attach', {})
    await this.#options.begin?.(thread)
    const { intervalMs, blockedMs, rest } = this.#options
    asked.facts = await thread.call('startTop', { intervalMs, blockedMs, rest })
  }

  /** @param {import('./model').Place} place @returns {Promise<string>} the chain as text */
  async describe ({ key, chain }) {
    const asked = this.#asked.get(key)
    if (asked === undefined) return 'The process has ended.'
    const text = await asked.thread.call('describeChain', { chain })
    return text === '' ? 'Its chain is not known any more.' : text
  }

  /** Stops the figures in all threads, and disconnects. */
  async close () {
    this.#isClosed = true
    const { threads } = this
    const stops = Promise.all(threads.map((thread) => thread.call('stopTop').catch(() => {})))
    await Promise.race([stops, pause(ANSWER_MS)])
    for (const thread of threads) thread.close()
    await this.#discovering
  }
}

/** Waits without keeping the process alive. @param {number} ms */
const pause = (ms) => sleep(ms, undefined, { ref: false })

module.exports = { Watched }
