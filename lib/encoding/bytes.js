'use strict'

// A text of bytes (see json.js) that is put together in a buffer: no string is made of what is written once. A hot room:
// each line of each span passes here; bench/run.js, longstack-spans.

const { numeral } = require('./json')

const FIRST = 1 << 14 // bytes
const LONG = 40 // characters from which on V8's own copy is faster
const ZERO = 48
const POINT = 46
const DIGITS = Buffer.from('0123456789abcdef')

let buffer = Buffer.allocUnsafeSlow(FIRST)
let at = 0

/** @param {number} more bytes to come */
function reserve (more) {
  if (at + more <= buffer.length) return
  const larger = Buffer.allocUnsafeSlow(Math.max(buffer.length * 2, at + more))
  buffer.copy(larger, 0, 0, at)
  buffer = larger
}

/** @param {string} text of bytes */
function put (text) {
  const { length } = text
  reserve(length)
  if (length >= LONG) {
    at += buffer.write(text, at, 'latin1')
    return
  }
  for (let i = 0; i < length; i++) buffer[at + i] = text.charCodeAt(i)
  at += length
}

/** @param {number} number a whole one, from 0 to below 2 ** 31 */
function putWhole (number) {
  let digits = 1
  for (let limit = 10; number >= limit; limit *= 10) digits++
  reserve(digits)
  putDigits(number, digits)
}

/** @param {number} number as above @param {number} digits with zeros before it */
function putDigits (number, digits) {
  let rest = number | 0
  for (let i = at + digits - 1; i >= at; i--) {
    const tenth = (rest / 10) | 0
    buffer[i] = ZERO + rest - tenth * 10
    rest = tenth
  }
  at += digits
}

/** A text that was prepared. @param {Uint8Array} bytes */
function putBytes (bytes) {
  reserve(bytes.length)
  buffer.set(bytes, at)
  at += bytes.length
}

/**
 * Two hexadecimal digits a byte.
 * @param {Uint8Array} bytes
 * @param {number} from
 * @param {number} count of bytes
 */
function putHex (bytes, from, count) {
  reserve(2 * count)
  for (let i = from; i < from + count; i++) {
    const byte = bytes[i]
    buffer[at++] = DIGITS[byte >> 4]
    buffer[at++] = DIGITS[byte & 15]
  }
}

/** @param {number} number any, as JSON has it */
function putNumber (number) {
  if (number >= 0 && number < 0x7fffffff && Math.floor(number) === number) putWhole(number)
  else put(numeral(number))
}

/** @param {number} ms rounded to microseconds */
function putMilliseconds (ms) {
  const micros = Math.round(ms * 1000)
  if (!(micros >= 0 && micros < 2e12)) return put(numeral(micros / 1000))
  const whole = Math.floor(micros / 1000)
  putWhole(whole)
  const rest = micros - whole * 1000
  if (rest === 0) return
  reserve(4)
  buffer[at++] = POINT
  if (rest % 100 === 0) putDigits(rest / 100, 1)
  else if (rest % 10 === 0) putDigits(rest / 10, 2)
  else putDigits(rest, 3)
}

module.exports = {
  put,
  putBytes,
  putHex,
  putWhole,
  putNumber,
  putMilliseconds,

  /** @param {number} number a whole one, from 0 to below 2 ** 31 @param {number} digits with zeros before it */
  putPadded (number, digits) {
    reserve(digits)
    putDigits(number, digits)
  },

  begin () {
    at = 0
  },

  length: () => at,

  /** What has been written, good until the next `begin`. */
  buffer: () => buffer,

  text: () => buffer.toString('latin1', 0, at)
}
