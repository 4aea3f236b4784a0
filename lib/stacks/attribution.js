'use strict'

// Whose error is it? V8 formats `.stack` at the first read, in the context of whoever reads. This decides, from
// what the error's frames prove, which context created it, and says "reader" where they prove nothing.
//
// In order of strength:
//   1. the frames end in Node's start-up: made by the main script, before any asynchronous step;
//   2. the receiver of the outermost function is a resource: a timer calls its callback on itself;
//   3. the error was seen where only its creator could hand it on: uncaught, the reason of a rejected promise (with
//      the native engine, which can look), or passed to nextTick by Node;
//   4. the outermost function of the error runs right now, and nothing between speaks against it;
//   5. the outermost function of the error is the one that registered this context or an ancestor: it ran there;
//   6. an error of Node's core without a frame of the program, read in the callback of its own kind of request;
//   7. a function that awaits the error's creator runs right now.
// Else only the reader is known. Rules 4, 5 and 7 prove which function it was, not which run of it: where the same
// function lately ran in a context with another story, they prove nothing.

const { descends, stamp } = require('../context/context')
const {
  asyncOf, atStartUp, awaiter, calledName, isScope, outermost, programs, sameFunction, sameName, sameRun,
  sameTail, segment, siteFrame, tailOf
} = require('./runs')
const { readSites } = require('./sites')
const { isDigitCode, isWordCode } = require('./scan')
const { limit } = require('./trace-limit')

const PRESENT_FRAMES = 200 // of the reader's stack
const SHORT = 40 // frames: as many as an engine keeps at least

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./runs').SiteFrame} SiteFrame
 * @typedef {object} Reader the present stack
 * @property {Frame[]} run what runs, of that the innermost scope
 * @property {Frame[]} async what awaits it
 * @property {boolean} complete no frame is left out, and nothing can await what runs
 * @typedef {{ context: Context | undefined, origin?: import('./chain').Origin }} Verdict
 */

/**
 * @param {object} deps
 * @param {Context} deps.root
 * @param {() => Context | undefined} deps.current
 * @param {() => Context[]} deps.recent contexts that ran lately
 * @param {(context: Context) => import('./frames').Stack | undefined} deps.stackOf
 * @param {(above: Function, most: number) => Frame[]} deps.presentFrames
 * @param {(above: Function) => import('./frames').Stack | undefined} deps.presentStack
 *   the same, without awaiting functions, where the engine knows it
 * @param {ReturnType<typeof import('../context/sightings').createSightings>} deps.sightings
 */
