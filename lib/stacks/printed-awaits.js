'use strict'

// Which awaiting functions a chain has printed already: V8 prints them as "at async", and each is printed
// once.

const { isWordCode } = require('./text-scan')

/** @typedef {import('./frames').Frame} Frame */

/** @type {any[]} */
const none = []

class PrintedAwaits {
  /** async functions that are printed @type {Set<string>} */
  #keys = new Set()
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
      if (frame.isAsync) this.#keys.add(keyOf(frame))
      else if (frame.kind !== 'core') running = frame
    }
    if (running !== undefined) this.#running = running
  }

  /**
   * Returns the frames of an await without the functions that V8 prints anyway. Earlier awaits of one
   * execution of a function are left out as well, unless they are repeated in a loop.
   * @param {Frame[]} frames
   * @param {number} repeats
   */
  remaining (frames, repeats) {
    const keys = this.#keys
    const top = this.#running === undefined ? undefined : keyOf(this.#running)
    const isPrinted = keys.size > 0 && frames.some((frame) => keys.has(keyOf(frame)))
    const remaining = isPrinted ? frames.filter((frame) => !keys.has(keyOf(frame))) : frames
    if (repeats === 1 && remaining.every((frame) => keyOf(frame) === top)) {
      if (keys.size > 0 || (remaining.length === 1 && this.#resumed === top)) return none
    }
    if (remaining.length > 0) this.#awaited = keyOf(remaining[0])
    return remaining
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
