'use strict'

// The one door to capture. An engine turns the present stack, the chain that it is taken in and the kind of resource that
// was made into the number of a chain; what a number means is read here. A chain is (parent chain, stack, kind), interned:
// programs repeat themselves, so a long run has some hundred to some thousand of them.
//
// A step that repeats one of its last eight ancestors is that ancestor: the answer to step() has in its upper bits how
// many steps up that is.

const { now } = require('../context/clock')
const { loadBinding } = require('./binding')
const { createNativeCapture, prepare } = require('./capture-native')
const { Stack, createStackTable } = require('./frames')

const FIRST_NUMBER = 2 // of a stack; the native engine has a meaning for those below

const MAX_TEXTS = 5_000 // of V8's own, remembered

/**
 * @typedef {ReturnType<typeof createCapture>} Capture
 *
 * @typedef {object} Engine
 * @property {(parent: number, kind: number, above: Function) => number} step
 *   the chain that a resource of this kind makes, and how it was found; see above
 * @property {(parent: number, stack: number, kind: number) => number} intern the same for a stack that has a number
 * @property {(chain: number) => [parent: number, stack: number, kind: number] | undefined} chainAt
 * @property {() => void} reset forgets all chains and keys
 * @property {() => void} refresh options are in force that say what a stack holds
 * @property {() => { captured: number, misses: number, unstored: number, chains: number, bytes: number }} stats
 *
 * @typedef {object} EngineParts what an engine needs
 * @property {(read: () => string) => string} withPlainFormat reads a `stack` with V8's plain format in force
 * @property {(read: () => any) => NodeJS.CallSite[] | string | undefined} withCallSites reads a `stack` as call sites
 * @property {() => { frames: number, budget: number, internals?: boolean }} options
 * @property {() => boolean} includesAwaiting do stacks hold the functions that await the running one?
 * @property {(lines: string) => number} intern gives a number to a stack
 * @property {Float64Array} clock its first element is the time of the last step, in ms of the clock
 */

/**
 * @param {object} deps
 * @param {EngineParts['withPlainFormat']} deps.withPlainFormat
 * @param {EngineParts['withCallSites']} deps.withCallSites
 * @param {EngineParts['options']} deps.options
 * @param {EngineParts['includesAwaiting']} deps.includesAwaiting
 */
