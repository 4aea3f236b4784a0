'use strict'

// Frames of a hop as text and as data. The frames that the options select, mapped and formatted, are computed
// once per stack and shared by all its contexts.

const { realpathSync } = require('node:fs')
const { types } = require('node:util')
const { attempt } = require('../files')
const { settings } = require('../settings')
const { captureText } = require('./formatter')
const { frameIn, lineOf, readFrames } = require('./frames')
const { versionOfMaps } = require('./program-mapper')
const { mapFrame, nodeMaps } = require('./source-maps')
const { ensureHeadroom } = require('./stack-headroom')
const { findRunner } = require('./test-runners')
const { afterLast, baseName, namesInModules, withoutAlias, withoutPrefix } = require('./text-scan')

const MAX_VIEWS = 500 // cached
const PRINT_KB = 96 // stack needed to print a stack for the first time: more than source maps ensure
const FOLDED = '    ... ' // prefix of a line that stands for others
const MORE_FRAMES = 10 // extra frames of the current stack to capture, since some are hidden

/**
 * @typedef {import('../options').Options} Options
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./chain').HopFrame} HopFrame
 *
 * @typedef {object} ShortText of a stack
 * @property {string[] | undefined} short lines for people; undefined if everything is printed
 * @property {string} [place] the innermost frame of the program, below any number of package frames
 * @property {string[]} [packages] its packages, if no frame of the program is printed
 *
 * @typedef {object} More
 * @property {HopFrame[]} frames as many as the option allows
 * @property {string[]} lines of these frames
 * @property {ShortText} [alone] the same if the main script's package counts as the program
 *
 * @typedef {ShortText & More} Printed
 *
 * @typedef {object} StackView
 * @property {Options} options used to compute it
 * @property {ReturnType<typeof findRunner>} runner test runner found in the frames
 * @property {Frame[]} visible frames, without those of a runner that called the test
 * @property {number} version of the maps used to print it
 * @property {Printed | undefined} printed
 */

/** keyed by the frames of a stack @type {WeakMap<Frame[], StackView>} */
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
    view = { options, version, runner, visible, printed: undefined }
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
 * @param {boolean[]} [told] frames already printed further up
 * @returns {Printed}
 */
function print (view, visible, told) {
  const isShared = visible === view.visible && told === undefined
  if (isShared && view.printed !== undefined && !nodeMaps()) return view.printed
  ensureHeadroom(PRINT_KB)
  const { frames: maxFrames, hide, internals } = view.options
  const mapped = (internals ? visible.slice(0, maxFrames) : visible).map(mapFrame)
  const kept = mapped.slice(0, maxFrames)
  const printed = {
    frames: kept.map(publicFrame),
    lines: kept.map(lineOf),
    ...shortTexts(mapped, view.options, told)
  }
  if (isShared && typeof hide !== 'function') view.printed = printed
  return printed
}

/**
 * @param {Frame[]} frames mapped
 * @param {Options} options
 * @param {boolean[]} [told] see shortLines
 * @returns {ShortText & { alone?: ShortText }}
 */
function shortTexts (frames, options, told) {
  const text = shortText(frames, options, told)
  return frames.some(isOfMain) ? { ...text, alone: shortText(frames, options, told, true) } : text
}

/**
 * @param {Frame[]} frames mapped
 * @param {Options} options
 * @param {boolean[]} [told] see shortLines
 * @param {boolean} [isMainShown] see shortLines
 * @returns {ShortText}
 */
function shortText (frames, { frames: maxFrames, hide, internals }, told, isMainShown = false) {
  const place = frames.find((frame) => frame.kind === 'user' || (isMainShown && isOfMain(frame)))?.text
  if (internals) return { place, short: undefined }
  /** @type {Set<string>} */
  const packages = new Set()
  const short = shortLines(frames, hide, told, isMainShown, packages)
  const isFolded = short.length > 0 && short.every((line) => line.startsWith(FOLDED))
  return { place, short: short.slice(0, maxFrames), ...(isFolded ? { packages: [...packages] } : undefined) }
}

/**
 * Copies a hop of another thread or process and adds its lines for people.
 * @param {import('./chain').PrintedHop} hop
 * @returns {import('./chain').PrintedHop}
 */
