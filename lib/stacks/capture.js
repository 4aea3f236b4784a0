'use strict'

// The entry point of capture. An engine turns the present stack, the chain in which it is taken and the kind
// of resource that was made into the number of a chain; what a number means is read here. A chain is (parent
// chain, stack, kind), interned: programs repeat themselves, so one that runs for long has some hundred to
// some thousand of them.
//
// A step that repeats one of its last eight ancestors is that ancestor: the result of step() has in its upper
// bits how many steps up that is.

const { ChainValues } = require('../context/chain-values')
const { now } = require('../context/clock')
const { FIRST_CHAIN } = require('../context/records')
const timerDelays = require('../context/timer-delays')
const { loadBinding } = require('./binding')
const { createNativeCapture, prepare } = require('./capture-native')
const { NumberedStacks } = require('./numbered-stacks')

const MIN_CHAIN_BUDGET = 1 << 20 // bytes

// Kinds of a chain's newest step, see ProgramFrames.
const UNKNOWN = 0
const PROGRAM = 1
const CORE = 2

/**
 * @typedef {ReturnType<typeof createCapture>} Capture
 *
 * @typedef {object} Engine
 * @property {(parent: number, kind: number, outermost: Function) => number} step
 *   the chain that a resource of this kind makes, and how many steps up it is; see above
 * @property {(parent: number, stack: number, kind: number) => number} intern the same for a stack that has
 *   a number
 * @property {(chain: number) => [parent: number, stack: number, kind: number] | undefined} chainAt
 * @property {() => void} reset forgets all chains and keys
 * @property {() => void} refresh applies the options that define what a stack holds
 * @property {() => { captured: number, misses: number, unstored: number, chains: number, firstChain: number,
 *   bytes: number }} stats firstChain: number of the first chain that is known, or that will be
 *
 * @typedef {{ parent: number, stack: Stack | undefined, kind: number }} ChainParts
 *
 * @typedef {import('./capture-native').Binding} Binding
 * @typedef {import('./frames').Stack} Stack
 *
 * @typedef {object} EngineParts what an engine needs
 * @property {(holder: any) => string} withPlainFormat reads its `stack` in V8's plain format
 * @property {(holder: any) => NodeJS.CallSite[] | string | undefined} withCallSites reads its `stack` as
 *   call sites
 * @property {() => { frames: number, budget: number, internals?: boolean }} options
 * @property {() => boolean} includesAwaiting whether stacks hold the functions that await the running one
 * @property {(lines: string) => number} intern gives a number to a stack
 * @property {Float64Array} clock its first element is the time of the last step, in ms of the clock
 */

/**
 * Whether the newest steps of chains have a frame of the program: asked for with many steps, so stored by
 * chain.
 */
class ProgramFrames {
  /** UNKNOWN, PROGRAM or CORE */
  #kinds = new ChainValues(Uint8Array)
  #stackOf

  /** @param {(chain: number) => Stack | undefined} stackOf */
  constructor (stackOf) {
    this.#stackOf = stackOf
  }

  /** @param {number} chain */
  has (chain) {
    let kind = this.#kinds.get(chain)
    if (kind === UNKNOWN) {
      kind = this.#stackOf(chain)?.program === false ? CORE : PROGRAM
      this.#kinds.set(chain, kind)
    }
    return kind === PROGRAM
  }

  /** @param {number} first number of the chains that come now */
  forget (first) {
    this.#kinds.forget(first)
  }
}

/**
 * Forgets what is noted by chain.
 * @param {ProgramFrames} programFrames
 * @param {Engine | undefined} engine that has forgotten its chains
 */
