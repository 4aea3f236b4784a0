'use strict'

// The capture engine in plain JavaScript: Error.captureStackTrace for each step, read as call sites, whose
// positions are the key of the stack. Only a new stack is formatted. Nothing raw is held: call sites keep
// receivers and closures of the program alive.

const { now } = require('../context/clock')
const { FIRST_CHAIN, FOLD_SHIFT } = require('../context/records')
const { captureInto } = require('./trace-limit')
const { frameLines } = require('./frames')

const CORE_FRAMES = 48 // for node: frames between a resource and the program; fetch has up to 34 of undici's
const FOLD = 8 // ancestors that a step is compared with
const MAX_KEYS = 20_000
const CHAIN_BYTES = 120 // about, of an entry in the maps
const KEY_BYTES = 600

/** @param {import('./capture').EngineParts} parts @returns {import('./capture').Engine} */
function createJsCapture ({ withCallSites, options, includesAwaiting, intern: numberOf, clock }) {
  /** number of a stack by the positions of its frames @type {Map<string, number>} */
  let keys = new Map()
  /** parent, stack, kind of each chain @type {number[]} */
  let chains = []
  /** @type {Map<string, number>} */
  let children = new Map()
  let base = FIRST_CHAIN
  let captured = 0
  let misses = 0

  /** @param {number} parent @param {number} kind @param {Function} outermost */
  function step (parent, kind, outermost) {
    captured++
    clock[0] = now()
    const holder = /** @type {any} */ ({ __proto__: null })
    captureInto(holder, outermost, options().frames + CORE_FRAMES)
    return intern(parent, stackOf(withCallSites(holder)), kind)
  }

  /** @param {NodeJS.CallSite[] | string | undefined} sites @returns {number} */
  function stackOf (sites) {
    if (sites === undefined) return numberOf('')
    if (typeof sites === 'string') return numberOf(frameLines(sites, includesAwaiting()))
    let key = ''
    for (const site of sites) {
      if (/** @type {any} */ (site).isAsync() && !includesAwaiting()) break
      const position = /** @type {any} */ (site).getPosition()
      key += `${site.getFunctionName()} ${site.getScriptNameOrSourceURL()}:${position}\n`
    }
    let number = keys.get(key)
    if (number !== undefined) return number
    misses++
    number = numberOf(frameLines(sites.map((site) => `    at ${site}`).join('\n'), includesAwaiting()))
    if (keys.size >= MAX_KEYS) keys = new Map()
    keys.set(key, number)
    return number
  }

  /** @param {number} parent @param {number} stack @param {number} kind */
  function intern (parent, stack, kind) {
    for (let distance = 1, ancestor = parent; distance <= FOLD && exists(ancestor); distance++) {
      const i = (ancestor - base) * 3
      if (chains[i + 1] === stack && chains[i + 2] === kind) return ancestor | distance << FOLD_SHIFT
      ancestor = chains[i]
    }
    const key = `${parent} ${stack} ${kind}`
    let chain = children.get(key)
    if (chain === undefined) {
      chain = base + chains.length / 3
      chains.push(parent, stack, kind)
      children.set(key, chain)
    }
    return chain
  }

  /** @param {number} chain */
  const exists = (chain) => chain >= base && chain < base + chains.length / 3

  return {
    step,
    intern,

    chainAt (chain) {
      if (!exists(chain)) return undefined
      const i = (chain - base) * 3
      return [chains[i], chains[i + 1], chains[i + 2]]
    },

    reset () {
      base += chains.length / 3
      keys = new Map()
      chains = []
      children = new Map()
    },

    refresh () {
      keys = new Map()
    },

    stats () {
      const bytes = children.size * CHAIN_BYTES + keys.size * KEY_BYTES
      return { captured, misses, unstored: 0, chains: chains.length / 3, bytes }
    }
  }
}

module.exports = { createJsCapture }
