'use strict'

// Chains that go on in another thread or process: those that this thread sends, and those that it gets.

const guard = require('../core/guard')
const { startQuery } = require('../core/clock')
const { contextOfChain } = require('../core/context')
const { CURRENT_SPAN, current, setCurrent } = require('../core/current')
const { kindOf } = require('../core/kinds')
const { CHAIN_BITS, FIRST_CHAIN, OWN_WORK_CHAIN } = require('../core/records')
const { currentContext, currentStep } = require('../core/current-step')
const { inheritedChain, passChain } = require('./threads')
const { settings } = require('../settings')
const { hops } = require('../stacks/hops')
const capture = require('../stacks/capture')
const { MESSAGE, encodeChain, encodeMessageChain, importChain } = require('../stacks/passed-chain')
const { MessageTable, createMemory } = require('./message-table')
const { createThreadMessages } = require('./thread-messages')

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
  let place = places.get(number)
  if (place === undefined) places.set(number, place = placeOfText(memory, textOf(number)))
  return place
}

/** @param {number} number */
function textOf (number) {
  const { threadId } = require('node:worker_threads')
  return encodeMessageChain(hops(contextOfChain(number)), threadId, inherited?.from)
}

/** @param {MessageTable} memory @param {string} text */
function placeOfText (memory, text) {
  let place = placesOfTexts.get(text)
  if (place === undefined) {
    if (placesOfTexts.size >= MAX_PLACES) placesOfTexts.clear()
    placesOfTexts.set(text, place = memory.addText(text))
  }
  return place
}

const messages = createThreadMessages({
  chainFor (above) {
    if (table === undefined || guard.inOwnWork || !settings.enabled) return 0
    try {
      const parent = currentStep().chain
      if (parent === OWN_WORK_CHAIN) return 0
      const number = capture.step(parent, kindOf(MESSAGE, false).number, above) & CHAIN_BITS
      const memory = table
      return number < FIRST_CHAIN ? 0 : guard.run(() => placeOf(memory, number))
    } catch {
      return 0 // the stack may be full
    }
  },

  received (place) {
    if (table === undefined || guard.inOwnWork || !settings.enabled) return
    try {
      const memory = table
      const number = guard.run(() => importChain(place, (start) => memory.textAt(start)))
      if (number >= FIRST_CHAIN) setCurrent(number, 0, current[CURRENT_SPAN])
    } catch {}
  }
})

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

/**
 * A worker was made: its messages have chains, if it was told so.
 * @param {any} worker
 * @param {object | undefined} handle
 */
function watchWorker (worker, handle) {
  if (table !== undefined && handle !== undefined && given.has(handle)) {
    messages.watchWorker(worker, worker.threadId, table)
  }
}

/** This thread is a worker whose program did not begin: messages of its maker have chains. */
function watchParent () {
  if (table !== undefined && inherited !== undefined) messages.watchParent(inherited.threadId, table)
}

/** Messages have no chains any more. */
const stopMessages = messages.stop

/**
 * Returns the chain of a child process as text for its environment.
 * @param {Context} [context] of the child; without it that of the caller
 * @returns {string | undefined}
 */
function passToProcess (context = currentContext()) {
  startQuery()
  return encodeChain(hops(context), process.pid)
}

module.exports = { passToProcess, passToWorker, stopMessages, watchParent, watchWorker }
