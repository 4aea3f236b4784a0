'use strict'

const test = require('ava')
const { parseSpan, reasons, spansOfOtlp } = require('../../../../report/read/span-line')
const { amount } = require('../../../../report/read/values')

const record = {
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: '00f067aa0ba902b7',
  name: 'GET /',
  kind: 'SERVER',
  startTimeUnixNano: '1763685600000000000',
  endTimeUnixNano: '1763685600012345678',
  status: { code: 'UNSET' },
  attributes: {}
}
const parsed = (fields) => parseSpan({ ...record, ...fields }, 100)

test('a span has its times in ms since 1970', (t) => {
  const flags = { open: false, blocked: false, failed: false }
  const times = { ms: 12.345678, startMs: 1763685600000 }
  t.like(parsed({}), { name: 'GET /', kind: 'SERVER', ...times, ...flags, weight: 1, parentSpanId: undefined, size: 100 })
})

test('durations are exact to the nanosecond, also across a second', (t) => {
  t.is(parsed({ startTimeUnixNano: '1763685600999999999', endTimeUnixNano: '1763685601000000000' }).ms, 1e-6)
  t.is(parsed({ endTimeUnixNano: record.startTimeUnixNano }).ms, 0)
})

test('status and attributes are read', (t) => {
  t.true(parsed({ status: { code: 'ERROR' } }).failed)
  t.true(parsed({ attributes: { 'longstack.end': 'open' } }).open)
  t.true(parsed({ attributes: { 'longstack.blocked_ms': 3 } }).blocked)
  t.is(parsed({ attributes: { 'longstack.sample_ratio': 0.25 } }).weight, 4)
  t.is(parsed({ parentSpanId: 'ABCDEF0123456789' }).parentSpanId, 'ABCDEF0123456789')
  t.is(parsed({ parentSpanId: 'xyz' }).parentSpanId, undefined)
  t.deepEqual(parsed({ attributes: ['a'] }).attributes, {})
})

test('a long name is cut', (t) => {
  t.is(parsed({ name: 'x'.repeat(300) }).name, 'x'.repeat(300))
  t.is(parsed({ name: 'x'.repeat(301) }).name, `${'x'.repeat(300)}…`)
})

/** @type {Array<[reason: string, fields: object]>} */
const wrong = [
  ['object', { traceId: undefined, spanId: undefined }],
  ['ids', { traceId: record.traceId.slice(1) }],
  ['ids', { spanId: undefined }],
  ['ids', { spanId: 'g'.repeat(16) }],
  ['name', { name: '' }],
  ['name', { name: 3 }],
  ['kind', { kind: 'server' }],
  ['kind', { kind: 2 }],
  ['time', { startTimeUnixNano: 1763685600000000000 }],
  ['time', { endTimeUnixNano: '1.5' }],
  ['time', { endTimeUnixNano: undefined }],
  ['time', { endTimeUnixNano: '9'.repeat(21) }],
  ['negative', { endTimeUnixNano: '1763685599999999999' }],
  ['century', { startTimeUnixNano: '1', endTimeUnixNano: '2' }],
  ['century', { endTimeUnixNano: '7258118401000000000' }],
  ['ratio', { attributes: { 'longstack.sample_ratio': 0 } }],
  ['ratio', { attributes: { 'longstack.sample_ratio': 1.1 } }],
  ['ratio', { attributes: { 'longstack.sample_ratio': '0.5' } }]
]
for (const [reason, fields] of wrong) {
  test(`no span (${reason}): ${JSON.stringify(fields)}`, (t) => {
    t.is(parsed(fields), reason)
    t.true(reason in reasons)
  })
}

test('no span: values that are not objects', (t) => {
  for (const value of [null, 1, 'a', [], [record]]) t.is(parseSpan(value, 1), 'object')
})

test('amount accepts numbers from 0 on', (t) => {
  t.deepEqual([0, 1.5].map(amount), [0, 1.5])
  for (const value of [-1, NaN, Infinity, 1e15, '1', null]) t.is(amount(value), undefined)
})

test('spansOfOtlp: a span of the file exporter is a record', (t) => {
  const attributes = [
    { key: 'count', value: { intValue: '3' } },
    { key: 'list', value: { arrayValue: { values: [{ stringValue: 'a' }, { boolValue: false }] } } },
    { key: 'longstack.wait_ms.TCP', value: { doubleValue: 1.5 } },
    { key: 'longstack.wait_ms.FS', value: { doubleValue: 2 } },
    { key: 'longstack.runs', value: { stringValue: '[[0,1,"Timeout"]]' } },
    { key: 'longstack.waits', value: { stringValue: 'no JSON' } }
  ]
  const span = { ...record, kind: 2, status: { code: 2 }, attributes }
  const resource = { attributes: [{ key: 'service.name', value: { stringValue: 'shop' } }] }
  const [found, ...others] = spansOfOtlp({ resourceSpans: [{ resource, scopeSpans: [{ spans: [span] }] }] })
  t.deepEqual(others, [])
  t.deepEqual(found, {
    ...record,
    status: { code: 'ERROR' },
    resource: { 'service.name': 'shop' },
    attributes: {
      count: 3,
      list: ['a', false],
      'longstack.wait_ms': { TCP: 1.5, FS: 2 },
      'longstack.runs': [[0, 1, 'Timeout']],
      'longstack.waits': undefined
    }
  })
  t.is(typeof parseSpan(found, 1), 'object')
})

test('spansOfOtlp reads names and numbers of enums alike', (t) => {
  const line = (kind, code) => ({
    resourceSpans: [{ scopeSpans: [{ spans: [{ ...record, kind, status: { code } }] }] }]
  })
  t.like(spansOfOtlp(line('SPAN_KIND_CLIENT', 'STATUS_CODE_OK'))[0], { kind: 'CLIENT', status: { code: 'OK' } })
  t.like(spansOfOtlp(line(3, 1))[0], { kind: 'CLIENT', status: { code: 'OK' } })
  t.like(spansOfOtlp(line(undefined, undefined))[0], { kind: 'INTERNAL', status: { code: 'UNSET' } })
})

test('spansOfOtlp returns nothing for missing or invalid lists', (t) => {
  const nested = { resourceSpans: [null, { scopeSpans: {} }, { scopeSpans: [{}] }] }
  for (const line of [{}, { resourceSpans: 1 }, nested]) t.deepEqual(spansOfOtlp(line), [])
})
