'use strict'

// Names of functions that are the same in two runs, although code moved to other lines between them, and
// although the runs may have been in different directories.

/** @typedef {(path: string) => string} FileName */

const MAX_FRAME_CHARS = 1000
const MIN_MATCHING = 0.5 // of the files of the run that has less

/**
 * Names the function and file of a frame, without line and column.
 * @param {string} frame
 * @param {FileName} fileName
 */
function functionOf (frame, fileName) {
  const { start, path } = placeOf(frame)
  return `${start}${fileName(path)}`
}

/** Splits a frame: `load (/app/pool.js:34:9) via pg` is `load ` and `/app/pool.js`. @param {string} frame */
function placeOf (frame) {
  const place = frame.slice(0, MAX_FRAME_CHARS).replace(/ via \S+$/, '')
    .replace(/\)$/, '').replace(/:\d+(?::\d+)?$/, '')
  const index = place.indexOf(' (')
  const isCalled = index !== -1 && frame.includes(')')
  if (!isCalled) return { start: '', path: place }
  return { start: `${place.slice(0, index)} `, path: place.slice(index + 2) }
}

/**
 * Returns for each of two runs how its files are named, so that those of the other match: by full paths;
 * where the runs were in different directories, by paths below what all files of a run have in common; or
 * else by base names.
 * @param {string[]} before frames of the first run
 * @param {string[]} after
 * @returns {[FileName, FileName]}
 */
function fileNames (before, after) {
  const paths = [before, after].map((frames) => new Set(frames.map((frame) => placeOf(frame).path)))
  const whole = (/** @type {string} */ path) => path
  const [first, second] = paths.map((set) => belowRoot([...set]))
  if (isMatching(paths, [whole, whole])) return [whole, whole]
  if (isMatching(paths, [first, second])) return [first, second]
  return [baseName, baseName]
}

/** @param {string} path */
function baseName (path) {
  return path.slice(Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\')) + 1)
}

/** @param {string[]} paths @returns {FileName} */
function belowRoot (paths) {
  const directories = paths.map((path) => path.split(/[/\\]/).slice(0, -1))
  const [first = []] = directories
  let depth = 0
  while (depth < first.length && directories.every((parts) => parts[depth] === first[depth])) depth++
  return (path) => path.split(/[/\\]/).slice(depth).join('/')
}

/** @param {Array<Set<string>>} paths of two runs @param {[FileName, FileName]} names */
function isMatching ([before, after], [first, second]) {
  const others = new Set([...after].map(second))
  const count = [...before].filter((path) => others.has(first(path))).length
  return count >= MIN_MATCHING * Math.min(before.size, after.size)
}

module.exports = { fileNames, functionOf }
