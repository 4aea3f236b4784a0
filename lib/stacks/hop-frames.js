'use strict'

// The frames of a hop as they are printed and as a program gets them. What the options leave of a stack,
// mapped and formatted, is computed once, and shared by all contexts that have the stack.

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

const MAX_VIEWS = 500 // remembered
const PRINT_KB = 96 // stack needed to print a stack for the first time: more than its source maps ensure
const FOLDED = '    ... ' // before what a line stands for
const MORE_FRAMES = 10 // that are captured of the present stack, since some are hidden

/**
 * @typedef {import('../options').Options} Options
 * @typedef {import('./frames').Frame} Frame
 * @typedef {import('./chain').HopFrame} HopFrame
 *
 * @typedef {object} ShortText of a stack
 * @property {string[] | undefined} short lines for people; undefined: all is printed
 * @property {string} [place] the innermost frame of the program, however many there are of packages
 * @property {string[]} [packages] what it is in, if no frame of the program is printed
 *
 * @typedef {object} More
 * @property {HopFrame[]} frames as many as the option allows
 * @property {string[]} lines of these
 * @property {ShortText} [alone] the same where the package of the main script is the program
 *
 * @typedef {ShortText & More} Printed
 *
 * @typedef {object} StackView
 * @property {Options} options under which it was computed
 * @property {ReturnType<typeof findRunner>} runner what the frames have of a test runner
 * @property {Frame[]} visible but those of a runner that called the test
 * @property {number} version of the maps that it was printed with
 * @property {Printed | undefined} printed
 */

/** by the frames of a stack @type {WeakMap<Frame[], StackView>} */
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
 * @param {boolean[]} [told] which of them are told further up
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
 * @param {boolean[]} [told] as of shortLines
 * @returns {ShortText & { alone?: ShortText }}
 */
function shortTexts (frames, options, told) {
  const text = shortText(frames, options, told)
  return frames.some(isOfMain) ? { ...text, alone: shortText(frames, options, told, true) } : text
}

/**
 * @param {Frame[]} frames mapped
 * @param {Options} options
 * @param {boolean[]} [told] as of shortLines
 * @param {boolean} [isMainShown] as of shortLines
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
 * Copies a hop of another thread or process, which came without its lines for people.
 * @param {import('./chain').PrintedHop} hop
 * @returns {import('./chain').PrintedHop}
 */
function copyOf (hop) {
  if (hop.isFolded) return { ...hop }
  const frames = hop.lines.map((line) => /** @type {Frame} */ (frameIn(line)))
  return { ...hop, ...shortTexts(frames, settings.options) }
}

/**
 * Formats frames for people: neighbours that are hidden are one line, and so are functions that the text
 * tells further up; at the end these are left out, where there is no other.
 * @param {Frame[]} frames
 * @param {Options['hide']} rule
 * @param {boolean[]} [told] which of them are told further up
 * @param {boolean} [isMainShown] whether those of the main script's package are shown
 * @param {Set<string>} [packages] gets those that are hidden
 * @returns {string[]} lines
 */
function shortLines (frames, rule, told = [], isMainShown = false, packages = new Set()) {
  /** @type {string[]} */
  const lines = []
  let isNews = false // of the program's functions, one is not told yet
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

/** Returns a name that no parser of stacks takes for a place: it ends with no number. @param {Frame} frame */
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
 * Whether a frame is of the package of the main script: of the program itself, unless the package is a
 * framework that runs the code of others.
 * @param {Frame} frame
 */
const isOfMain = (frame) => frame.kind === 'module' && packageOf(frame) === mainPackage()

/** of the main script: that of a program in node_modules/.bin */
let main = ''
/** the script that it was found for; in a worker that is another one while preloads are loaded */
let mainScript = ''

/** Returns the package of the main script, empty where that is in none. */
function mainPackage () {
  const script = process.argv[1] ?? ''
  if (script === mainScript) return main
  mainScript = script
  const fileName = attempt(() => realpathSync.native(script)) ?? '' // there may be no file
  main = namesInModules(fileName) === undefined ? '' : packageOf({ fileName })
  return main
}

/** Returns the package or file that a frame is in. @param {Pick<Frame, 'fileName'>} frame */
function packageOf (frame) {
  const file = frame.fileName ?? 'built-in code'
  const [name, nameInScope] = namesInModules(file) ?? []
  if (!name) return baseName(file)
  return name[0] === '@' && name.length > 1 && nameInScope ? `${name}/${nameInScope}` : name
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

/** @param {Function} above frames start below this function */
function presentFrames (above) {
  return readFrames(captureText(above, settings.options.frames + MORE_FRAMES))
}

/** Returns the present stack without Node's frames, as lines. @param {Function} above */
function presentLines (above) {
  const frames = presentFrames(above).filter((frame) => frame.kind !== 'core')
  return frames.map((frame) => lineOf(mapFrame(frame)))
}

module.exports = { copyOf, mainPackage, presentFrames, presentLines, print, publicFrame, shortLines, viewOf }
