'use strict'

// Whose error is it? V8 formats `.stack` at the first read, in the context of whoever reads. This decides, from
// what the error's frames prove, which context created it, and says "reader" where they prove nothing.
//
// In order of strength:
//   1. the frames end in Node's start-up: made by the main script, before any asynchronous step;
//   2. the receiver of the outermost function is a resource: a timer calls its callback on itself;
//   3. the error was seen where only its creator could hand it on: uncaught, or passed to nextTick by Node;
//   4. the outermost function of the error runs right now, and nothing between speaks against it;
//   5. the outermost function of the error is the one that registered this context or an ancestor: it ran there;
//   6. an error of Node's core without a frame of the program, read in the callback of its own kind of request;
//   7. a function that awaits the error's creator runs right now.
// Else only the reader is known. Rules 4, 5 and 7 prove which function it was, not which run of it: where the same
// function lately ran in a context with another story, they prove nothing.

const { stamp, muted } = require('../context/context')
const { captureInto, limit } = require('./trace-limit')
const { contains } = require('./extent')
const { frameLines, parseFrame } = require('./frames')

const PRESENT_FRAMES = 200 // of the reader's stack

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 * @typedef {Frame & { site?: NodeJS.CallSite }} SiteFrame
 * @typedef {{ context: Context | undefined, origin?: import('./chain').Origin }} Verdict
 */

/**
 * @param {object} deps
 * @param {Context} deps.root
 * @param {() => Context | undefined} deps.current
 * @param {() => Context[]} deps.recent contexts that ran lately
 * @param {(context: Context) => import('./frames').Stack | undefined} deps.stackOf
 * @param {ReturnType<typeof import('../context/sightings').createSightings>} deps.sightings
 */
function createAttribution ({ root, current, recent, stackOf, sightings }) {
  /**
   * @param {object} error
   * @param {NodeJS.CallSite[]} sites of the error
   * @param {Function} above frames of the reader start below this function
   * @returns {Verdict}
   */
  function attribute (error, sites, above) {
    const frames = sites.map(siteFrame)
    const sync = frames.filter((frame) => !frame.isAsync)
    if (atStartUp(frames)) return { context: root }
    const run = segment(sync)
    const outer = outermost(run)
    const receiver = outer === undefined ? undefined : contextOfReceiver(outer)
    if (receiver !== undefined) return { context: receiver }

    const escape = sightings.escape(error)
    if (escape !== undefined) return fromEscape(escape, sync)
    const reader = current()
    if (outer === undefined) return frameless(error, frames, reader, above)

    const proof = byFunction(frames, outer, reader, above)
    if (proof !== undefined && !mixed(proof.context, proof.ran, tailOf(frames, proof.ran))) return { context: proof.context }
    // A line typed at the prompt: the chain of its reader is that of the prompt.
    if (/^REPL\d+$/.test(String(outer.fileName))) return { context: undefined }
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
    const present = readerFrames(above)
    const truncated = frames.length >= Number(limit())
    const run = segment(frames.filter((frame) => !frame.isAsync))
    if (sameRun(run, segment(present.sync), truncated) && sameTail(asyncOf(frames), present.async, truncated)) {
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
    const story = storyOf(context)
    return recent().some((other) => {
      if (other === context || other.type !== context.type || isAncestor(other, context)) return false
      const stack = stackOf(other)
      if (stack === undefined) return false
      const awaiting = other.awaited ? stack.frames.find(programs) : undefined
      const resumed = awaiting !== undefined && sameFunction(ran, awaiting)
      const registeredAlike = stack === stackOf(context) && outermost(stack.frames) !== undefined
      if (!resumed && !registeredAlike) return false
      if (!tail.every((frame) => stack.frames.some((one) => sameName(frame, one)))) return false
      // Where one story holds the other, both are of one flow.
      const others = storyOf(other)
      return [...story].some((step) => !others.has(step)) && [...others].some((step) => !story.has(step))
    })
  }

  /** The functions of a chain that a person would see. @param {Context} context @returns {Set<string>} */
  function storyOf (context) {
    const story = new Set()
    for (let one = /** @type {Context | undefined} */ (context); one !== undefined; one = one.parent) {
      for (const frame of stackOf(one)?.frames ?? []) {
        if (programs(frame)) story.add(`${frame.functionName?.replace(/^async /, '') ?? frame.lineNumber} ${frame.fileName}`)
      }
    }
    return story
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
    const awaiting = awaiter(frames, readerFrames(above))
    if (awaiting !== undefined && !mixed(reader, awaiting, tailOf(frames, awaiting))) return { context: reader }
    return { context: reader, origin: 'reader' }
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
      if (sameTail(tail, asyncOf(frames), truncated)) return context.parent
    }
    return undefined
  }

  return { attribute }
}

