'use strict'

// Turns a context into hops, newest first. Leaves out internal steps, folds loops, and does not repeat
// functions that V8 prints as "at async". Contexts hold raw records; all decisions are made when a chain is
// read.

const { queriedAt } = require('../core/clock')
const { root } = require('../core/context')
const { carryChain } = require('../passing/threads')
const { settings } = require('../settings')
const { isScope } = require('./frames')
const { HopFolding } = require('./hop-folding')
const { copyOf, mainPackage, print, viewOf } = require('./hop-frames')
const { arrivedBy, isAccepted, labelOf, moreTelling, nameByLater, namesRequest } = require('./labels')
const { foldLoops } = require('./loop-folding')
const { importedHopsOf } = require('./passed-chain')
const { findLauncher, findRunner } = require('./test-runners')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./hop-frames').StackView} StackView
 *
 * @typedef {'registered' | 'settled' | 'rejected' | 'first' | 'thrown' | 'awaited' | 'triggered' |
 *   'reader' | 'idle' | 'opened' | 'unasked' | 'shared' | 'ended' | 'destroyed' | 'sent' | 'aborted' |
 *   'early' | 'worker' | 'process'} Origin
 *   how a hop is known, in this order: its registration; code that resolved or rejected the promise; code
 *   that rejected with the error, did so first, or threw it, and may not have created it; code that waited
 *   for the promise; code that ran when the error was created or rejected with, perhaps for another request;
 *   the reader of `.stack`; the opener of an idle connection, of one with another flow's query, and of one
 *   with a query of unknown owner; flows that share the connection; code that ended or destroyed the error's
 *   object, sent its headers, or aborted it; a resource created before longstack was enabled; the thread that
 *   created this worker; the process that spawned this one
 *
 * @typedef {object} Hop one asynchronous step
 * @property {number} asyncId
 * @property {number} triggerAsyncId
 * @property {string} type Node's provider name
 * @property {string} label a readable name of the call
 * @property {number} ageMs time since its creation; NaN if no longer known
 * @property {number} repeats loop iterations folded into this hop
 * @property {Origin} origin
 * @property {number} [pid] process that created it, if `origin` is `process`
 * @property {number} [threadId] thread that created it, if a message carried it over; 0: the main thread
 * @property {Array<HopFrame>} frames stack at its creation, innermost first
 *
 * @typedef {object} HopFrame
 * @property {string | undefined} functionName
 * @property {string | undefined} fileName
 * @property {number | undefined} lineNumber
 * @property {number | undefined} columnNumber
 * @property {'user' | 'module' | 'core'} kind
 * @property {boolean} isAsync
 *
 * @typedef {object} HopText
 * @property {string[]} lines its frames, mapped
 * @property {string[]} [short] lines for people, by the option `hide`; undefined with `internals`, which
 *   prints everything, including the type
 * @property {string} [place] its innermost frame of the program
 * @property {string[]} [packages] packages of its frames, if no line for people is of the program
 * @property {import('./hop-frames').ShortText} [alone] the same if the main script's package counts as the
 *   program
 * @property {PrintedHop[]} [members] hops that it stands for
 * @property {boolean} [isRequest] its label names a request that a server received
 * @property {boolean} [isBehindRequest] it led to the server of a request in the chain: not for people
 * @property {boolean} [isMarked] its line states its origin, even below a hop of the same origin
 * @property {boolean} [isFolded] it stands for several hops and prints only its own line
 *
 * @typedef {Hop & HopText} PrintedHop shared: never changed, and copied before the program gets it
 */

/** @type {any[]} */
const none = []

carryChain(root)

/**
 * Returns the hops of a context.
 * @param {Context | undefined} newest
 * @param {object} [details]
 * @param {Frame[]} [details.above] frames printed above the hops
 * @param {Frame[]} [details.told] frames above; their async functions are not repeated
 * @param {Origin} [details.origin] overrides the recorded origin of all hops; of hops of another thread or
 *   process only the first one's
 * @param {PrintedHop[]} [details.printed] hops printed above: adjacent ones become one line
 * @param {(step: Context) => boolean} [details.until] the first step to leave out, with everything that led
 *   to it
 * @returns {PrintedHop[]}
 */
