'use strict'

// One blocking callback, from its first sample to its report.

const { Samples } = require('./samples')
const { startQuery } = require('../core/clock')
const { Context } = require('../core/context')
const { kindOf } = require('../core/kinds')
const { view } = require('../format/context-view')
const { copyHop, formatHops } = require('../format/hops')
const { settings } = require('../settings')
const { Stack } = require('../stacks/frames')
const { describe, hops } = require('../stacks/chain')

/**
 * @typedef {import('../format/context-view').ContextView} ContextView
 * @typedef {import('../stacks/chain').Hop} Hop
 * @typedef {import('../stacks/chain').HopFrame} HopFrame
 *
 * @typedef {object} BlockedEvent a callback that blocked the event loop, or still does
 * @property {number} ms its length, without the time in which the process was stopped, the machine asleep or
 *   a debugger paused it
 * @property {boolean} stillRunning the callback has not ended: listeners are called inside it
 * @property {number} [sampledLate] ms from the request for the sample to the sample: the thread was inside a
 *   native call, or collected garbage
 * @property {number} samples taken inside; 0: the callback ended when its native call returned
 * @property {HopFrame[]} frames inside the callback, innermost first: those that most of the samples share
 * @property {string} stack these frames as text, then the hops of the running context
 * @property {Hop[]} chain
 * @property {ContextView | undefined} context that ran
 * @property {{ traceId: string, spanId: string, name: string }} [span] that it was part of
 * @property {number} startUnixMs
 */

const kind = kindOf('BLOCKED', false)

class BlockingCallback {
  samples = new Samples()
  isReported = false // from inside
  /** Span that it was part of, if known. @type {Context['spanIdentity']} */
  span

  /**
   * @param {number} start ms of the clock
   * @param {number} startUnixMs
   * @param {Context | undefined} context in which it began, if known
   */
  constructor (start, startUnixMs, context) {
    this.start = start
    this.startUnixMs = startUnixMs
    this.context = context
  }

  /**
   * Makes the event that listeners get, and sets `span`.
   * @param {number} ms
   * @param {boolean} stillRunning
   * @returns {BlockedEvent}
   */
  createEvent (ms, stillRunning) {
    const { count, text, context = this.context, late } = this.samples.best()
    const explained = explain(context, text)
    const span = this.span = context?.spanIdentity
    return {
      ms: round(ms),
      stillRunning,
      ...(late === undefined ? {} : { sampledLate: round(late) }),
      samples: count,
      ...explained,
      ...(span === undefined ? {} : { span: identityOf(span) }),
      startUnixMs: this.startUnixMs
    }
  }
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
  // With no frame of the program on the stack, Node's own frames are the only information.
  const frameLines = lines.length > 0
    ? lines
    : stack.frames.slice(0, settings.options.frames).map((frame) => `    at ${frame.text}`)
  const parts = [...frameLines, formatHops(printed)].filter((part) => part !== '')
  return { frames, stack: parts.join('\n'), chain: printed.map(copyHop), context: view(context) }
}

/** Returns the innermost frame of the program in a callback. @param {BlockingCallback} callback */
const frameIn = ({ samples }) => innermostFrame(explain(undefined, samples.best().text).stack)

/** @param {{ traceId: string, spanId: string, name: string }} span */
function identityOf ({ traceId, spanId, name }) {
  return { traceId, spanId, name }
}

/** @param {string} stack @returns {string | undefined} its first frame */
function innermostFrame (stack) {
  return /^ {4}at (.*)/.exec(stack)?.[1]
}

/** @param {number} ms */
function round (ms) {
  return Math.round(ms * 10) / 10
}

module.exports = { BlockingCallback, frameIn, innermostFrame }
