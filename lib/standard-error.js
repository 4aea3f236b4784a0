'use strict'

// Node opens process.stderr on first access, even for a comparison: when a socket closes
// (Socket.prototype._destroy in lib/net.js), and when node:assert or node:http2 is loaded
// (lib/internal/util/colors.js). Opening makes a pipe or terminal non-blocking for all its writers: a child
// of another program that inherited it loses output that does not fit.

const process = require('node:process')

const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect

/** Replaces the stream; equals none of the streams that Node compares with it. NODE_DEBUG writes to it. */
const noStream = Object.freeze({ isTTY: false, write () {} })

/**
 * Runs Node's code, but no code of the program, without opening process.stderr.
 * @template T
 * @param {() => T} work
 * @returns {T}
 */
function keepUnopened (work) {
  const property = getOwnPropertyDescriptor(process, 'stderr')
  if (property?.get === undefined || !property.configurable) return work()
  const { enumerable, configurable } = property
  defineProperty(process, 'stderr', { value: noStream, enumerable, configurable })
  try {
    return work()
  } finally {
    defineProperty(process, 'stderr', property)
  }
}

/** Makes a socket of longstack close this way. @param {import('node:net').Socket} socket */
function closeUnopened (socket) {
  const { _destroy: destroy } = socket
  /** @this {unknown} */
  socket._destroy = function () {
    keepUnopened(() => apply(destroy, this, arguments))
  }
}

module.exports = { closeUnopened, keepUnopened }
