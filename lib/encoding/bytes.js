'use strict'

// A text of bytes (see json.js) that is put together in a buffer: no string is made of what is written once.
// Hot path: each line of each span passes here; bench/run.js, longstack-spans.

const { numeral } = require('./json')

const INITIAL_SIZE = 1 << 14 // bytes
const LONG = 40 // characters from which on Buffer.write is faster than a loop
const ZERO = 48
const POINT = 46
const DIGITS = Buffer.from('0123456789abcdef')

let buffer = Buffer.allocUnsafeSlow(INITIAL_SIZE)
let position = 0

/** @param {number} more bytes to come */
function reserve (more) {
  if (position + more <= buffer.length) return
  const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, position + more))
  buffer.copy(larger, 0, 0, position)
  buffer = larger
}

/** @param {string} text of bytes */
function put (text) {
  const { length } = text
  reserve(length)
  if (length >= LONG) {
    position += buffer.write(text, position, 'latin1')
    return
  }
  for (let i = 0; i < length; i++) buffer[position + i] = text.charCodeAt(i)
  position += length
}

/** @param {number} number an integer from 0 to below 2 ** 31 */
function putInteger (number) {
  let digits = 1
  for (let limit = 10; number >= limit; limit *= 10) digits++
  reserve(digits)
  putDigits(number, digits)
}

/** @param {number} number as above @param {number} digits with zeros before it */
function putDigits (number, digits) {
  let remaining = number | 0
  for (let i = position + digits - 1; i >= position; i--) {
    const tenth = (remaining / 10) | 0
    buffer[i] = ZERO + remaining - tenth * 10
    remaining = tenth
  }
  position += digits
}

/** Puts a prepared text. @param {Uint8Array} bytes */
function putBytes (bytes) {
  reserve(bytes.length)
  buffer.set(bytes, position)
  position += bytes.length
}

/**
 * Puts two hexadecimal digits for each byte.
 * @param {Uint8Array} bytes
 * @param {number} start
 * @param {number} count of bytes
 */
function putHex (bytes, start, count) {
  reserve(2 * count)
  for (let i = start; i < start + count; i++) {
    const byte = bytes[i]
    buffer[position++] = DIGITS[byte >> 4]
    buffer[position++] = DIGITS[byte & 15]
  }
}

/** Puts any number as JSON has it. @param {number} number */
function putNumber (number) {
  if (number >= 0 && number < 0x7fffffff && Math.floor(number) === number) putInteger(number)
  else put(numeral(number))
}

/** @param {number} ms rounded to microseconds */
function putMilliseconds (ms) {
  const micros = Math.round(ms * 1000)
  if (!(micros >= 0 && micros < 2e12)) return put(numeral(micros / 1000))
  const whole = Math.floor(micros / 1000)
  putInteger(whole)
  const fraction = micros - whole * 1000
  if (fraction === 0) return
  reserve(4)
  buffer[position++] = POINT
  if (fraction % 100 === 0) putDigits(fraction / 100, 1)
  else if (fraction % 10 === 0) putDigits(fraction / 10, 2)
  else putDigits(fraction, 3)
}

module.exports = {
  put,
  putBytes,
  putHex,
  putInteger,
  putNumber,
  putMilliseconds,

  /** @param {number} number an integer from 0 to below 2 ** 31 @param {number} digits with zeros before it */
  putPadded (number, digits) {
    reserve(digits)
    putDigits(number, digits)
  },

  /** Starts another text. */
  begin () {
    position = 0
  },

  length: () => position,

  /** Returns the buffer, whose first `length()` bytes are the text, until the next `begin`. */
  buffer: () => buffer,

  text: () => buffer.toString('latin1', 0, position)
}
