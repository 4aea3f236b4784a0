'use strict'

// What the options leave of a stack, mapped and formatted: computed once, and shared by all contexts that
// have the stack.

const { isProgram } = require('./api-names')
const { formatFrames, publicFrame } = require('./hop-frames')
const { labelOf } = require('./labels')
const { versionOfMaps } = require('./program-mapper')
const { nodeMaps } = require('./source-maps')
const { ensureHeadroom } = require('./stack-headroom')
const { findRunner } = require('./test-runners')

const MAX_VIEWS = 500 // remembered
const PRINT_KB = 96 // stack needed to print a stack for the first time: more than its source maps ensure

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {import('../options').Options} Options
 * @typedef {import('./frames').Frame} Frame
 *
 * @typedef {{ frames: import('./chain').HopFrame[], lines: string[] }} Printed as many as the options allow
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

class StackViews {
  #options
  #map
  /** by the frames of a stack @type {WeakMap<Frame[], StackView>} */
  #views = new WeakMap()
  #count = 0

  /** @param {() => Options} options @param {(frame: Frame) => Frame} map through source maps */
  constructor (options, map) {
    this.#options = options
    this.#map = map
  }

  /** @param {Frame[]} frames of a stack @returns {StackView} */
  viewOf (frames) {
    const options = this.#options()
    const version = versionOfMaps()
    let view = this.#views.get(frames)
    if (view === undefined || view.options !== options || view.version !== version) {
      const { internals } = options
      const runner = internals ? undefined : findRunner(frames)
      const called = runner?.role === 'entry' ? frames.slice(0, runner.end) : frames
      const visible = called.filter((frame) => frame.kind !== 'own' && (internals || frame.kind !== 'core'))
      view = { options, version, runner, visible, printed: undefined, lastLabel: undefined }
      if (++this.#count > MAX_VIEWS) {
        this.#views = new WeakMap()
        this.#count = 1
      }
      this.#views.set(frames, view)
    }
    return view
  }

  /** @param {StackView} view @param {Frame[]} visible frames of it @returns {Printed} */
  print (view, visible) {
    if (visible === view.visible && view.printed !== undefined && !nodeMaps()) return view.printed
    ensureHeadroom(PRINT_KB)
    const { frames: maxFrames, hide } = view.options
    const mapped = (visible.length > maxFrames ? visible.slice(0, maxFrames) : visible).map(this.#map)
    const printed = { frames: mapped.map(publicFrame), lines: formatFrames(mapped, hide) }
    if (visible === view.visible && typeof hide !== 'function') view.printed = printed
    return printed
  }

  /** @param {Context} context @param {Frame[]} frames of its stack @param {StackView} view */
  label (context, frames, view) {
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
}

module.exports = { StackViews }
