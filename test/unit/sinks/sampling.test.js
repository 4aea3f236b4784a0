'use strict'

const test = require('ava')
const { inSample, weightFor } = require('../../../lib/sinks/sinks')

/** A trace id whose random part starts with these 13 digits. @param {string} digits */
const traceId = (digits) => `${'f'.repeat(18)}${digits}f`

test('inSample compares the 52 bits after the 18th digit with the ratio', (t) => {
  t.true(inSample(traceId('8000000000000'), 0.5))
  t.false(inSample(traceId('7ffffffffffff'), 0.5))
  t.true(inSample(traceId('c000000000000'), 0.25))
  t.false(inSample(traceId('bffffffffffff'), 0.25))
})

test('inSample takes everything at ratio 1, nothing at ratio 0', (t) => {
  t.true(inSample(traceId('0000000000000'), 1))
  t.false(inSample(traceId('fffffffffffff'), 0))
})

test('the sample of a small ratio is part of that of a larger one', (t) => {
  for (let i = 0; i < 256; i++) {
    const id = traceId(`${i.toString(16).padStart(2, '0')}${'0'.repeat(11)}`)
    if (inSample(id, 0.1)) t.true(inSample(id, 0.3))
  }
})

const span = { ms: 20, failed: false, traceId: traceId('7000000000000') } // outside of a sample of 0.5

test('weightFor uses the duration and the failure that an output selects', (t) => {
  t.is(weightFor({}, span), 1)
  t.is(weightFor({ slower: 20 }, span), 1)
  t.is(weightFor({ slower: 20.1 }, span), 0)
  t.is(weightFor({ errors: true }, span), 0)
  t.is(weightFor({ errors: true }, { ...span, failed: true }), 1)
})

test('weightFor handles a sample, and spans kept in addition', (t) => {
  t.is(weightFor({ sample: 0.5 }, span), 0)
  t.is(weightFor({ sample: 0.6 }, span), 0.6)
  t.is(weightFor({ sample: 0.5 }, { ...span, failed: true }), 0)
  t.is(weightFor({ sample: 0.5, keep: 20 }, span), 1)
  t.is(weightFor({ sample: 0.5, keep: 21 }, span), 0)
  t.is(weightFor({ sample: 0.5, keep: 21 }, { ...span, failed: true }), 1)
  t.is(weightFor({ sample: 0.6, keep: 5, slower: 30 }, span), 0)
})
