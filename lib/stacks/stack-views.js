'use strict'

// What the options leave of a stack, mapped and formatted: computed once, and shared by all contexts that
// have the stack.

const { isProgram } = require('./api-names')
const { formatFrames, publicFrame, shortLines } = require('./hop-frames')
const { labelOf } = require('./labels')
const { versionOfMaps } = require('./program-mapper')
const { mapFrame, nodeMaps } = require('./source-maps')
const { settings } = require('../settings')
const { ensureHeadroom } = require('./stack-headroom')
const { parseFrame } = require('./frames')
const { findRunner } = require('./test-runners')

const MAX_VIEWS = 500 // remembered
const PRINT_KB = 96 // stack needed to print a stack for the first time: more than its source maps ensure

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../options').Options} Options
 * @typedef {import('./frames').Frame} Frame
 *
 * @typedef {object} Printed
 * @property {import('./chain').HopFrame[]} frames as many as the option allows
 * @property {string[]} lines of these
 * @property {string[] | undefined} short lines for people, as many; undefined: as they are
 *
 * @typedef {object} StackView
 * @property {Options} options under which it was computed
 * @property {ReturnType<typeof findRunner>} runner what the frames have of a test runner
 * @property {Frame[]} visible but those of a runner that called the test
 * @property {number} version of the maps that it was printed with
 * @property {Printed | undefined} printed
 * @property {{ type: string, detail: string | undefined, awaited: boolean, label: string } | undefined}
 *   lastLabel
 */

/** by the frames of a stack @type {WeakMap<Frame[], StackView>} */
let views = new WeakMap()
let count = 0

/** @param {Frame[]} frames of a stack @returns {StackView} */
function viewOf (frames) {
  const { options } = settings
  const version = versionOfMaps()
  let view = views.get(frames)
  if (view === undefined || view.options !== options || view.version !== version) {
    const { internals } = options
    const runner = internals ? undefined : findRunner(frames)
    const called = runner?.role === 'entry' ? frames.slice(0, runner.end) : frames
    const visible = called.filter((frame) => frame.kind !== 'own' && (internals || frame.kind !== 'core'))
    view = { options, version, runner, visible, printed: undefined, lastLabel: undefined }
    if (++count > MAX_VIEWS) {
      views = new WeakMap()
      count = 1
    }
    views.set(frames, view)
  }
  return view
}

/**
 * @param {StackView} view
 * @param {Frame[]} visible frames of it
 * @param {((frame: Frame) => boolean) | undefined} [isTold] whether a frame is told further up
 * @returns {Printed}
 */
function print (view, visible, isTold) {
  const isShared = visible === view.visible && isTold === undefined
  if (isShared && view.printed !== undefined && !nodeMaps()) return view.printed
  ensureHeadroom(PRINT_KB)
  const { frames: maxFrames, hide, internals } = view.options
  const mapped = (internals ? visible.slice(0, maxFrames) : visible).map(mapFrame)
  const kept = mapped.slice(0, maxFrames)
  const isAbove = (/** @type {number} */ index) => isTold !== undefined && isTold(visible[index])
  const printed = {
    frames: kept.map(publicFrame),
    lines: formatFrames(kept),
    short: internals ? undefined : shortLines(mapped, hide, isAbove).slice(0, maxFrames)
  }
  if (isShared && typeof hide !== 'function') view.printed = printed
  return printed
}

/**
 * Copies a hop of another thread or process, which came without its lines for people.
 * @param {import('./chain').PrintedHop} hop
 * @returns {import('./chain').PrintedHop}
 */
function copyOf (hop) {
  const { hide, internals } = settings.options
  if (internals || hop.isFolded) return { ...hop }
  return { ...hop, short: shortLines(hop.lines.map(frameOfLine), hide, () => false) }
}

/** @param {Context} context @param {Frame[]} frames of its stack @param {StackView} view */
function label (context, frames, view) {
  // Without a frame of the program a label depends on the context's parent, too.
  const isOfStack = context.origin !== 'early' && context.request === undefined && frames.some(isProgram)
  if (!isOfStack) return labelOf(context, frames)
  const { type, detail, awaited } = context
  const { lastLabel } = view
  const isSame = lastLabel?.type === type && lastLabel.detail === detail && lastLabel.awaited === awaited
  if (isSame) return lastLabel.label
  const label = labelOf(context, frames)
  view.lastLabel = { type, detail, awaited, label }
  return label
}

/** @param {string} line */
const frameOfLine = (line) => parseFrame(line.slice('    at '.length))

module.exports = { copyOf, label, print, viewOf }