function createAttribution ({ root, current, recent, stackOf, presentFrames, presentStack, sightings }) {
  /** by the present frames @type {WeakMap<Frame[], Reader>} */
  const readers = new WeakMap()
  /** the functions in a stack that a person would see @type {WeakMap<import('./frames').Stack, string[]>} */
  const steps = new WeakMap()

  /**
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites of the error
   * @param {Function} above frames of the reader start below this function
   * @returns {Verdict}
   */
  function attribute (error, sites, above) {
    const frames = readSites(sites).frames.map((frame, i) => siteFrame(frame, sites[i]))
    const sync = frames.filter((frame) => !frame.isAsync)
    if (atStartUp(frames)) return { context: root }
    const run = segment(sync)
    const outer = outermost(run)
    const receiver = outer === undefined ? undefined : contextOfReceiver(outer)
    if (receiver !== undefined) return { context: receiver }

    const escape = sightings.escape(error)
    if (escape !== undefined) return fromEscape(escape, sync)
    const reader = current()
    const rejecter = sightings.rejection(error)
    if (rejecter !== undefined) return { context: rejecter, origin: 'settled' }
    if (outer === undefined) return frameless(error, frames, reader, above)

    const proof = byFunction(frames, outer, reader, above)
    if (proof !== undefined && !mixed(proof.context, proof.ran, tailOf(frames, proof.ran))) return { context: proof.context }
    // The chain of its reader is that of the prompt.
    if (isPrompt(outer.fileName)) return { context: undefined }
    return { context: reader, origin: 'reader' }
  }

  /**
   * The context in which a function of the error ran, as far as functions tell: rules 4, 5 and 7.
   * @param {SiteFrame[]} frames of the error
   * @param {SiteFrame} outer
   * @param {Context | undefined} reader
   * @param {Function} above
   * @returns {{ context: Context, ran: SiteFrame } | undefined} and the function that ran in it
   */
  function byFunction (frames, outer, reader, above) {
    const present = readerFrames(above, frames)
    const truncated = frames.length >= Number(limit())
    const run = segment(frames.filter((frame) => !frame.isAsync))
    if (sameRun(run, present.run, truncated) && sameTail(asyncOf(frames), present.async, truncated)) {
      return { context: reader ?? root, ran: outer }
    }
    const ancestor = ranBefore(outer, asyncOf(frames), reader, truncated)
    if (ancestor !== undefined) return { context: ancestor, ran: outer }
    const awaiting = awaiter(frames, present)
    return awaiting === undefined || reader === undefined ? undefined : { context: reader, ran: awaiting }
  }

  /**
   * Did the same function lately run in a context of another flow?
   * @param {Context} context
   * @param {SiteFrame} ran
   * @param {Frame[]} tail the functions that V8 shows as awaiting it
   */
  function mixed (context, ran, tail) {
    const registered = stackOf(context)
    const { type } = context
    /** @type {Set<string> | undefined} */
    let story
    for (const other of recent()) {
      if (other === context || other.type !== type) continue
      const stack = stackOf(other)
      if (stack === undefined) continue
      const registeredAlike = stack === registered && stack.program
      if (!registeredAlike && !resumed(other, stack, ran)) continue
      if (descends(context, other)) continue
      if (!tail.every((frame) => stack.frames.some((one) => sameName(frame, one)))) continue
      // Where one story holds the other, both are of one flow.
      story ??= storyOf(context)
      const others = storyOf(other)
      if (!holds(others, story) && !holds(story, others)) return true
    }
    return false
  }

  /** The functions of a chain that a person would see. @param {Context} context @returns {Set<string>} */
  function storyOf (context) {
    const story = new Set()
    let last
    for (let one = /** @type {Context | undefined} */ (context); one !== undefined; one = one.parent) {
      const stack = stackOf(one)
      if (stack === undefined || stack === last) continue // the turns of a loop have one
      last = stack
      for (const step of stepsOf(stack)) story.add(step)
    }
    return story
  }

  /** @param {import('./frames').Stack} stack */
  function stepsOf (stack) {
    let known = steps.get(stack)
    if (known === undefined) steps.set(stack, known = stack.frames.filter(programs).map(stepOf))
    return known
  }

  /**
   * An error thrown inside runInAsyncScope has left that scope by the time it is uncaught.
   * @param {import('../context/sightings').Escape} escape
   * @param {Frame[]} sync
   * @returns {Verdict}
   */
  function fromEscape ({ context, left, settled }, sync) {
    if (left !== undefined && sync.some(isScope)) return { context: left }
    return settled ? { context, origin: 'settled' } : { context }
  }

  /**
   * @param {any} error
   * @param {SiteFrame[]} frames
   * @param {Context | undefined} reader
   * @param {Function} above
   * @returns {Verdict}
   */
  function frameless (error, frames, reader, above) {
    const context = sightings.pass(error)
    if (context !== undefined) return { context }
    if (reader === undefined) return { context: undefined }
    const core = frames.filter((frame) => !frame.isAsync)
    if (matchesKind(error, core[core.length - 1], reader)) return { context: reader }
    const awaited = frames.some((frame) => frame.isAsync && programs(frame))
    const awaiting = awaited ? awaiter(frames, readerFrames(above, frames)) : undefined
    if (awaiting !== undefined && !mixed(reader, awaiting, tailOf(frames, awaiting))) return { context: reader }
    return { context: reader, origin: 'reader' }
  }

  /**
   * Returns the reader's stack. To capture it costs more than all the rest, so that of the engine is taken
   * where nothing can await what runs.
   * @param {Function} above
   * @param {Frame[]} made the error's
   * @returns {Reader}
   */
  function readerFrames (above, made) {
    const known = made.some((frame) => frame.isAsync) ? undefined : presentStack(above)
    if (known !== undefined) {
      const reader = readerOf(known.frames)
      if (reader.complete) return reader
    }
    return readerOf(presentFrames(above, PRESENT_FRAMES))
  }

  /** @param {Frame[]} frames present ones @returns {Reader} */
  function readerOf (frames) {
    let reader = readers.get(frames)
    if (reader === undefined) {
      const theirs = frames.filter((frame) => frame.kind !== 'own')
      const run = segment(theirs.filter((frame) => !frame.isAsync))
      const complete = frames.length < SHORT && !mayBeAwaited(frames)
      readers.set(frames, reader = { run, async: asyncOf(theirs), complete })
    }
    return reader
  }

  /**
   * The nearest ancestor in which the function ran: it is the outermost one of what that ancestor registered.
   * @param {SiteFrame} outer
   * @param {Frame[]} tail the functions that await the error's
   * @param {Context | undefined} reader
   * @param {boolean} truncated
   * @returns {Context | undefined}
   */
  function ranBefore (outer, tail, reader, truncated) {
    for (let context = reader; context?.parent !== undefined; context = context.parent) {
      const frames = stackOf(context)?.frames
      if (frames === undefined) continue
      const registrar = outermost(segment(frames.filter((frame) => !frame.isAsync)))
      if (registrar === undefined || !sameFunction(outer, registrar)) continue
      const tails = asyncOf(frames)
      if (tails.length > 0 ? sameTail(tail, tails, truncated) : told(tail, context)) return maker(context)
    }
    return undefined
  }

  /**
   * Where promises have contexts of their own, stacks do not say who awaits: the awaits in the chain do.
   * @param {Frame[]} tail the functions that await the error's
   * @param {Context} context
   */
  function told (tail, context) {
    if (tail.length === 0) return true
    const story = storyOf(context)
    return tail.every((frame) => !programs(frame) || story.has(stepOf(frame)))
  }

  return { attribute }
}

