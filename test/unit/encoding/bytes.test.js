'use strict'

const test = require('ava')
const bytes = require('../../../lib/encoding/bytes')

/** @param {(() => void)} write @returns {string} what it writes */
function written (write) {
  bytes.begin()
  write()
  return bytes.text()
}

test('texts follow one another, in buffers of any size', (t) => {
  const parts = ['a', '', 'x'.repeat(39), 'y'.repeat(40), 'z'.repeat(100_000), '\u00ff']
  t.is(written(() => parts.forEach(bytes.put)), parts.join(''))
  t.is(bytes.length(), parts.join('').length)
  t.is(bytes.buffer()[bytes.length() - 1], 0xff)
})

test('begin starts over', (t) => {
  written(() => bytes.put('before'))
  t.is(written(() => bytes.put('new')), 'new')
})

test('putInteger: all numbers of digits', (t) => {
  for (const number of [0, 9, 10, 99, 100, 123456789, 999999999, 1000000000, 2 ** 31 - 1]) {
    t.is(written(() => bytes.putInteger(number)), String(number))
  }
})

test('putPadded has zeros before the number', (t) => {
  t.is(written(() => bytes.putPadded(42, 6)), '000042')
  t.is(written(() => bytes.putPadded(0, 3)), '000')
})

test('putHex: two digits for a byte', (t) => {
  const source = Uint8Array.of(0xff, 0x00, 0x0a, 0xb1, 0xff)
  t.is(written(() => bytes.putHex(source, 1, 3)), '000ab1')
})

test('putBytes copies bytes', (t) => {
  t.is(written(() => { bytes.put('<'); bytes.putBytes(Buffer.from('abc')); bytes.put('>') }), '<abc>')
})

test('putNumber writes what JSON has', (t) => {
  for (const number of [0, 7, 2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 2 ** 53, -1, -0, 1.5, 1e21, NaN, Infinity]) {
    t.is(written(() => bytes.putNumber(number)), JSON.stringify(number))
  }
})

test('putMilliseconds rounds to microseconds and writes no zeros at the end', (t) => {
  const cases = [[0, '0'], [1, '1'], [1.5, '1.5'], [12.34, '12.34'], [0.001, '0.001'], [0.05, '0.05'], [2.005, '2.005'],
    [1.0004, '1'], [1.0006, '1.001'], [999.9999, '1000'], [1e12, '1000000000000'], [-0.5, '-0.5'], [NaN, 'null']]
  for (const [ms, text] of cases) t.is(written(() => bytes.putMilliseconds(ms)), text)
})
