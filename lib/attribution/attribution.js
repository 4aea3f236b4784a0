'use strict'

// Whose error is it? V8 formats `.stack` at the first read, in the context of whoever reads. This decides which context
// made the error, from facts alone: frames prove a function and never a run of it, for handlers are shared. In order:
//
//   1. the frames end in Node's start-up: made by the main script, before any asynchronous step;
//   2. the allocation clock tells the run in which it was made (attribution/allocation-clock.js), now or when the error was seen before;
//   3. the receiver of the outermost function is a timer or an immediate, which calls its callback on itself;
//   4. Node's core made it and reads its stack at once, as it does with the errors of sockets.
//
// What follows is less: who rejected with it or threw it, and did not make it as far as anybody knows, and who reads it.
// Who rejected, where that is another flow, who waited for the promise and who uses the connection are told besides.

const { OWN_WORK, contextTag } = require('../context/context')
const { atStartUp, outermost, segment } = require('./same-run')
const { readSites } = require('../stacks/call-sites')
const { afterLast, isDigitCode, withoutAlias } = require('../stacks/text-scan')

const ANCESTORS = 256 // a loop's records lead through all of its turns

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../stacks/chain').Origin} Origin
 * @typedef {import('../stacks/frames').Frame} Frame
 * @typedef {ReturnType<ReturnType<typeof import('./observed-errors').createObservedErrors>['observe']>} Sighting
 * @typedef {object} Part one story
 * @property {Context | undefined} context
 * @property {Origin} [origin] how it is known; left out: each hop as it was recorded
 */

/**
 * @param {object} deps
 * @param {Context} deps.root
 * @param {() => Context | undefined} deps.current
 * @param {(context: Context) => import('../stacks/frames').Stack | undefined} deps.stackOf
 * @param {ReturnType<typeof import('./observed-errors').createObservedErrors>} deps.observedErrors
 * @param {(timer: object) => boolean} deps.isReused it had an id before its present one
 * @param {(connection: Context) => { context: Context, origin: Origin } | undefined} deps.user of a connection that was made here:
 *   its present request, or who wrote on it last
 */
