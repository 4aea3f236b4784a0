'use strict'

// Entry point of capture. An engine turns the current stack, the current chain and the kind of the new
// resource into a chain number; this module resolves such numbers. A chain is an interned (parent chain,
// stack, kind). Programs repeat themselves, so a long-running one has some hundred to some thousand chains.
//
// A step that repeats one of its last eight ancestors becomes that ancestor: the upper bits of step()'s
// result hold its distance in steps.

const { ChainValues, delays } = require('../core/chain-values')
const { FIRST_CHAIN } = require('../core/records')
const { stepClock } = require('../core/clock')
const { emit } = require('../core/on')
const { source } = require('../core/source')
const { settings } = require('../settings')
const nativeCapture = require('./capture-native')
const stacks = require('./numbered-stacks')

const MIN_CHAIN_BUDGET = 1 << 20 // bytes

// Kinds of a chain's newest step, cached by chain because many steps look them up
const UNKNOWN = 0
const PROGRAM = 1
const CORE = 2

/**
 * @typedef {typeof import('./capture')} Capture
 *
 * @typedef {object} Engine
 * @property {(parent: number, kind: number, outermost: Function) => number} step
 *   returns the chain of a new resource of this kind, and its distance in steps; see above
 * @property {(parent: number, stack: number, kind: number) => number} intern the same for a numbered
 *   stack
 * @property {(chain: number) => [parent: number, stack: number, kind: number] | undefined} chainAt
 * @property {() => void} reset forgets all chains and keys
 * @property {() => void} refresh applies the options that affect the contents of stacks
 * @property {() => { captured: number, misses: number, unstored: number, chains: number, firstChain: number,
 *   bytes: number }} stats firstChain: number of the first known chain, or of the next if there is none
 *
 * @typedef {{ parent: number, stack: Stack | undefined, kind: number }} ChainParts
 *
 * @typedef {import('./capture-native').Binding} Binding
 * @typedef {import('./frames').Stack} Stack
 */

/** whether the newest steps of chains have a frame of the program */
const programFrames = new ChainValues()
/** the selected engine @type {Engine | undefined} */
let engine
/** @type {ReturnType<typeof nativeCapture.load> | undefined} */
let native
/** @type {import('../reasons').EngineReason} */
let reason = { code: 'NOT_ENABLED' }
let dropped = 0

const noStats = { captured: 0, misses: 0, unstored: 0, chains: 0, firstChain: FIRST_CHAIN, bytes: 0 }
const engineStats = () => engine?.stats() ?? noStats

/** Clears the notes kept by chain. */
function forgetNotes () {
  const { firstChain } = engineStats()
  programFrames.forget(firstChain)
  delays.forget(firstChain)
}

const capture = {
  clock: stepClock,

  generation: 0, // how often chains were dropped; older chain numbers are meaningless
  internStack: stacks.internStack,

  /** `js` or `native` @type {string} */
  name: 'js',

  /** @type {Engine['step']} */
  step: () => 0,

  /** The addon's, with the native engine @type {Binding['rejection'] | undefined} */
  rejection: undefined,

  /** The addon's, with the native engine @type {Binding['rejected'] | undefined} */
  rejected: undefined,

  /** The addon, if it loaded. @returns {Binding | undefined} */
  binding: () => native?.binding,

  /** Selects the engine; uses `js` if the addon did not load. @param {'auto' | 'native' | 'js'} option */
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
   * @returns {number[] | undefined} its parent, stack number and kind number
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

  /** Drops all stacks and chains, including those of existing records. @param {boolean} [isLoss] */
  reset (isLoss = true) {
    emit('forgetting')
    if (isLoss) dropped += engineStats().chains
    capture.generation++
    // Chains and keys first: they refer to stacks by number (guard.js explains why the order matters)
    engine?.reset()
    forgetNotes()
    stacks.reset()
  },

  /** Drops all stacks and chains if they exceed their share of the budget. */
  trim () {
    const budget = Math.max(settings.options.budget / 4, MIN_CHAIN_BUDGET)
    if (engineStats().bytes > budget) capture.reset()
  },

  /** Returns why the current engine was selected. */
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
