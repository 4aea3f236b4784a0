'use strict'

// Data that goes out on a socket makes no event of async_hooks: most writes are done at once. But net calls a
// method of each socket for its traffic, in both directions, to restart its timeout (lib/net.js,
// `_unrefTimer`), and another one for what is written, also while the socket connects (`_writeGeneric`). Both
// are wrapped here. They are restored on disable, unless they were wrapped in turn; then the wrapper only
// calls the original.

const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect

/**
 * @param {Pick<import('./channels').ConnectionUses, 'traffic' | 'writes'>} uses are told; must not throw
 */
function createTrafficLayer ({ traffic, writes }) {
  const methods = [createMethod('_unrefTimer', traffic), createMethod('_writeGeneric', writes)]

  return {
    /** Called with the first socket: net is loaded then, and many programs have none. */
    enable () {
      for (const method of methods) method.enable()
    },

    disable () {
      for (const method of methods) method.disable()
    }
  }
}

/** @param {string} name of a method of sockets @param {(socket: object) => void} called */
function createMethod (name, called) {
  let isOn = false
  /** @type {PropertyDescriptor | undefined} */
  let original
  /** @type {Function | undefined} */
  let wrapper

  /** @param {Function} method */
  function wrap (method) {
    const wrapped = {
      /** @this {any} */
      [name] () {
        if (isOn) called(this)
        return apply(method, this, arguments)
      }
    }[name]
    for (const property of ['name', 'length']) {
      const descriptor = getOwnPropertyDescriptor(method, property)
      if (descriptor !== undefined) defineProperty(wrapped, property, descriptor)
    }
    return wrapped
  }

  return {
    enable () {
      const { Socket } = require('node:net')
      isOn = true
      if (wrapper !== undefined) return
      const property = getOwnPropertyDescriptor(Socket.prototype, name)
      if (typeof property?.value !== 'function') return
      const method = wrap(property.value)
      if (!defineProperty(Socket.prototype, name, { ...property, value: method })) return
      original = property
      wrapper = method
    },

    disable () {
      isOn = false
      if (wrapper === undefined || original === undefined) return
      const { Socket } = require('node:net')
      const property = getOwnPropertyDescriptor(Socket.prototype, name)
      if (property?.value !== wrapper || !defineProperty(Socket.prototype, name, original)) return
      original = wrapper = undefined
    }
  }
}

module.exports = { createTrafficLayer }
