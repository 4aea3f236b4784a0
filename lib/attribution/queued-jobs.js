'use strict'

// Finds jobs that a queue started. A queue starts the next job when the previous one ends, so the chain of a
// job leads to the owner of the previous job, often another request. If the job's caller awaits a promise,
// that promise names the right request (flows.js). Otherwise a queue looks like a request that calls one of
// its functions twice: both chains pass through the same function again. So the request at the end is
// doubted.
//
// A request that was in flight when the job began is doubted only if other requests were in flight as well,
// and a callback or `then` started the job: an async function that continues usually belongs to the request.
// Requests that were answered before count while their work goes on. Background work is doubted in the same
// way while a request is in flight, since the two may share the queue.

const { contextAt } = require('../core/context')
const { isRequest } = require('../core/records')
const { all } = require('../core/request-records')
const { source } = require('../core/source')
const { hops } = require('../stacks/chain')
const { isProgram } = require('../stacks/frames')
const { labelOf } = require('../stacks/labels')
const { foldLoops } = require('../stacks/loop-folding')
const { importedHopsOf } = require('../stacks/passed-chain')
const { namesInModules } = require('../stacks/text-scan')
const { requestOf } = require('./flows')

const MAX_STEPS = 64

/** Functions that perform the await of an async function compiled by TypeScript or Babel. */
const compiledAwaits = new Set(['step', 'asyncGeneratorStep'])

/** In these `next` calls another handler of the same request. Some programs have two versions of Express. */
const frameworks = new Set(['connect', 'express', 'express4', 'fastify', 'finalhandler', 'restify', 'router'])

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/chain').PrintedHop} PrintedHop
 * @typedef {import('../stacks/frames').Frame} Frame
 * @typedef {import('./attribution').Part} Part
 *
 * @typedef {'over' | 'before'} Doubt why a job may belong to another request than the one at the end of its
 *   chain: that one was answered before the job began, or was in flight with others waiting behind it
 */

/** The label of a request's hop, by doubt. @type {Record<Doubt, (name: string) => string>} */
const doubts = {
  over: () => 'a request that is over',
  before: (name) => `${name}, or a request queued behind it`
}

/**
 * Separates a job of a queue from the job before it, if that may belong to another request. For the awaiter
 * and the first rejecter only the doubt is kept.
 * @param {Part} part
 * @returns {Part[]}
 */
function withTrigger (part) {
  const start = part.until === undefined ? findStart(part.context) : undefined
  if (start === undefined) return [part]
  const { step, doubt } = start
  const own = { ...part, until: step }
  if (part.origin === 'first') return [own]
  const isAwaited = part.origin === 'awaited'
  const before = { context: step, origin: isAwaited ? part.origin : 'triggered', doubt }
  return [own, /** @type {Part} */ ({ ...before, isRequestOnly: isAwaited })]
}

/**
 * Finds the start of a job that may belong to another request than the one at the end of its chain.
 * @param {Context | undefined} newest
 * @returns {{ step: Context, doubt: Doubt } | undefined} the step in which the job began; undefined if the
 *   request is known
 */
function findStart (newest) {
  if (newest !== undefined && !newest.folded) foldLoops(newest)
  const request = requestOf(newest)
  /** @type {Context[]} */
  const steps = []
  let step = newest
  for (; step !== undefined && steps.length < MAX_STEPS && !isRequest(step.ref); step = step.parent) {
    steps.push(step)
  }
  const isCut = step !== undefined && all() !== undefined
  const isUnknown = request === 0 && (isCut || steps.some(mayBeOfRequest))
  if (request === 0 && !isUnknown && all() === undefined) return undefined
  const isInFlight = request === 0 || source.isInFlight(request)
  const functions = steps.map(functionsOf)
  for (let i = 0; i < steps.length; i++) {
    const { parent: step, repeats } = steps[i]
    if (step === undefined || !isRepeated(functions, i, repeats)) continue
    if (!isInFlight && !source.isAnsweredAfter(request, steps[i])) return { step, doubt: 'over' }
    const isCalled = !isAwait(step) || (repeats > 1 && !isAwait(steps[i]))
    const isBesideOthers = isCalled && (isUnknown || source.isBesideOthers(request, steps[i]))
    if (isBesideOthers) return { step, doubt: 'before' }
  }
  return undefined
}

