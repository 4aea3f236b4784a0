'use strict'

// Shows where the failing event listener was registered (option `listeners`).
//
// Listeners are called directly, so nothing about the call changes. While the option is on, the methods that
// register listeners are wrapped, and note the source text of each listener of the program, the event and the
// place. If `emit` or an EventTarget called the function of a call site, the call site gives the start of
// that function (getEnclosingLineNumber in V8's src/builtins/builtins-callsite.cc). If exactly one noted text
// starts there in the file, and occurs nowhere else in it, that function is the listener.

const { EventEmitter } = require('node:events')
const { types } = require('node:util')
const { contextOfChain } = require('../core/context')
const guard = require('../core/guard')
const kindTable = require('../core/kind-table')
const { CHAIN_BITS, ROOT_CHAIN } = require('../core/records')
const { placeOf } = require('../format/hops')
const { readSource } = require('../format/paint')
const { getOrAdd } = require('../group-by')
const { isObject, own } = require('../objects')
const { readSites } = require('../stacks/call-sites')
const capture = require('../stacks/capture')
const { describe } = require('../stacks/chain')
const { wrap } = require('../wrap')

const { apply } = Reflect
const { toString } = Function.prototype
const EVENT_TARGET = 'node:internal/event_target' // Node's file
const OF_TARGET = 'addEventListener'
const METHODS = ['addListener', 'on', 'prependListener', OF_TARGET]
/** functions that call listeners, by file @type {Map<string | undefined, RegExp>} */
const DISPATCHERS = new Map([['node:events', /(?:^|\.)emit$/], [EVENT_TARGET, /kHybridDispatch/]])
const KIND = 'LISTENER'
const MAX_NOTED = 1000 // texts of listeners
const MAX_NAME = 40 // characters of an event's name
const MAX_EVENTS = 3 // per listener

/**
 * @typedef {import('../core/context').Context} Context
 * @typedef {import('../stacks/frames').Frame} Frame
 *
 * @typedef {object} Registration of a listener
 * @property {string} method
 * @property {Set<string>} events
 * @property {number} chain of the last registration's stack
 * @property {Context} context of the first registration
 * @property {boolean} isAmbiguous several places register it, and a call does not show which one did
 */

/** by the text of the listener @type {Map<string, Registration>} */
let noted = new Map()
let isOn = false
/** identifies the wrappers that note; a wrapper that the program wrapped in turn stays in place */
let present = {}
/** put the methods back @type {Array<() => boolean>} */
let restores = []

/** @param {boolean} next */
function applyListeners (next) {
  if (next === isOn) return
  isOn = next
  for (const restore of restores) restore()
  noted = new Map()
  present = {}
  /** on and addListener are one function @type {Map<Function, Function>} */
  const wrappers = new Map()
  restores = !next
    ? []
    : METHODS.flatMap((name) => {
      const { prototype } = name === OF_TARGET ? EventTarget : EventEmitter
      return wrap(prototype, name, (method) =>
        getOrAdd(wrappers, method, () => around(method, name === 'addListener' ? 'on' : name))) ?? []
    })
}

/** @param {Function} method @param {string} name */
function around (method, name) {
  const session = present
  /** @param {unknown} event @param {unknown} listener @param {Function} above */
  function called (event, listener, above) {
    if (!isOn || session !== present || guard.inOwnWork) return
    const callee = name === OF_TARGET && isObject(listener) ? own(listener, 'handleEvent') : listener
    if (typeof callee === 'function' && !types.isProxy(callee)) note(event, callee, name, above)
  }
  const { ofTarget } = { // a method: it cannot be called with `new`
    /** @this {unknown} @param {unknown} event @param {unknown} listener */
    ofTarget (event, listener) {
      called(event, listener, ofTarget)
      return apply(method, this, arguments)
    }
  }
  /** @this {unknown} @param {unknown} event @param {unknown} listener */
  function ofEmitter (event, listener) {
    called(event, listener, ofEmitter)
    return apply(method, this, arguments)
  }
  return name === OF_TARGET ? ofTarget : ofEmitter
}

/**
 * Notes a registration. Does not throw.
 * @param {unknown} event
 * @param {Function} listener the program's, or Node's wrapper of it in once()
 * @param {string} method
 * @param {Function} above stacks begin below this function
 */
function note (event, listener, method, above) {
  try {
    const { number } = kindTable.kinds.get(KIND) ?? kindTable.add(KIND)
    const chain = capture.step(ROOT_CHAIN, number, above) & CHAIN_BITS
    if (capture.hasProgramFrame(chain)) guard.run(() => add(event, listener, method, chain))
  } catch {} // the stack may be full
}

