'use strict'

// Bytes as Buffers, without a copy.

const { isUint8Array } = require('node:util').types

/** @param {Uint8Array} bytes @returns {Buffer} */
function bufferOf (bytes) {
  return Buffer.isBuffer(bytes) ? bytes : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

/** @param {unknown} value @returns {Buffer | undefined} undefined: not bytes, or detached ones */
function bytesOf (value) {
  if (!isUint8Array(value)) return undefined
  try {
    return bufferOf(value)
  } catch {
    return undefined
  }
}

module.exports = { bufferOf, bytesOf }
