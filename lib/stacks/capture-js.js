'use strict'

// Capture engine in plain JavaScript. Each step calls Error.captureStackTrace and reads call sites; their
// positions are the stack's key. Only a new stack is formatted. No call site is held: it would keep receivers
// and closures of the program alive.

const { now, stepClock } = require('../core/clock')
const { CHAIN_BITS, FIRST_CHAIN, FOLD_SHIFT } = require('../core/records')
const { settings } = require('../settings')
const { textOfSite } = require('./call-sites')
const { captureSites } = require('./formatter')
const { internStack } = require('./numbered-stacks')
const { RecentMap } = require('./frames')
const { frameLines } = require('./text-scan')

const CORE_FRAMES = 48 // for node: frames between a resource and the program; fetch has up to 34 of undici's
const FOLD = 8 // ancestors that a step is compared with
const KEY_SHARE = 32 // fraction of the budget for each half of the cached keys
const CHAIN_BYTES = 120 // approximate size of an entry in the maps

const includesAwaiting = () => !settings.isSelected('PROMISE')
const newKeys = () => new RecentMap(settings.options.budget / KEY_SHARE)
/** stack numbers by the positions of their frames @type {RecentMap<number>} */
let keys = newKeys()
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
  stepClock[0] = now()
  const sites = captureSites(outermost, settings.options.frames + CORE_FRAMES)
  return intern(parent, stackOf(sites), kind)
}

/** @param {NodeJS.CallSite[] | string | undefined} sites @returns {number} */
function stackOf (sites) {
  if (sites === undefined) return internStack('')
  if (typeof sites === 'string') return internStack(frameLines(sites, includesAwaiting()))
  let key = ''
  for (const site of sites) {
    if (/** @type {any} */ (site).isAsync() && !includesAwaiting()) break
    const position = /** @type {any} */ (site).getPosition()
    key += `${site.getFunctionName()} ${site.getScriptNameOrSourceURL()}:${position}\n`
  }
  let number = keys.get(key, key.length)
  if (number !== undefined) return number
  misses++
  const text = sites.map((site) => `    at ${textOfSite(site)}`).join('\n')
  number = internStack(frameLines(text, includesAwaiting()))
  keys.set(key, number, key.length)
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

/** @type {import('./capture').Engine} */
const engine = {
  step,
  intern,

  chainAt (chain) {
    if (!exists(chain)) return undefined
    const i = (chain - base) * 3
    return [chains[i], chains[i + 1], chains[i + 2]]
  },

  reset () {
    base += chains.length / 3
    if (base > CHAIN_BITS / 2) base = FIRST_CHAIN // chains with these numbers are long forgotten
    keys = newKeys()
    chains = []
    children = new Map()
  },

  refresh () {
    keys = newKeys()
  },

  stats () {
    const bytes = children.size * CHAIN_BYTES + keys.weight
    return { captured, misses, unstored: 0, chains: chains.length / 3, firstChain: base, bytes }
  }
}

module.exports = { engine }
