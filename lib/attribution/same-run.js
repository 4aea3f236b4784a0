'use strict'

// What the frames of an error tell of its run: whether the main script made it, which of them ran in the
// innermost scope, and the function of the program that was called first. Frames in, answers out; contexts
// are attribution's business.

const { isWordCode } = require('../stacks/text-scan')

/** @typedef {import('../stacks/frames').Frame} Frame */

/** Below the main script lies Node's start; below an ESM one as awaiting, unless a module of the program awaits, too. @param {Frame[]} frames */
function atStartUp (frames) {
  const last = frames[frames.length - 1]
  if (last?.fileName?.startsWith('node:internal/main/')) return true
  return last?.fileName === 'node:internal/modules/run_main' && last.isAsync && !frames.some((frame) => frame.isAsync && programs(frame))
}

const SCOPE = 'runInAsyncScope'

/** Entering an async scope by hand: below it another context runs. @param {Frame} frame */
function isScope (frame) {
  const { kind, functionName } = frame
  if (kind !== 'core' || functionName === undefined || !functionName.endsWith(SCOPE)) return false
  const before = functionName.length - SCOPE.length - 1
  return before < 0 || !isWordCode(functionName.charCodeAt(before))
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

/** @param {Frame} frame */
function programs (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

module.exports = { atStartUp, outermost, segment }
