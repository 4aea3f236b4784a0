'use strict'

// Events for C callbacks of other addons. The public side is native/longstack.h; native/native-hooks.cc is
// the counterpart of this file. The addon keeps the callbacks and shares memory with the number of callbacks
// per stage, so an event without callbacks costs one read.
//
// Hot path: an event creates no object; its numbers are written to that memory before the addon is called.

const { now } = require('../core/clock')
const { Context } = require('../core/context')
const guard = require('../core/guard')
const { kindOf } = require('../core/kinds')
const { mistake } = require('../errors')
const { loadBinding } = require('../stacks/binding')
const capture = require('../stacks/capture')

const BYTES = 48 // four doubles and three counts, see Shared in native/native-hooks.cc
const WANTS = 32
const TYPES = 1000 // types with cached numbers; programs may make up more

/**
 * @typedef {object} NativeBinding the part of the addon that keeps callbacks
 * @property {(memory: ArrayBuffer) => boolean} share
 * @property {() => bigint | undefined} api
 * @property {(name: string) => number} type
 * @property {() => void} init
 * @property {() => void} before
 * @property {() => void} after
 *
 * @typedef {object} NativeHooks for addons that add C callbacks; see native/longstack.h
 * @property {bigint} api The address of this thread's struct longstack_api, to pass to an addon. Valid only
 *   in this thread.
 * @property {(id: number) => string | undefined} stack Returns the frames behind an event's stack number, one
 *   per line, or undefined if they were dropped.
 *
 * @typedef {import('../reasons').EngineReason} EngineReason
 * @typedef {keyof typeof indexes} Stage
 */

/** indexes of the callback counts */
const indexes = { init: 0, before: 1, after: 2 }
const memory = new ArrayBuffer(BYTES)
const event = new Float64Array(memory, 0, 4)
const wants = new Uint32Array(memory, WANTS, 3)
/** @type {NativeBinding} */
let native
/** @type {NativeHooks | undefined} */
let handle

/** numbers by name @type {Map<string, number>} */
let types = new Map()
let lastType = ''
let lastNumber = 0

/** @param {string} type */
function numberOf (type) {
  let number = types.get(type)
  if (number === undefined) {
    if (types.size >= TYPES) types = new Map()
    number = native.type(type)
    types.set(type, number)
  }
  lastType = type
  lastNumber = number
  return number
}

/** Calls the callbacks for a stage, if there are any. @param {Stage} stage @param {Context} context */
function report (stage, context) {
  if (wants[indexes[stage]] === 0) return
  const { type } = context
  event[0] = context.asyncId
  event[1] = context.triggerAsyncId
  event[2] = type === lastType ? lastNumber : numberOf(type)
  event[3] = context.stack?.id ?? 0 // 0: no numbered stack
  native[stage]()
}

/** Returns whether the program has read the handle. */
const inUse = () => handle !== undefined

/** Returns the handle that users pass to their addon. @returns {NativeHooks} */
function share () {
  if (handle !== undefined) return handle
  const { binding, failure } = loadBinding()
  const callbacks = binding?.hooks
  if (callbacks === undefined) throw mistake('NOT_AVAILABLE', 'trace.nativeHooks', describe(failure))
  native = callbacks
  const api = native.share(memory) ? native.api() : undefined
  if (api === undefined) throw mistake('NOT_AVAILABLE', 'trace.nativeHooks', 'out of memory')
  handle = Object.freeze({ api, stack })
  return handle
}

/** Returns the frames behind a stack number, one per line. @param {number} id */
function stack (id) {
  const held = capture.stackById(id)
  if (held === undefined) return undefined
  const holder = new Context(0, 0, kindOf('STACK', false), undefined, now())
  holder.stack = held
  return guard.run(() => require('../stacks/chain').describe(holder).lines.join('\n'))
}

/**
 * @param {import('../reasons').EngineReason | undefined} failure undefined if the addon loaded, but has
 *   no hooks
 */
function describe (failure) {
  if (failure === undefined) return 'the binary is of another version'
  return require('../reasons').explain('engine', failure)
}

module.exports = { inUse, report, share }
