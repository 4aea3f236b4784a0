'use strict'

// Decides which context made an error. V8 formats `.stack` at the first read, in the context of the reader,
// so the decision rests on facts alone. Frames prove a function but never one execution of it, since handlers
// are shared.
//
// The rules are evaluated in order, and the first with a result decides. Rules 1 to 4 find the maker:
//
//   1. the frames end in Node's start-up: made by the main script, before any asynchronous step;
//   2. the allocation clock knows the callback that made it (allocation-clock.js), now or when the error was
//      observed before;
//   3. the receiver of the outermost function is a timer or an immediate, which calls its callback on itself;
//   4. Node's core made it and reads its stack at once, as it does with the errors of sockets.
//
// Rules 5 to 7 find only a context that is not known to have made it:
//
//   5. the context that threw it uncaught, or rejected with it without a handler;
//   6. the context that rejected with it: of several the one whose flow reads it, else the last;
//   7. the context that reads its stack.
//
// Appended are the rejecter if it is of another flow, the awaiter of the promise, the first rejecter, and the
// opener of the connection (askers.js).

const { OWN_WORK, contextTag, root } = require('../core/context')
const { currentContext } = require('../core/current-step')
const { isReusedTimer } = require('../core/kind-handlers')
const { source } = require('../core/source')
const { abortedCall, isAbortReason, subjectOf } = require('../core/state-changes')
const { className, own } = require('../objects')
const { foldLoops } = require('../stacks/loop-folding')
const { afterLast, isDigitCode, withoutAlias } = require('../stacks/text-scan')
const { readSites } = require('../stacks/call-sites')
const { isProgram, isScope } = require('../stacks/frames')
const { importedHopsOf } = require('../stacks/passed-chain')
const { behindWaiter, isOfSeveral, withConnection } = require('./askers')
const { descends, findPlace, findStep, findWaiter, isOneFlow, requestOf } = require('./flows')
const { observe } = require('./observed-errors')
const { withTrigger } = require('./queued-jobs')

const UNKNOWN = -1 // instead of a reference to a request
const MAX_STEPS = 256 // up to a response

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').Origin} Origin
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Part the hops of one context
 * @property {Context | undefined} context
 * @property {Origin} [origin] how it is known; if absent, each hop as recorded
 * @property {string} [label] of a connection: the request that opened it, or those that use it
 * @property {import('./queued-jobs').Doubt} [doubt] its request may not be the one that owns the error
 * @property {boolean} [isRequestOnly] only the hop of its request is printed
 * @property {Context} [until] the first of its ancestors that is not printed
 * @property {boolean} [isMarked] its first hop has its mark, even below hops of the same origin
 * @property {boolean} [isPlace] printed only if its functions are not printed elsewhere
 */

/** The evidence about an error when its stack is read. */
class Evidence {
  /**
   * @param {object} error
   * @param {NodeJS.CallSite[] | undefined} sites undefined if unknown
   */
  constructor (error, sites) {
    this.sites = sites ?? []
    this.hasSites = sites !== undefined
    this.frames = readSites(this.sites).frames
    /** reading it also notes pending rejections */
    this.reader = foldedContext()
    this.observed = observe(error)
    /** promises that delivered it to the reader */
    this.delivery = this.observed.rejections?.deliveryTo(this.reader)
    /** frames of functions that ran */
    this.sync = this.frames.filter((frame) => !frame.isAsync)
    /** the outermost function of the program */
    this.outer = outermost(innermostScope(this.sync))
  }
}

/**
 * In order; the first that returns parts decides.
 * @type {Array<(evidence: Evidence) => Part[] | undefined>}
 */
