'use strict'

// Chains that continue in another thread or process: chains that this thread sends, and those it receives.

const guard = require('../core/guard')
const { startQuery } = require('../core/clock')
const { contextOfChain } = require('../core/context')
const { CURRENT_SPAN, current, setCurrent } = require('../core/current')
const { kindOf } = require('../core/kinds')
const { CHAIN_BITS, FIRST_CHAIN, NO_CHAIN, OWN_WORK_CHAIN } = require('../core/records')
const { joinedChains } = require('../core/loops')
const { source } = require('../core/source')
const { currentContext, currentStep } = require('../core/current-step')
const { inheritedChain, passChain } = require('./threads')
const { settings } = require('../settings')
const { hops } = require('../stacks/chain')
const capture = require('../stacks/capture')
const { encodeChain, encodeMessageChain, importChain } = require('../stacks/passed-chain')
const { MessageTable, createMemory } = require('./message-table')

const MAX_PLACES = 4096 // remembered
const MAX_TEXTS = 512 // remembered
const UNKNOWN_SENDER = 1 // instead of a text: the running step is not the sender of the message

/** @typedef {import('../core/context').Context} Context */

const inherited = inheritedChain()
/** created with the first worker @type {MessageTable | undefined} */
let table = inherited?.memory === undefined ? undefined : new MessageTable(inherited.memory)
/** workers that received the table @type {WeakSet<object>} */
const given = new WeakSet()
/** places of texts by the number of the chain @type {Map<number, number>} */
const places = new Map()
/** places by text @type {Map<string, number>} */
const placesOfTexts = new Map()
let generation = capture.generation
let joins = 0 // number of joined chains; joining cuts off a chain that was whole before

/**
 * Returns the place of a chain's text in the memory of all threads.
 * @param {MessageTable} memory
 * @param {number} number of the chain
 * @returns {number} 0: none
 */
function placeOf (memory, number) {
  const isStale = generation !== capture.generation || joins !== joinedChains()
  if (isStale || places.size >= MAX_PLACES) places.clear()
  generation = capture.generation
  joins = joinedChains()
  return recentPlace(memory, places, number, () => placeOfText(memory, textOf(number)))
}

/**
 * Returns hops without those that may be of another request: doubtful hops are not passed.
 * @param {Context | undefined} context
 */
function ownHops (context) {
  const start = source.startOf(context)
  return hops(context, { until: start && ((step) => step === start) })
}

/** @param {number} number */
function textOf (number) {
  const { threadId } = require('node:worker_threads')
  return encodeMessageChain(ownHops(contextOfChain(number)), threadId, inherited?.from)
}

/** @param {MessageTable} memory @param {string} text */
function placeOfText (memory, text) {
  if (placesOfTexts.size >= MAX_TEXTS) placesOfTexts.clear()
  return recentPlace(memory, placesOfTexts, text, () => memory.addText(text))
}

/**
 * Returns a remembered place, or a new one if its text will soon be overwritten.
 * @template K
 * @param {MessageTable} memory
 * @param {Map<K, number>} remembered
 * @param {K} key
 * @param {() => number} add
 */
function recentPlace (memory, remembered, key, add) {
  const place = remembered.get(key)
  if (place !== undefined && memory.isRecent(place)) return place
  const added = add()
  remembered.set(key, added)
  return added
}

/**
 * Returns the place of the chain text of a message that is being sent. Does not throw.
 * @param {string} type of its step
 * @param {Function} above stacks begin below this function
 * @param {object} by
 * @param {number} [by.task] chain of the task that the message passes to a thread
 * @param {boolean} by.isAnswer whether a callback of the same port sends it
 * @returns {number} 0: none
 */
function chainFor (type, above, { task, isAnswer }) {
  if (table === undefined || guard.inOwnWork || !settings.enabled) return 0
  try {
    const parent = currentStep().chain
    if (parent === OWN_WORK_CHAIN) return 0
    const number = task ?? capture.step(parent, kindOf(type, false).number, above) & CHAIN_BITS
    if (task === undefined && isAnswer && !hasUserFrame(number)) return UNKNOWN_SENDER
    if (number < FIRST_CHAIN) return task === undefined ? 0 : UNKNOWN_SENDER
    const memory = table
    return guard.run(() => placeOf(memory, number))
  } catch {
    return 0 // the stack may be full
  }
}

/**
 * Whether the newest step of a chain has a frame of the program's own. If the newest step has none, a message
 * sent after a thread's response is the next in a pool's queue, and the running step belongs to another task.
 * @param {number} chain
 */
function hasUserFrame (chain) {
  return capture.chainAt(chain)?.stack?.frames.some(({ kind }) => kind === 'user') === true
}

/**
 * Continues the chain of a received message. Does not throw.
 * @param {number} place of its text
 * @returns {boolean} whether the chain is known
 */
function received (place) {
  if (table === undefined || guard.inOwnWork || !settings.enabled) return false
  try {
    const memory = table
    const number = place === UNKNOWN_SENDER
      ? NO_CHAIN
      : guard.run(() => importChain(place, (start) => memory.textAt(start)))
    const isKnown = number >= FIRST_CHAIN || place === UNKNOWN_SENDER
    if (isKnown) setCurrent(number, 0, current[CURRENT_SPAN])
    return isKnown
  } catch {
    return false
  }
}

/** Continues the running step in the chain of a resource. @param {Context | undefined} context */
function continueIn (context) {
  if (guard.inOwnWork || !settings.enabled) return
  currentStep() // resolves it
  setCurrent(context?.chain ?? NO_CHAIN, 0, current[CURRENT_SPAN])
}

/**
 * Passes the chain of a context to the worker that is being created in it.
 * @param {Context} context
 * @param {object} handle of the worker
 */
function passToWorker (context, handle) {
  startQuery()
  table ??= new MessageTable(createMemory())
  given.add(handle)
  passChain(handle, ownHops(context), table.memory)
}

/** Returns the table that a worker received. @param {object} handle of the worker */
const tableOf = (handle) => given.has(handle) ? table : undefined

/** Returns the table that this thread received as a worker, and the thread's number. */
const inheritedTable = () => inherited && table && { table, threadId: inherited.threadId }

/**
 * Returns the chain of a child process as text for its environment.
 * @param {Context} [context] of the child; defaults to the caller's
 * @returns {string | undefined}
 */
function passToProcess (context = currentContext()) {
  startQuery()
  return encodeChain(ownHops(context), process.pid)
}

module.exports = {
  chainFor, continueIn, inheritedTable, passToProcess, passToWorker, received, tableOf
}
