'use strict'

// Random ids, read from the kernel's generator in bulk: Math.random() belongs to the program, which may seed
// its sequence. They are read from the kernel's device if it exists: crypto.randomFillSync() creates a
// RANDOMBYTESREQUEST, which the program's async_hooks see (Node, src/crypto/crypto_util.h, CryptoJob), and
// loading node:crypto takes milliseconds.

const { openSync, readSync, closeSync } = require('node:fs')

const DEVICE = '/dev/urandom'
const POOL_BYTES = 4096

/** @type {Buffer | undefined} */
let pool
let offset = 0

/** @param {number} bytes @returns {string} hex digits, never all zero */
function random (bytes) {
  if (pool === undefined || offset + bytes > POOL_BYTES) {
    pool = fill(pool ?? Buffer.alloc(POOL_BYTES))
    offset = 0
  }
  const id = pool.toString('hex', offset, offset + bytes)
  offset += bytes
  return /^0*$/.test(id) ? random(bytes) : id
}

/** Fills a buffer with random bytes. @param {Buffer} buffer @returns {Buffer} the same buffer */
function fill (buffer) {
  return readDevice(buffer) ? buffer : require('node:crypto').randomFillSync(buffer)
}

/** @param {Buffer} buffer @returns {boolean} whether the whole buffer was filled */
function readDevice (buffer) {
  let fd
  try {
    fd = openSync(DEVICE, 'r')
    return readSync(fd, buffer, 0, buffer.length, null) === buffer.length
  } catch {
    return false // no such device, no permission, no free descriptor
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

const traceId = () => random(16)
const spanId = () => random(8)
const shortId = () => random(4)

module.exports = { fill, shortId, spanId, traceId }
