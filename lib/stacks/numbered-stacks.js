'use strict'

// Stacks by number. Equal stacks share a number, and no number is reused, even after a reset.

const { settings } = require('../settings')
const { RecentMap, Stack, isCore } = require('./frames')

const FIRST_NUMBER = 2 // lower numbers have a meaning in the native engine
const MAX_TEXTS = 1 << 18 // characters of V8's own texts to cache: most recur soon, or not at all
const LINE_BYTES = 400 // estimate for a frame with its texts
const STACK_BYTES = 160 // estimate for a stack without its frames
const FRAME_BYTES = 8 // per frame in a stack

/** @typedef {import('./frames').Frame} Frame */

/** keyed by the hash of their frames @type {Map<number, Stack>} */
let stacksByHash = new Map()
/** by number, from base on @type {Stack[]} */
let stacks = []
let base = FIRST_NUMBER
/** keyed by V8's text @type {RecentMap<number>} */
let numbers = new RecentMap(MAX_TEXTS)
/** distinct frames of all stacks @type {Set<Frame>} */
let newFrames = new Set()
/** estimate, without the texts of frames */
let stackBytes = 0
let dropAll = () => {}

const bytes = () => stackBytes + newFrames.size * LINE_BYTES
const size = () => stacks.length

/** @param {number} number @returns {Stack | undefined} */
const get = (number) => stacks[number - base]

/**
 * Sets the function that drops all chains and stacks, called when they exceed their share of the budget.
 * @param {() => void} reset
 */
function whenFull (reset) {
  dropAll = reset
}

/**
 * Returns a stack's number, a new one if the stack is new.
 * @param {string} lines of frames, as V8 printed them
 * @param {number} [more] bytes kept beside a new stack
 * @returns {number}
 */
function internStack (lines, more = 0) {
  const number = numbers.get(lines, lines.length)
  if (number !== undefined) return number
  const { budget, internals } = settings.options
  if (bytes() > budget / 4) dropAll()
  const { frames } = new Stack(lines)
  const kept = internals ? frames : withoutBase(frames)
  const { id } = findEqual(kept) ?? add(kept)
  numbers.set(lines, id, lines.length)
  stackBytes += more
  return id
}

/** @param {Frame[]} frames @returns {Stack | undefined} */
function findEqual (frames) {
  let stack = stacksByHash.get(hashOf(frames))
  while (stack !== undefined && !areEqual(stack.frames, frames)) stack = stack.next
  return stack
}

/** @param {Frame[]} frames */
function add (frames) {
  const hash = hashOf(frames)
  const stack = new Stack(frames)
  stack.id = base + stacks.length
  stack.next = stacksByHash.get(hash)
  stacks.push(stack)
  stacksByHash.set(hash, stack)
  stackBytes += STACK_BYTES + frames.length * FRAME_BYTES
  for (const frame of frames) newFrames.add(frame)
  return stack
}

/** @param {Frame[]} frames @returns {number} an integer */
function hashOf (frames) {
  let hash = frames.length
  for (const { text, lineNumber = 0, columnNumber = 0 } of frames) {
    hash = Math.imul(hash ^ lineNumber, 0x9E3779B1) + columnNumber
    hash = Math.imul(hash ^ hash >>> 15 ^ text.length, 0x85EBCA77)
  }
  return hash
}

/** @param {Frame[]} frames @param {Frame[]} others */
function areEqual (frames, others) {
  return frames.length === others.length &&
    frames.every((frame, i) => frame === others[i] || frame.text === others[i].text)
}

function reset () {
  stacksByHash = new Map()
  stackBytes = 0
  numbers = new RecentMap(MAX_TEXTS)
  newFrames = new Set()
  base += stacks.length
  stacks = []
}

/**
 * Removes the event loop's frames below the program. They vary (a tick after a timer, or after a callback)
 * and do not belong to the program's work.
 * @param {Frame[]} frames
 */
function withoutBase (frames) {
  const last = frames.findLastIndex((frame) => !isCore(frame))
  return last === -1 ? frames : frames.slice(0, last + 1)
}

module.exports = { bytes, get, internStack, reset, size, whenFull }
