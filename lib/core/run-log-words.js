'use strict'

// Layout of the run log (run-log.js): a header, then a ring of entries of twelve 32-bit words, in memory that
// other threads can read. Only constants, for the writer and its readers.
//
// Entry number n is in slot (n - 1) modulo ENTRIES. Numbers begin at 1, wrap around as int32, and are
// compared by (a - b) | 0; 0 means none or unknown. The number of a RUN entry is the number of that run.

const WORDS = 12

module.exports = {
  ENTRIES: 1 << 14, // entries in the ring, a power of two
  WORDS, // per entry; half as many 64-bit floats
  HEADER: WORDS, // words before the first entry
  BYTES: (WORDS + WORDS * (1 << 14)) * 4, // total

  // Words of the header.
  COUNT: 0, // number of the last entry; set once the entry is whole
  LATEST: 1, // 64-bit float (index among those): TIME of the last RUN, POLL or RESUME
  RETURNED: 4, // with RETURNS of current.js: the last entry before the event loop regained control

  // Words of an entry.
  HEAD: 0, // kind, with flags above KIND_BITS
  REF: 1, // reference of a record, see records.js
  CHAIN: 2,
  REQUEST: 3, // span number, 0: none
  REGISTERED: 4, // run
  SETTLED: 5, // run
  TIME: 3, // 64-bit float (index among those): ms of the clock
  A: 8,
  B: 9,
  X: 5, // 64-bit float

  KIND_BITS: 8,

  // Kinds.
  RUN: 1, // a step is entered
  POLL: 2, // the event loop has polled
  ARRIVED: 3, // arrival time of the event that a run waited for
  BEGIN: 4, // a span begins
  END: 5,
  SENT: 6, // bytes are written to a connection
  CAME: 7, // data came on a connection, in its own callback
  SETTLED_BY_ANSWER: 8, // a promise is settled in the callback that brought a response, or in its ticks
  RESUME: 9, // a nested step is left and the outer one continues; REGISTERED 0: longstack

  // Flags of a RUN.
  CALLED: 1, // Node calls it from the event loop; if A is not 0, inside another callback
  AWAITED: 2,
  TIMER: 4,
  ONE_SHOT: 8, // with TIMER: an immediate
  CONNECTION: 16,
  PARSER: 32,
  OUTSIDE: 64, // the filter excludes it
  TURNED: 128, // the rest of callback REGISTERED belongs to another request, REF or REQUEST

  // A of ARRIVED.
  DATA: 1, // arrival known from the kernel; X: ms until the last data of the same read arrived
  DUE: 2, // it was due at that time
  POLLED: 3, // arrived by then, up to X earlier

  // A of BEGIN.
  SERVER: 1,
  CLIENT: 2,
  INNER: 3, // trace.span

  // A of END.
  UNSET: 0,
  OK: 1,
  ERROR: 2,
  DISCARDED: 3, // the span is not reported

  // B of SENT.
  HELD: 1, // buffered until the connection is open; goes out with the next entry
  USED: 2, // write of an http or undici request, which has its own span: not a query
  ASKED: 4, // called by code of the program
  GREETS: 8, // a driver wrote on its own while connecting
  READS_ON: 16 // continues reading an earlier query, with a cursor
}
