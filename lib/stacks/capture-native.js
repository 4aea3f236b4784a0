'use strict'

// The native capture engine. The addon turns the present stack into a key, and the key into the number of a stack
// that is known; only a stack never seen is captured for real and formatted, at once, so that nothing raw is held.
// What makes equal keys mean equal stacks is told in native/longstack.cc.
//
// A hot room: bench/capture.js measures `take`.

const { performance } = require('node:perf_hooks')

const { captureInto } = require('./trace-limit')
const { createStackTable, frameLines } = require('./frames')

const CORE_FRAMES = 48 // room for node: frames between a resource and the program; fetch has up to 34 of undici's
const MARGIN = 16 // frames that V8 walks but does not print
const MOST = 240 // frames of one key; see native/longstack.cc

const UNKEYED = 1 // the number of all stacks that no key tells apart

/** What a microtask runs. Who awaits it is not on the stack but in the heap. */
const resumed = /^async |(?:^|\n)(?:(?!.*\(?(?:node:|<anonymous>)).*|.*processTicksAndRejections .*)$/

/**
 * @typedef {object} Binding the addon; see native/longstack.cc
 * @property {() => number} capture the number of the present stack, 0 where it is not known
 * @property {(array: Float64Array) => void} clock capture() writes ms into it, counted on from what it holds
 * @property {(id: number) => boolean} remember gives a number to the stack that capture() did not know
 * @property {(promise: object) => unknown} rejection the reason of a rejected promise
 * @property {() => void} forget
 * @property {import('../hooks/native').Doors} [hooks] callbacks of other addons; see native/hooks.cc
 * @property {import('../blocked/native').Doors} [watch] the watchdog; see native/watch.cc
 * @property {(frames: number) => void} configure
 * @property {<T>(fn: () => T) => T} nest calls a function from C++
 * @property {() => string | undefined} learn to walk frames; inside of nest. Why it cannot be done
 * @property {() => void} sample take the slower key
 * @property {() => [keys: number, bytes: number, unstored: number, collections: number]} stats
 */

/**
 * Finds out how this V8 lays out its frames, and whether what was found is right.
 * @param {Binding} binding
 * @returns {{ usable: boolean, exact: boolean, why: string }} exact: frames are walked, else V8's own sample is the key
 */
function prepare (binding) {
  binding.configure(CORE_FRAMES)
  const why = binding.nest(() => binding.learn())
  if (why === undefined && distinguishes(binding)) return { usable: true, exact: true, why: 'its test of itself passed' }
  binding.sample()
  const because = why ?? 'its test of itself failed'
  return { usable: distinguishes(binding), exact: false, why: `with the slower key: ${because}` }
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
 * @param {object} deps
 * @param {Binding} deps.binding
 * @param {(read: () => string) => string} deps.plainly reads a `stack` with V8's plain format in force
 * @param {() => { frames: number, budget: number }} deps.options
 * @param {() => boolean} deps.awaiting do stacks hold the functions that await the running one?
 * @param {(context: import('../context/context').Context, above: Function, promise: boolean) => void} deps.takeSlowly the JavaScript engine's
 * @param {boolean} deps.exact the key tells everything that is on the stack
 */
function createNativeCapture ({ binding, plainly, options, awaiting, takeSlowly, exact }) {
  const { capture, forget, remember } = binding
  const clock = new Float64Array(1)
  clock[0] = performance.now()
  binding.clock(clock)
  let table = createStackTable()
  /** by number, from `base` on; no number is given twice @type {Array<import('./frames').Stack | undefined>} */
  let stacks = [undefined]
  let base = UNKEYED
  let captured = 0
  let misses = 0
  /** frames captured for real, and whether awaiting ones are in the stacks */
  let most = 0
  let tails = false

  /**
   * Takes the present stack.
   * @param {import('../context/context').Context} context
   * @param {Function} above frames from this function on are left out
   */
  function take (context, above) {
    captured++
    const id = capture()
    context.time = clock[0]
    if (id === UNKEYED) takeSlowly(context, above, false)
    else context.stack = id !== 0 ? stacks[id - base] : learn(above)
  }

  /** @param {Function} above */
  function learn (above) {
    misses++
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, above, most)
    const text = plainly(() => holder.stack)
    const lines = typeof text === 'string' ? frameLines(text, tails) : ''
    const stack = intern(lines)
    if (tails && resumed.test(lines)) remember(UNKEYED)
    else if (exact || !lines.includes('(<anonymous>)')) remember(stack.id) // the slower key tells no built-ins
    return stack
  }

  /** @param {string} lines */
  function intern (lines) {
    const { budget } = options()
    if (table.bytes() > budget / 4) reset()
    const stack = table.intern(lines, Infinity)
    if (stack.id === 0) {
      stack.id = base + stacks.length
      stacks.push(stack)
    }
    return stack
  }

  function reset () {
    table = createStackTable()
    base += stacks.length - 1
    stacks = [undefined]
    forget()
  }

  return {
    name: 'native',
    take,

    /** Options are in force that say what a stack holds. */
    refresh () {
      const frames = Math.min(options().frames + CORE_FRAMES, MOST)
      if (most === frames && tails === awaiting()) return
      most = frames
      tails = awaiting()
      binding.configure(frames + MARGIN)
      reset()
    },

    stats () {
      const [keys, bytes, unstored] = binding.stats()
      return { captured, hits: captured - misses, misses, stacks: table.size(), bytes: table.bytes() + bytes, keys, unstored }
    },

    /** @param {number} id */
    byId: (id) => id > base ? stacks[id - base] : undefined,

    bytes: () => table.bytes()
  }
}

module.exports = { createNativeCapture, prepare }
