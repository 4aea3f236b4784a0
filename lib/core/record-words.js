'use strict'

// The layout of a record: sixteen 32-bit words, a cache line. See records.js.

const SIZE = 1 << 15
const SHIFT = 4
const FOLD_SHIFT = 24

module.exports = {
  // Records of each ring, a power of two: ids follow one another, a slot is their lowest bits.
  SIZE,
  MASK: SIZE - 1,
  SHIFT, // log2 of the words of a record
  IDS: SHIFT - 1, // shift: from the first word of a record to its two ids, see records.js

  // The words of a record.
  REF: 0,
  CHAIN: 1, // number of the chain, see stacks/capture.js
  CAUSE: 2, // reference: in whose callback it was made
  TRIGGER: 3, // reference: what caused it; of a promise the one that is awaited
  SPAN: 4, // number of the span
  TIME: 5, // when it was made, in TICKS a ms of the clock, modulo 2 ** 32; 0: it is not recorded. See ERA
  // By type. Of a timer: its ms. Of a promise: reference of what settled it. Of a resource made for a span:
  // number of the span. Of a request: number of its name, see request-names.js. Of a parser: reference of the
  // request that came last. Of a connection of the program: of the present ask. Of an ask: of its request,
  // once that was looked for.
  DETAIL: 6,
  FLAGS: 7,

  // Words that few records need.

  // Reference: of a record whose chain is that of one of its ancestors, the parent of the chain; of a request
  // or an ask, the resource on which it came.
  OUTER: 8,
  RUN: 9, // the run that made it, as a number of the run log; 0: none
  SETTLED_RUN: 10, // of a promise: likewise of that which settled it
  INCOMING: 10, // of a parser: whether the request that came last is still coming in
  RESPONDED: 10, // of a request: its response is in a slot of weak-slots.js
  // Of an ask, see asks.js.
  DUE: 3, // questions for which no data has come yet, at least
  FIRST_ASK: 10, // where several have asked: references of two of their asks
  LAST_ASK: 11,
  STATE: 12,
  // Reference: who made the promise that its answer has settled; of a request the step in which its response
  // was finished
  SETTLED_FOR: 13,
  ANSWERED_AT: 14, // when data came last, of a request when its response was finished; in ms of the clock
  OUTER_WRAPS: 15, // how often the asyncId of the connection had passed WRAP
  RUNS: 11, // of a timer: how often it has run and was not over
  REPEATS: 12, // repetitions of the loop that this record ends
  PRIOR: 13, // reference: what came before the first repetition of the loop
  PRIOR_TIME: 14, // TIME of that one, whose record may be gone
  PRIOR_WRAPS: 15, // how often its asyncId has passed WRAP; above WRAP_BITS its ERA

  // Flags.
  LIVE: 1, // it may run
  PASSED: 2, // the filter leaves it out: chain and cause are those of its maker
  AWAITED: 4, // a promise that `await` or `then` made
  ONE_SHOT: 8, // it runs once
  SPECIAL: 16, // a handle: the registry notes that it runs
  TICK: 32,
  TIMER: 64, // with ONE_SHOT: an immediate
  LISTENED: 128, // of a resource: run-listeners.js has who waits for its callbacks
  SETTLED: 256, // a promise that is settled
  ANSWERED: 256, // of an ask: data has come
  LOOPED: 512, // one more repetition of a loop, as many as REPEATS says
  CALLED: 1 << 14, // the event loop calls it
  DETAILED: 1 << 15, // its detail can be read when it runs
  PARSER: 1 << 16, // requests come on it, one after another
  CARRIED: 1 << 17, // its resource carries a copy of the record
  COUNTED: 1 << 18, // its callbacks are counted, see passing/thread-messages.js
  BRIEF: 1 << 19, // of a resource: a file, which has no entry in the registry for a while
  ROUND_START: 1 << 19, // of the first record of the ring of promises, see makeRoom in records.js
  DISTANCE: 10, // shift: of four bits, how many steps up the repetition before is
  DISTANCE_BITS: 15 << 10,
  ERA: 20, // shift: of twelve bits, how often TIME had passed 2 ** 31 when the iteration began

  // Numbers of chains with a meaning of their own; the engines give none below FIRST_CHAIN.
  NO_CHAIN: 0,
  ROOT_CHAIN: 1, // the start of the process
  OWN_WORK_CHAIN: 2, // longstack's own work, and what comes of it
  EARLY_CHAIN: 3, // made before longstack was enabled
  FIRST_CHAIN: 4,

  // What an engine returns for a step: the number of a chain and, above, how many ancestors up it was found,
  // see stacks/capture.js.
  FOLD_SHIFT,
  CHAIN_BITS: (1 << FOLD_SHIFT) - 1,

  TICKS: 4,
  NO_REF: -1, // in place of a reference: no record has it
  WRAP: 2 ** 31, // references of resources are equal where their asyncIds are, modulo this
  WRAP_BITS: 23 // enough for asyncIds below 2 ** 53, and one more value
}
