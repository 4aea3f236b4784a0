'use strict'

// Random ids, taken from the system's generator in bulk: Math.random() is the program's, and its sequence may be seeded.

const BYTES = 4096

/** @type {Buffer | undefined} */
let pool
let at = 0

/** @param {number} bytes @returns {string} hex digits, never all zero */
function random (bytes) {
  if (pool === undefined || at + bytes > BYTES) {
    pool = require('node:crypto').randomFillSync(pool ?? Buffer.alloc(BYTES))
    at = 0
  }
  const id = pool.toString('hex', at, at + bytes)
  at += bytes
  return /^0*$/.test(id) ? random(bytes) : id
}

const traceId = () => random(16)
const spanId = () => random(8)

module.exports = { traceId, spanId }
