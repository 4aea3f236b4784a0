'use strict'

// What two stacks tell of the runs they were taken in: which frames belong to one run, whether two are of the same
// one, whether two frames are of the same function. Frames in, answers out; contexts are attribution's business.

const { contains } = require('./extent')
const { isWordCode, withoutPrefix } = require('./scan')

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {Frame & { site?: NodeJS.CallSite }} SiteFrame
 */

/** Below the main script lies Node's start; below an ESM one as awaiting, unless a module of the program awaits, too. @param {Frame[]} frames */
function atStartUp (frames) {
  const last = frames[frames.length - 1]
  if (last?.fileName?.startsWith('node:internal/main/')) return true
  return last?.fileName === 'node:internal/modules/run_main' && last.isAsync && !frames.some((frame) => frame.isAsync && programs(frame))
}

/** @param {Frame} frame @param {NodeJS.CallSite} site @returns {SiteFrame} */
function siteFrame ({ text, functionName, fileName, lineNumber, columnNumber, kind, isAsync }, site) {
  return { text, functionName, fileName, lineNumber, columnNumber, kind, isAsync, site }
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

/** @param {Frame} made @param {Frame | undefined} read */
function sameName (made, read) {
  if (read === undefined || made.fileName !== read.fileName) return false
  return made.functionName === read.functionName || calledName(made) === calledName(read)
}

/** @param {Frame} frame */
function calledName ({ functionName }) {
  return functionName === undefined ? undefined : withoutPrefix(functionName, 'async ')
}

/** @param {Frame} frame */
function programs (frame) {
  return frame.kind === 'user' || frame.kind === 'module'
}

/** The functions of the program that await a frame. @param {Frame[]} frames @param {Frame} frame */
function tailOf (frames, frame) {
  return frames.slice(frames.indexOf(frame) + 1).filter((one) => one.isAsync && programs(one))
}

/** @param {Frame[]} frames */
function asyncOf (frames) {
  return frames.filter((frame) => frame.isAsync)
}

/**
 * Do both stacks belong to one run? Seen from outside in they are equal until they part, and they part inside one
 * function. Two functions called from one place are two calls of it, maybe in two runs: not proven.
 * @param {SiteFrame[]} made the error's run
 * @param {Frame[]} read the reader's run
 * @param {boolean} truncated the error may have had more frames
 */
function sameRun (made, read, truncated) {
  let i = made.length - 1
  let j = read.length - 1
  const complete = !truncated || !programs(made[i])
  if (complete) {
    while (i >= 0 && !programs(made[i])) i--
    while (j >= 0 && !programs(read[j])) j--
  } else {
    while (j >= 0 && made[i].text !== read[j].text && !sameFunction(made[i], read[j])) j--
  }
  if (i < 0 || j < 0) return false
  while (i >= 0 && j >= 0 && made[i].text === read[j].text) {
    i--
    j--
  }
  if (i < 0 || j < 0) return true
  return sameFunction(made[i], read[j])
}

/**
 * The functions that wait for both are the same ones.
 * @param {Frame[]} made
 * @param {Frame[]} read
 * @param {boolean} truncated
 */
function sameTail (made, read, truncated) {
  if (!truncated && made.length !== read.length) return false
  return made.every((frame, i) => read[i]?.text === frame.text)
}

/**
 * @param {SiteFrame} made a frame of the error
 * @param {Frame} read
 */
function sameFunction (made, read) {
  if (made.fileName !== read.fileName || made.fileName === undefined || made.site === undefined) return false
  if (!sameName(made, read)) return false
  if (made.lineNumber === read.lineNumber && made.columnNumber === read.columnNumber) return true
  const inside = contains(made.site, Number(read.lineNumber), Number(read.columnNumber))
  return inside ?? Boolean(made.site.getFunctionName())
}

/**
 * The function that runs right now and that V8 shows as awaiting the error's creator, if the same ones await it.
 * @param {SiteFrame[]} frames of the error
 * @param {{ run: Frame[], async: Frame[] }} present
 * @returns {SiteFrame | undefined}
 */
function awaiter (frames, present) {
  const awaiting = frames.filter((frame) => frame.isAsync && programs(frame))
  const running = outermost(present.run)
  if (running === undefined) return undefined
  const at = awaiting.findIndex((frame) => sameFunction(frame, running))
  const others = present.async.filter(programs)
  const same = awaiting.slice(at + 1).every((frame, i) => others[i] === undefined || others[i].text === frame.text)
  return at !== -1 && same ? awaiting[at] : undefined
}

module.exports = {
  asyncOf,
  atStartUp,
  awaiter,
  calledName,
  isScope,
  outermost,
  programs,
  sameFunction,
  sameName,
  sameRun,
  sameTail,
  segment,
  siteFrame,
  tailOf
}