function createAttribution ({ root, current, stackOf, observedErrors, isReused, user }) {
  /**
   * @param {object} error
   * @param {NodeJS.CallSite[] | undefined} given its call sites; undefined: they are not known
   * @returns {Part[]} the first is whose error it is; then who rejected with it, and who awaited
   */
  function attribute (error, given) {
    const sites = given ?? []
    const { frames } = readSites(sites)
    if (atStartUp(frames)) return [{ context: root }]
    const reader = current() // what was rejected up to now is seen
    const sighting = observedErrors.observe(error)
    const sync = frames.filter((frame) => !frame.isAsync)
    const outer = outermost(segment(sync))
    const seen = sighting.isNative && (given === undefined || sync.length > 0) ? undefined : sighting.maker
    const maker = seen ?? (outer !== undefined
      ? contextOfReceiver(sites[frames.indexOf(outer)], sync[sync.indexOf(outer) + 1])
      : isReadAtOnce(sync) ? sighting.handedOverBy ?? reader : undefined)
    if (maker !== undefined && maker !== OWN_WORK) {
      if (isOfPrompt(maker, outer)) return []
      const told = withOthers([{ context: maker }], sighting)
      return told.length === 1 && maker === reader ? withUser(told, maker) : told
    }
    const { escape, rejecter } = sighting
    if (escape !== undefined) return withOthers([{ context: escape.context, origin: escape.isRejection ? 'rejected' : 'thrown' }], sighting)
    if (rejecter !== undefined) return withOthers([{ context: rejecter, origin: 'rejected' }], sighting)
    // The chain of its reader is that of the prompt.
    if (outer !== undefined && isPrompt(outer.fileName)) return []
    return [{ context: reader, origin: 'reader' }]
  }

  /**
   * Who rejected and who waited, where their flow is another.
   * @param {Part[]} told
   * @param {Sighting} sighting
   */
  function withOthers (told, sighting) {
    const { rejecter, awaiter } = sighting
    if (rejecter !== undefined && !told.some(({ context }) => isOneFlow(context, rejecter))) {
      told.push({ context: rejecter, origin: 'rejected' })
    }
    const caller = awaiter?.parent
    if (caller === undefined || caller === root || (rejecter !== undefined && isSame(caller, rejecter))) return told
    if (!told.some(({ context }) => isOneFlow(context, caller))) {
      told.push({ context: awaiter, origin: 'awaited' })
    }
    return told
  }

  /**
   * What happens on a connection right now is about the request that uses it, or what was written on it last.
   * @param {Part[]} told
   * @param {Context} connection
   */
  function withUser (told, connection) {
    const used = user(connection)
    const step = used?.context.parent
    if (used === undefined || step === undefined || step === root || isOneFlow(connection, step)) return told
    // What is written before a connection is there is sent when that comes, and the first words often are said then.
    const { parent } = connection
    const isOpener = step.type.endsWith('CONNECTWRAP') && (parent === undefined || descends(step, parent))
    if (!isOpener) told.push(used)
    return told
  }

  /** A line's own error at the prompt has no story but that of the prompt. @param {Context} context @param {Frame | undefined} outer */
  function isOfPrompt (context, outer) {
    if (outer === undefined || !isPrompt(outer.fileName)) return false
    return stackOf(context)?.frames.some((frame) => isPrompt(frame.fileName)) !== true
  }

  /**
   * A timer calls its callback on itself, and V8 shows that in sloppy code.
   * @param {NodeJS.CallSite} site of the outermost function
   * @param {Frame | undefined} caller
   * @returns {Context | undefined}
   */
  function contextOfReceiver (site, caller) {
    let receiver
    try {
      receiver = site.getThis()
    } catch {}
    if (typeof receiver !== 'object' || receiver === null) return undefined
    const name = caller?.functionName
    // Anybody may call it so
    if (name !== 'listOnTimeout' && name?.endsWith('processImmediate') !== true) return undefined
    const context = contextTag.read(receiver)
    if (context?.type === 'Immediate') return context
    return context?.type === 'Timeout' && !isReused(receiver) ? context : undefined
  }

  return { attribute }
}

/**
 * Says whether one is the other or an ancestor of it.
 * @param {Context | undefined} context
 * @param {Context} ancestor
 */
function descends (context, ancestor) {
  let left = ANCESTORS
  for (let one = context; one !== undefined && left-- > 0; one = one.parent) if (isSame(one, ancestor)) return true
  return false
}

/** @param {Context | undefined} one @param {Context} other */
function isOneFlow (one, other) {
  return one !== undefined && (descends(one, other) || descends(other, one))
}

/** Where a record is gone, a chain is all that is known of a step. @param {Context} one @param {Context} other */
function isSame (one, other) {
  if (one === other) return true
  return one.ref !== 0 && other.ref !== 0 ? one.ref === other.ref : one.chain === other.chain
}

/**
 * Functions of Node's core that make an error and hand it to `stream.destroy()`, which reads its stack at once, and from
 * there to nextTick (lib/net.js, lib/internal/stream_base_commons.js, lib/internal/streams/destroy.js).
 */
const reading = ['afterConnect', 'internalConnectMultiple', 'onStreamRead', 'onWriteComplete']

/** Was its stack read, or was it handed to nextTick, in the run that made it, before the program had it? @param {Frame[]} sync */
function isReadAtOnce (sync) {
  return sync.some(({ kind, functionName }) => kind === 'core' && functionName !== undefined && reading.includes(afterLast(withoutAlias(functionName), '.')))
}

/** Says whether it is a line typed at the prompt: REPL1, REPL2 … @param {string | undefined} fileName */
function isPrompt (fileName) {
  if (fileName === undefined || !fileName.startsWith('REPL') || fileName.length === 4) return false
  for (let i = 4; i < fileName.length; i++) if (!isDigitCode(fileName.charCodeAt(i))) return false
  return true
}

module.exports = { createAttribution }
