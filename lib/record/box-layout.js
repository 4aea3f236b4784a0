'use strict'

// Layout of a black box (box.js): constants and pure functions for the writer, the reader and
// native/box.cc, which has the same offsets. All numbers are little endian.
//
// The file begins with a page about the process. Then comes one part per thread: a page about the thread, one
// about its memory use, a table of open requests, the ring of the run log, and two halves for blocks
// (block.js). When a half is full, blocks go to the other one, which begins with all texts again, so there is
// always at least one whole half of history.

const { BYTES: RING_BYTES } = require('../core/run-log-words')

const PAGE = 4096
const SLOTS = 1 << 11 // open requests in the table, a power of two
const SLOT_BYTES = 192

const GROWTH = PAGE // offset in a part: two texts of half a page
const TABLE = GROWTH + PAGE
const RING = TABLE + SLOTS * SLOT_BYTES
const HALVES = RING + Math.ceil(RING_BYTES / PAGE) * PAGE

module.exports = {
  PAGE,
  VERSION: 2,
  GROWTH,
  TABLE,
  SLOTS,
  SLOT_BYTES,
  RING,
  HALVES,
  MIN_PART: HALVES + (1 << 20),

  /** @param {number} bytes of a part @returns {number} bytes of each half, a multiple of 8 */
  halfOf: (bytes) => Math.floor((bytes - HALVES) / 16) * 8,

  HEAD_MAGIC: 0x4842534c, // "LSBH"
  PART_MAGIC: 0x5042534c, // "LSBP"

  /** Offsets in the first page of the file. */
  head: {
    magic: 0,
    version: 4,
    isOver: 8, // not 0: the process ended normally
    pid: 12,
    aliveAt: 16, // double: ms of the system's monotonic clock, ten times a second
    resident: 24, // double: bytes of memory not backed by a file
    memoryLimit: 32 // double: bytes that its container allows; 0 or huge if there is no limit
  },

  /** Offsets in the first page of a part. */
  part: {
    magic: 0,
    isUsed: 8,
    collections: 12,
    bytes: 16, // double
    collectedAt: 24, // double: end of the last full collection, ms of the system's monotonic clock
    used: 32, // double: bytes of the heap after it
    limit: 40, // double
    source: 48, // source of the blocks
    half: 60, // index of the half in use
    written: 64, // bytes in the first half, then in the second
    originMs: 72, // double: the system's monotonic clock when the clock of the log was 0
    origin: 80, // double: likewise, ms since 1970
    thread: 88,
    stackBytes: 96, // 0: none
    stackEntry: 100, // newest entry of the run log when it was taken
    young: 104, // double: bytes of the limit that are reserved for the young generation
    isShort: 112, // memory is
    growthBytes: 116, // bytes of the text about the heap retained since then
    growthText: 120, // index of the text in use
    sampled: 128, // double: bytes retained
    leftOut: 136, // open requests without a slot in the table
    buffersBytes: 140, // bytes of the text about Buffers
    buffers: 144, // allocations outside of the heap by callbacks of requests since then, JSON
    stack: 1024 // inside a long-running step
  },

  /** Offsets in a slot of the table. */
  slot: {
    number: 0, // number of the span; 0: free
    ids: 4, // 24 bytes
    start: 32, // double: ms of the clock
    kind: 40, // SERVER and ENDED
    nameBytes: 44,
    name: 48
  },
  MAX_NAME: SLOT_BYTES - 48,

  // Bits of `kind`.
  SERVER: 1,
  ENDED: 2 // its texts may not be in a block yet
}
