'use strict'

// The one door to capture. An engine takes the present stack for a context cheaply and gives it as a Stack when
// asked; nobody else knows what it keeps in between.

const { loadBinding } = require('./binding')
const { createJsCapture } = require('./capture-js')
const { createNativeCapture, prepare } = require('./capture-native')

/**
 * @typedef {import('../context/context').Context} Context
 * @typedef {ReturnType<typeof createCapture>} Capture
 */

/**
 * @param {object} deps
 * @param {(read: () => string) => string} deps.plainly reads a `stack` with V8's plain format in force
 * @param {() => { frames: number, budget: number }} deps.options
 * @param {() => boolean} deps.awaiting do stacks hold the functions that await the running one?
 */
function createCapture (deps) {
  const js = createJsCapture(deps)
  /** @type {ReturnType<typeof loadNative> | undefined} */
  let found
  let why = 'not enabled yet'

  const door = {
    /** `js` or `native` @type {string} */
    name: 'js',

    /** Takes the present stack and time @type {(context: Context, above: Function, promise: boolean) => void} */
    take: js.take,

    /** The reason of a rejected promise, where the addon is there to look @type {((promise: object) => unknown) | undefined} */
    rejection: undefined,

    stackOf: js.stackOf,
    turn: js.turn,
    rest: js.rest,

    /** The addon, where it loads. @returns {import('./capture-native').Binding | undefined} */
    binding: () => found?.binding,

    /** Chooses the engine; options are in force. @param {'auto' | 'native' | 'js'} wanted */
    use (wanted) {
      if (wanted === 'js') {
        why = 'asked for'
      } else {
        found ??= loadNative(deps, js.take)
        why = found.why
      }
      const native = wanted === 'js' ? undefined : found?.engine
      native?.refresh()
      if (native !== undefined) js.rest()
      door.name = native === undefined ? 'js' : 'native'
      door.take = native?.take ?? js.take
      door.rejection = native === undefined ? undefined : found?.binding?.rejection
    },

    /** The stack with a number that the native engine gave. @param {number} id */
    byId: (id) => found?.engine?.byId(id),

    /** Why that engine is in force. */
    why: () => why,

    bytes: () => js.bytes() + (found?.engine?.bytes() ?? 0),

    stats () {
      const { captured, hits, misses, stacks, bytes, pending } = js.stats()
      const native = found?.engine?.stats()
      if (native === undefined) return { captured, hits, misses, stacks, bytes, pending, unstored: 0 }
      return {
        captured: captured + native.captured,
        hits: hits + native.hits,
        misses: misses + native.misses,
        stacks: stacks + native.stacks,
        bytes: bytes + native.bytes,
        pending,
        unstored: native.unstored
      }
    }
  }
  return door
}

/**
 * @param {Parameters<typeof createCapture>[0]} deps
 * @param {ReturnType<typeof createJsCapture>['take']} takeSlowly
 */
function loadNative (deps, takeSlowly) {
  const { binding, why } = loadBinding()
  if (binding === undefined) return { why }
  const { usable, exact, why: because } = prepare(binding)
  return { binding, engine: usable ? createNativeCapture({ binding, exact, takeSlowly, ...deps }) : undefined, why: because }
}

module.exports = { createCapture }
