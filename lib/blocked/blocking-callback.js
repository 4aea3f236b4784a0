'use strict'

// A single blocking callback, from its first sample to its report.

const { startQuery } = require('../core/clock')
const { Context } = require('../core/context')
const { kindOf } = require('../core/kinds')
const { view } = require('../format/context-view')
const { copyHops, formatHops } = require('../format/hops')
const { groupBy } = require('../group-by')
const { settings } = require('../settings')
const { describe, hops } = require('../stacks/chain')
const { Stack, lineOf } = require('../stacks/frames')
const { frameLines, joinFrames } = require('../stacks/text-scan')

/**
 * @typedef {import('../format/context-view').ContextView} ContextView
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').HopFrame} HopFrame
 *
 * @typedef {object} BlockedEvent a callback that blocked the event loop, or still does
 * @property {number} ms duration, excluding time while the process was stopped, the machine slept, or a
 *   debugger paused it
 * @property {boolean} stillRunning the callback has not ended: listeners are called inside it
 * @property {number} [sampledLate] ms from requesting the sample to taking it: the thread was in a native
 *   call, or collected garbage
 * @property {number} samples samples taken inside; 0 if the callback ended when its native call returned
 * @property {HopFrame[]} frames inside the callback, innermost first: those that most samples share
 * @property {string} stack these frames as text, followed by the hops of the running context
 * @property {Hop[]} chain
 * @property {ContextView | undefined} context running context
 * @property {{ traceId: string, spanId: string, name: string }} [span] span that it belongs to
 * @property {number} startUnixMs
 */

const MAX_SAMPLES = 64 // per callback
const MAX_FRAMES = 200 // a sample with this many was truncated
const MODULES = 'node:internal/modules/' // Node's module loader

/**
 * @typedef {object} Sample
 * @property {string} text frames in the form of joinFrames, innermost first
 * @property {import('../core/context').Context | undefined} context running context
 * @property {number | undefined} late ms from the request to the sample, if long
 * @property {number} weight amount of time that it represents
 * @property {boolean} [isOwn] true if taken inside longstack's own work
 *
 * @typedef {Sample & { frames: import('../stacks/frames').Frame[] }} ParsedSample frames outermost first
 */

const kind = kindOf('BLOCKED', false)

class BlockingCallback {
  /** @type {Sample[]} */
  #samples = []
  #sampleCount = 0
  isReported = false // while still running
  /** Span that it belongs to, if known. @type {Context['spanIdentity']} */
  span
  /**
   * ids of its span record, once written
   * @type {{ traceId: string, spanId: string, parentSpanId?: string } | undefined}
   */
  ids

  /**
   * @param {number} start ms of the clock
   * @param {number} startUnixMs
   * @param {Context | undefined} context at its start, if known
   */
  constructor (start, startUnixMs, context) {
    this.start = start
    this.startUnixMs = startUnixMs
    this.context = context
  }

