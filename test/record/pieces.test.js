'use strict'

// Entries queued for the thread that makes spans: all of them arrive, in order.

const test = require('ava')
const { ENTRY_BYTES } = require('../../lib/record/block')
const { Pieces } = require('../../lib/record/pieces')

const RING = 1 << 17 // bytes: a piece is one range of it, or two where it wraps

test('parts taken from the ring are posted unchanged, however often it wraps', (t) => {
  const entries = RING / ENTRY_BYTES | 0
  const ring = new Uint8Array(entries * ENTRY_BYTES)
  const ints = new Int32Array(ring.buffer)
  const pieces = new Pieces()
  let first = 1
  let posted = 1
  for (let round = 0; round < 1000; round++) {
    const count = round * 7919 % 1366
    /** @type {Array<[from: number, to: number]>} */
    const ranges = []
    for (let number = first; number < first + count; number++) {
      const at = number % entries
      ints.fill(number, at * ENTRY_BYTES / 4, (at + 1) * ENTRY_BYTES / 4)
      if (at === 0 || ranges.length === 0) ranges.push([at, at])
      ranges[ranges.length - 1][1] = at + 1
    }
    pieces.add({
      first,
      count,
      entries: ranges.map(([from, to]) => ring.subarray(from * ENTRY_BYTES, to * ENTRY_BYTES)),
      lost: 0,
      spans: 1,
      texts: `{"round":${round}}\n`,
      repeats: false,
      now: round,
      isNewest: true,
      isWithin: false,
      isAll: false,
      isLast: false
    })
    first += count
    if (round % 10 < 9) continue
    const { parts } = pieces.take()
    for (const part of parts) {
      if (part.entries.length > 0) t.is(part.first, posted)
      const copy = new Int32Array(part.entries.slice().buffer)
      const words = ENTRY_BYTES / 4
      const numbers = Array.from({ length: copy.length / words }, (_, i) => copy[i * words])
      t.deepEqual(numbers, Array.from(numbers, (_, i) => posted + i))
      posted += numbers.length
    }
    const rounds = parts.flatMap(({ texts }) => texts.split('\n').filter(Boolean)).map((text) => JSON.parse(text).round)
    t.deepEqual(rounds, Array.from({ length: 10 }, (_, i) => round - 9 + i))
    t.true(pieces.isEmpty)
  }
  t.is(posted, first)
})
