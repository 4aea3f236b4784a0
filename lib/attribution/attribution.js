'use strict'

// Decides which context made an error. V8 formats `.stack` at the first read, in the context of whoever
// reads, so the decision rests on facts alone: frames prove a function and never one execution of it, for
// handlers are shared.
//
// The rules are evaluated in order, the first with an answer decides. Rules 1 to 4 find who made the error:
//
//   1. the frames end in Node's start-up: made by the main script, before any asynchronous step;
//   2. the allocation clock knows the callback in which it was made (allocation-clock.js), now or when the
// error was
//      observed before;
//   3. the receiver of the outermost function is a timer or an immediate, which calls its callback on itself;
//   4. Node's core made it and reads its stack at once, as it does with the errors of sockets.
//
// Rules 5 to 7 find less, a context that is not known to have made it:
//
//   5. who threw it without anything catching it, or rejected with it without a handler;
//   6. who rejected with it: of several the one whose flow reads it, else the last;
//   7. who reads its stack.
//
// Who rejected with the error where that is another flow, who waited for the promise, who rejected with it
// first, and who opened the connection are appended (askers.js).

const { OWN_WORK, contextTag, root } = require('../core/context')
const { currentContext } = require('../core/current-step')
const { isReusedTimer } = require('../core/kind-handlers')
const { foldLoops } = require('../stacks/hops')
const { readSites } = require('../stacks/call-sites')
const { withConnection } = require('./askers')
const { isOneFlow, isSame } = require('./flows')
const { observe } = require('./observed-errors')
const { endsInStartUp, innermostScope, isPrompt, isReadAtOnce, outermost } = require('./same-run')

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').Origin} Origin
 * @typedef {import('../stacks/frames').Frame} Frame
 * @typedef {import('./observed-errors').ObservedError} ObservedError
 *
 * @typedef {object} Part the hops of one context
 * @property {Context | undefined} context
 * @property {Origin} [origin] how it is known; left out: each hop as it was recorded
 * @property {string} [label] of a connection: the request that opened it, or those that use it
 */

/** What is known of an error when its stack is read. */
class Evidence {
  /**
   * @param {object} error
   * @param {NodeJS.CallSite[] | undefined} sites undefined: not known
   */
  constructor (error, sites) {
    this.sites = sites ?? []
    this.hasSites = sites !== undefined
    this.frames = readSites(this.sites).frames
    /** also has pending rejections noted */
    this.reader = foldedContext()
    /** @type {ObservedError} */
    this.observed = observe(error)
    /** the rejection with it that is told */
    this.rejection = this.observed.rejections?.concerning(this.reader)
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
  rule1MainScript,
  rule2AllocationClock,
  rule3TimerReceiver,
  rule4ReadByNode,
  rule5Uncaught,
  rule6Rejecter,
  rule7Reader
]

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule1MainScript ({ frames }) {
  return endsInStartUp(frames) ? [{ context: root }] : undefined
}

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule2AllocationClock (evidence) {
  const { hasSites, observed, sync } = evidence
  // What Node's native code makes between two callbacks has no frames that ran.
  const isOther = observed.isNative && (!hasSites || sync.length > 0)
  return isOther ? undefined : partsOfMaker(observed.maker, evidence)
}

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule3TimerReceiver (evidence) {
  const { frames, outer, sites, sync } = evidence
  if (outer === undefined) return undefined
  const caller = sync[sync.indexOf(outer) + 1]
  return partsOfMaker(timerOf(sites[frames.indexOf(outer)], caller), evidence)
}

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule4ReadByNode (evidence) {
  const { observed, outer, reader, sync } = evidence
  if (outer !== undefined || !isReadAtOnce(sync)) return undefined
  return partsOfMaker(observed.handedOverBy ?? reader, evidence)
}

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule5Uncaught (evidence) {
  const { escape } = evidence.observed
  if (escape === undefined) return undefined
  const origin = escape.isRejection ? 'rejected' : 'thrown'
  return withRejections([{ context: escape.context, origin }], evidence)
}

/** @param {Evidence} evidence @returns {Part[] | undefined} */
function rule6Rejecter (evidence) {
  const { rejection } = evidence
  if (rejection === undefined) return undefined
  return withRejections([{ context: rejection.context, origin: 'rejected' }], evidence)
}

/** @param {Evidence} evidence @returns {Part[]} */
function rule7Reader ({ outer, reader }) {
  // The chain of who reads it at the prompt is that of the prompt.
  return outer !== undefined && isPrompt(outer.fileName) ? [] : [{ context: reader, origin: 'reader' }]
}

/**
 * Finds whose error it is.
 * @param {object} error
 * @param {NodeJS.CallSite[] | undefined} sites its call sites; undefined: they are not known
 * @returns {Part[]} first whose error it is; then who rejected with it, and who waited
 */
function attribute (error, sites) {
  const evidence = new Evidence(error, sites)
  for (const rule of rules) {
    const parts = rule(evidence)
    if (parts !== undefined) return parts.length === 0 ? parts : withConnection(parts)
  }
  return []
}

/** Returns the context in which code runs; walks along its chain are short. */
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
 * Appends who rejected, who waited and who rejected first, where their flow is another.
 * @param {Part[]} parts
 * @param {Evidence} evidence
 */
function withRejections (parts, { observed, rejection }) {
  if (rejection === undefined) return parts
  const { context: rejecter, awaiter } = rejection
  if (!isTold(rejecter, parts)) parts.push({ context: rejecter, origin: 'rejected' })
  const caller = awaiter?.parent
  const isAwaited = caller !== undefined && caller !== root && !isSame(caller, rejecter)
  if (isAwaited && !isTold(caller, parts)) parts.push({ context: awaiter, origin: 'awaited' })
  const first = observed.rejections?.first.context
  if (first !== undefined && !isTold(first, parts)) parts.push({ context: first, origin: 'first' })
  return parts
}

/** Whether the flow of a context is that of a part. @param {Context} context @param {Part[]} parts */
function isTold (context, parts) {
  return parts.some((part) => isOneFlow(part.context, context))
}

/**
 * Whether an error is that of a line at the prompt, whose only chain is that of the prompt.
 * @param {Context} context
 * @param {Frame | undefined} outer
 */
function isOfPrompt (context, outer) {
  if (outer === undefined || !isPrompt(outer.fileName)) return false
  return context.stack?.frames.some((frame) => isPrompt(frame.fileName)) !== true
}

/**
 * Returns the context of the timer that called a function: a timer calls its callback on itself, and V8 shows
 * the receiver in sloppy code.
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

module.exports = { attribute }
