'use strict'

// The stack of now, as frames.

const { settings } = require('../settings')
const { readFrames } = require('./frames')
const formatter = require('./formatter')
const { mapFrame } = require('./source-maps')
const { captureInto } = require('./trace-limit')

const MORE_FRAMES = 10 // that are captured, since some are hidden

/** @param {Function} above frames start below this function */
function presentFrames (above) {
  const holder = /** @type {any} */ ({ __proto__: null })
  captureInto(holder, above, settings.options.frames + MORE_FRAMES)
  const stack = formatter.withPlainFormat(holder)
  return typeof stack === 'string' ? readFrames(stack) : []
}

/** Returns the present stack without Node's frames, as lines. @param {Function} above */
function presentLines (above) {
  const frames = presentFrames(above).filter((frame) => frame.kind !== 'core')
  return frames.map((frame) => `    at ${mapFrame(frame).text}`)
}

module.exports = { presentFrames, presentLines }
