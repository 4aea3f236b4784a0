'use strict'

// Identity of a span by its number: while it is open, after its end, and after thousands of later spans.

const test = require('ava')
const { identityAt, spanAt } = require('../../lib/spans/identities')
const { Span } = require('../../lib/spans/span')

const TRACE = 'c'.repeat(32)

/** @param {string} name @param {{ parent?: Span, traceId?: string }} [more] */
function begin (name, { parent, traceId } = {}) {
  return new Span({ name, kind: 'SERVER', traceId, parentSpanId: parent?.spanId, sampled: true, parent, start: 1, origin: 0 })
}

/** @param {Span} span */
function end (span) {
  span.finish(2)
  span.release()
}

test('ids belong to the open span, however many others come, and are unique', (t) => {
  const kept = Array.from({ length: 50 }, (_, i) => begin(`kept ${i}`, i % 2 === 0 ? {} : { traceId: TRACE }))
  const before = kept.map((span, i) => i % 3 === 0 ? [span.traceId, span.spanId] : undefined)
  const seen = new Set()
  for (let i = 0; i < 10_000; i++) {
    const span = begin('short')
    seen.add(span.traceId).add(span.spanId)
    end(span)
  }
  t.is(seen.size, 20_000)
  for (const [i, span] of kept.entries()) {
    t.is(identityAt(span.seq), span)
    t.is(spanAt(span.seq), span)
    t.regex(span.spanId, /^(?!0{16})[0-9a-f]{16}$/)
    if (i % 2 === 1) t.is(span.traceId, TRACE)
    if (before[i] !== undefined) t.deepEqual([span.traceId, span.spanId], before[i])
    t.false(seen.has(span.spanId))
  }
  const told = kept.map(({ name, traceId, spanId }) => ({ name, traceId, spanId }))
  for (const span of kept) end(span)
  for (const [i, span] of kept.entries()) t.like(identityAt(span.seq), told[i], 'its place was taken long ago')
})

test('an ended span is known by its number, and later work belongs to the surrounding one', (t) => {
  const outer = begin('outer', { traceId: TRACE })
  const middle = begin('middle', { parent: outer, traceId: TRACE })
  const inner = begin('inner', { parent: middle, traceId: TRACE })
  const { traceId, spanId } = middle
  end(middle)
  t.like(identityAt(middle.seq), { name: 'middle', traceId, spanId, sampled: true, outer: outer.seq })
  t.is(spanAt(middle.seq), outer)
  end(inner)
  end(outer)
  t.is(spanAt(inner.seq), undefined)
  t.is(identityAt(0), undefined)
})

test('the newest ended spans are known, older ones are forgotten and never confused', (t) => {
  const spans = Array.from({ length: 6000 }, (_, i) => {
    const span = begin(`name ${i}`)
    end(span)
    return span
  })
  let known = 0
  for (const [i, { seq }] of spans.entries()) {
    const found = identityAt(seq)
    if (found === undefined) continue
    known++
    t.is(found.name, `name ${i}`)
  }
  t.true(known >= 1500 && known <= 2048, `${known}`)
  t.is(identityAt(spans[5999].seq)?.name, 'name 5999')
})
