'use strict'

const fc = require('fast-check')
const test = require('ava')
const json = require('../../../lib/encoding/json')

test('bytesOf has one character per byte of UTF-8, textOf is its inverse', (t) => {
  t.is(json.bytesOf('"é"'), '"\u00c3\u00a9"')
  t.is(json.bytesOf('"abc"'), '"abc"')
  fc.assert(fc.property(fc.string({ unit: 'grapheme' }), (text) => {
    const bytes = json.bytesOf(text)
    t.is(bytes.length, Buffer.byteLength(json.onOneLine(text)))
    t.is(json.textOf(bytes), json.onOneLine(text))
  }), { numRuns: 200, seed: 1 })
})

test('onOneLine escapes the two line ends that JSON allows', (t) => {
  t.is(json.onOneLine('"a\u2028b\u2029c"'), '"a\\u2028b\\u2029c"')
  t.is(json.textOf(json.stringify('\u2028')), '"\\u2028"')
})

for (const name of ['quote', 'quoteLong']) {
  test(`${name} writes what JSON.stringify writes, again and again`, (t) => {
    for (const text of ['', 'plain', '"\\\n\u0000', 'é中\u{1f600}', '\ud800', 'x'.repeat(1000)]) {
      for (let i = 0; i < 3; i++) t.is(json.textOf(json[name](text)), JSON.stringify(text))
    }
  })
}

test('numeral: what is not finite is null', (t) => {
  t.deepEqual([1.5, -0, 1e21, NaN, Infinity, -Infinity].map(json.numeral), ['1.5', '0', '1e+21', 'null', 'null', 'null'])
})

test('member writes any value as JSON.stringify does', (t) => {
  fc.assert(fc.property(fc.string(), fc.jsonValue(), (key, value) => {
    t.is(json.textOf(json.member(key, value)), json.onOneLine(JSON.stringify({ ['' + key]: value }).slice(1, -1)))
  }), { numRuns: 300, seed: 1, examples: [['__proto__', 1], ['a', null], ['', true]] })
})

test('member: what JSON leaves out is undefined', (t) => {
  for (const value of [undefined, Symbol('a'), () => {}]) t.is(json.member('a', value), undefined)
})

test('member calls toJSON with the key', (t) => {
  t.is(json.member('when', { toJSON: (key) => `of ${key}` }), '"when":"of when"')
  t.is(json.member('gone', { toJSON: () => undefined }), undefined)
})

test('member throws what JSON.stringify throws', (t) => {
  const circle = {}
  circle.circle = circle
  t.throws(() => json.member('a', 1n), { instanceOf: TypeError })
  t.throws(() => json.member('a', circle), { instanceOf: TypeError })
})

test('isRewritten notices a toJSON of all objects', (t) => {
  t.false(json.isRewritten())
  for (const prototype of [Object.prototype, Array.prototype]) {
    Object.defineProperty(prototype, 'toJSON', { value: () => 'x', configurable: true })
    try {
      t.true(json.isRewritten())
    } finally {
      delete prototype.toJSON
    }
  }
})

test('sentenceOf is one line, of any thrown value', (t) => {
  t.is(json.sentenceOf(new Error('first\nsecond')), 'not written: first')
  t.is(json.sentenceOf('text'), 'not written: text')
  t.is(json.sentenceOf(undefined), 'not written: undefined')
  t.is(json.sentenceOf({ get message () { throw new Error('x') } }), 'not written: it throws when it is read')
  t.is(json.sentenceOf(new Error('x'.repeat(1000))).length, 'not written: '.length + 200)
})
