'use strict'

// Bytes as Buffers, without a copy. What a class or a property of the program's says about their length is
// not asked: Node's parser would read it.

const { isUint8Array } = require('node:util').types

const { apply, construct, getPrototypeOf } = Reflect
const { prototype } = Buffer
const { hasOwn } = Object
const typedArray = getPrototypeOf(Uint8Array.prototype)
const [bufferIn, offsetIn, lengthIn] = ['buffer', 'byteOffset', 'byteLength'].map((name) =>
  /** @type {Function} */ (Object.getOwnPropertyDescriptor(typedArray, name)?.get))

/** @param {Uint8Array} bytes @returns {Buffer} @throws if they are detached */
function bufferOf (bytes) {
  if (getPrototypeOf(bytes) === prototype && !hasOwn(bytes, 'length')) return /** @type {Buffer} */ (bytes)
  return construct(Uint8Array, [bufferIn, offsetIn, lengthIn].map((get) => apply(get, bytes, [])), Buffer)
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