function hops (newest, { above: framesAbove = [], told = framesAbove, origin, printed = none, until } = {}) {
  if (newest === undefined) return []
  foldLoops(newest)
  // Folding may have dropped that step: then the end of the chain is unknown
  if (until !== undefined && !leadsTo(newest, until)) return []
  const { depth, internals } = settings.options
  const printedAwaits = new PrintedAwaits(told)
  const folding = internals ? new HopFolding(depth, none, none) : new HopFolding(depth, framesAbove, printed)
  const isAlone = mainPackage() !== '' && !framesAbove.some(isUsers) && !leadsTo(newest, hasUsersFrame)
  /** whether to read the chain past its depth, up to its request @type {boolean | undefined} */
  let isRequestAhead
  /** @type {Context | undefined} resource that Node created later for the call in an older hop */
  let later
  /** @type {PrintedHop | undefined} the last hop, if created in an async scope */
  let scoped
  let context = /** @type {Context | undefined} */ (newest)
  for (; context !== undefined; context = context.parent) {
    if (until?.(context)) break
    if (!folding.isOpen) {
      isRequestAhead ??= !internals && leadsToRequest(context, until)
      if (!isRequestAhead || !folding.isBeforeRequest) break
    }
    const contextHops = hopsOf(context, printedAwaits, origin)
    if (contextHops.length === 0) {
      folding.pass(runnerOf(context))
      later = moreTelling(later, context)
      continue
    }
    if (later !== undefined) nameByLater(contextHops[0], later, context.stack?.frames ?? none)
    later = undefined
    // Node entered this step in the call that created it (session.request of HTTP/2)
    if (!internals && scoped !== undefined && isSameCall(scoped, contextHops[0])) continue
    scoped = context.stack?.frames.some(isScope) ? contextHops[0] : undefined
    const isPassed = passedHopsOf(context) !== undefined
    for (const hop of contextHops) {
      if (isAlone && hop.alone !== undefined) Object.assign(hop, { packages: undefined }, hop.alone)
      folding.add(hop, isPassed && !internals ? passedRunnerOf(hop) : runnerOf(context))
    }
    if (isPassed) break
  }
  const joined = joinEqual(folding.finish())
  if (origin !== undefined && joined.length > 0 && !joined[0].isFolded) joined[0].origin = origin
  return internals ? joined : markedBehindRequest(joined)
}

/**
 * Whether the chain of a step contains the request that started it.
 * @param {Context} newest
 * @param {((step: Context) => boolean) | undefined} until
 */
function leadsToRequest (newest, until) {
  let step = /** @type {Context | undefined} */ (newest)
  while (step !== undefined && until?.(step) !== true) {
    if (namesRequest(step, step.stack?.frames ?? none)) return true
    step = step.parent
  }
  return false
}

/** @param {Frame} frame */
const isUsers = ({ kind }) => kind === 'user'

/** @param {Context} context */
const hasUsersFrame = ({ stack }) => stack?.frames.some(isUsers) === true

/**
 * Whether the chain of a step contains one that passes a test.
 * @param {Context} newest
 * @param {(step: Context) => boolean} test
 */
function leadsTo (newest, test) {
  let step = /** @type {Context | undefined} */ (newest)
  while (step !== undefined && !test(step)) step = step.parent
  return step !== undefined
}

/** @param {Context} context */
const runnerOf = (context) => viewOf(context.stack?.frames ?? none).runner

/**
 * @param {Context} context
 * @param {PrintedAwaits} printedAwaits
 * @param {Origin | undefined} origin
 * @returns {PrintedHop[]} empty if the step is internal to Node
 */
function hopsOf (context, printedAwaits, origin) {
  const passed = passedHopsOf(context)
  if (passed !== undefined) {
    return passed.map((hop) => ({ ...copyOf(hop), ageMs: hop.ageMs + ageOf(context) }))
  }
  const frames = context.stack?.frames ?? none
  const view = viewOf(frames)
  const { internals } = view.options
  let { visible } = view
  if (context.type === 'PROMISE' && !internals) visible = printedAwaits.remaining(visible, context.repeats)
  if (visible.length === 0 && !internals && !isPrintedWithoutFrames(context, frames)) return none
  const told = internals ? undefined : printedAwaits.toldOf(visible)
  printedAwaits.add(visible)
  return [createHop(context, frames, view, visible, origin, told)]
}

/**
 * @param {Context} context
 * @param {Frame[]} frames all of its stack
 * @param {StackView} view
 * @param {Frame[]} visible
 * @param {Origin} [origin]
 * @param {boolean[]} [told] see print
 * @returns {PrintedHop}
 */
function createHop (context, frames, view, visible, origin, told) {
  return {
    asyncId: context.asyncId,
    triggerAsyncId: context.triggerAsyncId,
    type: context.type,
    label: labelOf(context, frames),
    ageMs: ageOf(context),
    repeats: context.repeats,
    origin: origin ?? context.origin,
    ...(namesRequest(context, frames) ? { isRequest: true } : undefined),
    ...print(view, visible, told)
  }
}

/** @param {Context} context @returns {number} ms, NaN if its record is gone */
function ageOf (context) {
  return Math.max(0, queriedAt() - context.time)
}

/**
 * Returns the hops of another thread or process, carried over as data, that led to a step.
 * @param {any} context
 * @returns {PrintedHop[] | undefined} undefined for a step of this thread
 */
function passedHopsOf (context) {
  return context.origin === 'process' ? context.carried ?? none : importedHopsOf(context.chain)
}

