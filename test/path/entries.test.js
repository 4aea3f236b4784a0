'use strict'

// Entries of the log and the recording made from them.

const test = require('ava')
const { WORDS } = require('../../lib/core/run-log-words')
const { NONE } = require('../../report/path/entries')
const { SpanReader } = require('../../report/path/window')
const { Log } = require('./recordings')

const ENTRY = WORDS * 4 // bytes

/**
 * Runs, each registered in the one before.
 * @param {number} count
 * @param {number} first number of the first
 */
function chainOf (count, first) {
  const log = new Log(first)
  for (let i = 0; i < count; i++) log.step(1 + i, { registered: (first + i - 1) | 0 })
  return log
}

/** @param {Log} log @param {number} [skipped] entries @param {number} [bytes] that are cut off */
function read (log, skipped = 0, bytes = 0) {
  const reader = new SpanReader()
  const all = log.bytes()
  const entries = all.subarray(skipped * ENTRY, all.length - bytes)
  reader.push({ first: (log.first + skipped) | 0, entries })
  return reader
}

test('an empty log has no runs', (t) => {
  const reader = new SpanReader()
  reader.push({ first: 1, entries: new Uint8Array(0), isLast: true })
  t.deepEqual(reader.ended(), [])
})

test('runs refer to earlier ones by position', (t) => {
  const { count, registered, time } = read(chainOf(1000, 1)).recording
  t.deepEqual([count, registered[0], registered[999], time[999]], [1000, NONE, 998, 1000])
})

test('runs before the recording are unknown', (t) => {
  const { count, registered, time } = read(chainOf(1000, 1), 400).recording
  t.deepEqual([count, registered[0], registered[1], time[0]], [600, NONE, 0, 401])
})

test('numbers may wrap around', (t) => {
  const { count, number, registered } = read(chainOf(1000, 2 ** 31 - 500)).recording
  t.deepEqual([count, number[499], number[500]], [1000, 2 ** 31 - 1, -(2 ** 31)])
  t.deepEqual([registered[499], registered[500], registered[999]], [498, 499, 998])
})

test('bytes may be unaligned, and an entry truncated', (t) => {
  const log = new Log(41)
  const run = log.serve(100, 7)
  log.end(110, 7, run)
  const reader = new SpanReader()
  const bytes = Buffer.concat([Buffer.alloc(1), log.bytes()]).subarray(1, -5)
  reader.push({ first: 41, entries: bytes, isLast: true })
  const [{ request }] = reader.ended()
  t.like(request, { number: 7, isOpen: true, isCut: false, firstRun: 1 })
})

test('a request may begin before the recording', (t) => {
  const log = new Log()
  const run = log.callback(100, { request: 7 })
  log.end(110, 7, run)
  const [{ request }] = log.spans()
  t.like(request, { number: 7, isOpen: false, isCut: true, begin: 100, end: 110, firstRun: NONE })
})
