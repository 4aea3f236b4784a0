'use strict'

// Spans that are read from a log that comes in blocks.

const test = require('ava')
const { WORDS } = require('../../lib/core/run-log-words')
const { SpanReader } = require('../../report/path/window')
const { Log } = require('./recordings')

const A = 7 // requests
const B = 8

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

test('a span is told once, when it has ended; one that is open at the end as open', (t) => {
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