/**
 * Returns one context as a hop, whether a chain prints it or not.
 * @param {Context} context
 * @returns {PrintedHop}
 */
function describe (context) {
  const importedHops = importedHopsOf(context.chain)
  if (importedHops !== undefined) return copyOf(importedHops[0])
  const frames = context.stack?.frames ?? none
  const view = viewOf(frames)
  return createHop(context, frames, view, view.visible)
}

/**
 * Whether a step without program frames is printed.
 * @param {Context} context
 * @param {Frame[]} frames
 */
function isPrintedWithoutFrames (context, frames) {
  if (context.origin === 'early') return false
  if (context.type === 'HTTPINCOMINGMESSAGE' || isAccepted(context, frames)) return true
  return arrivedBy(context, frames) !== undefined
}

/** @param {PrintedHop} hop of another thread or process */
const passedRunnerOf = (hop) => findLauncher(hop.frames) ?? findRunner(hop.frames)

/** Marks the hops that led to a request's server. @param {PrintedHop[]} hops of one chain, newest first */
function markedBehindRequest (hops) {
  const request = hops.findIndex(({ isRequest }) => isRequest)
  if (request !== -1) for (const hop of hops.slice(request + 1)) hop.isBehindRequest = true
  return hops
}

/** Joins neighbours with equal text. @param {PrintedHop[]} hops */
function joinEqual (hops) {
  /** @type {PrintedHop[]} */
  const joined = []
  for (const hop of hops) {
    const last = joined[joined.length - 1]
    if (last !== undefined && isEqual(last, hop)) last.repeats += hop.repeats
    else joined.push(hop)
  }
  return joined
}

/** @param {PrintedHop} hop @param {PrintedHop} next */
const isEqual = (hop, next) => hop.type === next.type && isSameCall(hop, next)

/** @param {PrintedHop} hop @param {PrintedHop} next */
function isSameCall ({ label, lines }, next) {
  return label === next.label && lines.length > 0 &&
    lines.length === next.lines.length && lines.every((line, i) => line === next.lines[i])
}

/** Awaiting functions already printed: V8 prints them as "at async", and each is printed once. */
class PrintedAwaits {
  /** printed async functions @type {Set<string>} */
  #keys = new Set()
  /** the same with their line numbers @type {Set<string>} */
  #places = new Set()
  /** the outermost frame of the last hop @type {Frame | undefined} */
  #running
  /**
   * the functions with the next hop's await and with the last hop's await
   * @type {string | undefined}
   */
  #awaited
  /** @type {string | undefined} */
  #resumed

  /** @param {Frame[]} framesAbove frames printed above the chain */
  constructor (framesAbove) {
    this.add(framesAbove)
  }

  /** @param {Frame[]} frames of a printed hop */
  add (frames) {
    this.#resumed = this.#awaited
    this.#awaited = undefined
    for (const frame of frames) {
      if (!frame.isAsync) continue
      this.#keys.add(keyOf(frame))
      this.#places.add(placeOf(frame))
    }
    this.#running = frames.findLast(({ isAsync, kind }) => !isAsync && kind !== 'core') ?? this.#running
  }

  /**
   * Returns which frames of a hop are already printed, at the same line.
   * @param {Frame[]} frames
   * @returns {boolean[] | undefined} undefined if there are none
   */
  toldOf (frames) {
    if (this.#keys.size === 0) return undefined
    const told = frames.map((frame) => this.#places.has(placeOf(frame)))
    return told.includes(true) ? told : undefined
  }

  /**
   * Returns an await's frames from the first function that V8 does not print anyway. Returns none if V8
   * prints all of them, or all but the running function. Also leaves out earlier awaits of the same execution
   * of a function, unless a loop repeats them.
   * @param {Frame[]} frames
   * @param {number} repeats
   */
  remaining (frames, repeats) {
    const keys = this.#keys
    const top = this.#running === undefined ? undefined : keyOf(this.#running)
    const untold = keys.size === 0 ? frames : frames.filter((frame) => !keys.has(keyOf(frame)))
    const isOfRunning = untold.every((frame) => keyOf(frame) === top)
    if (repeats === 1 && isOfRunning) {
      if (keys.size > 0 || (untold.length === 1 && this.#resumed === top)) return none
    }
    if (untold.length === 0) return none
    this.#awaited = keyOf(untold[0])
    if (untold.length === frames.length) return frames
    return isOfRunning ? untold : frames.slice(frames.indexOf(untold[0]))
  }
}

/** @param {Frame} frame */
function keyOf ({ functionName, fileName, lineNumber }) {
  return functionName === undefined ? `${fileName}:${lineNumber}` : `${functionName} ${fileName}`
}

/** @param {Frame} frame */
const placeOf = (frame) => `${keyOf(frame)}:${frame.lineNumber}`

module.exports = { PrintedAwaits, describe, hops }
