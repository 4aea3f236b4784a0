'use strict'

// From a context to the hops that a person reads: newest first, internal steps left out, loops folded, and what
// V8 already shows as "at async" not said twice. Contexts record raw; everything is judged here, on the way out.

const { fold } = require('../context/fold')
const { accepted, apiName, arrivedBy, labelOf } = require('./labels')
const {
  afterLast, baseName, insideModules, isSlash, isWordCode, withoutAlias, withoutPrefix
} = require('./text-scan')
const { versionOfMaps } = require('./program-mapper')
const { nodeMaps } = require('./source-maps')
const { ensureHeadroom } = require('./stack-headroom')

const PRINT_KB = 96 // room for printing a stack for the first time: more than its source maps ask for

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('./frames').Frame} Frame
 * @typedef {'registered' | 'settled' | 'rejected' | 'thrown' | 'awaited' | 'used' | 'written' | 'reader' | 'early' | 'worker' | 'process'} Origin
 *   how a hop is known: where it was registered; who resolved or rejected the promise; who rejected with the error, which
 *   somebody else may have made; who threw it, likewise; who waited for the promise; whose request uses the connection; who wrote on it last; only the place that read `.stack`;
 *   made before longstack was enabled; in the thread that made this worker; the start of the process
 *
 * @typedef {object} Hop one asynchronous step
 * @property {number} asyncId
 * @property {number} triggerAsyncId
 * @property {string} type Node's provider name
 * @property {string} label the words a person would use
 * @property {number} ageMs since it was made; NaN where that is not known any more
 * @property {number} repeats turns of a loop folded into this hop
 * @property {Origin} origin
 * @property {Array<HopFrame>} frames where it was made, innermost first
 *
 * @typedef {object} HopFrame
 * @property {string | undefined} functionName
 * @property {string | undefined} fileName
 * @property {number | undefined} lineNumber
 * @property {number | undefined} columnNumber
 * @property {'user' | 'module' | 'core'} kind
 * @property {boolean} isAsync
 */

/**
 * @typedef {Hop & { lines: string[] }} PrintedHop with its frames as text, mapped and hidden as the options
 *   say. Both are shared: never changed, and copied before the program gets them
 */

/**
 * @typedef {object} Sight what is shown of a stack, the same for each context that has it
 * @property {import('../options').Options} options under which
 * @property {Frame[]} visible
 * @property {number} version of the maps that it was printed with
 * @property {{ frames: HopFrame[], lines: string[] } | undefined} printed as many as the options ask for
 * @property {Named | undefined} named the last label
 *
 * @typedef {{ type: string, detail: string | undefined, awaited: boolean, label: string }} Named
 */

/**
 * @param {object} deps
 * @param {(context: Context) => import('./frames').Stack | undefined} deps.stackOf
 * @param {() => import('../options').Options} deps.options
 * @param {(frame: Frame) => Frame} deps.map through source maps
 * @param {() => number} deps.queriedAt when: how long the answer takes is no age
 * @param {(cut: number) => void} deps.dropped
 */
