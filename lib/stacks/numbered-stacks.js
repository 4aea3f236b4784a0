'use strict'

// Stacks by number. Equal stacks are one, and no number is used twice, also after a reset.

const { RecentMap, Stack, StackTable } = require('./frames')

const FIRST_NUMBER = 2 // the native engine has a meaning for those below
const MAX_TEXTS = 1 << 18 // characters of V8's own texts that are remembered: most recur soon, or not at all
const LINE_BYTES = 400 // about, of a frame with its texts

class NumberedStacks {
  #table = new StackTable()
  /** by number, from #base on @type {Stack[]} */
  #stacks = []
  #base = FIRST_NUMBER
  /** by the text that V8 gave @type {RecentMap<number>} */
  #numbers = new RecentMap(MAX_TEXTS)
  /** frames that no stack before had @type {Set<import('./frames').Frame>} */
  #frames = new Set()

  get bytes () { return this.#table.bytes + this.#frames.size * LINE_BYTES }

  get size () { return this.#table.size }

  /** @param {number} number @returns {Stack | undefined} */
  get (number) { return this.#stacks[number - this.#base] }

  /** @param {string} lines @returns {number | undefined} undefined: not seen before */
  numberOf (lines) { return this.#numbers.get(lines, lines.length) }

  /**
   * Gives a number to a stack that has none.
   * @param {string} lines of frames, as V8 gave them
   * @param {boolean} internals whether the frames by which Node called the program are kept
   * @returns {number}
   */
  add (lines, internals) {
    const { frames } = new Stack(lines)
    const kept = internals ? frames : withoutBase(frames)
    const stack = this.#table.intern(kept)
    if (stack.id === 0) {
      for (const frame of kept) this.#frames.add(frame)
      stack.id = this.#base + this.#stacks.length
      this.#stacks.push(stack)
    }
    this.#numbers.set(lines, stack.id, lines.length)
    return stack.id
  }

  reset () {
    this.#table = new StackTable()
    this.#numbers = new RecentMap(MAX_TEXTS)
    this.#frames = new Set()
    this.#base += this.#stacks.length
    this.#stacks = []
  }
}

/**
 * Removes the frames by which the event loop called the program: they differ from time to time (a tick after
 * a timer, or one after a callback), and are no part of what the program did.
 * @param {import('./frames').Frame[]} frames
 */
function withoutBase (frames) {
  let end = frames.length
  while (end > 0 && frames[end - 1].kind === 'core') end--
  return end === 0 ? frames : frames.slice(0, end)
}

module.exports = { NumberedStacks }
