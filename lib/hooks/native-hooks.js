'use strict'

// What hooks tell, for C callbacks of other addons; the public side is native/longstack.h, the other half of
// this file native/native-hooks.cc. The addon keeps the callbacks; how many want each stage stands in memory
// shared with it, so that where there are none an event costs the look at one number.
//
// A hot room: no object is made for an event; its numbers are written into that memory and the addon called.

const { mistake } = require('../errors')

const INIT = 0
const BEFORE = 1
const AFTER = 2
const BYTES = 48 // four doubles and three counts, see Shared in native/native-hooks.cc
const WANTS = 32
const TYPES = 1000 // numbers of types remembered; programs may make names up

/**
 * @typedef {object} Doors the part of the addon that keeps callbacks
 * @property {(memory: ArrayBuffer) => boolean} share
 * @property {() => bigint | undefined} api
 * @property {(name: string) => number} type
 * @property {() => void} init
 * @property {() => void} before
 * @property {() => void} after
 *
 * @typedef {object} NativeHooks for addons that add C callbacks; native/longstack.h tells how
 * @property {bigint} api The address of this thread's struct longstack_api, to be given to an addon. It is
 *   valid in this thread only.
 * @property {(id: number) => string | undefined} stack The frames behind the stack number of an event, a line
 *   each; undefined where they are not known (any more).
 *
 * @typedef {import('../context/context').Context} Context
 */

/**
 * @param {object} deps
 * @param {() => { binding?: { hooks?: Doors }, failure?: import('../reasons').EngineReason }} deps.load the
 *   addon
 * @param {(id: number) => string | undefined} deps.stack
 */
function createNativeHooks ({ load, stack }) {
  const memory = new ArrayBuffer(BYTES)
  const event = new Float64Array(memory, 0, 4)
  const wants = new Uint32Array(memory, WANTS, 3)
  /** @type {Doors} */
  let doors
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
      number = doors.type(type)
      types.set(type, number)
    }
    lastType = type
    lastNumber = number
    return number
  }

  /** @param {Context} context */
  function write (context) {
    const { type } = context
    event[0] = context.asyncId
    event[1] = context.triggerAsyncId
    event[2] = type === lastType ? lastNumber : numberOf(type)
    event[3] = context.stack?.id ?? 0 // what the js engine keeps has no number
  }

  return {
    /** How many callbacks want init, before and after. Who calls the functions below asks here first. */
    wants,

    /** @param {Context} context */
    init (context) {
      write(context)
      doors.init()
    },

    /** @param {Context} context */
    before (context) {
      write(context)
      doors.before()
    },

    /** @param {Context} context */
    after (context) {
      write(context)
      doors.after()
    },

    /** Somebody has asked for the handle. */
    inUse: () => handle !== undefined,

    /** What users hand to their addon. @returns {NativeHooks} */
    handle () {
      if (handle !== undefined) return handle
      const { binding, failure } = load()
      const found = binding?.hooks
      if (found === undefined) throw mistake('NOT_AVAILABLE', 'trace.nativeHooks', describe(failure))
      doors = found
      const api = doors.share(memory) ? doors.api() : undefined
      if (api === undefined) throw mistake('NOT_AVAILABLE', 'trace.nativeHooks', 'out of memory')
      handle = Object.freeze({ api, stack })
      return handle
    }
  }
}

/**
 * @param {import('../reasons').EngineReason | undefined} failure undefined: the addon loaded, but has no
 *   hooks
 */
function describe (failure) {
  if (failure === undefined) return 'the binary is of another version'
  return require('../reasons').explain('engine', failure)
}

module.exports = { createNativeHooks, INIT, BEFORE, AFTER }
