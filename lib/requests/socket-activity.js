'use strict'

// Data that goes out on a socket makes no event of async_hooks: most writes are done at once. But net calls a
// method of each socket for its traffic, in both directions, and as it begins to connect, to restart its
// timeout (lib/net.js, `_unrefTimer`); it is wrapped here. What is written while a socket connects is kept by
// `_writeGeneric`, which is wrapped only for as long as one does, or where what is written may be read
// (peek.js): errors are made below it, and would have a frame less of the program's. Both are restored on
// disable, unless they were wrapped in turn; then the wrapper only calls the original.

const { traffic, writes } = require('./connection-uses')
const { own } = require('../objects')
const { settings } = require('../settings')
const { wrap } = require('../wrap')
const { hold, release } = require('./peek')

const { apply } = Reflect
const { deref } = WeakRef.prototype

const MIN_SWEEP = 32 // sockets that connect

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
  const state = socket._writableState // a plain property, which Node reads with each write
  if (!traffic(socket, state?.writing === true && state.sync === true)) return
  connecting[connecting.length] = new WeakRef(socket)
  allWrites.enable()
}

/** Looks at the last ones, and at all when they have doubled: thousands may connect at once. */
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

/** Called with the first socket: net is loaded then, and many programs have none. */
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
 * @param {string} name of a method of sockets
 * @param {(socket: any, args: IArguments) => void} called before it
 * @param {() => void} [done] called behind it
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
      } catch {} // the stack may be full, or the program has put its own in place of what is called
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
