'use strict'

// traceparent headers against the rules of W3C Trace Context, level 1, section 3.2, written down anew.

const { format, parse } = require('../lib/spans/traceparent')
const { mustThrowCode } = require('./helpers/expectations')
const { anything, makers } = require('./helpers/values')
const { check, fc } = require('./helpers/property')

/** Node makes headers of texts and lists. */
const NEVER = Object.keys(makers).filter((name) => /proxy|revoked/.test(name))

const MAX_LENGTH = 512 // longstack's own limit, for versions to come

/** @param {string} text @param {number} length */
const isLowerHex = (text, length) =>
  text.length === length && [...text].every((char) => '0123456789abcdef'.includes(char))

/** @param {string} text */
const isZero = (text) => [...text].every((char) => char === '0')

/**
 * Reads a header field by field, without a regular expression.
 * @param {string} header
 */
function oracle (header) {
  if (header.length > MAX_LENGTH || header.includes(',')) return undefined // several headers in one
  const version = header.slice(0, 2)
  if (!isLowerHex(version, 2) || version === 'ff') return undefined
  if (header[2] !== '-' || header[35] !== '-' || header[52] !== '-') return undefined
  const [traceId, spanId, flags] = [header.slice(3, 35), header.slice(36, 52), header.slice(53, 55)]
  if (!isLowerHex(traceId, 32) || isZero(traceId)) return undefined
  if (!isLowerHex(spanId, 16) || isZero(spanId) || !isLowerHex(flags, 2)) return undefined
  if (version === '00' && header.length !== 55) return undefined
  if (header.length > 55 && header[55] !== '-') return undefined
  return { traceId, spanId, sampled: '13579bdf'.includes(flags[1]) }
}

/** @param {number} length */
const hex = (length) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'), minLength: length, maxLength: length })

function headers () {
  const version = fc.oneof({ arbitrary: fc.constant('00'), weight: 4 }, hex(2), fc.constant('ff'))
  const traceId = fc.oneof({ arbitrary: hex(32), weight: 6 }, fc.constant('0'.repeat(32)))
  const spanId = fc.oneof({ arbitrary: hex(16), weight: 6 }, fc.constant('0'.repeat(16)))
  const suffix = fc.string()
  const extra = fc.oneof({ arbitrary: fc.constant(''), weight: 6 }, suffix, suffix.map((text) => `-${text}`),
    fc.constant(`-${'x'.repeat(600)}`), fc.constant(',00-'), fc.constant('\n'))
  const near = fc.tuple(version, traceId, spanId, hex(2), extra)
    .map(([first, second, third, fourth, rest]) => `${first}-${second}-${third}-${fourth}${rest}`)
  const changed = fc.tuple(near, fc.nat(60), fc.string({ maxLength: 2 }))
    .map(([text, place, inserted]) => text.slice(0, place) + inserted + text.slice(place + 1))
  const upper = near.map((text) => text.toUpperCase())
  return fc.oneof({ arbitrary: near, weight: 4 }, { arbitrary: changed, weight: 3 }, upper, fc.string())
}

/** @param {string} header */
function expectAsOracle (header) {
  const expected = JSON.stringify(oracle(header))
  for (const value of [header, [header]]) {
    const actual = JSON.stringify(parse(value))
    if (actual !== expected) throw new Error(`${JSON.stringify(header)}: ${actual}, by the rules ${expected}`)
  }
  if (parse([header, header]) !== undefined) throw new Error('of two headers one was taken')
  const parsed = parse(header)
  if (parsed !== undefined && JSON.stringify(parse(format(parsed))) !== JSON.stringify(parsed)) {
    throw new Error(`${format(parsed)} is not read as it was meant`)
  }
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'traceparent',
  async run (settings) {
    const texts = headers().map((header) => ({ make: () => header, header }))
    const text = fc.property(fc.oneof({ arbitrary: texts, weight: 9 }, anything(NEVER)), (drawn) => {
      const value = drawn.make()
      if (typeof value === 'string') expectAsOracle(value)
      else if (mustThrowCode(() => parse(value), { allowsHostile: true }) !== undefined) {
        throw new Error('a value that is no text was taken')
      }
    })
    return check(text, settings, 1000)
  }
}
