'use strict'

// The threads that longstack top looks at: those of the processes that the user has named, and of the Node
// processes that they have started, also later; worker threads that start later are found by their sockets.
// They are asked for their figures again and again. One that does not answer in time holds nobody up: what it
// says later counts for the interval in which it says it.

const { setTimeout: sleep } = require('node:timers/promises')
const { ask, blockedSentences } = require('../ask/processes')
const {
  GoneError, RefusedError, findTarget, nodeDescendants, socketFiles, socketsOf
} = require('../ask/system')
const { BlockedError, connectTo } = require('../ask/threads')

const BUSY_MS = 10_000 // for a busy event loop to come free
const DISCOVER_MS = 5_000 // from one search for new processes to the next
const YOUNG_BUSY_MS = 1_000 // for that of a process that was started meanwhile
const MAX_FAILURES = 3 // in a row: the thread is gone, whether its connection is closed or not
const ANSWER_MS = 500 // that an interval waits for answers, at most half of it

/**
 * @typedef {import('../ask/threads').AskedThread} AskedThread
 *
 * @typedef {object} Asked a thread, and what it has said
 * @property {AskedThread} thread
 * @property {string} key
 * @property {import('./sampler').TopFacts} [facts]
 * @property {import('./sampler').TopFigures} [figures] not yet given to the model
 * @property {Promise<void>} [question] that is not answered yet
 * @property {number} heardAt ms, when it answered last
 * @property {number} failures questions in a row that were refused
 */

class Watched {
  /** @type {Map<string, Asked>} */
  #asked = new Map()
  /** pids that were asked @type {Set<number>} */
  #pids = new Set()
  /** those of which new children are asked @type {number[]} */
  #roots = []
  /** LONGSTACK_SOCKET that the user has named @type {string | undefined} */
  #socket
  /** sockets of threads that are asked @type {Set<string>} */
  #files = new Set()
  #discoverAt = 0
  /** @type {Promise<void> | undefined} */
  #discovering
  #isClosed = false
  #options
  /** Whether some thread has ever answered. */
  #hasAnswered = false
  /** The last error that a thread answered with. @type {Error | undefined} */
  #failure

  /**
   * @param {string} name a word of the command line
   * @param {{ intervalMs: number, blockedMs: number | undefined, rest?: number,
   *   begin?: (thread: AskedThread) => Promise<void> }} options begin: asks a thread for more
   */
  constructor (name, options) {
    this.name = name
    this.#options = options
  }

  /**
   * Connects to what the user has named.
   * @param {boolean} withChildren
   * @returns {Promise<string[]>} sentences on processes that do not answer
   * @throws {RefusedError} where none answers
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
   * Starts the figures of threads that were asked.
   * @param {import('../ask/system').Target} target
   * @param {import('../ask/processes').Asked} asked
   * @param {boolean} withChildren also those that are started meanwhile
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

  /** Looks for what was started meanwhile, now and then; does not wait for it. */
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
   * Asks all threads.
   * @returns {Promise<import('./model').Answer[]>}
   * @throws {Error} where they are gone, or none has ever answered
   */
  async poll () {
    const present = [...this.#asked.values()]
    const questions = Promise.all(present.map((asked) => this.#ask(asked)))
    await Promise.race([questions, pause(Math.min(ANSWER_MS, this.#options.intervalMs / 2))])
    if (!this.#hasAnswered && this.#failure !== undefined) throw this.#failure
    if (this.#asked.size === 0) {
      if (this.#failure instanceof RefusedError && !(this.#failure instanceof GoneError)) throw this.#failure
      const isPid = /^\d+$/.test(this.name)
      throw new GoneError(isPid ? `Process ${this.name} has ended.` : `What ${this.name} named has ended.`)
    }
    return present.flatMap((asked) => {
      const { key, facts, figures, question, heardAt } = asked
      if (facts === undefined || !this.#asked.has(key)) return []
      asked.figures = undefined
      return { key, facts, figures, silentMs: question === undefined ? 0 : performance.now() - heardAt }
    })
  }

  /** Asks a thread, if its last question is answered. @param {Asked} asked @returns {Promise<void>} */
  #ask (asked) {
    asked.question ??= this.#question(asked).then(() => {
      asked.heardAt = performance.now()
      asked.failures = 0
      this.#hasAnswered = true
    }, (error) => {
      this.#failure = error
      if (!(error instanceof BlockedError) && ++asked.failures === MAX_FAILURES) this.#remove(asked)
    }).finally(() => { asked.question = undefined })
    return asked.question
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

  /** Takes the figures back in all threads, and leaves them. */
  async close () {
    this.#isClosed = true
    const { threads } = this
    const stops = Promise.all(threads.map((thread) => thread.call('stopTop').catch(() => {})))
    await Promise.race([stops, pause(ANSWER_MS)])
    for (const thread of threads) thread.close()
    await this.#discovering
  }
}

/** Ends no earlier, and keeps nothing alive. @param {number} ms */
const pause = (ms) => sleep(ms, undefined, { ref: false })

module.exports = { Watched }