/**
 * Whether a step may belong to a request although its chain leads to none: the request has no record any
 * more, sent a query on a connection, or is in another thread.
 * @param {Context} step
 */
function mayBeOfRequest ({ chain, kind, type }) {
  return type === 'HTTPINCOMINGMESSAGE' || kind.asked || importedHopsOf(chain) !== undefined
}

/** @param {Context} step @returns {string[]} functions that ran, without those of Node's core */
function functionsOf ({ stack }) {
  const ran = stack?.frames.filter((frame) => !frame.isAsync && isProgram(frame)) ?? []
  return ran.filter((frame) => !isOfFramework(frame)).map(({ functionName, fileName, text }) => {
    return functionName === undefined ? text : `${functionName} ${fileName}`
  })
}

/** @param {Frame} frame */
function isOfFramework ({ kind, fileName }) {
  const names = kind === 'module' && fileName !== undefined ? namesInModules(fileName) : undefined
  return names !== undefined && frameworks.has(names[0])
}

/**
 * Whether a step passed through a function of older steps; a repeated callback does not count.
 * @param {string[][]} functions of all steps
 * @param {number} i
 * @param {number} repeats
 */
function isRepeated (functions, i, repeats) {
  const inner = functions[i].slice(0, -1)
  if (repeats > 1 || inner.length === 0) return inner.length > 0
  const before = functions.slice(i + 1).filter((older) => !areEqual(older, functions[i])) // made by one call
  return inner.some((name) => before.some((older) => older.includes(name)))
}

/** @param {string[]} texts @param {string[]} others */
function areEqual (texts, others) {
  return texts.length === others.length && texts.every((text, i) => text === others[i])
}

/** Whether an async function continues in a step, even a compiled one. @param {Context} step */
function isAwait (step) {
  const frames = step.stack?.frames ?? []
  if (!step.awaited) return false
  return labelOf(step, frames) === 'await' || compiledAwaits.has(frames.find(isProgram)?.functionName ?? '')
}

/**
 * Returns the hops of a step, like those of a part.
 * @param {Context | undefined} context
 * @param {Parameters<typeof hops>[1]} [details]
 * @returns {PrintedHop[]}
 */
function hopsOfStep (context, details) {
  const [own, trigger] = withTrigger({ context })
  if (trigger === undefined) return hops(context, details)
  const { until } = own
  const isEnd = (/** @type {Context} */ step) => step === until
  const printed = hops(context, { ...details, until: isEnd })
  return printed.concat(doubted(hops(trigger.context, { origin: 'triggered', printed }), trigger.doubt))
}

/**
 * Labels the request in hops as doubtful.
 * @param {PrintedHop[]} printed
 * @param {Doubt | undefined} doubt
 */
function doubted (printed, doubt) {
  if (doubt === undefined) return printed
  return printed.map((hop) => hop.isRequest ? { ...hop, label: doubts[doubt](hop.label) } : hop)
}

/**
 * Returns the name of the request that led to a step, with the doubt if a queue may have started the step.
 * @param {Context | undefined} context
 */
function requestText (context) {
  const request = requestOf(context)
  const name = request === 0 ? undefined : contextAt(request)?.request
  const doubt = name === undefined ? undefined : findStart(context)?.doubt
  return name === undefined || doubt === undefined ? name : doubts[doubt](name)
}

source.startOf = (context) => findStart(context)?.step

module.exports = { areEqual, doubted, hopsOfStep, requestText, withTrigger }
