'use strict'

// One command that asks: answers its questions, one JSON object a line, and undoes what the command has set
// when it goes. A question is { id, name, argument }; answers are { id, part } and { id, value }, or
// { id, error }; { event, value } comes unasked.

const guard = require('../context/guard')
const { messageOf } = require('../warnings')
const { questions } = require('./questions')
const { runInSlices } = require('./slices')

const { parse, stringify } = JSON // programs replace them
const MAX_QUESTION = 1 << 20 // characters

/** @typedef {import('../tracer').Tracer} Tracer */

class Session {
  #rest = ''
  #isOver = false
  /** called when the command goes @type {Set<() => void>} */
  #endings = new Set()
  #write

  /**
   * @param {Tracer} tracer
   * @param {(line: string) => void} write
   * @param {() => boolean} isReady more can be written now
   */
  constructor (tracer, write, isReady = () => true) {
    this.tracer = tracer
    this.isReady = isReady
    this.#write = write
    /** what questions keep for later ones @type {Map<string, any>} */
    this.kept = new Map()
  }

  /** @param {string} text of questions, cut anywhere */
  receive (text) {
    const lines = (this.#rest + text).split('\n')
    this.#rest = /** @type {string} */ (lines.pop())
    if (this.#rest.length > MAX_QUESTION) this.#rest = ''
    for (const line of lines) {
      const question = parseQuestion(line)
      if (question !== undefined) this.ask(question)
    }
  }

  /** @param {{ id: number, name: string, argument?: any }} question */
  ask ({ id, name, argument }) {
    this.answer(name, argument, {
      part: (part) => this.send({ id, part }),
      value: (value) => this.send({ id, value }),
      error: (error) => this.send({ id, error })
    })
  }

  /**
   * Answers a question.
   * @param {string} name
   * @param {any} argument
   * @param {{ part: (part: any) => void, value: (value: any) => void, error: (sentence: string) => void }} to
   */
  answer (name, argument, to) {
    const failed = (/** @type {unknown} */ error) => to.error(messageOf(error))
    guard.run(() => {
      try {
        if (!Object.hasOwn(questions, name)) throw new Error(`its longstack cannot answer "${name}"`)
        this.tracer.wiring.queries() // ages are as of now
        /** @type {any} */
        const answer = questions[/** @type {keyof typeof questions} */ (name)](argument ?? {}, this)
        if (typeof answer?.then === 'function') answer.then(to.value, failed)
        else if (typeof answer?.next !== 'function') to.value(answer)
        else this.#answerInSlices(answer, to, failed)
      } catch (error) {
        failed(error)
      }
    })
  }

  /**
   * @param {Generator<any, any>} question
   * @param {{ part: (part: any) => void, value: (value: any) => void }} to
   * @param {(error: unknown) => void} failed
   */
  #answerInSlices (question, { part, value }, failed) {
    runInSlices(question, {
      begin: () => { this.tracer.wiring.queries() },
      send: part,
      done: value,
      failed,
      isReady: this.isReady,
      isOver: () => this.#isOver
    })
  }

  /** @param {object} message */
  send (message) {
    if (!this.#isOver) guard.run(() => this.#write(`${stringify(message)}\n`))
  }

  /**
   * Has something undone when the command goes.
   * @param {() => void} ending
   * @returns {() => void} undoes it now
   */
  onEnd (ending) {
    this.#endings.add(ending)
    return () => { if (this.#endings.delete(ending)) ending() }
  }

  /** The command is gone. */
  end () {
    if (this.#isOver) return
    this.#isOver = true
    guard.run(() => {
      for (const ending of this.#endings) {
        try {
          ending()
        } catch {} // the others are to be undone as well
      }
    })
    this.#endings.clear()
    this.kept.clear()
  }
}

/** @param {string} line @returns {{ id: number, name: string, argument?: any } | undefined} */
function parseQuestion (line) {
  try {
    const { id, name, argument } = parse(line)
    const isQuestion = Number.isSafeInteger(id) && typeof name === 'string'
    const isArgument = argument === undefined || typeof argument === 'object'
    return isQuestion && isArgument ? { id, name, argument } : undefined
  } catch {
    return undefined
  }
}

module.exports = { Session }
