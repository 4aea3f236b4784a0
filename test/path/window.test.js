'use strict'

// Spans read from a log that arrives in blocks.

const test = require('ava')
const { ASKED, TIMER, WORDS } = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')
const { Log } = require('./recordings')

const A = 7 // requests
const B = 8
const C = 9
const D = 10
const ENTRY = WORDS * 4 // bytes

/** Pushes a log in blocks. @param {SpanReader} reader @param {Log} log @param {number} size of a block */
function * play (reader, log, size) {
  const bytes = log.bytes()
  const step = size * WORDS * 4
  for (let from = 0; from < bytes.length; from += step) {
    const entries = bytes.slice(from, from + step)
    const isLast = from + step >= bytes.length
    reader.push({ first: (log.first + from / WORDS / 4) | 0, entries, isLast })
    yield reader.ended()
  }
}

test('an ended span is returned once; one open at the end is marked as open', (t) => {
  for (let size = 1; size < 12; size++) {
    const log = new Log(2 ** 31 - 4)
    log.poll(100, 5)
    const run = log.serve(100, A)
    const timer = log.callback(110, { request: A, registered: run })
    log.end(112, A, timer)
    log.poll(115, 2)
    log.serve(120, B)
    log.poll(125, 0)
    const told = [...play(new SpanReader(), log, size)].flat()
    t.deepEqual(told.map(({ request: { number, isOpen } }) => [number, isOpen]), [[A, false], [B, true]])
    t.like(told[0].figures, { duration: 12_000, run: 12_000 })
  }
})

/**
 * Pushes entries of a log.
 * @param {SpanReader} reader
 * @param {Log} log
 * @param {number} from
 * @param {number} until
 */
function push (reader, log, from, until) {
  const entries = log.bytes().slice(from * ENTRY, until * ENTRY)
  reader.push({ first: (log.first + from) | 0, entries })
  return reader.ended()
}

test('a span is returned when its callback is over and its queries have responses', (t) => {
  const log = new Log()
  log.poll(100, 5)
  const run = log.serve(100, A)
  log.end(101, A, run)
  const other = log.serve(102, B)
  log.sent(90, other, { request: B, b: ASKED })
  log.end(103, B, other)
  log.poll(110, 6)
  const counts = [log.entries.length]
  log.settle(log.came(120, 90, { registered: other }), other, { request: B })
  log.poll(140, 6)
  counts.push(log.entries.length)
  const reader = new SpanReader()
  t.deepEqual(push(reader, log, 0, counts[0]).map(({ request }) => request.number), [A])
  const [span, ...more] = push(reader, log, counts[0], counts[1])
  t.is(more.length, 0)
  t.like(span.queries, [{ start: 102, end: 103, unanswered: true, promise: 2 * 13 + 1 }])
})

test('if entries are lost, the time is unknown, and no dependent figure is certain', (t) => {
  const log = new Log()
  log.poll(100, 5)
  const run = log.serve(100, A)
  log.poll(110, 8)
  const lost = log.entries.length
  log.callback(112, { request: B }) // until 150
  log.poll(151, 1)
  const after = log.entries.length
  const timer = log.callback(160, { flags: TIMER, request: A, registered: run })
  log.due(timer, 120)
  log.end(161, A, timer)
  log.serve(165, C)
  log.end(166, C, 0)
  log.poll(170, 0)
  const reader = new SpanReader()
  push(reader, log, 0, lost)
  const [a, c] = push(reader, log, after, log.entries.length)
  t.like(a.figures, { duration: 61_000, run: 3000, waited: 58_000, delayed: 0, delayedMax: 58_000 })
  t.is(a.figures.unknown, 50_000)
  t.like(a.path.waits[0], { ms: 58, delayed: 0, delayedMax: 40, site: 0, isProven: true })
  t.like(c.figures, { unknown: 0, delayedMax: 0 })
})

