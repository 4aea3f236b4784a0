'use strict'

// async_hooks reports no event for data sent on a socket: most writes complete at once. But net calls a
// method of each socket for traffic in both directions, and when it begins to connect, to restart its timeout
// (lib/net.js, `_unrefTimer`). That method is wrapped here. `_writeGeneric` buffers data written while a
// socket connects. It is wrapped only while a socket connects, or if peek.js may read the data: errors are
// created below it, and would lose a frame of the program. Both are restored on disable, unless the program
// wrapped them in turn; then the wrapper only calls the original.

const { traffic, writes } = require('./connection-uses')
const { own } = require('../objects')
const { settings } = require('../settings')
const { wrap } = require('../wrap')
const { hold, release } = require('./peek')

const { apply } = Reflect
const { deref } = WeakRef.prototype

const MIN_SWEEP = 32 // connecting sockets

const timers = createMethod('_unrefTimer', touched)
const allWrites = createMethod('_writeGeneric', (socket, [writev, data]) => {
  if (settings.options.peek) hold(socket, writev, data)
  if (own(socket, 'connecting') === true) writes(socket)
}, release)
/** @type {Array<WeakRef<object>>} */
let connecting = []
let sweepAt = MIN_SWEEP

/** @param {any} socket */
function touched (socket) {
  if (connecting.length > 0) forgetConnected()
  const state = socket._writableState // a plain property that Node reads on each write
  if (!traffic(socket, state?.writing === true && state.sync === true)) return
  connecting[connecting.length] = new WeakRef(socket)
  allWrites.enable()
}

/** Checks the last sockets, and all once their number has doubled: thousands may connect at once. */
function forgetConnected () {
  while (connecting.length > 0 && !isConnecting(connecting[connecting.length - 1])) connecting.length--
  if (connecting.length >= sweepAt) {
    let kept = 0
    for (let i = 0; i < connecting.length; i++) {
      if (isConnecting(connecting[i])) connecting[kept++] = connecting[i]
    }
    connecting.length = kept
    sweepAt = Math.max(MIN_SWEEP, 2 * kept)
  }
  if (connecting.length === 0 && !settings.options.peek) allWrites.disable()
}

/** Called for the first socket: net is loaded by then, and many programs open no socket. */
function enable () {
  timers.enable()
  if (settings.options.peek) allWrites.enable()
}

function disable () {
  connecting = []
  timers.disable()
  allWrites.disable()
}

/** @param {WeakRef<object>} ref of a socket */
function isConnecting (ref) {
  const socket = apply(deref, ref, [])
  return socket !== undefined && own(socket, 'connecting') === true
}

/**
 * @param {string} name of a socket method
 * @param {(socket: any, args: IArguments) => void} called runs before the method
 * @param {() => void} [done] runs after the method
 */
function createMethod (name, called, done) {
  let isOn = false
  /** @type {(() => boolean) | undefined} */
  let unwrap

  /** @param {Function} method */
  const make = (method) => {
    /** @this {any} */
    return function () {
      try {
        if (isOn) called(this, arguments)
      } catch {} // the stack may be full, or the program may have replaced a built-in function
      if (done === undefined) return apply(method, this, arguments)
      try {
        return apply(method, this, arguments)
      } finally {
        done()
      }
    }
  }

  return {
    enable () {
      isOn = true
      unwrap ??= wrap(require('node:net').Socket.prototype, name, make)
    },

    disable () {
      isOn = false
      if (unwrap?.()) unwrap = undefined
    }
  }
}

module.exports = { disable, enable }
