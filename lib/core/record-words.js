'use strict'

// The layout of a record: sixteen 32-bit words, a cache line. See records.js.

const SIZE = 1 << 15
const SHIFT = 4
const FOLD_SHIFT = 24

module.exports = {
  // Records per ring, a power of two: ids are consecutive, and their lowest bits are the slot.
  SIZE,
  MASK: SIZE - 1,
  PARTS: 4, // parts of a ring; waiting steps of a part are scanned once it is full
  SHIFT, // log2 of the words of a record
  IDS: SHIFT - 1, // shift: from the first word of a record to its two ids, see records.js

  // The words of a record.
  REF: 0,
  CHAIN: 1, // number of the chain, see stacks/capture.js
  CAUSE: 2, // reference: the step whose callback made it
  TRIGGER: 3, // reference: its trigger; for a promise, the awaited promise
  SPAN: 4, // span number
  TIME: 5, // creation time in TICKS per ms of the clock, modulo 2 ** 32; 0: not recorded. See ERA
  // Depends on the type. Timer: its delay in ms. Promise: reference of the step that settled it. Resource
  // of a span: span number. Request: number of its name, see request-names.js. Parser: reference of the
  // last request. Connection of the program: reference of the current ask. Ask: reference of its request,
  // once looked up.
  DETAIL: 6,
  FLAGS: 7,

  // Words that few records need.

  // Reference. Record with the chain of an ancestor: the parent of that chain. Request or ask: the resource
  // on which it came.
  OUTER: 8,
  RUN: 9, // run log number of the run that made it; 0: none
  SETTLED_RUN: 10, // promise: run log number of the run that settled it
  INCOMING: 10, // parser: whether the last request is still coming in
  RESPONDED: 10, // request: its response is in a slot of weak-slots.js
  // Words of an ask, see asks.js.
  DUE: 3, // queries without any data yet, at least
  FIRST_ASK: 10, // several flows have queries in flight: references of two of their asks
  LAST_ASK: 11,
  STATE: 12,
  // Reference. Ask: the step that made the promise settled by its response. Request: the step in which its
  // response was finished
  SETTLED_FOR: 13,
  ANSWERED_AT: 14, // ask: when data last came; request: when its response was finished; in ms of the clock
  OUTER_WRAPS: 15, // how often the connection's asyncId has passed WRAP
  RUNS: 11, // timer: runs after which it was not over
  REPEATS: 12, // repetitions of the loop that this record ends
  PRIOR: 13, // reference: the step before the first repetition of the loop
  PRIOR_TIME: 14, // TIME of that step, whose record may be gone
  PRIOR_WRAPS: 15, // how often its asyncId has passed WRAP; its ERA above WRAP_BITS

  // Flags.
  LIVE: 1, // it may still run
  PASSED: 2, // the filter excludes it: chain and cause are those of its maker
  AWAITED: 4, // a promise that `await` or `then` made
  ONE_SHOT: 8, // it runs once
  SPECIAL: 16, // a handle: the registry notes that it runs
  TICK: 32,
  TIMER: 64, // with ONE_SHOT: an immediate
  LISTENED: 128, // resource: someone waits for its callbacks, see run-listeners.js
  SETTLED: 256, // promise: settled
  ANSWERED: 256, // ask: data has come
  LOOPED: 512, // another repetition of a loop, counted in REPEATS
  CALLED: 1 << 14, // the event loop calls it
  DETAILED: 1 << 15, // its detail can be read once it runs
  PARSER: 1 << 16, // requests come on it, one after another
  CARRIED: 1 << 17, // its resource carries a copy of the record
  COUNTED: 1 << 18, // its callbacks are counted, see passing/thread-messages.js
  BRIEF: 1 << 19, // resource: a file, which gets its registry entry later
  PART_START: 1 << 19, // first record of a part of the promise ring, see makeRoom in records.js
  DISTANCE: 10, // shift of four bits: steps up to the previous repetition
  DISTANCE_BITS: 15 << 10,
  ERA: 20, // shift of twelve bits: how often TIME had passed 2 ** 31 when the iteration began

  // Chain numbers with a special meaning; the engines use none below FIRST_CHAIN.
  NO_CHAIN: 0,
  ROOT_CHAIN: 1, // the start of the process
  OWN_WORK_CHAIN: 2, // longstack's own work and everything it causes
  EARLY_CHAIN: 3, // made before longstack was enabled
  FIRST_CHAIN: 4,

  // An engine returns, for a step, the chain number and, above it, the number of ancestors up to the match;
  // see stacks/capture.js.
  FOLD_SHIFT,
  CHAIN_BITS: (1 << FOLD_SHIFT) - 1,

  TICKS: 4,
  NO_REF: -1, // instead of a reference: no record has it
  WRAP: 2 ** 31, // resources whose asyncIds are equal modulo this share a reference
  WRAP_BITS: 23 // enough for asyncIds below 2 ** 53, and one more value
}
