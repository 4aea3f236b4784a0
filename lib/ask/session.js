'use strict'

// The process's end of the protocol: responds to a command, one JSON object per line, and undoes the
// command's settings when it disconnects. A query is { id, name, argument }. Responses are { id, part } and
// { id, value }, or { id, error }; { event, value } is sent unprompted. The connection is a Unix socket: to
// the command, if the inspector made this process connect, or to LONGSTACK_SOCKET.
//
// The queries are the functions of the table `questions`; each takes an argument and the session of the
// command. Results are plain data. Functions that look at many things are generators and run in slices: they
// hold the event loop for some milliseconds at a time, and the program runs in between.

const net = require('node:net')
const { clearTimeout, setTimeout } = require('node:timers') // programs replace the global ones
const { listeners: blockedListeners } = require('../blocked/wanted')
const { now, startQuery } = require('../core/clock')
const { OWN_WORK, contextTag } = require('../core/context')
const guard = require('../core/guard')
const { BlockingTexts } = require('../format/blocking')
const { groupKey, printed } = require('../format/handles')
const { handleOf, providers } = require('../node-objects')
const { environmentOptions, parseOptions } = require('../options')
const { ownManifest } = require('../platform')
const { settings } = require('../settings')
const { closeUnopened } = require('../standard-error')
const { compile } = require('../subsystems')
const { cutUrlCredentials } = require('../text')
const { messageOf } = require('../warnings')
const { createLineReader } = require('./protocol')

const { stringify } = JSON // programs replace it
const MAX_QUESTION = 1 << 20 // characters
const MAX_WAITING = 1 << 20 // bytes that the command has not read yet, past which responses pause
const MAX_WAITING_LOG = 1 << 22 // the same for the run log, past which a stretch of it is dropped
const BATCH = 100 // handles per part of a response
const SLICE_MS = 12
const PAUSE_MS = 3
const HELD_MS = 10_000 // for a command to connect and close the inspector; then it counts as killed

/**
 * A query that runs in slices: yields a part to send at once, or undefined when the event loop may go on;
 * returns the rest of the response.
 * @typedef {Generator<any, any>} Question
 *
 * @typedef {import('../handles/why').Why} Why
 * @typedef {import('../format/handles').Printed} Printed
 * @typedef {import('../options').Options} Options
 * @typedef {{ spans?: string, blocked?: number, filter?: string[] }} Wishes
 *
 * An open handle as it is sent: of handles with equal chains only the first has the hops.
 * @typedef {Omit<Printed, 'opened' | 'usedBy' | 'writtenBy'> & { group: number, opened?: Printed['opened'],
 *   usedBy?: { request: string, hops?: any[] }, writtenBy?: Printed['writtenBy'] }} SentHandle
 */

class Session {
  #isOver = false
  /** called when the command disconnects @type {Set<() => void>} */
  #endings = new Set()
  #socket
  /** state that queries keep for later ones @type {Map<string, any>} */
  kept = new Map()

  /** @param {net.Socket} socket */
  constructor (socket) {
    this.#socket = socket
  }

