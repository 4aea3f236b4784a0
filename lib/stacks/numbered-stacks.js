'use strict'

// Stacks by number. Equal stacks are one, and no number is used twice, also after a reset.

const { settings } = require('../settings')
const { RecentMap, Stack, StackTable } = require('./frames')

const FIRST_NUMBER = 2 // the native engine has a meaning for those below
const MAX_TEXTS = 1 << 18 // characters of V8's own texts that are remembered: most recur soon, or not at all
const LINE_BYTES = 400 // about, of a frame with its texts

let table = new StackTable()
/** by number, from base on @type {Stack[]} */
let stacks = []
let base = FIRST_NUMBER
/** by the text that V8 gave @type {RecentMap<number>} */
let numbers = new RecentMap(MAX_TEXTS)
/** frames that no stack before had @type {Set<import('./frames').Frame>} */
let newFrames = new Set()
let dropAll = () => {}

const bytes = () => table.bytes + newFrames.size * LINE_BYTES
const size = () => table.size

/** @param {number} number @returns {Stack | undefined} */
const get = (number) => stacks[number - base]

/**
 * Sets what drops all chains, and with them all stacks: they are past their share of the budget.
 * @param {() => void} reset
 */
function whenFull (reset) {
  dropAll = reset
}

/**
 * Gives a number to a stack.
 * @param {string} lines of frames, as V8 gave them
 * @returns {number}
 */
function internStack (lines) {
  const number = numbers.get(lines, lines.length)
  if (number !== undefined) return number
  const { budget, internals } = settings.options
  if (bytes() > budget / 4) dropAll()
  const { frames } = new Stack(lines)
  const kept = internals ? frames : withoutBase(frames)
  const stack = table.intern(kept)
  if (stack.id === 0) {
    for (const frame of kept) newFrames.add(frame)
    stack.id = base + stacks.length
    stacks.push(stack)
  }
  numbers.set(lines, stack.id, lines.length)
  return stack.id
}

function reset () {
  table = new StackTable()
  numbers = new RecentMap(MAX_TEXTS)
  newFrames = new Set()
  base += stacks.length
  stacks = []
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

module.exports = { bytes, get, internStack, reset, size, whenFull }