/** @param {unknown} event @param {Function} listener @param {string} method @param {number} chain */
function add (event, listener, method, chain) {
  const original = own(listener, 'listener')
  const isOnce = typeof original === 'function' && method !== OF_TARGET
  const text = apply(toString, isOnce ? original : listener, [])
  if (text.includes('[native code]')) return
  const name = isOnce ? method.replace(/on$/, 'once').replace('Listener', 'OnceListener') : method
  const known = noted.get(text)
  if (known === undefined) {
    const context = noted.size < MAX_NOTED ? contextOfChain(chain) : undefined
    if (context?.stack === undefined) return // reading it makes the context keep it
    noted.set(text, { method: name, events: new Set([nameOf(event)]), chain, context, isAmbiguous: false })
  } else if (!known.isAmbiguous) {
    known.isAmbiguous = known.method !== name || !isSamePlace(known, chain)
    known.chain = chain
    if (known.events.size <= MAX_EVENTS) known.events.add(nameOf(event))
  }
}

/**
 * Whether a registration has the same stack; chains may have been renumbered.
 * @param {Registration} registration
 * @param {number} chain
 */
function isSamePlace ({ chain: last, context }, chain) {
  if (last === chain) return true
  const textOf = (/** @type {Context | undefined} */ made) => JSON.stringify(made?.stack?.frames)
  return textOf(contextOfChain(chain)) === textOf(context)
}

/** @param {unknown} event */
function nameOf (event) {
  const name = String(event).slice(0, MAX_NAME)
  return typeof event === 'symbol' ? name : `'${name}'`
}

/**
 * Returns a line about the listener in which an error was made.
 * @param {NodeJS.CallSite[]} sites of the error
 * @returns {import('../stacks/chain').PrintedHop[]} empty if it was made in no listener, or the registration
 *   is unknown
 */
function listenerHops (sites) {
  if (noted.size === 0) return []
  const { frames } = readSites(sites)
  let i = frames.findIndex(isDispatcher) - 1
  while (i >= 0 && DISPATCHERS.has(frames[i].fileName)) i--
  const registration = i < 0 ? undefined : registrationOf(/** @type {any} */ (sites[i]), frames[i])
  if (registration === undefined || registration.isAmbiguous) return []
  const hop = describe(registration.context)
  const events = [...registration.events]
  if (events.length > MAX_EVENTS) events.splice(MAX_EVENTS, events.length, '…')
  const place = placeOf([hop])
  if (place === undefined) return []
  // Not "at", which parsers of stacks react to: a search for "in wire" finds it
  const label = `${methodOf(registration)}(${events.join(' or ')}) in ${place}`
  return [{ ...hop, label, ageMs: NaN, repeats: 1, origin: 'registered', lines: [], short: [] }]
}

/** @param {Registration} registration */
function methodOf ({ context, method }) {
  if (method !== OF_TARGET) return `emitter.${method}`
  const { fileName, functionName = '' } = context.stack?.frames[0] ?? {}
  const name = /\.(?:on|once|addListener)$/.exec(functionName)?.[0]
  // A MessagePort is an emitter as well
  return fileName === EVENT_TARGET && name !== undefined ? `emitter${name}` : `target.${method}`
}

/** @param {Frame} frame */
const isDispatcher = ({ fileName, functionName }) => {
  return functionName !== undefined && DISPATCHERS.get(fileName)?.test(functionName) === true
}

/**
 * @param {NodeJS.CallSite} site
 * @param {Frame} frame of it
 * @returns {Registration | undefined} undefined if none is known for this function
 */
function registrationOf (site, { fileName, kind }) {
  const { getEnclosingLineNumber, getEnclosingColumnNumber } = /** @type {any} */ (site)
  if (fileName === undefined || kind === 'core' || getEnclosingLineNumber === undefined) return undefined
  const source = readSource(fileName)
  const line = apply(getEnclosingLineNumber, site, [])
  if (source === undefined) return undefined
  const offset = offsetOf(source, line, apply(getEnclosingColumnNumber, site, []))
  if (offset === undefined) return undefined
  const texts = [...noted.keys()].filter((text) => startsAt(source, text, offset))
  const start = texts.length === 1 ? source.indexOf(texts[0]) : -1
  return start === -1 || source.includes(texts[0], start + 1) ? undefined : noted.get(texts[0])
}

/**
 * Returns whether a function with this text starts at an offset; V8 reports the start of its parameters.
 * @param {string} source
 * @param {string} text
 * @param {number} offset
 */
function startsAt (source, text, offset) {
  return source.startsWith(text, offset) || source.startsWith(text, offset - text.indexOf('('))
}

/** @param {string} source @param {number} line from 1 @param {number} column from 1 */
function offsetOf (source, line, column) {
  let start = 0
  for (let i = 1; i < line; i++) {
    start = source.indexOf('\n', start) + 1
    if (start === 0) return undefined
  }
  return start + column - 1
}

module.exports = { applyListeners, listenerHops }
