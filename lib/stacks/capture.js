'use strict'

// The entry point of capture. An engine turns the present stack, the chain in which it is taken and the kind
// of resource that was made into the number of a chain; what a number means is read here. A chain is (parent
// chain, stack, kind), interned: programs repeat themselves, so one that runs for long has some hundred to
// some thousand of them.
//
// A step that repeats one of its last eight ancestors is that ancestor: the result of step() has in its upper
// bits how many steps up that is.

const { ChainValues, delays } = require('../core/chain-values')
const { FIRST_CHAIN } = require('../core/records')
const { stepClock } = require('../core/clock')
const { emit } = require('../core/on')
const { source } = require('../core/source')
const { settings } = require('../settings')
const nativeCapture = require('./capture-native')
const stacks = require('./numbered-stacks')

const MIN_CHAIN_BUDGET = 1 << 20 // bytes

// Kinds of a chain's newest step, stored by chain: they are asked for with many steps.
const UNKNOWN = 0
const PROGRAM = 1
const CORE = 2

/**
 * @typedef {typeof import('./capture')} Capture
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
 */

/** whether the newest steps of chains have a frame of the program */
const programFrames = new ChainValues()
/** in force @type {Engine | undefined} */
let engine
/** @type {ReturnType<typeof nativeCapture.load> | undefined} */
let native
/** @type {import('../reasons').EngineReason} */
let reason = { code: 'NOT_ENABLED' }
let dropped = 0

const noStats = { captured: 0, misses: 0, unstored: 0, chains: 0, firstChain: FIRST_CHAIN, bytes: 0 }
const engineStats = () => engine?.stats() ?? noStats

/** Forgets what is noted by chain. */
function forgetNotes () {
  const { firstChain } = engineStats()
  programFrames.forget(firstChain)
  delays.forget(firstChain)
}

const capture = {
  clock: stepClock,

  generation: 0, // how often chains were dropped, and with them the meaning of their numbers
  internStack: stacks.internStack,

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
    reason = option === 'js' ? { code: 'ASKED' } : (native ??= nativeCapture.load()).reason
    const isNative = option !== 'js' && native?.engine !== undefined
    if (native?.binding === undefined) require('./missing-binary').reportMissing(reason)
    const selected = isNative ? native?.engine : require('./capture-js').engine
    const name = isNative ? 'native' : 'js'
    if (name !== capture.name) {
      capture.reset()
      capture.name = name
      engine = selected
      forgetNotes()
    }
    engine = /** @type {Engine} */ (selected)
    engine.refresh()
    capture.step = engine.step
    capture.intern = engine.intern
    capture.rejection = isNative ? native?.binding?.rejection : undefined
    capture.rejected = isNative ? native?.binding?.rejected : undefined
  },

  /** @param {number} chain @returns {ChainParts | undefined} */
  chainAt (chain) {
    const entry = engine?.chainAt(chain)
    return entry === undefined ? undefined : { parent: entry[0], stack: stacks.get(entry[1]), kind: entry[2] }
  },

  /**
   * @param {number} chain
   * @returns {number[] | undefined} its parent, and the numbers of its stack and kind
   */
  partsOf: (chain) => engine?.chainAt(chain),

  /** @type {Engine['intern']} */
  intern: () => 0,

  /** Whether the newest step of a chain has a frame of the program. @param {number} chain */
  hasProgramFrame (chain) {
    let kind = programFrames.get(chain)
    if (kind === UNKNOWN) {
      kind = capture.chainAt(chain)?.stack?.program === false ? CORE : PROGRAM
      programFrames.set(chain, kind)
    }
    return kind === PROGRAM
  },

  /** @param {number} number of a stack @returns {Stack | undefined} */
  stackById: stacks.get,

  /** Drops all stacks and chains, also of what was recorded until now. @param {boolean} [isLoss] */
  reset (isLoss = true) {
    emit('forgetting')
    if (isLoss) dropped += engineStats().chains
    capture.generation++
    // Chains and keys first: they name stacks by number (see guard.js for why that matters)
    engine?.reset()
    forgetNotes()
    stacks.reset()
  },

  /** Drops all stacks and chains past their share of the budget. */
  trim () {
    const budget = Math.max(settings.options.budget / 4, MIN_CHAIN_BUDGET)
    if (engineStats().bytes > budget) capture.reset()
  },

  /** Returns why that engine is in force. */
  reason: () => reason,

  bytes: () => stacks.bytes() + engineStats().bytes,

  stats () {
    const stats = engineStats()
    const hits = stats.captured - stats.misses
    return { ...stats, hits, stacks: stacks.size(), bytes: capture.bytes(), dropped }
  }
}

stacks.whenFull(capture.reset)
Object.assign(source, {
  chainAt: capture.chainAt,
  intern: (/** @type {[number, number, number]} */ ...parts) => capture.intern(...parts)
})

module.exports = capture