/** @param {unknown} value @returns {value is object} */
function isObject (value) {
  return (typeof value === 'object' && value !== null) || typeof value === 'function'
}

/** Below the main script lies Node's start; below an ESM one as awaiting, unless a module of the program awaits, too. @param {Frame[]} frames */
function atStartUp (frames) {
  const last = frames[frames.length - 1]
  if (last?.fileName?.startsWith('node:internal/main/')) return true
  return last?.fileName === 'node:internal/modules/run_main' && last.isAsync && !frames.some((frame) => frame.isAsync && programs(frame))
}

/** @param {NodeJS.CallSite} site @returns {SiteFrame} */
function siteFrame (site) {
  return Object.assign(parseFrame(String(site)), { site })
}

/** Entering an async scope by hand: below it another context runs. @param {Frame} frame */
function isScope (frame) {
  return frame.kind === 'core' && /\brunInAsyncScope$/.test(frame.functionName ?? '')
}

/** The frames of the innermost scope in which the program runs. @template {Frame} F @param {F[]} frames @returns {F[]} */
function segment (frames) {
  const scope = frames.findIndex(isScope)
  if (scope === -1) return frames
  const inner = frames.slice(0, scope)
  return outermost(inner) === undefined ? frames : inner
}

/** @template {Frame} F @param {F[]} frames @returns {F | undefined} the last frame of the program */
function outermost (frames) {
  for (let i = frames.length - 1; i >= 0; i--) if (programs(frames[i])) return frames[i]
  return undefined
}

/** @param {Context} other @param {Context} context */
function isAncestor (other, context) {
  for (let one = context.parent; one !== undefined; one = one.parent) if (one === other) return true
  return false
}

/** @param {Frame} made @param {Frame | undefined} read */
function sameName (made, read) {
  return read !== undefined && made.fileName === read.fileName && made.functionName?.replace(/^async /, '') === read.functionName?.replace(/^async /, '')
}

