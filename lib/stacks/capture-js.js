'use strict'

// The capture engine in plain JavaScript. Error.captureStackTrace costs about 1.5 µs, formatting another 4 µs,
// and an unformatted stack keeps receivers and closures of the program alive. So capture is raw, and formatting
// waits until it is known to be worth it:
//
// - a context that is asked for, or is an ancestor of one, is formatted then;
// - contexts that finished in the meantime (most do) lose their raw stack unformatted when GENERATION newer
//   ones exist;
// - at each turn of the event loop what is left is formatted, as long as that takes no more than one SHARE of the
//   time: a quiet program holds nothing from one turn to the next, a busy one does not pay for what dies anyway;
// - after every full gc all that is left is formatted.
//
// So at most two generations of raw stacks exist, however long the program runs without a pause.

const { performance } = require('node:perf_hooks')

const { createGcWatch } = require('../context/collected')
const { captureInto } = require('./trace-limit')
const { createStackTable, frameLines } = require('./frames')

const GENERATION = 1024 // contexts; times two, about 2.5 MB of raw stacks
const SHARE = 20 // one part in so many of the time may go into formatting
const SLICE = 256 // contexts at a time, about 1 ms
const CORE_FRAMES = 16 // room for node: frames between a resource and the program
const CORE_FRAMES_PROMISE = 5 // promises are mostly made by the program itself
const CORE_FRAMES_CONNECTION = 48 // fetch opens a connection under up to 34 frames of undici's

const connections = new Set(['TCPWRAP', 'TCPCONNECTWRAP', 'PIPEWRAP', 'PIPECONNECTWRAP', 'TLSWRAP', 'GETADDRINFOREQWRAP', 'REQUEST', 'TickObject'])

/** @typedef {import('../context/context').Context} Context */

/** A raw stack. V8 puts `stack` on it; reading that formats it. */
class Raw {}
Object.setPrototypeOf(Raw.prototype, null)
Object.freeze(Raw.prototype)

/**
 * @param {object} deps
 * @param {(read: () => string) => string} deps.plainly reads a `stack` with V8's plain format in force
 * @param {() => { frames: number, budget: number }} deps.options
 * @param {() => boolean} deps.awaiting do stacks hold the functions that await the running one?
 */
function createJsCapture ({ plainly, options, awaiting }) {
  const table = createStackTable()
  /** @type {Context[]} */
  let young = []
  /** @type {Context[]} */
  let old = []
  let nextSlice = 0 // ms of performance.now()
  const counts = { captured: 0, formatted: 0, hits: 0 }

  const arm = createGcWatch(() => idle(Infinity))

  /**
   * @param {Context} context
   * @param {Function} above
   * @param {boolean} promise
   */
  function take (context, above, promise) {
    const raw = new Raw()
    context.time = performance.now()
    context.stack = raw
    captureInto(raw, above, options().frames + (promise ? CORE_FRAMES_PROMISE : connections.has(context.type) ? CORE_FRAMES_CONNECTION : CORE_FRAMES))
    counts.captured++
    young.push(context)
    if (young.length >= GENERATION) age()
  }

  /**
   * @param {Context} context
   * @returns {import('./frames').Stack | undefined}
   */
  function stackOf (context) {
    const held = context.stack
    if (!(held instanceof Raw)) return held
    const text = plainly(() => /** @type {any} */ (held).stack)
    const before = table.size()
    context.stack = table.intern(typeof text === 'string' ? frameLines(text, awaiting()) : '', options().budget / 4)
    counts.formatted++
    if (table.size() === before) counts.hits++
    return context.stack
  }

  /** Settles the older generation under load; the younger becomes the older. */
  function age () {
    const settling = old
    old = young
    young = []
    for (const context of settling) if (!context.done) settle(context)
    // What is younger and not finished needs its ancestors still.
    for (const context of old) if (!context.done && context.parent !== undefined) settle(context.parent)
    for (const context of settling) {
      if (context.stack instanceof Raw) context.stack = undefined
    }
    arm()
  }

  /** Formats a context and its ancestors. One that has its text had its ancestors settled then. @param {Context} context */
  function settle (context) {
    for (let one = /** @type {Context | undefined} */ (context); one !== undefined; one = one.parent) {
      if (one.stack instanceof Raw) stackOf(one)
      else if (one.stack !== undefined) return
    }
  }

  /** Formats up to so many of all that is left. @param {number} most */
  function idle (most) {
    while (most > 0 && old.length + young.length > 0) {
      const slice = (old.length > 0 ? old : young).splice(0, most)
      for (const context of slice) stackOf(context)
      most -= slice.length
    }
  }

  return {
    take,
    stackOf,

    /** The event loop enters JavaScript. @param {number} time */
    turn (time) {
      if (young.length + old.length === 0) return
      arm()
      if (time < nextSlice) return
      idle(SLICE)
      const end = performance.now()
      nextSlice = end + (end - time) * SHARE
    },

    /** Formats all that is left: nothing of the program's is held after this. */
    rest: () => idle(Infinity),

    bytes: () => table.bytes(),

    stats () {
      const { captured, formatted, hits } = counts
      return { captured, hits, misses: formatted - hits, stacks: table.size(), bytes: table.bytes(), pending: young.length + old.length }
    }
  }
}

module.exports = { createJsCapture }
