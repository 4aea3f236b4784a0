'use strict'

// Memory that the event loop's thread shares with its watchdog: `Shared` in native/watchdog.cc.

module.exports = {
  BYTES: 40,

  // indexes of doubles, ms of the clock
  START: 0, // start of the current callback
  ARMED_START: 1, // start of the armed callback
  ASKED: 2, // time of the last sample request

  // indexes of 32-bit words
  CALLBACKS: 6, // callbacks counted
  ASLEEP: 7, // not 0: the watchdog sleeps and must be woken
  ARMED: 8, // not 0: number of the blocking callback
  DEBUGGABLE: 9 // a debugger may be attached: do not interrupt a thread that uses no CPU
}
