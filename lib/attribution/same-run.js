'use strict'

// What the frames of an error prove of the callback in which it was made: whether the main script made it,
// which of them ran in the innermost scope, the outermost function of the program, and whether Node's core or
// a line at the prompt made it.

const { afterLast, isDigitCode, isWordCode, withoutAlias } = require('../stacks/text-scan')

/** @typedef {import('../stacks/frames').Frame} Frame */

/**
 * Whether the main script made it. Node's start lies below the main script; below an ESM one as awaiting,
 * unless a module of the program awaits, too.
 * @param {Frame[]} frames
 */
function endsInStartUp (frames) {
  const last = frames[frames.length - 1]
  if (last?.fileName?.startsWith('node:internal/main/')) return true
  const isEsm = last?.fileName === 'node:internal/modules/run_main' && last.isAsync
  return isEsm && !frames.some((frame) => frame.isAsync && isProgram(frame))
}

const SCOPE = 'runInAsyncScope'

/** Whether an async scope is entered: below it another context runs. @param {Frame} frame */
function isScope ({ kind, functionName }) {
  if (kind !== 'core' || functionName === undefined || !functionName.endsWith(SCOPE)) return false
  const before = functionName.length - SCOPE.length - 1
  return before < 0 || !isWordCode(functionName.charCodeAt(before))
}

/**
 * Returns the frames of the innermost scope in which the program runs.
 * @param {Frame[]} frames
 * @returns {Frame[]}
 */
function innermostScope (frames) {
  const scope = frames.findIndex(isScope)
  if (scope === -1) return frames
  const inner = frames.slice(0, scope)
  return outermost(inner) === undefined ? frames : inner
}

/** @param {Frame[]} frames @returns {Frame | undefined} the last frame of the program */
function outermost (frames) {
  for (let i = frames.length - 1; i >= 0; i--) if (isProgram(frames[i])) return frames[i]
  return undefined
}

/** @param {Frame} frame */
function isProgram (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

/**
 * Functions of Node's core that make an error and pass it to `stream.destroy()`, which reads its stack at
 * once, and from there to nextTick (lib/net.js, lib/internal/stream_base_commons.js,
 * lib/internal/streams/destroy.js).
 */
const destroyers = ['afterConnect', 'internalConnectMultiple', 'onStreamRead', 'onWriteComplete']

/**
 * Whether the callback that made an error also had its stack read or passed it to nextTick, before the
 * program got it.
 * @param {Frame[]} frames that ran
 */
function isReadAtOnce (frames) {
  return frames.some(({ kind, functionName }) => {
    return kind === 'core' && functionName !== undefined &&
      destroyers.includes(afterLast(withoutAlias(functionName), '.'))
  })
}

/** Whether a file is a line typed at the prompt: REPL1, REPL2 … @param {string | undefined} fileName */
function isPrompt (fileName) {
  if (fileName === undefined || !fileName.startsWith('REPL') || fileName.length === 4) return false
  for (let i = 4; i < fileName.length; i++) if (!isDigitCode(fileName.charCodeAt(i))) return false
  return true
}

module.exports = { endsInStartUp, innermostScope, isPrompt, isReadAtOnce, outermost }
