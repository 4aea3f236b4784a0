'use strict'

// The process's end of a question: answers a command, one JSON object a line, and undoes what the command has
// set when it goes. A question is { id, name, argument }; answers are { id, part } and { id, value }, or
// { id, error }; { event, value } comes unasked.
//
// Questions that look at many things are generators, and run in slices: the event loop is held for some
// milliseconds at a time, and the program runs in between.

const { setTimeout } = require('node:timers') // programs replace the global ones
const { now, startQuery } = require('../context/clock')
const guard = require('../context/guard')
const { messageOf } = require('../warnings')
const { createLineReader } = require('./lines')
const { questions } = require('./questions')

const { stringify } = JSON // programs replace it
const MAX_QUESTION = 1 << 20 // characters
const SLICE_MS = 12
const PAUSE_MS = 3

/**
 * A question that runs in slices: yields what is to be sent at once, or undefined where the event loop may go
 * on; returns the rest of the answer.
 * @typedef {Generator<any, any>} Question
 */

class Session {
  #isOver = false
  /** called when the command goes @type {Set<() => void>} */
  #endings = new Set()
  #write
  #isReady

  /**
   * @param {import('../tracer').Tracer} tracer
   * @param {(line: string) => void} write
   * @param {() => boolean} isReady more can be written now
   */
  constructor (tracer, write, isReady) {
    this.tracer = tracer
    this.#write = write
    this.#isReady = isReady
    /** what questions keep for later ones @type {Map<string, any>} */
    this.kept = new Map()
    /** takes questions, cut anywhere */
    this.receive = createLineReader((message) => {
      const { id, name, argument } = message
      const isQuestion = Number.isSafeInteger(id) && typeof name === 'string'
      if (isQuestion && (argument === undefined || typeof argument === 'object')) this.#ask(message)
    }, MAX_QUESTION)
  }

  /** @param {{ id: number, name: string, argument?: any }} question */
  #ask ({ id, name, argument }) {
    const done = (/** @type {any} */ value) => this.send({ id, value })
    const failed = (/** @type {unknown} */ error) => this.send({ id, error: messageOf(error) })
    guard.run(() => {
      try {
        if (!Object.hasOwn(questions, name)) throw new Error(`its longstack cannot answer "${name}"`)
        startQuery() // ages are as of now
        /** @type {any} */
        const answer = questions[/** @type {keyof typeof questions} */ (name)](argument ?? {}, this)
        if (typeof answer?.then === 'function') answer.then(done, failed)
        else if (typeof answer?.next !== 'function') done(answer)
        else this.#answerInSlices(id, answer, failed)
      } catch (error) {
        failed(error)
      }
    })
  }

  /** @param {number} id @param {Question} question @param {(error: unknown) => void} failed */
  #answerInSlices (id, question, failed) {
    runInSlices(question, {
      begin: startQuery,
      send: (part) => this.send({ id, part }),
      done: (value) => this.send({ id, value }),
      failed,
      isReady: this.#isReady,
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

/**
 * @param {Question} question
 * @param {object} steps
 * @param {() => void} [steps.begin] called before each slice
 * @param {(part: any) => void} [steps.send]
 * @param {(answer: any) => void} steps.done
 * @param {(error: unknown) => void} steps.failed
 * @param {() => boolean} [steps.isReady] more can be sent now
 * @param {() => boolean} steps.isOver nobody waits for the answer any more
 */
function runInSlices (question, { begin = () => {}, send, done, failed, isReady = () => true, isOver }) {
  const slice = () => guard.run(() => {
    try {
      if (isOver()) return question.return(undefined)
      begin()
      for (const end = now() + SLICE_MS; isReady() && now() < end;) {
        const step = question.next()
        if (step.done) return done(step.value)
        if (step.value !== undefined) send?.(step.value)
      }
    } catch (error) {
      return failed(error)
    }
    // An immediate without a reference does not end a wait for events.
    setTimeout(slice, PAUSE_MS).unref()
  })
  slice()
}

module.exports = { Session, runInSlices }