function createCapture (deps) {
  const clock = new Float64Array(1)
  clock[0] = now()
  let table = createStackTable()
  /** by number, from `base` on; no number is given twice @type {Stack[]} */
  let stacks = []
  let base = FIRST_NUMBER
  let dropped = 0
  /** chains with a frame of the program's: 1, without: 2, not looked at: 0 */
  let programs = new Uint8Array(1 << 12)
  /** @type {Engine | undefined} */
  let js
  /** @type {ReturnType<typeof loadNative> | undefined} */
  let found
  /** @type {import('../reasons').EngineReason} */
  let reason = { code: 'NOT_ENABLED' }

  /** @type {EngineParts} */
  const parts = { ...deps, clock, intern }

  /** by the text that V8 gave @type {Map<string, number>} */
  let numbers = new Map()

  /** @param {string} lines @returns {number} */
  function intern (lines) {
    const known = numbers.get(lines)
    if (known !== undefined) return known
    if (table.bytes() > deps.options().budget / 4) door.reset()
    const whole = new Stack(lines)
    const frames = deps.options().internals === true ? whole.frames : withoutBase(whole.frames)
    const stack = table.intern(frames.map((frame) => frame.text).join('\n'), Infinity)
    if (stack.id === 0) {
      stack.read = frames
      stack.id = base + stacks.length
      stacks.push(stack)
    }
    if (numbers.size > MAX_TEXTS) numbers = new Map()
    numbers.set(lines, stack.id)
    return stack.id
  }

  /** @returns {Engine} */
  const engine = () => /** @type {Engine} */ (door.name === 'native' ? found?.engine : js)

  const door = {
    clock,

    /** `js` or `native` @type {string} */
    name: 'js',

    /** @type {Engine['step']} */
    step: () => 0,

    /** The reason of a rejected promise, where the addon is there to look @type {((promise: object) => unknown) | undefined} */
    rejection: undefined,

    /** Which of some promises are rejected, as bits @type {((...promises: unknown[]) => number) | undefined} */
    rejected: undefined,

    /** The addon, where it loads. @returns {import('./capture-native').Binding | undefined} */
    binding: () => found?.binding,

    /** Chooses the engine; options are in force. @param {'auto' | 'native' | 'js'} wanted */
    selectEngine (wanted) {
      if (wanted === 'js') reason = { code: 'ASKED' }
      else reason = (found ??= loadNative(parts)).reason
      const native = wanted === 'js' ? undefined : found?.engine
      const name = native === undefined ? 'js' : 'native'
      if (native === undefined) js ??= require('./capture-js').createJsCapture(parts)
      if (name !== door.name) door.reset()
      door.name = name
      const chosen = engine()
      chosen.refresh()
      door.step = chosen.step
      door.rejection = native === undefined ? undefined : found?.binding?.rejection
      door.rejected = native === undefined ? undefined : found?.binding?.rejected
    },

    /** @param {number} chain @returns {{ parent: number, stack: Stack | undefined, kind: number } | undefined} */
    chainAt (chain) {
      const parts = engine()?.chainAt(chain)
      return parts === undefined ? undefined : { parent: parts[0], stack: stacks[parts[1] - base], kind: parts[2] }
    },

    /** @param {number} chain @returns {number[] | undefined} its parent chain, and numbers of its stack and kind */
    partsOf: (chain) => engine()?.chainAt(chain),

    /** @param {number} parent @param {number} stack @param {number} kind */
    intern: (parent, stack, kind) => engine().intern(parent, stack, kind),

    /** Has the newest step of a chain a frame of the program's? @param {number} chain */
    hasProgramFrame (chain) {
      if (chain >= programs.length) {
        const larger = new Uint8Array(Math.max(chain + 1, programs.length * 2))
        larger.set(programs)
        programs = larger
      }
      if (programs[chain] === 0) programs[chain] = door.chainAt(chain)?.stack?.program === false ? 2 : 1
      return programs[chain] === 1
    },

    /** The stack with a number. @param {number} id @returns {Stack | undefined} */
    stackById: (id) => stacks[id - base],

    /** Forgets all stacks and chains: what was recorded until now has none any more. */
    reset () {
      dropped += engine()?.stats().chains ?? 0
      table = createStackTable()
      numbers = new Map()
      base += stacks.length
      stacks = []
      programs.fill(0)
      found?.engine?.reset()
      js?.reset()
    },

    /** Chains past their share of the budget are forgotten. */
    trim () {
      if (engine().stats().bytes > Math.max(deps.options().budget / 4, 1 << 20)) door.reset()
    },

    /** Returns why that engine is in force. */
    reason: () => reason,

    bytes: () => table.bytes() + (engine()?.stats().bytes ?? 0),

    stats () {
      const { captured, misses, unstored, chains } = engine()?.stats() ?? { captured: 0, misses: 0, unstored: 0, chains: 0 }
      return { captured, hits: captured - misses, misses, unstored, chains, stacks: table.size(), bytes: door.bytes(), dropped }
    }
  }
  return door
}

/**
 * How the event loop came to call the program differs from time to time (a tick after a timer, or one after a callback),
 * and is no part of what it did there.
 * @param {import('./frames').Frame[]} frames
 */
function withoutBase (frames) {
  let end = frames.length
  while (end > 0 && frames[end - 1].kind === 'core') end--
  return end === 0 ? frames : frames.slice(0, end)
}

/** @param {EngineParts} parts */
function loadNative (parts) {
  const { binding, failure } = loadBinding()
  if (binding === undefined) return { reason: failure }
  const { usable, exact, reason } = prepare(binding)
  return { binding, engine: usable ? createNativeCapture({ binding, exact, ...parts }) : undefined, reason }
}

module.exports = { createCapture }
