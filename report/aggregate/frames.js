'use strict'

// Stack frames as text, `load (/app/pool.js:34:9) via pg`, and their short names, `load (pool.js:34)`:
// function, file and line, with as much of the path as distinguishes files of one name, and the column if two
// frames are on one line.

const { shortFrame } = require('../../lib/text')

const HOP = '\n  ── '
const MAX_FRAME_CHARS = 1000 // longer ones are not parsed
const CALLED = /^(.*? \()(.+?):(\d+)(?::(\d+))?(\)(?: via .*)?)$/s
/** Packages that limit how many tasks run at a time, whatever these do. */
const LIMITER = new RegExp(' via (?:p-limit|p-queue|p-map|p-all|p-throttle|async|neo-async|async-mutex|' +
  'async-lock|async-sema|await-lock|await-semaphore|bottleneck|fastq|throat|promise-limit|limiter)$')
const PLACE = /^((?:async )?)(.+?):(\d+)(?::(\d+))?( via .*)?$/s

/**
 * Splits a frame at its position: `load (`, `/app/pool.js`, 34, 9, `) via pg`.
 * @param {string} frame
 * @returns {{ start: string, path: string, line: string, column: string, end: string } | undefined}
 *   undefined if it has none
 */
function parseFrame (frame) {
  if (frame.length > MAX_FRAME_CHARS) return undefined
  const match = CALLED.exec(frame) ?? PLACE.exec(frame)
  if (match === null) return undefined
  const [, start, path, line, column = '', end = ''] = match
  return { start, path, line, column, end }
}

/**
 * Returns the function of a frame without its line, which differs between samples of one function.
 * @param {string} frame
 */
function functionOf (frame) {
  const place = parseFrame(frame)
  return place === undefined ? frame : place.start + place.path + place.end
}

/** Whether a frame waits in a package that limits how many run at a time. @param {string} frame */
const isOfLimiter = (frame) => LIMITER.test(frame)

/** @param {string} text of frames @returns {string[]} */
function framesOf (text) {
  return text.split('\n').filter((line) => /^ +at /.test(line)).map((line) => line.replace(/^ +at /, ''))
}

/** Returns the frames that ran, without those of earlier hops. @param {string} stack */
function callFramesOf (stack) {
  return framesOf(stack.split(HOP, 1)[0])
}

/** @param {string} frame */
function isOwn (frame) {
  return !/\bnode:|[\\/]node_modules[\\/]/.test(frame)
}

/**
 * Returns the innermost program frame of those that ran, or the innermost frame if there is none.
 * @param {string} stack
 * @returns {string | undefined}
 */
function innermostFrame (stack) {
  const frames = callFramesOf(stack)
  return frames.find(isOwn) ?? frames[0]
}

/** Returns the innermost program frame, up the chain if necessary. @param {string} stack */
function innermostOwnFrame (stack) {
  return framesOf(stack).find(isOwn)
}

/** @typedef {(frame: string) => string} FrameNames */

/** @typedef {NonNullable<ReturnType<typeof parseFrame>>} Place */

/**
 * Returns a function that shortens these frames; others become function, file and line.
 * @param {Iterable<string>} frames
 * @returns {FrameNames}
 */
function createFrameNames (frames) {
  /** @type {Map<string, Place>} */
  const places = new Map()
  for (const frame of frames) {
    const place = places.has(frame) ? undefined : parseFrame(frame)
    if (place !== undefined) places.set(frame, place)
  }
  const suffixes = suffixesOf([...places.values()].map(({ path }) => path.split(/[/\\]/)))
  /** @type {Map<string, Set<string>>} */
  const columns = new Map()
  for (const place of places.values()) {
    const name = nameOf(place, suffixes)
    columns.set(name, (columns.get(name) ?? new Set()).add(place.column))
  }
  return (frame) => {
    const place = places.get(frame)
    if (place === undefined) return shortFrame(frame)
    const name = nameOf(place, suffixes)
    const isShared = Number(columns.get(name)?.size) > 1 && place.column !== ''
    return isShared ? nameOf(place, suffixes, `:${place.column}`) : name
  }
}

/**
 * Names the frames of several runs, each run separately, since their directories may differ.
 * @param {string[][]} runs frames of each; the last run with a frame names it
 * @returns {FrameNames}
 */
function createRunFrameNames (runs) {
  const names = runs.map((frames) => ({ frames: new Set(frames), name: createFrameNames(frames) })).reverse()
  return (frame) => (names.find(({ frames }) => frames.has(frame))?.name ?? shortFrame)(frame)
}

/** @param {Place} place @param {Map<string, string>} suffixes @param {string} [column] */
function nameOf ({ start, path, line, end }, suffixes, column = '') {
  const place = `${suffixes.get(path.replaceAll('\\', '/'))}:${line}${column}`
  return start.endsWith('<anonymous> (') ? place + end.slice(1) : start + place + end
}

/**
 * Returns the file of each path, with as many directories as distinguish it from the others.
 * @param {string[][]} paths
 * @returns {Map<string, string>}
 */
function suffixesOf (paths) {
  const unique = new Map(paths.map((path) => [path.join('/'), path.map((_, i) => path.slice(i).join('/'))]))
  /** @type {Map<string, number>} */
  const counts = new Map()
  for (const suffix of [...unique.values()].flat()) counts.set(suffix, (counts.get(suffix) ?? 0) + 1)
  return new Map([...unique].map(([path, suffixes]) =>
    [path, suffixes.findLast((suffix) => counts.get(suffix) === 1) ?? path]))
}

module.exports = {
  callFramesOf,
  createFrameNames,
  createRunFrameNames,
  functionOf,
  innermostFrame,
  innermostOwnFrame,
  isOfLimiter,
  isOwn,
  parseFrame
}