const rules = [
  function rule1MainScript ({ frames }) {
    return endsInStartUp(frames) ? [{ context: root }] : undefined
  },

  function rule2AllocationClock (evidence) {
    const { hasSites, observed, sync } = evidence
    // An error that Node's native code makes between two callbacks has no frames that ran.
    const isOther = observed.isNative && (!hasSites || sync.length > 0)
    return isOther ? undefined : partsOfMaker(observed.maker, evidence)
  },

  function rule3TimerReceiver (evidence) {
    const { frames, outer, sites, sync } = evidence
    if (outer === undefined) return undefined
    const caller = sync[sync.indexOf(outer) + 1]
    return partsOfMaker(timerOf(sites[frames.indexOf(outer)], caller), evidence)
  },

  function rule4ReadByNode (evidence) {
    const { observed, outer, reader, sync } = evidence
    if (outer !== undefined || !isReadAtOnce(sync)) return undefined
    return partsOfMaker(observed.handedOverBy ?? reader, evidence)
  },

  function rule5Uncaught (evidence) {
    const { escape } = evidence.observed
    if (escape === undefined) return undefined
    const origin = escape.isRejection ? 'rejected' : 'thrown'
    return withRejections([{ context: escape.context, origin }], evidence)
  },

  function rule6Rejecter (evidence) {
    const rejecter = evidence.delivery?.passage.rejection.context
    return rejecter && withRejections([{ context: rejecter, origin: 'rejected' }], evidence)
  },

  function rule7Reader ({ outer, reader }) {
    // A reader at the prompt has the chain of the prompt.
    return outer !== undefined && isPrompt(outer.fileName) ? [] : [{ context: reader, origin: 'reader' }]
  }
]

/**
 * Finds the owner of an error.
 * @param {object} error
 * @param {NodeJS.CallSite[] | undefined} sites its call sites; undefined if unknown
 * @returns {Part[]} the owner first, then the rejecters and the awaiter
 */
function attribute (error, sites) {
  const evidence = new Evidence(error, sites)
  for (const rule of rules) {
    const parts = rule(evidence)
    if (parts === undefined) continue
    if (parts.length === 0) return parts
    const subject = subjectOf(error) ?? callOf(error, evidence)
    return withSubject(withConnection(parts.flatMap(withTrigger)), subject)
  }
  return []
}

/**
 * Adds the maker of the request that was destroyed with the error, unless its flow is already there.
 * @param {Part[]} parts
 * @param {Context | undefined} subject
 * @returns {Part[]}
 */
function withSubject (parts, subject) {
  if (subject === undefined || isTold(subject, parts)) return parts
  const { parent } = subject
  const until = parent !== undefined && descends(parts[0].context, parent) ? parent : undefined
  return [...parts, { context: subject, origin: 'awaited', until, isPlace: true }]
}

/** Returns the current context, with loops folded so that walks along its chain are short. */
function foldedContext () {
  const context = currentContext()
  if (context !== undefined && !context.folded) foldLoops(context)
  return context
}

/**
 * @param {Context | undefined} maker
 * @param {Evidence} evidence
 * @returns {Part[] | undefined}
 */
function partsOfMaker (maker, evidence) {
  const { outer } = evidence
  if (maker === undefined || maker === OWN_WORK) return undefined
  if (isOfPrompt(maker, outer)) return []
  return withRejections([{ context: maker }], evidence)
}

/**
 * Adds the rejecter, the awaiter and the first rejecter, if they belong to other flows.
 * @param {Part[]} parts
 * @param {Evidence} evidence
 */
function withRejections (parts, { frames, observed, delivery }) {
  if (delivery === undefined) return parts
  const { context: rejecter } = delivery.passage.rejection
  if (!isTold(rejecter, parts)) parts.push({ context: rejecter, origin: 'rejected' })
  const told = withWaiter(parts, [delivery, observed.rejections?.firstDelivery()], frames)
  const first = observed.rejections?.first.context
  if (first === undefined || isTold(first, parts)) return told
  const waiter = told.find(({ origin }) => origin === 'awaited')?.context?.parent
  const isJob = areOther(requestOrUnknown(waiter), requestOrUnknown(first)) // for the awaiter
  if (!isJob) told.push({ context: first, origin: 'first' })
  return told
}

/**
 * Adds the awaiter. It comes first if the error was made in another request. A queue starts a job in the
 * callback that ends the previous job, so the chain of the job leads to the caller of the previous one. A
 * rejecter of another request is doubted likewise, since it may settle a batch of several.
 * @param {Part[]} parts
 * @param {[import('./flows').Delivery, import('./flows').Delivery | undefined]} deliveries to the reader, and
 *   to the first recipient
 * @param {Frame[]} frames of the error
 * @returns {Part[]}
 */
