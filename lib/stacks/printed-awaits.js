'use strict'

// Which awaiting functions a text has told already: V8 prints them as "at async", and each is told once.

const { isWordCode } = require('./text-scan')

/** @typedef {import('./frames').Frame} Frame */

/** @type {any[]} */
const none = []

class PrintedAwaits {
  /** lines at which async functions are printed @type {Map<string, Set<number | undefined>>} */
  #keys = new Map()
  /** the outermost frame of the last hop @type {Frame | undefined} */
  #running
  /**
   * the function whose await is the next hop, and the one whose await was the last
   * @type {string | undefined}
   */
  #awaited
  /** @type {string | undefined} */
  #resumed

  /** @param {Frame[]} framesAbove frames that are printed above the chain */
  constructor (framesAbove) {
    this.add(framesAbove)
  }

  /** @param {Frame[]} frames of a hop that is printed */
  add (frames) {
    this.#resumed = this.#awaited
    this.#awaited = undefined
    let running
    for (const frame of frames) {
      if (frame.isAsync) this.#note(frame)
      else if (frame.kind !== 'core') running = frame
    }
    if (running !== undefined) this.#running = running
  }

  /** @param {Frame} frame */
  #note (frame) {
    const key = keyOf(frame)
    const lines = this.#keys.get(key)
    if (lines === undefined) this.#keys.set(key, new Set([frame.lineNumber]))
    else lines.add(frame.lineNumber)
  }

  /**
   * Returns what tells whether a frame of a hop is printed already, at the same line.
   * @param {Frame[]} frames
   * @returns {((frame: Frame) => boolean) | undefined} undefined: none is
   */
  teller (frames) {
    if (this.#keys.size === 0) return undefined
    const told = frames.filter((frame) => this.#keys.get(keyOf(frame))?.has(frame.lineNumber))
    return told.length === 0 ? undefined : (frame) => told.includes(frame)
  }

  /**
   * Returns the frames of an await from the first function on that V8 does not print anyway, and none where
   * it prints all, or all but the one that runs. Earlier awaits of one execution of a function are left out
   * as well, unless they are repeated in a loop.
   * @param {Frame[]} frames
   * @param {number} repeats
   */
  remaining (frames, repeats) {
    const keys = this.#keys
    const top = this.#running === undefined ? undefined : keyOf(this.#running)
    const untold = keys.size === 0 ? frames : frames.filter((frame) => !keys.has(keyOf(frame)))
    const isOfRunning = untold.every((frame) => keyOf(frame) === top)
    if (repeats === 1 && isOfRunning) {
      if (keys.size > 0 || (untold.length === 1 && this.#resumed === top)) return none
    }
    if (untold.length === 0) return none
    this.#awaited = keyOf(untold[0])
    if (untold.length === frames.length) return frames
    return isOfRunning ? untold : frames.slice(frames.indexOf(untold[0]))
  }
}

/** @param {Frame} frame */
function keyOf (frame) {
  return frame.functionName === undefined
    ? `${frame.fileName}:${frame.lineNumber}`
    : `${withoutOwners(frame.functionName)} ${frame.fileName}`
}

/** "Server.Pool.query" → "query". @param {string} name */
function withoutOwners (name) {
  let start = 0
  for (let i = 0; i < name.length; i++) {
    const code = name.charCodeAt(i)
    if (code === 46 && i > start) start = i + 1
    else if (!isWordCode(code)) break
  }
  return name.slice(start)
}

module.exports = { PrintedAwaits }
