'use strict'

// Asks threads for their figures, again and again, and gives them to the model. A thread that does not answer
// in time holds nobody up: what it says later counts for the interval in which it says it.

const { BlockedError } = require('../ask/thread')

const MAX_FAILURES = 3 // in a row: the thread is gone, whether its connection is closed or not
const ANSWER_MS = 500 // that an interval waits for answers, at most half of it

/**
 * @typedef {import('../ask/thread').AskedThread} AskedThread
 *
 * @typedef {object} Asked a thread, and what it has said
 * @property {AskedThread} thread
 * @property {string} key
 * @property {import('./sampler').TopFacts | undefined} facts
 * @property {import('./sampler').TopFigures | undefined} figures not yet given to the model
 * @property {Promise<void> | undefined} question that is not answered yet
 * @property {number} heardAt ms, when it answered last
 * @property {number} failures questions in a row that were refused
 */

class Poller {
  /** @type {Map<string, Asked>} */
  #asked = new Map()
  #model
  #options

  /**
   * @param {import('./model').Model} model
   * @param {{ intervalMs: number, blockedMs: number | undefined }} options
   */
  constructor (model, options) {
    this.#model = model
    this.#options = options
  }

  /** Number of threads that are there. */
  get size () { return this.#asked.size }

  /** Whether some thread has ever answered. */
  hasAnswered = false

  /** The last error that a thread answered with. @type {Error | undefined} */
  failure

  /** Adds a thread, and starts its figures. @param {AskedThread} thread */
  add (thread) {
    const key = `${thread.pid} ${thread.facts.threadId}`
    /** @type {Asked} */
    const asked = {
      thread,
      key,
      facts: undefined,
      figures: undefined,
      question: undefined,
      heardAt: performance.now(),
      failures: 0
    }
    this.#asked.set(key, asked)
    thread.onClose = () => { if (this.#asked.get(key) === asked) this.#asked.delete(key) }
    this.#ask(asked)
  }

  /**
   * Asks all threads.
   * @returns {Promise<void>} resolves when the model has their answers
   */
  async poll () {
    const askedNow = [...this.#asked.values()]
    const questions = askedNow.map((asked) => this.#ask(asked))
    await Promise.race([Promise.all(questions), sleep(Math.min(ANSWER_MS, this.#options.intervalMs / 2))])
    const time = performance.now()
    /** @type {import('./model').Answer[]} */
    const answers = []
    for (const asked of askedNow) {
      const { key, facts, figures, question, heardAt } = asked
      if (facts === undefined || !this.#asked.has(key)) continue
      asked.figures = undefined
      const silentMs = question === undefined ? 0 : time - heardAt
      answers.push({ key, facts, figures, silentMs })
    }
    this.#model.add(answers, Date.now())
  }

  /** Asks a thread, if its last question is answered. @param {Asked} asked @returns {Promise<void>} */
  #ask (asked) {
    if (asked.question !== undefined) return asked.question
    asked.question = this.#question(asked).then(() => {
      asked.heardAt = performance.now()
      asked.failures = 0
      this.hasAnswered = true
    }, (error) => this.#fail(asked, error)).finally(() => { asked.question = undefined })
    return asked.question
  }

  /** @param {Asked} asked @param {Error} error */
  #fail (asked, error) {
    this.failure = error
    if (error instanceof BlockedError || ++asked.failures < MAX_FAILURES) return
    if (this.#asked.get(asked.key) === asked) this.#asked.delete(asked.key)
  }

  /** @param {Asked} asked */
  async #question (asked) {
    if (asked.facts !== undefined) {
      asked.figures = await asked.thread.call('readTop')
      if (asked.figures !== undefined) return
    }
    if (asked.thread.facts.tracing === 'off') await asked.thread.call('attach', {})
    asked.facts = await asked.thread.call('startTop', this.#options)
  }

  /** @param {import('./model').Place} place @returns {Promise<string>} the chain as text */
  async describe ({ key, chain }) {
    const asked = this.#asked.get(key)
    if (asked === undefined) return 'The process has ended.'
    const text = await asked.thread.call('describeChain', { chain })
    return text === '' ? 'Its chain is not known any more.' : text
  }

  /** Takes the figures back in all threads. @returns {Promise<void>} */
  async stop () {
    const stops = [...this.#asked.values()].map(({ thread }) =>
      thread.call('stopTop').catch(() => {}))
    await Promise.race([Promise.all(stops), sleep(ANSWER_MS)])
  }
}

/** @param {number} ms @returns {Promise<void>} */
function sleep (ms) {
  return new Promise((resolve) => { setTimeout(resolve, ms).unref() })
}

module.exports = { Poller, sleep }
