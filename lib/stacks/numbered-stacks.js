'use strict'

// Stacks by number. Equal stacks are one, and no number is used twice, also after a reset.

const { Stack, createStackTable } = require('./frames')

const FIRST_NUMBER = 2 // the native engine has a meaning for those below
const MAX_TEXTS = 5_000 // of V8's own, remembered

class NumberedStacks {
  #table = createStackTable()
  /** by number, from #base on @type {Stack[]} */
  #stacks = []
  #base = FIRST_NUMBER
  /** by the text that V8 gave @type {Map<string, number>} */
  #numbers = new Map()

  get bytes () { return this.#table.bytes() }

  get size () { return this.#table.size() }

  /** @param {number} number @returns {Stack | undefined} */
  get (number) { return this.#stacks[number - this.#base] }

  /** @param {string} lines @returns {number | undefined} undefined: not seen before */
  numberOf (lines) { return this.#numbers.get(lines) }

  /**
   * Gives a number to a stack that has none.
   * @param {string} lines of frames, as V8 gave them
   * @param {boolean} internals whether the frames by which Node called the program are kept
   * @returns {number}
   */
  add (lines, internals) {
    const { frames } = new Stack(lines)
    const kept = internals ? frames : withoutBase(frames)
    const stack = this.#table.intern(kept.map((frame) => frame.text).join('\n'), Infinity)
    if (stack.id === 0) {
      stack.parsed = kept
      stack.id = this.#base + this.#stacks.length
      this.#stacks.push(stack)
    }
    if (this.#numbers.size > MAX_TEXTS) this.#numbers = new Map()
    this.#numbers.set(lines, stack.id)
    return stack.id
  }

  reset () {
    this.#table = createStackTable()
    this.#numbers = new Map()
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