test('a span longer than the retained log keeps its runs and delays', (t) => {
  const log = new Log()
  const reader = new SpanReader(1 << 12)
  log.poll(100, 5)
  let run = log.serve(100, A)
  for (let i = 1; i <= 10; i++) {
    for (let j = 0; j < 1000; j++) log.poll(1000 * i + j / 2, 0.1)
    log.callback(1000 * i + 600, { request: B, chain: 41 })
    const timer = log.callback(1000 * i + 700, { flags: TIMER, request: A, registered: run, chain: 30 + i })
    log.due(timer, 1000 * i + 650)
    log.poll(1000 * i + 710, 0)
    run = timer
  }
  log.end(11_000, A, run)
  log.poll(11_001, 0)
  const told = [...play(reader, log, 100)].flat()
  t.is(told.length, 1)
  const [{ delays, figures, path }] = told
  t.true(reader.recording.size <= 1 << 12)
  t.is(figures.unknown, 0)
  t.is(figures.delayed, 500_000)
  t.like(delays, [{ request: B, ms: 500, max: 500 }])
  t.deepEqual(path.waits.slice(0, 10).map(({ site }) => site), [40, 40, 39, 38, 37, 36, 35, 34, 33, 32])
})

test('a million entries during an endless span take bounded memory', (t) => {
  const ENTRIES = 1_000_000
  const reader = new SpanReader()
  const block = new Log()
  block.poll(100, 5)
  const endless = block.serve(100, A)
  push(reader, block, 0, block.entries.length)
  let first = block.entries.length + 1
  let told = 0
  for (let time = 200; first < ENTRIES; time += 1000) {
    const log = new Log(first)
    for (let i = 0; i < 500; i++) {
      const at = time + i
      log.poll(at, 0.5)
      log.awaited(at + 0.2, { request: A, registered: endless, settled: endless }) // it runs all the time
      const request = 1000 + first + i
      const run = log.serve(at + 0.3, request)
      log.sent(90, run, { request })
      log.end(at + 0.5, request, log.came(at + 0.4, 90, { request, registered: run }))
    }
    told += push(reader, log, 0, log.entries.length).length
    first += log.entries.length
  }
  const { recording, spans, traffic } = reader
  t.true(told > ENTRIES / 12)
  t.true(recording.size <= 200_000 && spans.byNumber.size + spans.old.size < 100_000, `${spans.byNumber.size}`)
  t.true(traffic.connections.size === 1)
  reader.end()
  const [{ figures, request }] = reader.ended().filter((span) => span.request.number === A)
  t.true(request.isOpen && figures.unknown > 0, JSON.stringify(figures))
  t.is(figures.run + figures.waited + figures.delayed, figures.duration)
  const runs = (ENTRIES / 9) * 100 // µs, nearly
  t.true(Math.abs(figures.run - runs) < runs / 10, `${figures.run} of ${runs}`)
})

test('work after the response is listed: queries, and calls that were not awaited', (t) => {
  for (const size of [1, 5, 100]) {
    const log = new Log()
    log.poll(100, 5)
    const run = log.serve(100, A)
    log.sent(90, run, { request: A, b: ASKED })
    log.client(B, A, run)
    log.poll(110, 5)
    log.came(110, 90)
    const later = log.callback(112, { request: A, registered: run })
    log.client(C, A, later) // whose response may have come by then
    log.sent(91, later, { request: A, b: ASKED })
    log.poll(114, 1)
    const last = log.callback(115, { request: A, registered: later })
    log.client(D, A, last)
    log.end(115, A, last)
    for (const call of [B, C, D]) log.end(120, call, log.callback(120, { request: A, registered: run }))
    log.poll(130, 5)
    log.came(130, 91)
    /** @type {any[]} */
    const after = []
    const reader = new SpanReader()
    reader.onAfter = (each) => after.push(each)
    t.is([...play(reader, log, size)].flat().length, 4)
    const [{ request, queries, calls }] = after
    t.is(after.length, 1)
    t.is(request.number, A)
    t.deepEqual(queries.map(({ start, end }) => [start, end]), [[115, 130]])
    t.deepEqual(calls.map(({ number }) => number), [D])
  }
})
