'use strict'

// Chains that go on in another thread or process: those that this thread sends, and those that it gets.

const guard = require('../core/guard')
const { startQuery } = require('../core/clock')
const { contextOfChain } = require('../core/context')
const { CURRENT_SPAN, current, setCurrent } = require('../core/current')
const { kindOf } = require('../core/kinds')
const { CHAIN_BITS, FIRST_CHAIN, OWN_WORK_CHAIN } = require('../core/records')
const { isOutside } = require('../core/scope')
const { getOrAdd } = require('../group-by')
const { currentContext, currentStep } = require('../core/current-step')
const { inheritedChain, passChain } = require('./threads')
const { settings } = require('../settings')
const { hops } = require('../stacks/chain')
const capture = require('../stacks/capture')
const { MESSAGE, encodeChain, encodeMessageChain, importChain } = require('../stacks/passed-chain')
const { MessageTable, createMemory } = require('./message-table')

const MAX_PLACES = 4096 // remembered

/** @typedef {import('../core/context').Context} Context */

const inherited = inheritedChain()
/** from the first worker on @type {MessageTable | undefined} */
let table = inherited?.memory === undefined ? undefined : new MessageTable(inherited.memory)
/** workers that were given the table @type {WeakSet<object>} */
const given = new WeakSet()
/** by the number of the chain @type {Map<number, number>} */
const places = new Map()
/** by the text @type {Map<string, number>} */
const placesOfTexts = new Map()
let generation = capture.generation

/**
 * Returns the place of a chain's text in the memory of all threads.
 * @param {MessageTable} memory
 * @param {number} number of the chain
 * @returns {number} 0: there is no room
 */
function placeOf (memory, number) {
  if (generation !== capture.generation || places.size >= MAX_PLACES) places.clear()
  generation = capture.generation
  return getOrAdd(places, number, () => placeOfText(memory, textOf(number)))
}

/** @param {number} number */
function textOf (number) {
  const { threadId } = require('node:worker_threads')
  return encodeMessageChain(hops(contextOfChain(number)), threadId, inherited?.from)
}

/** @param {MessageTable} memory @param {string} text */
function placeOfText (memory, text) {
  if (placesOfTexts.size >= MAX_PLACES) placesOfTexts.clear()
  return getOrAdd(placesOfTexts, text, () => memory.addText(text))
}

/**
 * Returns where the text of the running chain begins, for a message that is sent now. Does not throw.
 * @param {Function} above stacks begin below this function
 * @returns {number} 0: none
 */
function chainFor (above) {
  if (table === undefined || guard.inOwnWork || !settings.enabled) return 0
  try {
    const parent = currentStep().chain
    if (parent === OWN_WORK_CHAIN) return 0
    const number = capture.step(parent, kindOf(MESSAGE, false).number, above) & CHAIN_BITS
    const memory = table
    return number < FIRST_CHAIN || isOutside(number) ? 0 : guard.run(() => placeOf(memory, number))
  } catch {
    return 0 // the stack may be full
  }
}

/** Continues the chain of a message that came. Does not throw. @param {number} place of its text */
function received (place) {
  if (table === undefined || guard.inOwnWork || !settings.enabled) return
  try {
    const memory = table
    const number = guard.run(() => importChain(place, (start) => memory.textAt(start)))
    if (number >= FIRST_CHAIN) setCurrent(number, 0, current[CURRENT_SPAN])
  } catch {}
}

/**
 * Passes the chain of a context to the worker that is being made in it.
 * @param {Context} context
 * @param {object} handle of the worker
 */
function passToWorker (context, handle) {
  startQuery()
  table ??= new MessageTable(createMemory())
  given.add(handle)
  passChain(handle, hops(context), table.memory)
}

/** Returns the table that a worker was given. @param {object} handle of it */
const tableOf = (handle) => given.has(handle) ? table : undefined

/** Returns the table that this thread was given as a worker, and its number. */
const inheritedTable = () => inherited && table && { table, threadId: inherited.threadId }

/**
 * Returns the chain of a child process as text for its environment.
 * @param {Context} [context] of the child; without it that of the caller
 * @returns {string | undefined}
 */
function passToProcess (context = currentContext()) {
  startQuery()
  return encodeChain(hops(context), process.pid)
}

module.exports = { chainFor, inheritedTable, passToProcess, passToWorker, received, tableOf }
