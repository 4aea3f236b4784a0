'use strict'

// Frames of long stacks as text.

const HOP = '\n  ── '

/** @param {string} text of frames @returns {string[]} */
function framesOf (text) {
  return text.split('\n').filter((line) => /^ +at /.test(line)).map((line) => line.replace(/^ +at /, ''))
}

/** @param {string} frame */
function isOwn (frame) {
  return !/\bnode:|[\\/]node_modules[\\/]/.test(frame)
}

/**
 * Returns the innermost frame of the program where the stack ends, or the innermost at all.
 * @param {string} stack
 * @returns {string | undefined}
 */
function innermostFrame (stack) {
  const frames = framesOf(stack.split(HOP, 1)[0])
  return frames.find(isOwn) ?? frames[0]
}

/** Returns the innermost frame of the program, up the chain if need be. @param {string} stack */
function innermostOwnFrame (stack) {
  return framesOf(stack).find(isOwn)
}

module.exports = { innermostFrame, innermostOwnFrame }
