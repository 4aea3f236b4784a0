'use strict'

// Data that goes out on a socket makes no event of async_hooks: most writes are done at once. But net calls a
// method of each socket for its traffic, in both directions, to restart its timeout (lib/net.js,
// `_unrefTimer`); it is wrapped here. It is restored on disable, unless it was wrapped in turn; then the
// wrapper only calls the original.

const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect
const METHOD = '_unrefTimer'

/** @param {(socket: object) => void} touched data goes out on a socket, or came in; must not throw */
function createTrafficLayer (touched) {
  let isOn = false
  /** @type {PropertyDescriptor | undefined} */
  let original
  /** @type {Function | undefined} */
  let wrapper

  /** @param {Function} method */
  const wrap = (method) => ({
    /** @this {any} */
    [METHOD] () {
      if (isOn) touched(this)
      return apply(method, this, arguments)
    }
  })[METHOD]

  return {
    /** Called with the first socket: net is loaded then, and many programs have none. */
    enable () {
      const { Socket } = require('node:net')
      isOn = true
      if (wrapper !== undefined) return
      const property = getOwnPropertyDescriptor(Socket.prototype, METHOD)
      if (typeof property?.value !== 'function') return
      const method = wrap(property.value)
      if (!defineProperty(Socket.prototype, METHOD, { ...property, value: method })) return
      original = property
      wrapper = method
    },

    disable () {
      isOn = false
      if (wrapper === undefined || original === undefined) return
      const { Socket } = require('node:net')
      const property = getOwnPropertyDescriptor(Socket.prototype, METHOD)
      if (property?.value !== wrapper || !defineProperty(Socket.prototype, METHOD, original)) return
      original = wrapper = undefined
    }
  }
}

module.exports = { createTrafficLayer }
