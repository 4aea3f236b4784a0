'use strict'

// Short names of frames for people: function, file and line, `load (pool.js:34)`. As much of the path is kept
// as tells files of one name apart, and the column where two frames are in one line.

const { shortFrame } = require('../../lib/text')

/** @typedef {(frame: string) => string} FrameNames */

/**
 * @typedef {object} Place
 * @property {string} start what comes before the path
 * @property {string[]} path its directories and file
 * @property {string} line
 * @property {string} column
 * @property {string} end what comes after
 */

const MAX_FRAME_CHARS = 600 // longer ones are not parsed

/**
 * Returns a function that shortens any of these frames; others are shortened to file and line.
 * @param {Iterable<string>} frames
 * @returns {FrameNames}
 */
function createFrameNames (frames) {
  /** @type {Map<string, Place>} */
  const places = new Map()
  for (const frame of frames) {
    const place = places.has(frame) ? undefined : placeOf(frame)
    if (place !== undefined) places.set(frame, place)
  }
  const suffixes = suffixesOf([...places.values()].map(({ path }) => path))
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
    return Number(columns.get(name)?.size) > 1 ? nameOf(place, suffixes, `:${place.column}`) : name
  }
}

/**
 * Names the frames of several runs, each as if it were alone: their directories may differ.
 * @param {string[][]} runs frames of each; the last that has a frame names it
 * @returns {FrameNames}
 */
function createRunFrameNames (runs) {
  const names = runs.map((frames) => ({ frames: new Set(frames), name: createFrameNames(frames) })).reverse()
  return (frame) => (names.find(({ frames }) => frames.has(frame))?.name ?? shortFrame)(frame)
}

/** @param {string} frame @returns {Place | undefined} */
function placeOf (frame) {
  if (frame.length > MAX_FRAME_CHARS) return undefined
  const match = /^(.*? \()(.+):(\d+):(\d+)(\)(?: via .*)?)$/s.exec(frame) ??
    /^()(.+):(\d+):(\d+)( via .*)?$/s.exec(frame)
  if (match === null) return undefined
  const [, start, path, line, column, end = ''] = match
  return { start, path: path.split(/[/\\]/), line, column, end }
}

/** @param {Place} place @param {Map<string, string>} suffixes @param {string} [column] */
function nameOf ({ start, path, line, end }, suffixes, column = '') {
  return `${start}${suffixes.get(path.join('/'))}:${line}${column}${end}`
}

/**
 * Returns of each path its file, with as many directories as distinguish it from the others.
 * @param {string[][]} paths
 * @returns {Map<string, string>}
 */
function suffixesOf (paths) {
  const unique = new Map(paths.map((path) => [path.join('/'), path]))
  /** @type {Map<string, string>} */
  const suffixes = new Map()
  let pending = [...unique]
  for (let length = 1; pending.length > 0; length++) {
    /** @type {Map<string, number>} */
    const counts = new Map()
    for (const [, path] of pending) {
      const suffix = path.slice(-length).join('/')
      counts.set(suffix, (counts.get(suffix) ?? 0) + 1)
    }
    pending = pending.filter(([key, path]) => {
      const suffix = path.slice(-length).join('/')
      const isDone = counts.get(suffix) === 1 || path.length <= length
      if (isDone) suffixes.set(key, suffix)
      return !isDone
    })
  }
  return suffixes
}

module.exports = { createFrameNames, createRunFrameNames }