function createChain ({ stackOf, options, map, queriedAt, dropped }) {
  /** @type {WeakMap<import('./frames').Stack, string>} */
  const identities = new WeakMap()

  /** @param {Context} context @returns {string | undefined} */
  function identify (context) {
    const stack = stackOf(context)
    if (stack === undefined) return undefined
    let identity = identities.get(stack)
    if (identity === undefined) identities.set(stack, identity = identityOf(stack.frames))
    return identity
  }

  /** by the frames of a stack @type {WeakMap<Frame[], Sight>} */
  const sights = new WeakMap()

  /** the context that was folded last, and what it came from then @type {Context | undefined} */
  let foldedLast
  /** @type {Context | undefined} */
  let foldedParent

  /** @param {Context} context @param {number} [keep] links */
  function folded (context, keep = Math.max(options().depth, 8) * 3) {
    if (context === foldedLast && context.parent === foldedParent) return
    dropped(fold(context, identify, keep))
    foldedLast = context
    foldedParent = context.parent
  }

  /** @param {Frame[]} frames of a stack @returns {Sight} */
  function sightOf (frames) {
    const present = options()
    let sight = sights.get(frames)
    if (sight === undefined || sight.options !== present || sight.version !== versionOfMaps()) {
      const { internals } = present
      const visible = frames.filter((frame) => frame.kind !== 'own' && (internals || frame.kind !== 'core'))
      sights.set(frames, sight = { options: present, version: versionOfMaps(), visible, printed: undefined, named: undefined })
    }
    return sight
  }

  /** @param {Sight} sight @param {Frame[]} visible frames of it */
  function print (sight, visible) {
    if (visible === sight.visible && sight.printed !== undefined && !nodeMaps()) return sight.printed
    ensureHeadroom(PRINT_KB)
    const { frames: most, hide: rule } = sight.options
    const mapped = (visible.length > most ? visible.slice(0, most) : visible).map(map)
    const printed = { frames: mapped.map(publicFrame), lines: hide(mapped, rule) }
    if (visible === sight.visible && typeof rule !== 'function') sight.printed = printed
    return printed
  }

  /** @param {Context} context @param {Frame[]} frames of its stack @param {Sight} sight */
  function labelFor (context, frames, sight) {
    // Without a frame of the program a label tells of the context's parent, too.
    if (context.origin === 'early' || context.request !== undefined || !frames.some(isProgram)) return labelOf(context, frames)
    const { type, detail, awaited } = context
    let { named } = sight
    if (named === undefined || named.type !== type || named.detail !== detail || named.awaited !== awaited) {
      sight.named = named = { type, detail, awaited, label: labelOf(context, frames) }
    }
    return named.label
  }

  /**
   * The hops of a context.
   * @param {Context | undefined} context
   * @param {object} [given]
   * @param {Frame[]} [given.above] what is printed above the hops: their async frames are not repeated
   * @param {Origin} [given.origin] of all hops, where it is not how they are recorded
   * @returns {PrintedHop[]}
   */
  function hops (context, { above = [], origin } = {}) {
    if (context === undefined) return []
    folded(context)
    const { depth } = options()
    const shown = new Shown(above)
    /** @type {PrintedHop[]} */
    const list = []
    /** @type {Context | undefined} what Node made later, on behalf of the call in an older hop */
    let later
    for (let one = /** @type {Context | undefined} */ (context); one !== undefined && list.length < depth; one = one.parent) {
      const found = hopsOf(one, shown, origin)
      if (found.length === 0) {
        later = weightier(later, one)
        continue
      }
      if (later !== undefined) speakFor(found[0], later, stackOf(one)?.frames ?? none)
      later = undefined
      for (const hop of found) list.push(hop)
    }
    return join(list).slice(0, depth)
  }

  /**
   * @param {Context} context
   * @param {Shown} shown
   * @param {Origin | undefined} origin
   * @returns {PrintedHop[]} none where the step is Node's own business
   */
  function hopsOf (context, shown, origin) {
    if (context.origin === 'process') return foreign(context)
    const frames = stackOf(context)?.frames ?? none
    const sight = sightOf(frames)
    const { internals } = sight.options
    let { visible } = sight
    if (context.type === 'PROMISE' && !internals) visible = shown.rest(visible, context.repeats)
    if (visible.length === 0 && !internals && !tells(context, frames)) return none
    shown.add(visible)
    return [hop(context, frames, sight, visible, origin)]
  }

  /**
   * @param {Context} context
   * @param {Frame[]} frames all of its stack
   * @param {Sight} sight
   * @param {Frame[]} visible
   * @param {Origin} [origin]
   * @returns {PrintedHop}
   */
  function hop (context, frames, sight, visible, origin) {
    const printed = print(sight, visible)
    return {
      asyncId: context.asyncId,
      triggerAsyncId: context.triggerAsyncId,
      type: context.type,
      label: labelFor(context, frames, sight),
      ageMs: ageOf(context),
      repeats: context.repeats,
      origin: origin ?? context.origin,
      frames: printed.frames,
      lines: printed.lines
    }
  }

  /** @param {Context} context @returns {number} ms, NaN where its record is gone */
  function ageOf (context) {
    return Math.max(0, queriedAt() - context.time)
  }

  /** Hops of another thread, carried over as data. @param {any} context @returns {PrintedHop[]} */
  function foreign (context) {
    const carried = /** @type {PrintedHop[] | undefined} */ (context.carried)
    return carried === undefined ? [] : carried.map((hop) => ({ ...hop, ageMs: hop.ageMs + Math.max(0, queriedAt() - context.time) }))
  }

  /** One context as a hop, whether or not it is part of the story. @param {Context} context @returns {PrintedHop} */
  function describe (context) {
    const frames = stackOf(context)?.frames ?? none
    const sight = sightOf(frames)
    return hop(context, frames, sight, sight.visible)
  }

  return { hops, folded, describe }
}

