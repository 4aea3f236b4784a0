'use strict'

// Native capture engine. The addon turns the current stack into a key, and the key into the number of a known
// stack. Only a new stack is captured for real, and it is formatted at once so that no raw frames are held.
// native/walker.h, names.h and contents.h explain why equal keys mean equal stacks.
//
// Hot path: bench/capture.js measures `step`.

const { originMs, stepClock } = require('../core/clock')
const { settings } = require('../settings')
const { loadBinding } = require('./binding')
const { captureText } = require('./formatter')
const { internStack } = require('./numbered-stacks')
const { frameLines } = require('./text-scan')

const CORE_FRAMES = 48 // for node: frames between a resource and the program; fetch has up to 34 of undici's
const MARGIN = 16 // frames that V8 walks but does not print
const MAX_FRAMES = 240 // frames of one key; see native/walker.h

const UNKEYED = 1 // number shared by all stacks that no key distinguishes

/** Microtask stacks: the functions that await them are in the heap, not on the stack. */
const microtaskStack = /^async |(?:^|\n)(?:(?!.*\(?(?:node:|<anonymous>)).*|.*processTicksAndRejections .*)$/

/**
 * @typedef {object} Binding the addon; see native/binding.cc
 * @property {() => number} capture returns the number of the current stack, 0 if unknown
 * @property {(parent: number, kind: number) => number} step returns the chain of a step, see native/chains.h
 * @property {(parent: number, stack: number, kind: number) => number} intern
 * @property {(chain: number) => [parent: number, stack: number, kind: number] | undefined} chainAt
 * @property {() => void} resetChains
 * @property {() => [chains: number, bytes: number, first: number]} chainStats
 * @property {(...promises: unknown[]) => number} rejected returns one bit per promise: whether it is rejected
 * @property {(array: Float64Array, origin: number) => void} clock makes capture() write ms since the
 *   origin into the array
 * @property {(id: number, builtins?: number) => boolean} remember numbers the stack that capture() did not
 *   know; given the count of built-ins that it prints, also numbers its contents
 * @property {() => Array<string | number> | undefined} unnamed returns file, line and column (from 0) of each
 *   frame whose function has too many names, or undefined if there is none; see native/names.h
 * @property {(promise: object) => unknown} rejection returns the reason of a rejected promise
 * @property {(slot: number, object: object) => void} keepWeak stores a weak reference in one of 9280 slots
 * @property {(slot: number) => object | undefined} weakAt returns the object, undefined once it is collected
 * @property {() => void} forget
 * @property {import('../hooks/native-hooks').NativeBinding} [hooks] callbacks of other addons; see
 *   native/native-hooks.cc
 * @property {import('../core/allocation-clock').MarkerBinding} [markers] addresses of young objects;
 *   see native/allocation-clock.cc
 * @property {import('../blocked/detector').WatchBinding} [watch] the watchdog; see native/watchdog.cc
 * @property {import('../handles/openers').OpenerBinding} openers see native/openers.cc
 * @property {(frames: number) => void} configure
 * @property {<T>(fn: () => T) => T} nest calls a function from C++
 * @property {(fn: () => void) => void} keepContext calls fn, then restores the previous context frame
 * @property {() => string | undefined} learn learns to walk frames, called in nest(); returns why it failed
 * @property {() => void} sample switches to the slower key, V8's own sample
 * @property {() => [keys: number, bytes: number, unstored: number, collections: number]} stats
 */

/**
 * Makes the addon learn this V8's frame layout, and tests the result.
 * @param {Binding} binding
 * @returns {{ isUsable: boolean, isExact: boolean, reason: import('../reasons').EngineReason }} isExact:
 *   the addon walks frames; otherwise V8's own sample is the key
 */
function prepare (binding) {
  binding.configure(CORE_FRAMES)
  const detail = binding.nest(() => binding.learn())
  if (detail === undefined && distinguishes(binding)) {
    return { isUsable: true, isExact: true, reason: { code: 'SELF_TEST_PASSED' } }
  }
  binding.sample()
  const isUsable = distinguishes(binding)
  return { isUsable, isExact: false, reason: { code: isUsable ? 'SLOWER_KEY' : 'SELF_TEST_FAILED', detail } }
}

/**
 * Tests that calls from one place share a number, and that another place gets another one, across C++ frames.
 * @param {Binding} binding
 */
function distinguishes ({ capture, forget, nest, remember }) {
  const probe = () => capture()
  const firstPlace = () => nest(probe)
  const secondPlace = () => nest(probe)
  let number = 0
  let isRight = true
  for (const call of [firstPlace, secondPlace]) {
    number++
    let hits = 0
    for (let i = 0; i < 3; i++) {
      const captured = call()
      if (captured === 0) remember(number)
      else if (captured === number) hits++
      else isRight = false
    }
    if (hits === 0) isRight = false
  }
  forget()
  return isRight
}

/**
 * Returns how many named built-ins a stack prints, or undefined if contents must not identify the stack: they
 * lack the name by which a function was called, and labels use that name.
 * @param {string} lines
 */
function contentBuiltins (lines) {
  let builtins = 0
  let api = '' // the core frame next to the program's own
  let inCore = true
  for (const line of lines.split('\n')) {
    if (line.startsWith('async ')) continue
    if (line === '<anonymous>') continue
    if (line.endsWith('(<anonymous>)')) {
      builtins++
    } else if (inCore) {
      if (line.includes('(node:')) api = line
      else inCore = line.startsWith('node:')
    }
  }
  return !inCore && api.includes(' [as ') ? undefined : builtins
}

/**
 * Removes function names at places that have too many of them: one number stands for all these stacks.
 * @param {string} lines
 * @param {ReturnType<Binding['unnamed']>} places
 */
function withoutNames (lines, places) {
  if (places === undefined) return lines
  /** @type {string[]} */
  const ends = []
  for (let i = 0; i < places.length; i += 3) {
    ends.push(`${places[i] || '<anonymous>'}:${Number(places[i + 1]) + 1}:${Number(places[i + 2]) + 1})`)
  }
  return lines.split('\n').map((line) => {
    const end = ends.find((end) => line.endsWith(end))
    return end === undefined ? line : placeOf(line, end)
  }).join('\n')
}

/**
 * Reduces a frame's line to its place, as V8 prints a function without a name.
 * @param {string} line `Object.read (/app/orders.js:7:5)`
 * @param {string} end the line's end, from the file on; for eval code only a part of that
 */
function placeOf (line, end) {
  if (line.endsWith(` (${end}`)) return line.slice(-end.length, -1)
  const start = line.indexOf('(eval at ')
  return start === -1 ? line : line.slice(start + 1, -1)
}

/** the loaded addon @type {Binding} */
let addon
/** its `step` @type {Binding['step']} */
let stepOf
/** whether the key covers everything on the stack */
let isExact = false
/** number of steps; past 2 ** 31, V8 would allocate an object for each value of a variable */
const captured = new Float64Array(1)
let misses = 0
/** frames captured for real */
let maxFrames = 0
/** whether stacks include the awaiting functions */
let hasAwaiting = false

/**
 * @param {number} parent
 * @param {number} kind
 * @param {Function} outermost this function's frame and those above it are left out
 */
function step (parent, kind, outermost) {
  captured[0]++
  const chain = stepOf(parent, kind)
  return chain > UNKEYED ? chain : learn(chain, parent, kind, outermost)
}

/**
 * Captures a new stack and makes the addon remember it.
 * @param {number} result of the addon's step()
 * @param {number} parent
 * @param {number} kind
 * @param {Function} outermost
 */
function learn (result, parent, kind, outermost) {
  misses++
  const time = stepClock[0]
  const named = frameLines(captureText(outermost, maxFrames), hasAwaiting)
  const lines = withoutNames(named, addon.unnamed())
  const number = internStack(lines)
  if (result !== UNKEYED) {
    const isUnkeyed = hasAwaiting && microtaskStack.test(lines)
    const isKeyed = isExact || !lines.includes('(<anonymous>)') // the slower key has no built-ins
    if (isUnkeyed || isKeyed) addon.remember(isUnkeyed ? UNKEYED : number, contentBuiltins(lines))
  }
  stepClock[0] = time
  return addon.intern(parent, number, kind)
}

/** Does the same for a caller of the addon's step() that does not count stacks. @type {typeof learn} */
function learnUncounted (result, parent, kind, outermost) {
  captured[0]++
  return learn(result, parent, kind, outermost)
}

/** @param {Binding} binding @returns {import('./capture').Engine} */
function createEngine (binding) {
  addon = binding
  stepOf = binding.step
  // Not the current time: if the process were interrupted after reading it, the addon's times would lag
  binding.clock(stepClock, originMs)
  return {
    step,
    intern: binding.intern,
    chainAt: binding.chainAt,

    reset () {
      binding.forget()
      binding.resetChains()
    },

    refresh () {
      const frames = Math.min(settings.options.frames + CORE_FRAMES, MAX_FRAMES)
      const isAwaitingNeeded = !settings.isSelected('PROMISE')
      if (maxFrames === frames && hasAwaiting === isAwaitingNeeded) return
      maxFrames = frames
      hasAwaiting = isAwaitingNeeded
      binding.configure(frames + MARGIN)
      binding.forget()
    },

    stats () {
      const [, bytes, unstored] = binding.stats()
      const [chains, chainBytes, firstChain] = binding.chainStats()
      return { captured: captured[0], misses, unstored, chains, firstChain, bytes: bytes + chainBytes }
    }
  }
}

/**
 * Loads the addon. Call once.
 * @returns {{
 *   binding?: Binding,
 *   engine?: import('./capture').Engine,
 *   reason: import('../reasons').EngineReason
 * }} binding: set even if it is unusable as an engine
 */
function load () {
  const { binding, failure } = loadBinding()
  if (binding === undefined) return { reason: failure }
  const prepared = prepare(binding)
  isExact = prepared.isExact
  return { binding, engine: prepared.isUsable ? createEngine(binding) : undefined, reason: prepared.reason }
}

module.exports = { learnUncounted, load }