/** The context in which a context was made: of a folded loop that is its last turn but one. @param {Context} context */
function maker (context) {
  if (context.repeats === 1) return context.parent
  const turn = Object.assign(Object.create(Object.getPrototypeOf(context)), context)
  turn.repeats--
  return turn
}

/**
 * Says whether a stack may be that of a microtask: V8 appends the functions that await it
 * (CaptureSimpleStackTrace in its src/execution/isolate.cc). Node calls everything else from a frame of its
 * own.
 * @param {Frame[]} frames
 */
function mayBeAwaited (frames) {
  const last = frames[frames.length - 1]
  return last?.fileName === undefined || !last.fileName.startsWith('node:') || frames.some(isOfMicrotasks)
}

/** @param {Frame} frame */
function isOfMicrotasks ({ kind, isAsync, functionName }) {
  return isAsync || (kind === 'core' && functionName?.endsWith('processTicksAndRejections') === true)
}

/**
 * Says whether a function ran behind an await of its own.
 * @param {Context} context that it ran in
 * @param {import('./frames').Stack} stack of the context
 * @param {SiteFrame} ran
 */
function resumed (context, stack, ran) {
  if (!context.awaited) return false
  const awaiting = stack.frames.find(programs)
  return awaiting !== undefined && sameFunction(ran, awaiting)
}

/** @param {Set<string>} all @param {Set<string>} some */
function holds (all, some) {
  for (const one of some) if (!all.has(one)) return false
  return true
}

/** @param {Frame} frame */
function stepOf (frame) {
  return `${calledName(frame) ?? frame.lineNumber} ${frame.fileName}`
}

/** @param {unknown} value @returns {value is object} */
function isObject (value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** @param {SiteFrame} frame @returns {Context | undefined} */
function contextOfReceiver (frame) {
  let receiver
  try {
    receiver = frame.site?.getThis()
  } catch {}
  if (!isObject(receiver)) return undefined
  // Sockets and ports run many times: their receiver does not tell which run.
  const context = stamp.read(receiver)
  return context?.type === 'Timeout' || context?.type === 'Immediate' ? context : undefined
}

/** Says whether it is a line typed at the prompt: REPL1, REPL2 … @param {string | undefined} fileName */
function isPrompt (fileName) {
  if (fileName === undefined || !fileName.startsWith('REPL') || fileName.length === 4) return false
  for (let i = 4; i < fileName.length; i++) if (!isDigitCode(fileName.charCodeAt(i))) return false
  return true
}

const fileCalls = new Set([
  'open', 'read', 'write', 'stat', 'fstat', 'lstat', 'scandir', 'mkdir', 'rmdir', 'unlink', 'rename',
  'access', 'close', 'realpath', 'readlink', 'symlink', 'link', 'chmod', 'fchmod', 'lchmod', 'chown',
  'fchown', 'lchown', 'utime', 'futime', 'lutime', 'truncate', 'ftruncate', 'copyfile', 'opendir',
  'mkdtemp', 'fsync', 'fdatasync', 'statfs', 'rm'
])

/**
 * Says whether a request of that type reports a failed system call.
 * @param {string} call
 * @param {string} type
 */
function reports (call, type) {
  if (call === 'getaddrinfo') return type === 'GETADDRINFOREQWRAP'
  if (call === 'getnameinfo') return type === 'GETNAMEINFOREQWRAP'
  if (call === 'connect') return type.endsWith('CONNECTWRAP')
  return call.startsWith('query') ? type === 'QUERYWRAP' : type === 'FSREQCALLBACK' && fileCalls.has(call)
}

/**
 * Is this the callback of the request that failed?
 * @param {any} error
 * @param {Frame | undefined} outer its outermost frame in Node's core, named after the request
 * @param {Context} reader
 */
function matchesKind (error, outer, reader) {
  const call = Object.getOwnPropertyDescriptor(error, 'syscall')?.value
  if (typeof call === 'string' && reports(call, reader.type)) return true
  const owner = ownerOf(outer?.functionName ?? '')
  return owner !== undefined && bare(owner) !== '' && bare(owner) === bare(reader.type)
}

/** "TCPConnectWrap.afterConnect" → "TCPConnectWrap". @param {string} name */
function ownerOf (name) {
  let end = 0
  while (end < name.length && isWordCode(name.charCodeAt(end))) end++
  return end > 0 && name[end] === '.' ? name.slice(0, end) : undefined
}

/** GetAddrInfoReqWrap and GETADDRINFOREQWRAP alike. @param {string} name */
function bare (name) {
  return name.toUpperCase().replaceAll('REQ', '').replaceAll('WRAP', '')
}

module.exports = { createAttribution }