function withWaiter (parts, [delivery, first], frames) {
  const isOther = (/** @type {Context} */ caller) => {
    return caller !== root && (isOfSeveral(caller) || !isTold(caller, parts))
  }
  const isOfOther = (/** @type {Context} */ caller) => isOther(caller) && isOtherRequest(caller, parts)
  const waiter = findWaiter(delivery, isOfOther) ?? findWaiter(delivery, isOther) ??
    (first && findWaiter(first, isOther))
  if (waiter === undefined) {
    const isAborted = frames.some(isOfAbort)
    return isAborted || !frames.some(isProgram) ? withPlace(parts, delivery, isAborted) : parts
  }
  const awaited = /** @type {Part} */ ({ context: waiter.context, origin: 'awaited' })
  const { task } = waiter
  if (task !== undefined && descends(parts[0].context, task) && !isSameRequest(waiter.caller, parts)) {
    return [...parts.map((part) => descends(part.context, task) ? { ...part, until: task } : part), awaited]
  }
  const { caller } = waiter
  const isDoubted = (/** @type {Part} */ { context, origin }) => origin === 'rejected' &&
    (isOfSeveral(caller) || !isOneFlow(context, caller)) &&
    areOther(requestOrUnknown(caller), requestOrUnknown(context))
  const certain = parts.filter((part) => !isDoubted(part))
  const isBehind = certain.length > 0 && isOfOther(caller)
  const told = isBehind ? behindWaiter(awaited, certain) : [...certain, awaited]
  const isMakerKnown = parts[0].origin === undefined
  const doubted = isMakerKnown ? [] : parts.filter(isDoubted)
  // Not if the maker is known: its own chain may end with the trigger
  const triggers = doubted.map((part) => {
    return /** @type {Part} */ ({ ...part, origin: 'triggered', isMarked: true })
  })
  return told.toSpliced(told.indexOf(awaited) + 1, 0, ...triggers)
}

/**
 * Adds the place that awaits an error, even within its own flow. An error does not show what failed if it has
 * no frames, like that of an aborted `fetch`, or only those of the code that aborted.
 * @param {Part[]} parts
 * @param {import('./flows').Delivery} delivery
 * @param {boolean} isAborted promises of the main script are named as well
 * @returns {Part[]}
 */
function withPlace (parts, delivery, isAborted) {
  const [{ context }] = parts
  const waiter = findWaiter(delivery, (caller) => caller !== root)
  const place = waiter?.context ?? (isAborted ? findPlace(delivery) : undefined)
  if (place === undefined || descends(context, place)) return parts
  const caller = waiter?.caller
  const until = caller !== undefined && descends(context, caller) ? caller : undefined
  return [...parts, { context: place, origin: 'awaited', until, isPlace: true }]
}

/** Whether a frame is of the function that calls the listeners of an abort. @param {Frame} frame */
const isOfAbort = ({ kind, functionName }) => {
  if (kind !== 'core' || functionName === undefined) return false
  return withoutAlias(functionName) === 'AbortController.abort'
}

/**
 * Returns the call that listens for the abort under way, if an error comes from that abort.
 * @param {object} error
 * @param {Evidence} evidence
 */
function callOf (error, { frames }) {
  return isAbortReason(error) || (isAbortError(error) && frames.some(isOfAbort)) ? abortedCall() : undefined
}

/** By its class or its name. @param {object} error */
const isAbortError = (error) => {
  const name = className(error)
  return name === 'AbortError' || name === 'DOMException' || own(error, 'name') === 'AbortError'
}

/**
 * Whether the caller and the maker belong to different requests.
 * @param {Context} caller
 * @param {Part[]} parts the maker first; ambiguous responses are left to askers.js
 */
function isOtherRequest (caller, [{ context }]) {
  const request = requestOf(context)
  const isUnknown = request === 0 &&
    (source.startOf(context) ?? findStep(context, isOfMessage, MAX_STEPS)) !== undefined
  return areOther(requestOrUnknown(caller), isUnknown ? UNKNOWN : request)
}

/** @param {number} request @param {number} own */
function areOther (request, own) {
  return request !== 0 && own !== 0 && (request !== own || request === UNKNOWN)
}

/**
 * @param {Context | undefined} context
 * @returns {number} reference; UNKNOWN after an ambiguous response or a message of another thread, or if a
 *   queue may have started the step; 0 without a request
 */