  /** @param {any} question */
  answer ({ id, name, argument = {} }) {
    const done = (/** @type {any} */ value) => this.send({ id, value })
    const failed = (/** @type {unknown} */ error) => this.send({ id, error: messageOf(error) })
    guard.run(() => {
      try {
        if (!Object.hasOwn(questions, name)) throw new Error(`its longstack does not support "${name}"`)
        startQuery() // ages are as of now
        /** @type {any} */
        const answer = questions[/** @type {keyof typeof questions} */ (name)](argument, this)
        if (typeof answer?.then === 'function') return answer.then(done, failed)
        if (typeof answer?.next !== 'function') return done(answer)
        const send = (/** @type {any} */ part) => this.send({ id, part })
        runInSlices(answer, { send, done, failed, isReady: () => this.isReady, isOver: () => this.#isOver })
      } catch (error) {
        failed(error)
      }
    })
  }

  /** @param {object} message */
  send (message) {
    if (!this.#isOver) guard.run(() => this.#socket.write(`${stringify(message)}\n`))
  }

  /** @returns {number} bytes that the command has not read yet */
  get waiting () { return this.#socket.writableLength }

  /** Whether the command has read enough of what was sent before. */
  get isReady () { return this.waiting < MAX_WAITING }

  /** Registers what to undo when the command disconnects. @param {() => void} ending */
  onEnd (ending) {
    this.#endings.add(ending)
  }

  /** Undoes everything: the command has disconnected. */
  end () {
    this.#isOver = true
    for (const ending of this.#endings) {
      this.#endings.delete(ending)
      try {
        guard.run(ending)
      } catch {} // the others must still be undone
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
 * @param {() => boolean} steps.isOver nobody waits for the response any longer
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
    // An unreferenced immediate does not end the wait for events.
    setTimeout(slice, PAUSE_MS).unref()
  })
  slice()
}

/**
 * Serves the queries on a socket, without keeping the process alive.
 * @param {net.Socket} socket
 */
function serve (socket) {
  const session = new Session(socket)
  /** @type {((line: string) => void) | undefined} */
  let readHttp
  const readOther = (/** @type {string} */ line) => {
    readHttp ??= require('./http').createHttpReader(socket, runInSlices)
    readHttp(line)
  }
  const limits = { maxLine: MAX_QUESTION }
  const receive = createLineReader((question) => session.answer(question), limits, readOther)
  socket.unref().setEncoding('utf8')
  socket.on('data', (text) => guard.run(() => receive(String(text))))
  socket.on('end', () => guard.run(() => { socket.end() }))
  socket.on('error', () => {}) // `close` follows
  socket.on('close', () => session.end())
  markOwn(socket)
}

/** Marks a handle as longstack's own, in case tracing was off. @param {object} object that owns it */
function markOwn (object) {
  const handle = handleOf(object)
  if (handle !== undefined) contextTag.write(handle, OWN_WORK)
}

/**
 * Connects to a command.
 * @param {string} path of its socket
 * @param {string} token identifies this thread to the command
 * @returns {Promise<string>} empty; rejects if the command cannot be reached
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
 * Describes what a busy process runs; called on top of that code.
 * @param {Function} above frames of the busy code start below this function
 * @returns {string | undefined} a long stack; undefined if the event loop is free
 */
function busyStack (above) {
  if (guard.inOwnWork) return 'in longstack itself'
  return guard.run(() => {
    startQuery()
    const { presentFrames } = require('../stacks/hop-frames')
    const [, ...frames] = presentFrames(above) // the first is the inspector's expression
    if (frames.length === 0) return undefined
    return require('../handles/chain-of').stackOf(undefined, above)
  })
}

/** Closes the inspector if the command that opened it does not. @type {NodeJS.Timeout | undefined} */
let holding

/** Starts the timer within which a command must close the inspector that it opened. */
function hold () {
  guard.run(() => {
    const inspector = require('node:inspector')
    const url = inspector.url()
    release()
    holding = setTimeout(() => { if (inspector.url() === url) inspector.close() }, HELD_MS).unref()
  })
}

/** Stops the timer: the command closes the inspector. */
function release () {
  clearTimeout(holding)
}

/** Describes the process and this thread. */
function facts () {
  const { isMainThread, threadId } = require('node:worker_threads')
  return {
    pid: process.pid,
    threadId,
    isMainThread,
    node: process.version,
    longstack: ownManifest().version,
    title: process.title,
    script: process.argv[1] && cutUrlCredentials(process.argv[1]), // with --eval, an argument
    uptimeMs: performance.now(),
    rss: isMainThread ? process.memoryUsage.rss() : undefined,
    tracing: settings.enabled ? 'full' : 'off',
    spans: settings.enabled && settings.options.spans !== undefined,
    blocked: settings.enabled ? settings.options.blocked : undefined
  }
}

/**
 * Lists open handles.
 * @param {{ filter?: string[] }} argument
 * @returns {Generator<SentHandle[] | undefined, void>}
 */
const open = ({ filter = ['*'] }) => batches(require('../handles/why').open(compile(filter, providers())))

/** @param {Iterable<Why | undefined>} reports @returns {Generator<SentHandle[] | undefined, void>} */
function * batches (reports) {
  /** by key @type {Map<string, number>} */
  const groups = new Map()
  /** @type {SentHandle[]} */
  let batch = []
  for (const why of reports) {
    const facts = why && /** @type {Printed} */ (printed.read(why))
    // May have closed since it was listed
    if (facts !== undefined && facts.state !== 'closed') batch.push(sentHandle(facts, groups))
    if (batch.length < BATCH) {
      yield undefined
      continue
    }
    yield batch
    batch = []
  }
  yield batch
}

/** @param {Printed} facts @param {Map<string, number>} groups @returns {SentHandle} */
function sentHandle (facts, groups) {
  const { opened, usedBy, writtenBy, ...others } = facts
  const key = groupKey(facts)
  const present = groups.get(key)
  if (present !== undefined) {
    return { ...others, group: present, usedBy: usedBy && { request: usedBy.request } }
  }
  const group = groups.size
  groups.set(key, group)
  return { ...others, group, opened, usedBy, writtenBy }
}

/** Records open handles. @param {{}} _ @param {Session} session @returns {Generator<undefined, void>} */
function * snapshot (_, { kept }) {
  kept.set('snapshot', yield * require('../handles/snapshots').record())
}

/**
 * Lists handles that were opened since `snapshot`.
 * @param {{}} _
 * @param {Session} session
 * @returns {Generator<SentHandle[] | undefined, void>}
 */
function * diff (_, { kept }) {
  const before = kept.get('snapshot')
  if (before === undefined) throw new Error('there is no snapshot to compare with')
  yield * batches(yield * require('../handles/snapshots').compare(before))
}

/**
 * Records a profile; it ends early on `finishProfile`, or when the command disconnects.
 * @param {{ seconds: number, samples: boolean }} options
 * @param {Session} session
 * @returns {Promise<import('../profile/profile').Profile>}
 */
function profile (options, session) {
  const { finishProfile, recordProfile } = require('../tracer')
  let isOver = false
  session.onEnd(() => { if (!isOver) finishProfile() })
  return recordProfile(options).finally(() => { isOver = true })
}

// longstack attach: while commands are attached, tracing is on with the options that they request. When the
// last one disconnects, the previous options are restored, or tracing is turned off again.

/** options of the attached commands, oldest first @type {Set<Wishes>} */
const attached = new Set()
/** settings before the first attached @type {{ options: Options, enabled: boolean, hasRecorded: boolean }} */
let before
/** options last applied for them @type {Options | undefined} */
let applied

/** Applies the options that commands request. @throws {LongstackError} if an option is wrong */
function applyWishes () {
  const wishes = /** @type {any} */ (Object.assign({}, ...attached))
  const parsed = /** @type {any} */ (parseOptions(wishes, environmentOptions()))
  applied = { ...before.enabled ? before.options : parseOptions({}, environmentOptions()) }
  for (const name of Object.keys(wishes)) Object.assign(applied, { [name]: parsed[name] })
  require('../tracer').apply(applied)
}

/** Withdraws the options of a command. @param {Wishes} wishes */
function detach (wishes) {
  if (!attached.delete(wishes)) return
  // The program has enabled or disabled tracing itself since then
  if (!settings.enabled || settings.options !== applied) return
  if (attached.size > 0) return applyWishes()
  const tracer = require('../tracer')
  if (before.enabled) return tracer.apply(before.options)
  tracer.disable()
  settings.options = before.options
  if (!before.hasRecorded) tracer.forget()
}

/**
 * Turns tracing on until the command disconnects, and reports callbacks that block to it.
 * @param {Wishes} wishes
 * @param {Session} session
 * @returns {{ wasEnabled: boolean }}
 */
function attach (wishes, session) {
  const { enabled, options } = settings
  if (attached.size === 0) before = { options, enabled, hasRecorded: require('../tracer').hasRecorded() }
  attached.add(wishes)
  try {
    applyWishes()
  } catch (error) {
    attached.delete(wishes)
    throw error
  }
  session.onEnd(() => detach(wishes))
  const isTold = enabled && options.blocked !== undefined // by the process itself
  if (wishes.blocked !== undefined && !isTold) tellBlocked(session)
  return { wasEnabled: enabled }
}

/** Reports each callback that blocks to a command. @param {Session} session */
function tellBlocked (session) {
  const texts = new BlockingTexts()
  const send = (/** @type {any} */ event) => {
    let text
    try {
      text = texts.format(event, event.span)
    } catch (error) {
      text = messageOf(error)
    }
    session.send({ event: 'blocked', value: { text } })
  }
  blockedListeners.add(send)
  session.onEnd(() => { blockedListeners.delete(send) })
}

/**
 * Sends the run log from now on, as blocks of a recording, until the command disconnects.
 * @param {{}} _
 * @param {Session} session
 */
function startLog (_, session) {
  session.kept.get('log')?.stop()
  const { SentRecording } = require('../record/sent')
  const recording = new SentRecording({
    send: (block) => session.send({ event: 'log', value: { block: block.toString('base64') } }),
    waiting: () => session.waiting,
    maxWaiting: MAX_WAITING_LOG
  })
  session.kept.set('log', recording)
  session.onEnd(() => recording.stop())
  recording.start()
}

/** Sends the rest of the run log, and stops. @param {{}} _ @param {Session} session */
function finishLog (_, { kept }) {
  const recording = kept.get('log')
  recording?.stop()
  return recording && { unsentMs: recording.unsentMs }
}

const top = () => require('../top/sampler')

const questions = {
  facts,
  open,
  /** Requests in flight, and what each waits for. */
  requests: () => require('../handles/requests-in-flight').requestsInFlight(),
  /** Requests that wait for a free socket of an http.Agent. */
  agentQueues: () => require('../handles/requests-in-flight').agentQueues(),
  /** Pending awaits. @param {{ olderThanMs?: number }} argument */
  pending: (argument) => require('../handles/pending').slices(argument),
  /** Wait-for graph of requests. */
  waitGraph: () => require('../handles/wait-graph').waitGraph(),
  snapshot,
  diff,
  attach,
  profile,
  /** Ends the profile that is being recorded; `profile` then responds. */
  finishProfile: () => require('../tracer').finishProfile(),
  startLog,
  finishLog,
  /** Starts figures. @param {import('../top/sampler').TopOptions} options @param {Session} session */
  startTop: (options, session) => top().startTop(options, session),
  /** Returns the figures since the last call. @param {{}} _ @param {Session} session */
  readTop: (_, session) => top().readTop(session),
  /** Figures for dashboards. */
  metrics: () => require('../metrics/figures').slices('socket'),
  /** Stops figures. @param {{}} _ @param {Session} session */
  stopTop: (_, session) => top().stopTop(session),
  /** Returns a chain as text. @param {{ chain: number }} argument */
  describeChain: ({ chain }) => require('../format/chain-texts').chainText(chain)
}

module.exports = { Session, busyStack, connectToCommand, hold, markOwn, release, runInSlices, serve }
