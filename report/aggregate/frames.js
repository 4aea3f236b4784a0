'use strict'

// Frames of stacks as text: `load (/app/pool.js:34:9) via pg`.

const HOP = '\n  ── '
const MAX_FRAME_CHARS = 1000 // longer ones are not parsed
const CALLED = /^(.*? \()(.+?):(\d+)(?::(\d+))?(\)(?: via .*)?)$/s
const PLACE = /^()(.+?):(\d+)(?::(\d+))?( via .*)?$/s

/**
 * Splits a frame at its position: `load (`, `/app/pool.js`, 34, 9, `) via pg`.
 * @param {string} frame
 * @returns {{ start: string, path: string, line: string, column: string, end: string } | undefined}
 *   undefined: it has none
 */
function parseFrame (frame) {
  if (frame.length > MAX_FRAME_CHARS) return undefined
  const match = CALLED.exec(frame) ?? PLACE.exec(frame)
  if (match === null) return undefined
  const [, start, path, line, column = '', end = ''] = match
  return { start, path, line, column, end }
}

/**
 * Returns the function of a frame, whatever the line: samples of one function differ in it.
 * @param {string} frame
 */
function functionOf (frame) {
  const place = parseFrame(frame)
  return place === undefined ? frame : place.start + place.path + place.end
}

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

module.exports = { functionOf, innermostFrame, innermostOwnFrame, parseFrame }
