'use strict'

// The frames of a hop as they are printed and as a program gets them.

const { realpathSync } = require('node:fs')
const { types } = require('node:util')
const { afterLast, baseName, insideModules, isSlash, withoutAlias, withoutPrefix } = require('./text-scan')

/**
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./chain').HopFrame} HopFrame
 * @typedef {import('../options').Options['hide']} HideRule
 */

/** Formats frames as V8 does. @param {Frame[]} frames */
function formatFrames (frames) {
  return frames.map((frame) => `    at ${frame.text}`)
}

/**
 * Formats frames for people: neighbours that are hidden are one line, and so are functions that the text
 * tells further up; at the end these are left out, where there is no other.
 * @param {Frame[]} frames
 * @param {HideRule} rule
 * @param {(index: number) => boolean} isTold whether a frame is told further up
 * @returns {string[]} lines
 */
function shortLines (frames, rule, isTold) {
  /** @type {string[]} */
  const lines = []
  let isNews = false // of the program's functions, one is not told yet
  let i = 0
  while (i < frames.length) {
    const start = i
    const names = new Set()
    while (i < frames.length && isHidden(frames[i], rule)) names.add(packageOf(frames[i++]))
    if (i > start) {
      lines.push(`    ... ${i - start} frame${i - start === 1 ? '' : 's'} in ${[...names].join(', ')}`)
      continue
    }
    while (i > 0 && i < frames.length && isTold(i) && !isHidden(frames[i], rule)) {
      names.add(nameOf(frames[i++]))
    }
    isNews ||= i === start && !isTold(i)
    if (i === frames.length && !isNews) break
    lines.push(i > start ? `    ... as above: ${[...names].join(', ')}` : `    at ${frames[i++].text}`)
  }
  return lines
}

/** Returns a name that no parser of stacks takes for a place: it ends with no number. @param {Frame} frame */
function nameOf ({ functionName, fileName = '' }) {
  return bareName(functionName) ?? baseName(fileName)
}

/** @param {Frame} frame @param {HideRule} rule */
function isHidden (frame, rule) {
  if (rule === 'node_modules') return frame.kind === 'module' && packageOf(frame) !== mainPackage()
  if (types.isRegExp(rule)) return frame.fileName !== undefined && frame.fileName.search(rule) !== -1
  try {
    return Boolean(rule(/** @type {any} */ (publicFrame(frame))))
  } catch {
    return false
  }
}

/** of the main script: that of a program in node_modules/.bin @type {string | undefined} */
let main

/** Returns the package of the main script, empty where that is in none: its frames are the program's own. */
function mainPackage () {
  if (main !== undefined) return main
  main = ''
  try {
    const fileName = realpathSync.native(process.argv[1])
    if (insideModules(fileName, true) !== -1) main = packageOf({ fileName })
  } catch {} // no file
  return main
}

/** Returns the package or file that a frame is in. @param {Pick<Frame, 'fileName'>} frame */
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

module.exports = { formatFrames, publicFrame, shortLines }
