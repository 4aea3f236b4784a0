'use strict'

// How a ring, or a copy of it, becomes a recording.

const test = require('ava')
const layout = require('../../lib/core/run-log-words')
const { NONE, readEntries } = require('../../report/path/entries')
const { requestsOf } = require('../../report/path/requests')
const { Log } = require('./recordings')

const { BYTES, COUNT, ENTRIES, HEAD, HEADER, REGISTERED, RUN, TIME, WORDS } = layout

/**
 * Makes a ring to which runs have been written, each registered in the one before.
 * @param {number} count of all
 * @param {number} [first] number of the first one
 */
function ringOf (count, first = 1) {
  const ring = new SharedArrayBuffer(BYTES)
  const words = new Int32Array(ring)
  const doubles = new Float64Array(ring)
  for (let i = Math.max(0, count - ENTRIES); i < count; i++) {
    const number = (first + i) | 0
    const place = HEADER + ((number - 1) & (ENTRIES - 1)) * WORDS
    words[place + HEAD] = RUN
    words[place + REGISTERED] = number - 1
    doubles[(place >> 1) + TIME] = 1 + i
    words[COUNT] = number
  }
  return ring
}

test('an empty ring', (t) => {
  const recording = readEntries(new SharedArrayBuffer(BYTES))
  t.like(recording, { count: 0, lost: 0 })
  t.deepEqual(requestsOf(recording), [])
})

test('a ring that is not full', (t) => {
  const { count, first, registered, time } = readEntries(ringOf(1000))
  t.deepEqual([count, first, registered[0], registered[999], time[999]], [1000, 1, NONE, 998, 1000])
})

test('a ring that has overwritten its beginning', (t) => {
  const { count, first, lost, registered, time } = readEntries(ringOf(ENTRIES + 1000))
  // The writer may be at the oldest one.
  t.deepEqual([count, first, lost, registered[0], registered[5]], [ENTRIES - 1, 1002, 0, NONE, 4])
  t.is(time[0], 1002)
  t.is(time[count - 1], ENTRIES + 1000)
})

test('a part of a ring, and what of it is lost', (t) => {
  const ring = ringOf(ENTRIES + 1000)
  t.like(readEntries(ring, { first: 2000, last: 2999 }), { count: 1000, first: 2000, lost: 0 })
  t.like(readEntries(ring, { first: 500, last: 2000 }), { first: 1002, count: 999, lost: 502 })
  t.like(readEntries(ring, { first: 3000, last: 2 ** 30 }), { first: 3000, count: ENTRIES + 1000 - 2999 })
  t.like(readEntries(ring, { first: 5, last: 10 }), { count: 0 })
})

test('numbers that wrap around', (t) => {
  const start = 2 ** 31 - 500
  const ring = ringOf(ENTRIES + 1000, start)
  const { count, first, registered, time } = readEntries(ring, { first: start + 1500 | 0 })
  t.is(first, start + 1500 | 0)
  t.true(first < 0)
  t.deepEqual([count, registered[1], time[0]], [ENTRIES - 500, 0, 1501])
})

test('a copy that was cut within an entry', (t) => {
  const log = new Log(41)
  const run = log.serve(100, 7)
  log.end(110, 7, run)
  const bytes = log.bytes()
  t.like(readEntries(bytes.subarray(0, bytes.length - 5), { first: 41 }), { count: 3, first: 41, lost: 0 })
  t.like(readEntries(Buffer.from(bytes), { first: 41, last: 42 }), { count: 2 })
  const [request] = requestsOf(readEntries(bytes.subarray(0, 3 * WORDS * 4), { first: 41 }))
  t.like(request, { number: 7, isOpen: true, isCut: false, firstRun: 1 })
})

test('a request whose begin is not recorded', (t) => {
  const log = new Log()
  const run = log.callback(100, { request: 7 })
  log.end(110, 7, run)
  const [request] = requestsOf(log.read())
  t.like(request, { number: 7, isOpen: false, isCut: true, begin: 100, end: 110, firstRun: NONE })
})