function copyOf (hop) {
  if (hop.isFolded) return { ...hop }
  const frames = hop.lines.map((line) => /** @type {Frame} */ (frameIn(line)))
  return { ...hop, ...shortTexts(frames, settings.options) }
}

/**
 * Formats frames for people. Adjacent hidden frames become one line, and so do functions printed further up;
 * trailing ones of these are left out if no new function precedes them.
 * @param {Frame[]} frames
 * @param {Options['hide']} rule
 * @param {boolean[]} [told] frames already printed further up
 * @param {boolean} [isMainShown] whether to show frames of the main script's package
 * @param {Set<string>} [packages] receives the hidden packages
 * @returns {string[]} lines
 */
function shortLines (frames, rule, told = [], isMainShown = false, packages = new Set()) {
  /** @type {string[]} */
  const lines = []
  let isNews = false // some function of the program is not printed yet
  let i = 0
  while (i < frames.length) {
    const start = i
    const names = new Set()
    while (i < frames.length && isHidden(frames[i], rule, isMainShown)) names.add(packageOf(frames[i++]))
    if (i > start) {
      for (const name of names) packages.add(name)
      lines.push(`${FOLDED}${i - start} frame${i - start === 1 ? '' : 's'} in ${[...names].join(', ')}`)
      continue
    }
    while (i > 0 && i < frames.length && told[i] && !isHidden(frames[i], rule, isMainShown)) {
      names.add(nameOf(frames[i++]))
    }
    isNews ||= i === start && !told[i]
    if (i === frames.length && !isNews) break
    lines.push(i > start ? `${FOLDED}as above: ${[...names].join(', ')}` : lineOf(frames[i++]))
  }
  return lines
}

/** Returns a name without trailing number: no stack parser reads it as a place. @param {Frame} frame */
function nameOf ({ functionName, fileName = '' }) {
  return bareName(functionName) ?? baseName(fileName)
}

/** @param {Frame} frame @param {Options['hide']} rule @param {boolean} isMainShown */
function isHidden (frame, rule, isMainShown) {
  if (rule === 'node_modules') return frame.kind === 'module' && !(isMainShown && isOfMain(frame))
  if (types.isRegExp(rule)) return frame.fileName !== undefined && frame.fileName.search(rule) !== -1
  return Boolean(attempt(() => rule(/** @type {any} */ (publicFrame(frame)))))
}

/**
 * Whether a frame belongs to the main script's package: to the program itself, unless that package is a
 * framework that runs other people's code.
 * @param {Frame} frame
 */
const isOfMain = (frame) => frame.kind === 'module' && packageOf(frame) === mainPackage()

/** package of the main script, for a program in node_modules/.bin */
let main = ''
/** the script that `main` belongs to; in a worker it is another script while preloads load */
let mainScript = ''

/** Returns the package of the main script, or '' if it is in none. */
function mainPackage () {
  const script = process.argv[1] ?? ''
  if (script === mainScript) return main
  mainScript = script
  const fileName = attempt(() => realpathSync.native(script)) ?? '' // there may be no file
  main = namesInModules(fileName) === undefined ? '' : packageOf({ fileName })
  return main
}

/** Returns the package or file of a frame. @param {Pick<Frame, 'fileName'>} frame */
function packageOf (frame) {
  const file = frame.fileName ?? 'built-in code'
  const [name, nameInScope] = namesInModules(file) ?? []
  if (!name) return baseName(file)
  return name[0] === '@' && name.length > 1 && nameInScope ? `${name}/${nameInScope}` : name
}

/**
 * "Timeout.warmUp [as _onTimeout]" → "warmUp", like CallSite.getFunctionName().
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

/** @param {Function} above frames start with its caller */
function presentFrames (above) {
  return readFrames(captureText(above, settings.options.frames + MORE_FRAMES))
}

/** Returns the lines of the current stack without Node's frames. @param {Function} above */
function presentLines (above) {
  const frames = presentFrames(above).filter((frame) => frame.kind !== 'core')
  return frames.map((frame) => lineOf(mapFrame(frame)))
}

module.exports = { copyOf, mainPackage, presentFrames, presentLines, print, publicFrame, shortLines, viewOf }
