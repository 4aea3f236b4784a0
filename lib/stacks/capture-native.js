'use strict'

// The native capture engine. The addon turns the present stack into a key, and the key into the number of a stack
// that is known; only a stack never seen is captured for real and formatted, at once, so that nothing raw is held.
// Why equal keys mean equal stacks: native/walker.h, names.h and contents.h.
//
// A hot room: bench/capture.js measures `take`.

const { now } = require('../context/clock')
const { captureInto } = require('./trace-limit')
const { frameLines } = require('./frames')

const CORE_FRAMES = 48 // room for node: frames between a resource and the program; fetch has up to 34 of undici's
const MARGIN = 16 // frames that V8 walks but does not print
const MOST = 240 // frames of one key; see native/walker.h

const UNKEYED = 1 // the number of all stacks that no key tells apart

/** What a microtask runs. Who awaits it is not on the stack but in the heap. */
const resumed = /^async |(?:^|\n)(?:(?!.*\(?(?:node:|<anonymous>)).*|.*processTicksAndRejections .*)$/

/**
 * @typedef {object} Binding the addon; see native/binding.cc
 * @property {() => number} capture the number of the present stack, 0 where it is not known
 * @property {(parent: number, kind: number) => number} step the chain of a step, see native/chains.h
 * @property {(parent: number, stack: number, kind: number) => number} intern
 * @property {(chain: number) => [parent: number, stack: number, kind: number] | undefined} chainAt
 * @property {() => void} resetChains
 * @property {() => [chains: number, bytes: number]} chainStats
 * @property {(...promises: unknown[]) => number} rejected which of them are rejected, a bit each
 * @property {(array: Float64Array) => void} clock capture() writes ms into it, counted on from what it holds
 * @property {(id: number, builtins?: number) => boolean} remember gives a number to the stack that capture() did
 *   not know; where it is told how many built-ins are printed, to its contents, too
 * @property {(promise: object) => unknown} rejection the reason of a rejected promise
 * @property {() => void} forget
 * @property {import('../hooks/native-hooks').Doors} [hooks] callbacks of other addons; see native/native-hooks.cc
 * @property {import('../attribution/allocation-clock').MarkerBinding} [markers] addresses of young objects; see native/allocation-clock.cc
 * @property {import('../blocked/native-watchdog').WatchBinding} [watch] the watchdog; see native/watchdog.cc
 * @property {(frames: number) => void} configure
 * @property {<T>(fn: () => T) => T} nest calls a function from C++
 * @property {() => string | undefined} learn to walk frames; inside of nest. Why it cannot be done
 * @property {() => void} sample take the slower key
 * @property {() => [keys: number, bytes: number, unstored: number, collections: number]} stats
 */

/**
 * Finds out how this V8 lays out its frames, and whether what was found is right.
 * @param {Binding} binding
 * @returns {{ usable: boolean, exact: boolean, reason: import('../reasons').EngineReason }} exact: frames are walked, else V8's own sample is the key
 */
function prepare (binding) {
  binding.configure(CORE_FRAMES)
  const detail = binding.nest(() => binding.learn())
  if (detail === undefined && distinguishes(binding)) {
    return { usable: true, exact: true, reason: { code: 'SELF_TEST_PASSED' } }
  }
  binding.sample()
  const usable = distinguishes(binding)
  return { usable, exact: false, reason: { code: usable ? 'SLOWER_KEY' : 'SELF_TEST_FAILED', detail } }
}

/**
 * Calls that come from one place are one stack; others are others, also where C++ lies between.
 * @param {Binding} binding
 */
function distinguishes ({ capture, forget, nest, remember }) {
  const probe = () => capture()
  const here = () => nest(probe)
  const there = () => nest(probe)
  let known = 0
  let confused = false
  for (const call of [here, there]) {
    known++
    let seen = 0
    for (let turn = 0; turn < 3; turn++) {
      const id = call()
      if (id === 0) remember(known)
      else if (id === known) seen++
      else confused = true
    }
    if (seen === 0) confused = true
  }
  forget()
  return !confused
}

/**
 * Returns how many built-ins with a name a stack prints, or undefined where the stack is not to be
 * known by its contents: these do not tell by which name a function was called, and labels are made of that name.
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
 * @param {object} deps
 * @param {Binding} deps.binding
 * @param {boolean} deps.exact the key tells everything that is on the stack
 * @param {import('./capture').EngineParts['withPlainFormat']} deps.withPlainFormat
 * @param {import('./capture').EngineParts['options']} deps.options
 * @param {import('./capture').EngineParts['includesAwaiting']} deps.includesAwaiting
 * @param {import('./capture').EngineParts['intern']} deps.intern
 * @param {Float64Array} deps.clock
 * @returns {import('./capture').Engine}
 */
function createNativeCapture ({ binding, withPlainFormat, options, includesAwaiting, intern, clock, exact }) {
  const { step: stepOf, intern: chainOf, remember } = binding
  clock[0] = now()
  binding.clock(clock)
  /** steps; past 2 ** 31 a variable would have V8 make an object for each */
  const captured = new Float64Array(1)
  let misses = 0
  /** frames captured for real, and whether awaiting ones are in the stacks */
  let most = 0
  let tails = false

  /**
   * @param {number} parent
   * @param {number} kind
   * @param {Function} above frames from this function on are left out
   */
  function step (parent, kind, above) {
    captured[0]++
    const chain = stepOf(parent, kind)
    return chain > UNKEYED ? chain : learn(chain, parent, kind, above)
  }

  /** @param {number} answer of the addon @param {number} parent @param {number} kind @param {Function} above */
  function learn (answer, parent, kind, above) {
    misses++
    const time = clock[0]
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, above, most)
    const text = withPlainFormat(() => holder.stack)
    const lines = typeof text === 'string' ? frameLines(text, tails) : ''
    const number = intern(lines)
    if (answer !== UNKEYED) {
      if (tails && resumed.test(lines)) remember(UNKEYED, contentBuiltins(lines))
      else if (exact || !lines.includes('(<anonymous>)')) remember(number, contentBuiltins(lines)) // the slower key tells no built-ins
    }
    clock[0] = time
    return chainOf(parent, number, kind)
  }

  return {
    step,
    intern: chainOf,
    chainAt: binding.chainAt,

    reset () {
      binding.forget()
      binding.resetChains()
    },

    refresh () {
      const frames = Math.min(options().frames + CORE_FRAMES, MOST)
      if (most === frames && tails === includesAwaiting()) return
      most = frames
      tails = includesAwaiting()
      binding.configure(frames + MARGIN)
      binding.forget()
    },

    stats () {
      const [, bytes, unstored] = binding.stats()
      const [chains, chainBytes] = binding.chainStats()
      return { captured: captured[0], misses, unstored, chains, bytes: bytes + chainBytes }
    }
  }
}

module.exports = { createNativeCapture, prepare }