/** @param {Frame} frame */
function programs (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

/** The functions of the program that await a frame. @param {Frame[]} frames @param {Frame} frame */
function tailOf (frames, frame) {
  return frames.slice(frames.indexOf(frame) + 1).filter((one) => one.isAsync && programs(one))
}

/** @param {Frame[]} frames */
function asyncOf (frames) {
  return frames.filter((frame) => frame.isAsync)
}

/** @param {SiteFrame} frame @returns {Context | undefined} */
function contextOfReceiver (frame) {
  let receiver
  try {
    receiver = frame.site?.getThis()
  } catch {}
  if (!isObject(receiver)) return undefined
  const context = stamp.read(receiver)
  return context === muted || context?.type === 'PROMISE' ? undefined : ownStep(context)
}

/** Sockets and ports run many times: their receiver does not tell which run. @param {Context | undefined} context */
function ownStep (context) {
  return context !== undefined && (context.type === 'Timeout' || context.type === 'Immediate') ? context : undefined
}

/** @param {Function} above @returns {{ sync: Frame[], async: Frame[] }} the present stack; V8 gives it as plain text here */
function readerFrames (above) {
  const holder = /** @type {any} */ ({ __proto__: null })
  captureInto(holder, above, PRESENT_FRAMES)
  const text = holder.stack
  const frames = typeof text === 'string' ? frameLines(text).split('\n').filter(Boolean).map(parseFrame) : []
  return { sync: frames.filter((frame) => !frame.isAsync && frame.kind !== 'own'), async: asyncOf(frames) }
}

/**
 * Do both stacks belong to one run? Seen from outside in they are equal until they part, and they part inside one
 * function. Two functions called from one place are two calls of it, maybe in two runs: not proven.
 * @param {SiteFrame[]} made the error's run
 * @param {Frame[]} read the reader's run
 * @param {boolean} truncated the error may have had more frames
 */
function sameRun (made, read, truncated) {
  let i = made.length - 1
  let j = read.length - 1
  const complete = !truncated || !programs(made[i])
  if (complete) {
    while (i >= 0 && !programs(made[i])) i--
    while (j >= 0 && !programs(read[j])) j--
  } else {
    while (j >= 0 && made[i].text !== read[j].text && !sameFunction(made[i], read[j])) j--
  }
  if (i < 0 || j < 0) return false
  while (i >= 0 && j >= 0 && made[i].text === read[j].text) {
    i--
    j--
  }
  if (i < 0 || j < 0) return true
  return sameFunction(made[i], read[j])
}

/**
 * The functions that wait for both are the same ones.
 * @param {Frame[]} made
 * @param {Frame[]} read
 * @param {boolean} truncated
 */
function sameTail (made, read, truncated) {
  if (!truncated && made.length !== read.length) return false
  return made.every((frame, i) => read[i]?.text === frame.text)
}

/**
 * @param {SiteFrame} made a frame of the error
 * @param {Frame} read
 */
function sameFunction (made, read) {
  if (made.fileName !== read.fileName || made.fileName === undefined || made.site === undefined) return false
  if (!sameName(made, read)) return false
  if (made.lineNumber === read.lineNumber && made.columnNumber === read.columnNumber) return true
  const inside = contains(made.site, Number(read.lineNumber), Number(read.columnNumber))
  return inside ?? Boolean(made.site.getFunctionName())
}

/**
 * The function that runs right now and that V8 shows as awaiting the error's creator, if the same ones await it.
 * @param {SiteFrame[]} frames of the error
 * @param {{ sync: Frame[], async: Frame[] }} present
 * @returns {SiteFrame | undefined}
 */
function awaiter (frames, present) {
  const awaiting = frames.filter((frame) => frame.isAsync && programs(frame))
  const running = outermost(segment(present.sync))
  if (running === undefined) return undefined
  const at = awaiting.findIndex((frame) => sameFunction(frame, running))
  const others = present.async.filter(programs)
  const same = awaiting.slice(at + 1).every((frame, i) => others[i] === undefined || others[i].text === frame.text)
  return at !== -1 && same ? awaiting[at] : undefined
}

const fileCalls = new RegExp('^(open|read|write|f?stat|lstat|scandir|mkdir|rmdir|unlink|rename|access|close|realpath|readlink|symlink|link|' +
  '[fl]?chmod|[fl]?chown|[fl]?utime|f?truncate|copyfile|opendir|mkdtemp|fsync|fdatasync|statfs|rm)$')

/** @type {Array<[RegExp, RegExp]>} system call → type of the request that reports it */
const requests = [
  [/^getaddrinfo$/, /^GETADDRINFOREQWRAP$/],
  [/^getnameinfo$/, /^GETNAMEINFOREQWRAP$/],
  [/^query/, /^QUERYWRAP$/],
  [/^connect$/, /CONNECTWRAP$/],
  [fileCalls, /^FSREQCALLBACK$/]
]

/**
 * Is this the callback of the request that failed?
 * @param {any} error
 * @param {Frame | undefined} outer its outermost frame in Node's core, named after the request
 * @param {Context} reader
 */
function matchesKind (error, outer, reader) {
  const call = Object.getOwnPropertyDescriptor(error, 'syscall')?.value
  if (typeof call === 'string' && requests.some(([names, types]) => names.test(call) && types.test(reader.type))) return true
  const owner = /^(\w+)\./.exec(outer?.functionName ?? '')?.[1]
  return owner !== undefined && bare(owner) !== '' && bare(owner) === bare(reader.type)
}

/** GetAddrInfoReqWrap and GETADDRINFOREQWRAP alike. @param {string} name */
function bare (name) {
  return name.toUpperCase().replace(/REQ|WRAP/g, '')
}

module.exports = { createAttribution }