/** @type {any[]} */
const none = []

/** @param {Frame} frame */
function isProgram (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

/**
 * Returns how much a type tells of a call into Node, 0 the most, -1 nothing. Node makes these when the call
 * is over.
 * @param {string} type
 */
function weightOf (type) {
  if (type.endsWith('CONNECTWRAP')) return 0
  if (type.endsWith('SERVERWRAP')) return 1
  return matters.indexOf(type)
}

const matters = ['', '', 'HTTPCLIENTREQUEST', 'GETADDRINFOREQWRAP', 'FSREQCALLBACK']

/** @param {Context | undefined} known @param {Context} other @returns {Context | undefined} */
function weightier (known, other) {
  const weight = weightOf(other.type)
  if (weight === -1) return known
  return known === undefined || weight < weightOf(known.type) ? other : known
}

/**
 * What Node made later gives its name to the hop of the call that asked for it.
 * @param {PrintedHop} hop
 * @param {Context} later
 * @param {Frame[]} frames of the hop's context
 */
function speakFor (hop, later, frames) {
  const api = apiName(frames)
  if (api === undefined || defers(api)) return
  if (weightOf(later.type) > 1 && hop.type !== 'TickObject') return
  hop.asyncId = later.asyncId
  hop.triggerAsyncId = later.triggerAsyncId
  hop.type = later.type
  hop.label = labelOf(later, frames)
}

/**
 * Says whether a call only defers: setTimeout, socket.setTimeout, queueMicrotask, nextTick.
 * @param {string} api
 */
function defers (api) {
  let start = api.length
  while (start > 0 && isWordCode(api.charCodeAt(start - 1))) start--
  const method = api.slice(start)
  if (method.startsWith('set')) return method.length > 'set'.length
  return method === 'queueMicrotask' || method === 'nextTick'
}

/** A step without a frame of the program that still is part of the story. @param {Context} context @param {Frame[]} frames */
function tells (context, frames) {
  if (context.origin === 'early') return context.type !== 'PROMISE' && context.type !== 'unknown'
  return context.type === 'HTTPINCOMINGMESSAGE' || accepted(context, frames) || arrivedBy(context, frames) !== undefined
}

/**
 * What the stacks of two turns of a loop have in common. V8 prints "[as _onImmediate]" until it optimizes, and how the
 * event loop came to call the program is not the program's.
 * @param {Frame[]} frames
 */
function identityOf (frames) {
  let end = frames.length
  while (end > 0 && frames[end - 1].kind === 'core') end--
  return frames.slice(0, end || frames.length).map((frame) => withoutAliases(frame.text)).join('\n')
}

/** Takes every " [as alias]" out. @param {string} line */
function withoutAliases (line) {
  for (let start = line.indexOf(' [as '); start !== -1; start = line.indexOf(' [as ', start)) {
    const end = line.indexOf(']', start)
    if (end === -1) break
    line = line.slice(0, start) + line.slice(end + 1)
  }
  return line
}

/** The async functions that are already printed. */
class Shown {
  /** @param {Frame[]} above */
  constructor (above) {
    /** @type {Set<string>} */
    this.keys = new Set()
    /** its outermost frame @type {Frame | undefined} */
    this.running = undefined
    /** the function whose await is told next, and the one whose await was told last @type {string | undefined} */
    this.awaited = this.resumed = undefined
    this.add(above)
  }

  /** @param {Frame[]} frames of a hop that is told */
  add (frames) {
    this.resumed = this.awaited
    this.awaited = undefined
    let running
    for (const frame of frames) {
      if (frame.isAsync) this.keys.add(key(frame))
      else if (frame.kind !== 'core') running = frame
    }
    if (running !== undefined) this.running = running
  }

  /** The function that runs above: the await inside it is no news. */
  get top () {
    return this.running === undefined ? undefined : key(this.running)
  }

  /**
   * What is left of an await's stack when the functions that V8 shows anyway are taken out. Earlier awaits of one run
   * of a function are no news either, unless they tell of a loop.
   * @param {Frame[]} frames
   * @param {number} repeats
   */
  rest (frames, repeats) {
    const { keys, top } = this
    const shown = keys.size > 0 && frames.some((frame) => keys.has(key(frame)))
    const left = shown ? frames.filter((frame) => !keys.has(key(frame))) : frames
    const known = left.every((frame) => key(frame) === top)
    if (known && repeats === 1 && (keys.size > 0 || (left.length === 1 && this.resumed === top))) return none
    if (left.length > 0) this.awaited = key(left[0])
    return left
  }
}

/** @param {Frame} frame */
function key (frame) {
  return frame.functionName === undefined
    ? `${frame.fileName}:${frame.lineNumber}`
    : `${withoutOwners(frame.functionName)} ${frame.fileName}`
}

/** "Server.Pool.query" → "query". @param {string} name */
function withoutOwners (name) {
  let start = 0
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code === 46 && i > start) start = i + 1
    else if (!isWordCode(code)) break
  }
  return name.slice(start)
}

