'use strict'

// An error about a stream that has ended, or a response that was sent, is thrown by the second call. Finds
// the code that made the first call, or that destroyed or aborted the object (core/state-changes.js).

const { contextOfNoted } = require('../core/context')
const { isHandleType } = require('../core/kinds')
const { isRequest, responseOf } = require('../core/request-records')
const { changeOf, linkedTo, remembered, statesByCode } = require('../core/state-changes')
const { source } = require('../core/source')
const { findProperty, hidden, isObject, own } = require('../objects')
const capture = require('../stacks/capture')
const { isMadeOn } = require('../stacks/receivers')
const { afterLast, withoutAlias } = require('../stacks/text-scan')
const { findStep } = require('./flows')

const REQUEST_TYPE = 'HTTPINCOMINGMESSAGE'
const STREAMS = 'node:internal/streams/'
/** functions there (lib/internal/streams/readable.js, pipeline.js) */
const enders = new Set(['endFn', 'onend', 'pumpToNode'])
const MAX_STEPS = 8 // from an error up to its connection
const MAX_FLOW = 256 // and up to the request

/**
 * @typedef {import('../core/context').Context} ContextType
 * @typedef {import('../core/state-changes').Change} Change
 * @typedef {import('./attribution').Part} Part
 * @typedef {import('../stacks/frames').Frame} Frame
 */

/** @type {Record<string, (error: object, context: ContextType | undefined) => Change | undefined>} */
const findersByCode = {
  __proto__: /** @type {any} */ (null),
  ECONNRESET: (_, context) => destroyerOfConnection(context),
  ERR_STREAM_PREMATURE_CLOSE: (_, context) => destroyerOfConnection(context),
  FST_ERR_REP_ALREADY_SENT: enderOfResponse
}

/**
 * Returns the code that caused the state behind an error.
 * @param {object} error
 * @param {Part[]} parts its owner first
 * @param {NodeJS.CallSite[]} sites
 * @returns {Part | undefined} undefined if unknown, or not the program's code
 */
function formerState (error, parts, sites) {
  const cause = own(error, 'cause')
  const linked = linkedTo(error) ?? (isObject(cause) ? linkedTo(cause) : undefined)
  const change = linked ?? findChange(error, parts[0]?.context, sites)
  const context = change && contextOfChange(change)
  return context && { context, origin: /** @type {Change} */ (change).state }
}

/**
 * @param {object} error
 * @param {ContextType | undefined} context of the error's maker
 * @param {NodeJS.CallSite[]} sites
 */
function findChange (error, context, sites) {
  const code = String(findProperty(error, 'code')?.value) // readable-stream has it on the prototype
  const states = statesByCode[code]
  if (states !== undefined) return changeOfReceiver(context, sites, states)
  return findersByCode[code]?.(error, context)
}

/**
 * Returns the change of the object whose method made the error. Candidates are the response of the present
 * request and the objects that were changed last.
 * @param {ContextType | undefined} context
 * @param {NodeJS.CallSite[]} sites
 * @param {import('../core/state-changes').State[]} states
 */
function changeOfReceiver (context, sites, states) {
  const request = findStep(context, ({ ref }) => isRequest(ref), MAX_FLOW)
  const response = request && responseOf(request.ref)
  for (const object of response === undefined ? remembered() : [response, ...remembered()]) {
    const change = changeOf(object, states)
    if (change === undefined) continue
    const ofHttp2 = hidden(object, 'response') // of the compatibility API
    if (isMadeOn(sites, object) || (isObject(ofHttp2) && isMadeOn(sites, ofHttp2))) return change
  }
  return undefined
}

/** @param {Change} change @returns {ContextType | undefined} undefined if the program did not make it */
function contextOfChange ({ chain, cause, state, time }) {
  const made = capture.chainAt(chain)
  const isPiped = state === 'ended' && made?.stack?.frames.some(isOfPipe)
  if (made === undefined || (made.stack?.program !== true && !isPiped)) return undefined
  return contextOfNoted(chain, cause, time)
}

/** Whether Node ends a stream because a stream that the program piped into it ended. @param {Frame} frame */
const isOfPipe = ({ functionName, fileName }) => {
  const name = afterLast(withoutAlias(String(functionName)), '.')
  return fileName?.startsWith(STREAMS) === true && enders.has(name)
}

/**
 * Returns the change that destroyed the connection in whose callback an error was made.
 * @param {ContextType | undefined} context
 */
function destroyerOfConnection (context) {
  const step = findStep(context, isOfConnection, MAX_STEPS)
  const id = step === undefined ? 0 : step.type === REQUEST_TYPE ? step.triggerAsyncId : step.asyncId
  const socket = source.socketOf(id)
  return socket && changeOf(socket, ['destroyed'])
}

/** @param {ContextType} context */
const isOfConnection = ({ kind, type }) => isHandleType(type) || kind.asked || type === REQUEST_TYPE

/**
 * Returns the change that ended the response to an error's request, if the error names that request.
 * @param {object} error
 * @param {ContextType | undefined} context
 */
function enderOfResponse (error, context) {
  const step = findStep(context, ({ type }) => type === REQUEST_TYPE, MAX_FLOW)
  const [method, path] = step?.request?.split(' ') ?? []
  const message = String(own(error, 'message'))
  const isNamed = message.includes(`(${method})`) && (path.includes(':') || message.includes(`"${path}`))
  const response = step && isNamed ? responseOf(step.ref) : undefined
  return response && changeOf(response, ['ended'])
}

module.exports = { formerState }