function forgetNotes (programFrames, engine) {
  const { firstChain } = engine?.stats() ?? noStats
  programFrames.forget(firstChain)
  timerDelays.forget(firstChain)
}

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
  const stacks = new NumberedStacks()
  let dropped = 0
  const programFrames = new ProgramFrames((chain) => chainAt(chain)?.stack)
  /** @type {Engine | undefined} */
  let js
  /** @type {ReturnType<typeof loadNative> | undefined} */
  let native
  /** @type {import('../reasons').EngineReason} */
  let reason = { code: 'NOT_ENABLED' }

  /** @type {EngineParts} */
  const parts = { ...deps, clock, intern: internStack }

  /** @param {string} lines @returns {number} */
  function internStack (lines) {
    const number = stacks.numberOf(lines)
    if (number !== undefined) return number
    if (stacks.bytes > deps.options().budget / 4) capture.reset()
    return stacks.add(lines, deps.options().internals === true)
  }

  /** @returns {Engine} */
  const engine = () => /** @type {Engine} */ (capture.name === 'native' ? native?.engine : js)

  /** @param {number} chain @returns {ChainParts | undefined} */
  function chainAt (chain) {
    const entry = engine()?.chainAt(chain)
    return entry === undefined ? undefined : { parent: entry[0], stack: stacks.get(entry[1]), kind: entry[2] }
  }

  const capture = {
    clock,

    generation: 0, // how often chains were dropped, and with them the meaning of their numbers
    internStack,

    /** `js` or `native` @type {string} */
    name: 'js',

    /** @type {Engine['step']} */
    step: () => 0,

    /** The addon's, with the native engine @type {Binding['rejection'] | undefined} */
    rejection: undefined,

    /** The addon's, with the native engine @type {Binding['rejected'] | undefined} */
    rejected: undefined,

    /** The addon, where it loads. @returns {Binding | undefined} */
    binding: () => native?.binding,

    /** Selects the engine by the options in force. @param {'auto' | 'native' | 'js'} option */
    selectEngine (option) {
      if (option === 'js') reason = { code: 'ASKED' }
      else reason = (native ??= loadNative(parts)).reason
      const nativeEngine = option === 'js' ? undefined : native?.engine
      const name = nativeEngine === undefined ? 'js' : 'native'
      if (nativeEngine === undefined) js ??= require('./capture-js').createJsCapture(parts)
      if (name !== capture.name) {
        capture.reset()
        capture.name = name
        forgetNotes(programFrames, engine())
      }
      const selected = engine()
      selected.refresh()
      capture.step = selected.step
      capture.rejection = nativeEngine === undefined ? undefined : native?.binding?.rejection
      capture.rejected = nativeEngine === undefined ? undefined : native?.binding?.rejected
    },

    chainAt,

    /**
     * @param {number} chain
     * @returns {number[] | undefined} its parent, and the numbers of its stack and kind
     */
    partsOf: (chain) => engine()?.chainAt(chain),

    /** @param {number} parent @param {number} stack @param {number} kind */
    intern: (parent, stack, kind) => engine().intern(parent, stack, kind),

    /** Whether the newest step of a chain has a frame of the program. @param {number} chain */
    hasProgramFrame: (chain) => programFrames.has(chain),

    /** @param {number} number of a stack @returns {Stack | undefined} */
    stackById: (number) => stacks.get(number),

    /** Drops all stacks and chains, also of what was recorded until now. @param {boolean} [isLoss] */
    reset (isLoss = true) {
      if (isLoss) dropped += engine()?.stats().chains ?? 0
      capture.generation++
      // Chains and keys first: they name stacks by number (see guard.js for why that matters)
      native?.engine?.reset()
      js?.reset()
      forgetNotes(programFrames, engine())
      stacks.reset()
    },

    /** Drops all stacks and chains past their share of the budget. */
    trim () {
      const budget = Math.max(deps.options().budget / 4, MIN_CHAIN_BUDGET)
      if (engine().stats().bytes > budget) capture.reset()
    },

    /** Returns why that engine is in force. */
    reason: () => reason,

    bytes: () => stacks.bytes + (engine()?.stats().bytes ?? 0),

    stats () {
      const stats = engine()?.stats() ?? noStats
      const hits = stats.captured - stats.misses
      return { ...stats, hits, stacks: stacks.size, bytes: capture.bytes(), dropped }
    }
  }
  return capture
}

const noStats = { captured: 0, misses: 0, unstored: 0, chains: 0, firstChain: FIRST_CHAIN }

/** @param {EngineParts} parts */
function loadNative (parts) {
  const { binding, failure } = loadBinding()
  if (binding === undefined) return { reason: failure }
  const { isUsable, isExact, reason } = prepare(binding)
  const engine = isUsable ? createNativeCapture({ binding, isExact, ...parts }) : undefined
  return { binding, engine, reason }
}

module.exports = { createCapture }