  /** @param {Sample} sample */
  addSample (sample) {
    this.#sampleCount++
    if (this.#samples.length < MAX_SAMPLES) this.#samples.push(sample)
  }

  /** @returns {{ text: string, context?: Sample['context'], late?: number, isOwn?: boolean }} */
  bestSample () {
    if (this.#samples.length === 0) return { text: '' }
    // A late sample may show work of Node or longstack after the program's part has ended.
    const withProgram = this.#samples.filter(({ text }) => new Stack(text).program)
    const { text, samples } = commonPath(withProgram.length > 0 ? withProgram : this.#samples)
    const { context, late, isOwn } = heaviest(samples)
    return { text, context, late, isOwn: isOwnWork(new Stack(text), isOwn) }
  }

  /**
   * Makes the event for listeners, and sets `span`.
   * @param {number} ms
   * @param {boolean} stillRunning
   * @returns {BlockedEvent | undefined} undefined if the callback is longstack's own
   */
  createEvent (ms, stillRunning) {
    const { text, context = this.context, late, isOwn } = this.bestSample()
    if (isOwn) return undefined
    const explained = explain(context, text)
    const span = this.span = context?.spanIdentity
    return {
      ms: round(ms),
      stillRunning,
      ...(late === undefined ? {} : { sampledLate: round(late) }),
      samples: this.#sampleCount,
      ...explained,
      ...(span && { span: { traceId: span.traceId, spanId: span.spanId, name: span.name } }),
      startUnixMs: this.startUnixMs
    }
  }
}

/**
 * Returns whether a callback is longstack's own: its start, or one of its timers or sockets. The stack then
 * has no frame of the program, and longstack's innermost frames did the work or called Node for it. Wrappers
 * that Node's work passes through do not count.
 * @param {Stack} stack
 * @param {boolean} [isInWork] true if the sample was taken inside longstack's own work
 */
function isOwnWork ({ frames, program }, isInWork) {
  if (program) return false
  const outermost = frames.findLastIndex(({ kind }) => kind === 'own')
  if (outermost === -1) return false
  const isLoaded = frames[outermost + 1]?.fileName?.startsWith(MODULES) === true
  return isInWork === true || frames[0].kind === 'own' || isLoaded
}

/**
 * Explains a blocking callback: the frames sampled inside it, then the hops that led to it.
 * @param {Context | undefined} context
 * @param {string} text of the frames
 */
function explain (context, text) {
  startQuery()
  const stack = new Stack(text)
  const holder = new Context(0, 0, kind, undefined, 0)
  holder.stack = stack
  const { frames, lines } = describe(holder)
  const printed = hops(context, { above: stack.frames })
  // Without a frame of the program on the stack, Node's own frames are the only information.
  const frameLines = lines.length > 0
    ? lines
    : stack.frames.filter(({ kind }) => kind !== 'own').slice(0, settings.options.frames).map(lineOf)
  const parts = [...frameLines, formatHops(printed)].filter((part) => part !== '')
  return { frames, stack: parts.join('\n'), chain: copyHops(printed), context: view(context) }
}

/** Returns the innermost frame of the program in a callback. @param {BlockingCallback} callback */
function frameIn (callback) {
  const { text, isOwn } = callback.bestSample()
  return isOwn ? undefined : innermostFrame(explain(undefined, text).stack)
}

/** @param {string} stack @returns {string | undefined} its first frame */
function innermostFrame (stack) {
  return /^ {4}at (.*)/.exec(stack)?.[1]
}

/** @param {number} ms */
function round (ms) {
  return Math.round(ms * 10) / 10
}

// Common part of one callback's samples: the call path, from the event loop inwards, that took at least half
// of its time. A single sample is reported unchanged.

/** Returns the frames of a stack, one line each. @param {string} stack */
const linesOf = (stack) => frameLines(stack, true)

/**
 * Returns the common path, and the samples that follow it to its end.
 * @param {Sample[]} samples
 * @returns {{ text: string, samples: Sample[] }}
 */
function commonPath (samples) {
  if (samples.length === 1) return { text: samples[0].text, samples }
  const parsed = samples.map((sample) => ({ ...sample, frames: new Stack(sample.text).frames.toReversed() }))
  if (parsed.some(({ frames }) => frames.length >= MAX_FRAMES)) { // deep recursion: outermost frames differ
    const sample = heaviest(samples)
    return { text: sample.text, samples: [sample] }
  }
  const total = weigh(parsed)
  /** @type {string[]} */
  const lines = []
  let matching = parsed
  for (let depth = 0; ; depth++) {
    const deeper = matching.filter(({ frames }) => frames.length > depth)
    const next = largestGroup(deeper, ({ frames }) => keyOf(frames[depth]))
    if (next.length === 0 || weigh(next) * 2 < total) break
    lines.unshift(largestGroup(next, ({ frames }) => frames[depth].text)[0].frames[depth].text)
    matching = next
  }
  return { text: joinFrames(lines), samples: matching }
}

/**
 * Returns the samples of the key that accounts for the most time.
 * @param {ParsedSample[]} samples
 * @param {(sample: ParsedSample) => string} key
 * @returns {ParsedSample[]}
 */
function largestGroup (samples, key) {
  return groupBy(samples, key).reduce((best, group) => weigh(group) > weigh(best) ? group : best, [])
}

/**
 * Identifies a frame's function, independent of the position in it.
 * @param {import('../stacks/frames').Frame} frame
 */
function keyOf ({ functionName, fileName }) {
  return `${functionName} ${fileName}`
}

/** @param {Sample[]} samples */
function weigh (samples) {
  return samples.reduce((sum, { weight }) => sum + weight, 0)
}

/** @param {Sample[]} samples */
function heaviest (samples) {
  return samples.reduce((best, sample) => sample.weight > best.weight ? sample : best)
}

module.exports = { BlockingCallback, frameIn, innermostFrame, linesOf }