/** Neighbours that read the same become one. @param {PrintedHop[]} list */
function join (list) {
  /** @type {PrintedHop[]} */
  const joined = []
  for (const hop of list) {
    const last = joined[joined.length - 1]
    if (last !== undefined && last.type === hop.type && last.label === hop.label && last.lines.length > 0 &&
      sameLines(last.lines, hop.lines)) last.repeats += hop.repeats
    else joined.push(hop)
  }
  return joined
}

/** @param {string[]} one @param {string[]} other */
function sameLines (one, other) {
  return one === other || (one.length === other.length && one.every((line, i) => line === other[i]))
}

/**
 * @param {Frame[]} frames
 * @param {import('../options').Options['hide']} rule
 * @returns {string[]} lines, runs of hidden frames as a count
 */
function hide (frames, rule) {
  if (rule === undefined) return frames.map((frame) => `    at ${frame.text}`)
  const lines = []
  for (let i = 0; i < frames.length; i++) {
    if (!hidden(frames[i], rule)) {
      lines.push(`    at ${frames[i].text}`)
      continue
    }
    let end = i
    const home = homeOf(frames[i])
    while (end + 1 < frames.length && hidden(frames[end + 1], rule) && homeOf(frames[end + 1]) === home) end++
    const count = end - i + 1
    lines.push(`    ... ${count} frame${count === 1 ? '' : 's'} in ${home}`)
    i = end
  }
  return lines
}

/** @param {Frame} frame @param {NonNullable<import('../options').Options['hide']>} rule */
function hidden (frame, rule) {
  if (rule === 'node_modules') return frame.kind === 'module'
  if (rule instanceof RegExp) return frame.fileName !== undefined && frame.fileName.search(rule) !== -1
  try {
    return Boolean(rule(/** @type {any} */ (publicFrame(frame))))
  } catch {
    return false
  }
}

/** The package or file that a frame is in. @param {Frame} frame */
function homeOf (frame) {
  const file = frame.fileName ?? 'built-in code'
  const start = insideModules(file, true)
  if (start === -1) return baseName(file)
  const end = folderEnd(file, start)
  if (end === start) return baseName(file)
  const scoped = file[start] === '@' && end > start + 1 && end < file.length ? folderEnd(file, end + 1) : end
  const name = file.slice(start, end)
  return scoped > end + 1 ? `${name}/${file.slice(end + 1, scoped)}` : name
}

/** @param {string} file @param {number} start */
function folderEnd (file, start) {
  let end = start
  while (end < file.length && !isSlash(file[end])) end++
  return end
}

/** "Timeout.warmUp [as _onTimeout]" → "warmUp", as CallSite.getFunctionName() says it. @param {string | undefined} rendered */
function bareName (rendered) {
  if (rendered === undefined) return undefined
  const name = afterLast(withoutPrefix(withoutAlias(rendered), 'new '), '.')
  return name === '<anonymous>' || name === '' ? undefined : name
}

/** @param {Frame} frame @returns {HopFrame} */
function publicFrame ({ functionName, fileName, lineNumber, columnNumber, kind, isAsync }) {
  return { functionName: bareName(functionName), fileName, lineNumber, columnNumber, kind: kind === 'own' ? 'core' : kind, isAsync }
}

module.exports = { createChain }
