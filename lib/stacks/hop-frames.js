'use strict'

// The frames of a hop as they are printed and as a program gets them.

const { types } = require('node:util')
const { afterLast, baseName, insideModules, isSlash, withoutAlias, withoutPrefix } = require('./text-scan')

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./chain').HopFrame} HopFrame
 * @typedef {import('./chain').Hop} Hop
 * @typedef {import('./chain').PrintedHop} PrintedHop
 * @typedef {import('../options').Options['hide']} HideRule
 */

/**
 * Formats frames, and counts those that the option `hide` leaves out.
 * @param {Frame[]} frames
 * @param {HideRule} rule
 * @returns {string[]} lines; neighbours that are hidden and of one package are one line
 */
function formatFrames (frames, rule) {
  if (rule === undefined) return frames.map((frame) => `    at ${frame.text}`)
  const lines = []
  for (let i = 0; i < frames.length; i++) {
    if (!isHidden(frames[i], rule)) {
      lines.push(`    at ${frames[i].text}`)
      continue
    }
    let end = i
    const origin = packageOf(frames[i])
    const isAlike = (/** @type {Frame} */ frame) => isHidden(frame, rule) && packageOf(frame) === origin
    while (end + 1 < frames.length && isAlike(frames[end + 1])) end++
    const count = end - i + 1
    lines.push(`    ... ${count} frame${count === 1 ? '' : 's'} in ${origin}`)
    i = end
  }
  return lines
}

/** @param {Frame} frame @param {NonNullable<HideRule>} rule */
function isHidden (frame, rule) {
  if (rule === 'node_modules') return frame.kind === 'module'
  if (types.isRegExp(rule)) return frame.fileName !== undefined && frame.fileName.search(rule) !== -1
  try {
    return Boolean(rule(/** @type {any} */ (publicFrame(frame))))
  } catch {
    return false
  }
}

/** Returns the package or file that a frame is in. @param {Frame} frame */
function packageOf (frame) {
  const file = frame.fileName ?? 'built-in code'
  const start = insideModules(file, true)
  if (start === -1) return baseName(file)
  const end = segmentEnd(file, start)
  if (end === start) return baseName(file)
  const isScoped = file[start] === '@' && end > start + 1 && end < file.length
  const scopedEnd = isScoped ? segmentEnd(file, end + 1) : end
  const name = file.slice(start, end)
  return scopedEnd > end + 1 ? `${name}/${file.slice(end + 1, scopedEnd)}` : name
}

/** Returns where a segment of a path ends. @param {string} file @param {number} start */
function segmentEnd (file, start) {
  let end = start
  while (end < file.length && !isSlash(file[end])) end++
  return end
}

/**
 * "Timeout.warmUp [as _onTimeout]" → "warmUp", as CallSite.getFunctionName() returns it.
 * @param {string | undefined} printed
 */
function bareName (printed) {
  if (printed === undefined) return undefined
  const name = afterLast(withoutPrefix(withoutAlias(printed), 'new '), '.')
  return name === '<anonymous>' || name === '' ? undefined : name
}

/** @param {Frame} frame @returns {HopFrame} */
function publicFrame ({ functionName, fileName, lineNumber, columnNumber, kind, isAsync }) {
  return {
    functionName: bareName(functionName),
    fileName,
    lineNumber,
    columnNumber,
    kind: kind === 'own' ? 'core' : kind,
    isAsync
  }
}

/** Copies what the program may get of a hop. @param {PrintedHop} hop @returns {Hop} */
function copyHop ({ lines, isFolded, frames, ...hop }) {
  return { ...hop, frames: frames.map((frame) => ({ ...frame })) }
}

module.exports = { copyHop, formatFrames, publicFrame }
