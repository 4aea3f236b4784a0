'use strict'

// The processes and threads that longstack top looks at: those that the user has named, and the Node
// processes that they have started, also later. Worker threads that start later are found by their sockets.

const { ask, askProcesses, blockedSentences } = require('../ask/processes')
const { connectTo } = require('../ask/sockets')
const { nodeDescendants, RefusedError, socketFiles, socketsOf } = require('../ask/system')
const { findTarget } = require('../ask/target')

const BUSY_MS = 10_000 // for a busy event loop to come free
const DISCOVER_MS = 5_000 // from one search for new processes to the next
const YOUNG_BUSY_MS = 1_000 // likewise for a process that was started meanwhile

/**
 * @typedef {import('../ask/processes').Asked} Asked
 * @typedef {import('../ask/thread').AskedThread} AskedThread
 */

class Observed {
  /** @type {Asked[]} */
  #asked = []
  /** pids that were asked, and those of which new children are asked @type {Set<number>} */
  #known = new Set()
  /** @type {number[]} */
  #roots = []
  /** LONGSTACK_SOCKET that the user has named @type {string | undefined} */
  #socket
  /** sockets of threads that are asked @type {Set<string>} */
  #files = new Set()
  #discoverAt = 0
  /** @type {Promise<void> | undefined} */
  #discovering
  #isClosed = false

  /** @param {string} name @param {(thread: AskedThread) => void} onThread called for each thread */
  constructor (name, onThread) {
    this.name = name
    this.onThread = onThread
  }

  /**
   * Connects to what the user has named.
   * @param {boolean} withChildren
   * @returns {Promise<string[]>} sentences on processes that do not answer
   * @throws {RefusedError} where none answers
   */
  async connect (withChildren) {
    const target = findTarget(this.name)
    this.#socket = target.socket
    const asked = await ask(target, { children: withChildren, busyMs: BUSY_MS })
    this.#asked.push(asked)
    if (withChildren) this.#roots = target.pids
    this.#discoverAt = performance.now() + DISCOVER_MS
    const blocked = blockedSentences(asked)
    const sentences = [...asked.refused.map(({ sentence }) => sentence), ...blocked]
    if (blocked.length === asked.processes.length) {
      await this.close()
      throw new RefusedError(sentences.join('\n'))
    }
    this.#add(asked)
    for (const { files } of this.#sockets()) for (const file of files) this.#files.add(file)
    return sentences
  }

  /** Lists the sockets of threads. @returns {Array<{ pid: number | undefined, files: string[] }>} */
  #sockets () {
    if (this.#socket !== undefined) return [{ pid: undefined, files: socketFiles(this.#socket) }]
    return [...this.#known].map((pid) => ({ pid, files: socketsOf(pid) }))
  }

  /** @param {Asked} asked */
  #add ({ processes, refused }) {
    for (const { pid } of [...processes, ...refused]) this.#known.add(pid)
    for (const { threads } of processes) for (const thread of threads) this.onThread(thread)
  }

  /** Looks for what was started meanwhile, now and then; does not wait for it. */
  discover () {
    if (this.#discovering !== undefined || performance.now() < this.#discoverAt) return
    this.#discovering = this.#findNew().catch(() => {}).finally(() => {
      this.#discovering = undefined
      this.#discoverAt = performance.now() + DISCOVER_MS
    })
  }

  async #findNew () {
    const pids = this.#roots.flatMap((pid) => nodeDescendants(pid)).filter((pid) => !this.#known.has(pid))
    for (const pid of new Set(pids)) {
      this.#known.add(pid)
      const asked = await askProcesses([pid], { children: false, busyMs: YOUNG_BUSY_MS })
      if (this.#isClosed) return asked.close()
      this.#asked.push(asked)
      this.#add(asked)
    }
    for (const { pid, files } of this.#sockets()) {
      await this.#connectTo(files.filter((file) => !this.#files.has(file)), pid)
    }
  }

  /** @param {string[]} files sockets of threads that started meanwhile @param {number | undefined} pid */
  async #connectTo (files, pid) {
    if (files.length === 0) return
    const { threads } = await connectTo(files, pid)
    const close = () => { for (const thread of threads) thread.close() }
    if (this.#isClosed) return close()
    for (const { file = '' } of threads) this.#files.add(file)
    this.#asked.push({ processes: [], refused: [], close })
    for (const thread of threads) this.onThread(thread)
  }

  async close () {
    this.#isClosed = true
    for (const asked of this.#asked) asked.close()
    await this.#discovering
  }
}

module.exports = { Observed }
