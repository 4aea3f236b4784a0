'use strict'

// Data that goes out on a socket makes no event of async_hooks: most writes are done on the spot. But net tells
// each socket of its traffic, in both directions, so that its timeout starts anew; here longstack listens in. The
// method is put back on disable, unless somebody else has wrapped it since; then it only passes on.

const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect
const METHOD = '_unrefTimer'

/** @param {(socket: object) => void} touched data goes out on a socket, or came in; must not throw */
function createTrafficLayer (touched) {
  let on = false
  /** @type {PropertyDescriptor | undefined} */
  let original
  /** @type {Function | undefined} */
  let wrapper

  /** @param {Function} method */
  const wrap = (method) => ({
    /** @this {any} */
    [METHOD] () {
      if (on) touched(this)
      return apply(method, this, arguments)
    }
  })[METHOD]

  return {
    /** Called with the first socket: net is loaded then, and many programs have none. */
    enable () {
      const { Socket } = require('node:net')
      on = true
      if (wrapper !== undefined) return
      const found = getOwnPropertyDescriptor(Socket.prototype, METHOD)
      if (typeof found?.value !== 'function') return
      const ours = wrap(found.value)
      if (defineProperty(Socket.prototype, METHOD, { ...found, value: ours })) [original, wrapper] = [found, ours]
    },

    disable () {
      on = false
      if (wrapper === undefined || original === undefined) return
      const { Socket } = require('node:net')
      const found = getOwnPropertyDescriptor(Socket.prototype, METHOD)
      if (found?.value === wrapper && defineProperty(Socket.prototype, METHOD, original)) original = wrapper = undefined
    }
  }
}

module.exports = { createTrafficLayer }
