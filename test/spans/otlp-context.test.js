'use strict'

// Sources of a trace: the traceparent header of W3C Trace Context, and OpenTelemetry's active span.

const test = require('ava')
const path = require('node:path')
const { node, root } = require('../helpers/run')
const { parse, format } = require('../../lib/spans/traceparent')

const TRACE = '0af7651916cd43dd8448eb211c80319c'
const SPAN = 'b7ad6b7169203331'
const good = `00-${TRACE}-${SPAN}-01`

const accepted = {
  'the example of the specification': [good, true],
  'not sampled': [`00-${TRACE}-${SPAN}-00`, false],
  'other flags beside sampled': [`00-${TRACE}-${SPAN}-ff`, true],
  'other flags alone': [`00-${TRACE}-${SPAN}-fe`, false],
  'a list of one': [[good], true],
  'a version to come': [`cc-${TRACE}-${SPAN}-01`, true],
  'a version to come with more fields': [`cc-${TRACE}-${SPAN}-01-what-the-future-will-be-like`, true]
}
for (const [what, [header, sampled]] of Object.entries(accepted)) {
  test(`traceparent accepted: ${what}`, (t) => {
    t.deepEqual(parse(header), { traceId: TRACE, spanId: SPAN, sampled })
  })
}

const refused = {
  nothing: undefined,
  empty: '',
  'no string': 7,
  'version ff': `ff-${TRACE}-${SPAN}-01`,
  'version 00 with more fields': `${good}-x`,
  'version 00 with a dash at its end': `${good}-`,
  'a version to come with something else behind': `cc-${TRACE}-${SPAN}-01.what`,
  'a version to come, twice': `cc-${TRACE}-${SPAN}-01-x, cc-${TRACE}-${SPAN}-01-x`,
  'a version to come without end': `cc-${TRACE}-${SPAN}-01-${'x'.repeat(100_000)}`,
  'a version of one digit': `0-${TRACE}-${SPAN}-01`,
  'a version of three digits': `000-${TRACE}-${SPAN}-01`,
  'a version that is no number': `.0-${TRACE}-${SPAN}-01`,
  'a trace of zeros': `00-${'0'.repeat(32)}-${SPAN}-01`,
  'a span of zeros': `00-${TRACE}-${'0'.repeat(16)}-01`,
  'upper case': good.toUpperCase(),
  'a trace in upper case': `00-${TRACE.toUpperCase()}-${SPAN}-01`,
  'a long trace': `00-${TRACE}0-${SPAN}-01`,
  'a short trace': `00-${TRACE.slice(1)}-${SPAN}-01`,
  'a long span': `00-${TRACE}-${SPAN}0-01`,
  'a short span': `00-${TRACE}-${SPAN.slice(1)}-01`,
  'no flags': `00-${TRACE}-${SPAN}`,
  'flags of one digit': `00-${TRACE}-${SPAN}-1`,
  'flags of three digits': `00-${TRACE}-${SPAN}-001`,
  'flags that are no number': `00-${TRACE}-${SPAN}-.0`,
  underscores: good.replaceAll('-', '_'),
  'a line feed at the end': `${good}\n`,
  'twice, as Node joins them': `${good}, ${good}`,
  'a list of two': [good, good],
  'a list of none': [],
  'a list in a list': [[good]]
}
for (const [what, header] of Object.entries(refused)) {
  test(`traceparent ignored: ${what}`, (t) => {
    t.is(parse(header), undefined)
  })
}

test('a written traceparent can be read again', (t) => {
  t.is(format({ traceId: TRACE, spanId: SPAN }), good)
  for (const sampled of [true, false]) {
    const span = { traceId: TRACE, spanId: SPAN, sampled }
    t.deepEqual(parse(format(span)), span)
  }
})

test("OpenTelemetry's active span becomes the parent, if it is valid", async (t) => {
  const { stdout, stderr, code } = await node([path.join(root, 'test', 'fixtures', 'otlp', 'active.js')])
  t.is(code, 0, stderr)
  const [{ inner }, { before, none, now, later, outside, odd, span, records }] = stdout.trim().split('\n').map((line) => JSON.parse(line))
  const seen = { traceId: span.traceId, spanId: span.spanId, sampled: true }
  t.deepEqual([before, none, outside, ...odd], [null, null, null, null, null])
  t.deepEqual(now, seen)
  t.deepEqual(later, seen)

  const byName = Object.fromEntries(records.map((record) => [record.name, record]))
  t.like(byName.ours, { traceId: span.traceId, parentSpanId: span.spanId })
  t.like(byName['ours within'], { traceId: span.traceId, parentSpanId: byName.ours.spanId })
  t.like(byName['ours within theirs'], { traceId: span.traceId, parentSpanId: inner.spanId })
})

test('the OpenTelemetry API is not loaded, and its replacement may be anything', async (t) => {
  const { stdout, code, stderr } = await node(['-e', `
    const { activeSpanContext } = require(${JSON.stringify(path.join(root, 'lib', 'spans', 'traceparent.js'))})
    const key = Symbol.for('opentelemetry.js.api.1')
    const seen = [activeSpanContext()]
    const throws = () => { throw new Error('odd') }
    for (const api of [null, 1, {}, { context: {} }, { context: { active: throws } }, { context: { active: () => ({ getValue: () => ({ spanContext: throws }) }) } },
      { context: { active: () => ({ getValue: () => ({ spanContext: () => null }) }) } }]) {
      globalThis[key] = api
      seen.push(activeSpanContext())
    }
    console.log(seen.every((one) => one === undefined), Object.keys(require.cache).some((file) => file.includes('opentelemetry')))
  `])
  t.is(code, 0, stderr)
  t.is(stdout, 'true false\n')
})
