'use strict'

// The layout of the run log (run-log.js): a header, then a ring of entries of twelve 32-bit words, in memory
// that other threads can read. Constants only, for the writer and its readers alike.
//
// An entry of number n lies in slot (n - 1) modulo ENTRIES. Numbers begin at 1, wrap around as int32, and are
// compared by (a - b) | 0; 0 stands for none or unknown. The number of a RUN entry is the number of that run.

const WORDS = 12
const ENTRIES = 1 << 14

module.exports = {
  ENTRIES, // of the ring, a power of two
  WORDS, // of an entry; as 64-bit floats half as many
  HEADER: WORDS, // words before the first entry
  BYTES: (WORDS + WORDS * ENTRIES) * 4, // of the whole

  // Words of the header.
  COUNT: 0, // number of the entry written last; set once that is whole
  LATEST: 1, // as a 64-bit float: index among those; TIME of the last RUN, POLL or RESUME

  // Words of an entry.
  HEAD: 0, // its kind, and above KIND_BITS its flags
  REF: 1, // reference of a record, see records.js
  CHAIN: 2,
  REQUEST: 3, // number of the span, 0: none
  REGISTERED: 4, // run
  SETTLED: 5, // run
  TIME: 3, // as a 64-bit float: index among those; ms of the clock
  A: 8,
  B: 9,
  X: 5, // as a 64-bit float

  KIND_BITS: 8,

  // Kinds.
  RUN: 1, // a step is entered
  POLL: 2, // the event loop has polled
  ARRIVED: 3, // when what a run waited for had come
  BEGIN: 4, // of a span
  END: 5,
  SENT: 6, // bytes are written to a connection
  CAME: 7, // data came on a connection, in its own callback
  SETTLED_BY_ANSWER: 8, // a promise is settled in the callback that brought an answer, or in its ticks
  RESUME: 9, // a step that was entered inside another one is left: the other goes on; REGISTERED 0: longstack

  // Flags of a RUN.
  CALLED: 1, // Node calls it from the event loop; with A not 0, inside another callback
  AWAITED: 2,
  TIMER: 4,
  ONE_SHOT: 8, // with TIMER: an immediate
  CONNECTION: 16,
  PARSER: 32,
  OUTSIDE: 64, // the filter leaves it out
  TURNED: 128, // the rest of the callback whose run is REGISTERED: it is of another request, REF or REQUEST

  // A of ARRIVED.
  DATA: 1, // the kernel knows when it came; X: ms from then until the last data of the same read came
  DUE: 2, // it was due then
  POLLED: 3, // it had come by then, and may have come earlier by as much as X says

  // A of BEGIN.
  SERVER: 1,
  CLIENT: 2,
  INNER: 3, // trace.span

  // A of END.
  UNSET: 0,
  OK: 1,
  ERROR: 2,
  DISCARDED: 3, // it is not told

  // B of SENT.
  HELD: 1, // kept until the connection is there; it goes out with the next entry
  USED: 2, // by a request of http or undici, which has a span of its own: no query
  ASKED: 4, // code of the program is known to have called for it
  GREETS: 8, // a driver wrote by itself, as it connects
  READS_ON: 16 // it reads on in what was asked before, with a cursor
}