function requestOrUnknown (context) {
  const request = requestOf(context)
  const doubtful = request === 0 ? findStep(context, isOfAny, MAX_STEPS) : source.startOf(context)
  return doubtful === undefined ? request : UNKNOWN
}

/** Whether any request may have led to a step. @param {Context} step */
const isOfAny = (step) => isOfSeveral(step) || isOfMessage(step)

/** @param {Context} step */
const isOfMessage = ({ chain }) => importedHopsOf(chain) !== undefined

/** @param {Context} caller @param {Part[]} parts */
function isSameRequest (caller, [{ context }]) {
  const request = requestOf(caller)
  return request !== 0 && request === requestOf(context)
}

/** Whether a context belongs to the flow of a part. @param {Context} context @param {Part[]} parts */
function isTold (context, parts) {
  return parts.some((part) => isOneFlow(part.context, context))
}

/**
 * Whether an error comes from a line typed at the prompt, which has no chain but that of the prompt.
 * @param {Context} context
 * @param {Frame | undefined} outer
 */
function isOfPrompt (context, outer) {
  if (outer === undefined || !isPrompt(outer.fileName)) return false
  return context.stack?.frames.some((frame) => isPrompt(frame.fileName)) !== true
}

/**
 * Returns the context of the timer that called a function. A timer calls its callback on itself, and V8
 * exposes the receiver in sloppy code.
 * @param {NodeJS.CallSite} site of the outermost function
 * @param {Frame | undefined} caller
 * @returns {Context | undefined}
 */
function timerOf (site, caller) {
  let receiver
  try {
    receiver = site.getThis()
  } catch {}
  if (typeof receiver !== 'object' || receiver === null) return undefined
  const name = caller?.functionName
  // Any function may be called on a timer.
  if (name !== 'listOnTimeout' && name?.endsWith('processImmediate') !== true) return undefined
  const context = contextTag.read(receiver)
  if (context?.type === 'Immediate') return context
  return context?.type === 'Timeout' && !isReusedTimer(receiver) ? context : undefined
}

// Facts about the callback that made an error, proved by the frames of the error.

/**
 * Whether the main script made the error. The frames of Node's start-up lie below the main script. Below an
 * ES module they are async frames, unless a module of the program awaits as well.
 * @param {Frame[]} frames
 */
function endsInStartUp (frames) {
  const last = frames.at(-1)
  if (last?.fileName?.startsWith('node:internal/main/')) return true
  const isEsm = last?.fileName === 'node:internal/modules/run_main' && last.isAsync
  return isEsm && !frames.some((frame) => frame.isAsync && isProgram(frame))
}

/**
 * Returns the frames of the innermost scope in which the program runs.
 * @param {Frame[]} frames
 * @returns {Frame[]}
 */
function innermostScope (frames) {
  const scope = frames.findIndex(isScope)
  if (scope === -1) return frames
  const inner = frames.slice(0, scope)
  return outermost(inner) === undefined ? frames : inner
}

/** @param {Frame[]} frames @returns {Frame | undefined} the last frame of the program */
function outermost (frames) {
  return frames.findLast(isProgram)
}

/**
 * Functions of Node's core that make an error and pass it to `stream.destroy()`, which reads its stack at
 * once and passes it to nextTick (lib/net.js, lib/internal/stream_base_commons.js,
 * lib/internal/streams/destroy.js).
 */
const destroyers = ['afterConnect', 'internalConnectMultiple', 'onStreamRead', 'onWriteComplete']

/**
 * Whether the callback that made an error also read its stack or passed it to nextTick, before the program
 * got it.
 * @param {Frame[]} frames that ran
 */
function isReadAtOnce (frames) {
  return frames.some(({ kind, functionName }) => {
    return kind === 'core' && functionName !== undefined &&
      destroyers.includes(afterLast(withoutAlias(functionName), '.'))
  })
}

/** Whether a file is a line typed at the prompt: REPL1, REPL2 … @param {string | undefined} fileName */
function isPrompt (fileName) {
  if (fileName === undefined || !fileName.startsWith('REPL') || fileName.length === 4) return false
  for (let i = 4; i < fileName.length; i++) if (!isDigitCode(fileName.charCodeAt(i))) return false
  return true
}

module.exports = { attribute }
