'use strict'

// The process's end of a question: answers a command, one JSON object a line, and undoes what the command has
// set when it goes. A question is { id, name, argument }; answers are { id, part } and { id, value }, or
// { id, error }; { event, value } comes unasked. It goes over a Unix socket: the command's own, to which the
// process connects when its inspector was asked to, or one that came to LONGSTACK_SOCKET.
//
// Questions that look at many things are generators, and run in slices: the event loop is held for some
// milliseconds at a time, and the program runs in between.

const net = require('node:net')
const { clearTimeout, setTimeout } = require('node:timers') // programs replace the global ones
const { now, startQuery } = require('../core/clock')
const { OWN_WORK, contextTag } = require('../core/context')
const guard = require('../core/guard')
const { handleOf } = require('../node-objects')
const { closeUnopened } = require('../standard-error')
const { messageOf } = require('../warnings')
const { createLineReader } = require('./protocol')
const { questions } = require('./questions')

const { stringify } = JSON // programs replace it
const MAX_QUESTION = 1 << 20 // characters
const MAX_WAITING = 1 << 20 // bytes that the command has not read yet; past them answers pause
const SLICE_MS = 12
const PAUSE_MS = 3
const HELD_MS = 10_000 // for a command to have the process connect: it was killed

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
  /** what questions keep for later ones @type {Map<string, any>} */
  kept = new Map()
  /** takes questions, cut anywhere */
  receive = createLineReader((question) => this.#answer(question), MAX_QUESTION)

  /**
   * @param {(line: string) => void} write
   * @param {() => boolean} isReady more can be written now
   */
  constructor (write, isReady) {
    this.#write = write
    this.#isReady = isReady
  }

  /** @param {any} question */
  #answer ({ id, name, argument = {} }) {
    const done = (/** @type {any} */ value) => this.send({ id, value })
    const failed = (/** @type {unknown} */ error) => this.send({ id, error: messageOf(error) })
    guard.run(() => {
      try {
        if (!Object.hasOwn(questions, name)) throw new Error(`its longstack cannot answer "${name}"`)
        startQuery() // ages are as of now
        /** @type {any} */
        const answer = questions[/** @type {keyof typeof questions} */ (name)](argument, this)
        if (typeof answer?.then === 'function') return answer.then(done, failed)
        if (typeof answer?.next !== 'function') return done(answer)
        const send = (/** @type {any} */ part) => this.send({ id, part })
        runInSlices(answer, { send, done, failed, isReady: this.#isReady, isOver: () => this.#isOver })
      } catch (error) {
        failed(error)
      }
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
    this.#isOver = true
    for (const ending of this.#endings) {
      this.#endings.delete(ending)
      try {
        guard.run(ending)
      } catch {} // the others are to be undone as well
    }
    this.kept.clear()
  }
}

/**
 * @param {Question} question
 * @param {object} steps
 * @param {(part: any) => void} [steps.send]
 * @param {(answer: any) => void} steps.done
 * @param {(error: unknown) => void} steps.failed
 * @param {() => boolean} [steps.isReady] more can be sent now
 * @param {() => boolean} steps.isOver nobody waits for the answer any more
 */
function runInSlices (question, { send, done, failed, isReady = () => true, isOver }) {
  const slice = () => guard.run(() => {
    try {
      if (isOver()) return question.return(undefined)
      startQuery()
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

/**
 * Answers what comes on a socket, which keeps nothing alive.
 * @param {net.Socket} socket
 */
function serve (socket) {
  const isReady = () => socket.writableLength < MAX_WAITING
  const session = new Session((line) => { socket.write(line) }, isReady)
  socket.unref().setEncoding('utf8')
  socket.on('data', (text) => guard.run(() => session.receive(String(text))))
  socket.on('end', () => guard.run(() => { socket.end() }))
  socket.on('error', () => {}) // `close` follows
  socket.on('close', () => session.end())
  markOwn(socket)
}

/** Marks a handle as longstack's own: tracing may have been off. @param {object} object that has it */
function markOwn (object) {
  const handle = handleOf(object)
  if (handle !== undefined) contextTag.write(handle, OWN_WORK)
}

/**
 * Connects to a command.
 * @param {string} path of its socket
 * @param {string} token tells it who comes
 * @returns {Promise<string>} empty; rejects where it cannot be reached
 */
function connectToCommand (path, token) {
  return new Promise((resolve, reject) => guard.run(() => {
    const socket = new net.Socket()
    closeUnopened(socket)
    socket.once('error', reject)
    socket.connect(path, () => guard.run(() => {
      socket.off('error', reject)
      socket.write(`${stringify({ token })}\n`)
      serve(socket)
      resolve('')
    })).unref()
  }))
}

/**
 * Tells what a process that is busy does: called on top of it.
 * @param {Function} above frames of the busy code start below this function
 * @returns {string | undefined} a long stack; undefined: the event loop is free
 */
function busyStack (above) {
  if (guard.inOwnWork) return 'in longstack itself'
  return guard.run(() => {
    startQuery()
    const { presentFrames } = require('../stacks/present')
    const [, ...frames] = presentFrames(above) // the first is what the inspector evaluates
    if (frames.length === 0) return undefined
    return require('../handles/chain-of').stackOf(undefined, above)
  })
}

/** Closes the inspector that a command has opened and does not close. @type {NodeJS.Timeout | undefined} */
let holding

/** Awaits that a command, which has opened the inspector, closes it. */
function hold () {
  guard.run(() => {
    const inspector = require('node:inspector')
    const url = inspector.url()
    release()
    holding = setTimeout(() => { if (inspector.url() === url) inspector.close() }, HELD_MS).unref()
  })
}

/** The command closes the inspector. */
function release () {
  clearTimeout(holding)
}

module.exports = { Session, busyStack, connectToCommand, hold, markOwn, release, runInSlices, serve }
