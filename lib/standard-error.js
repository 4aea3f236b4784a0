'use strict'

// Node opens process.stderr when it is first read, and reads it merely to compare: where a socket closes
// (Socket.prototype._destroy in lib/net.js), and where node:assert and node:http2 are loaded
// (lib/internal/util/colors.js). A pipe or a terminal that is opened so does not block any more, for none of
// those who write to it: a child of another program that inherited it loses what does not fit.

const process = require('node:process')

const { apply, defineProperty, getOwnPropertyDescriptor } = Reflect

/** In place of the stream: it is none of those that are compared with it. NODE_DEBUG writes to it. */
const noStream = Object.freeze({ isTTY: false, write () {} })

/**
 * Runs work of Node's, and none of the program's, that leaves process.stderr as it is.
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

/** Has a socket of longstack's close so. @param {import('node:net').Socket} socket */
function closeUnopened (socket) {
  const { _destroy: destroy } = socket
  /** @this {unknown} */
  socket._destroy = function () {
    keepUnopened(() => apply(destroy, this, arguments))
  }
}

module.exports = { closeUnopened, keepUnopened }
