'use strict'

// The memory that the event loop's thread shares with its watchdog: `Shared` in native/watchdog.cc.

module.exports = {
  BYTES: 40,

  // indexes of doubles, ms of the clock
  START: 0, // when the current callback began
  ARMED_START: 1, // when the armed callback began
  ASKED: 2, // when the last sample was requested

  // indexes of 32-bit words
  CALLBACKS: 6, // callbacks counted
  ASLEEP: 7, // the watchdog is to be woken
  ARMED: 8, // not 0: the callback of this number blocks
  DEBUGGABLE: 9 // a debugger may be attached: do not interrupt a thread that stands still
}
