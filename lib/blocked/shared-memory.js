'use strict'

// The memory that the event loop's thread shares with its watchdog. The first part is Shared in native/watchdog.cc; what
// follows is for a watchdog in JavaScript only.

module.exports = {
  NATIVE_BYTES: 48,
  BYTES: 128,

  // numbers of doubles, ms of the clock
  START: 0, // when the present run began
  BEGAN: 1, // when the run began that is armed
  ASKED: 2, // when the last sample was asked for

  // numbers of words
  BEATS: 6, // runs counted
  ASLEEP: 7, // the watchdog is to be woken
  ARMED: 8, // not 0: the run of this number is long
  RESTLESS: 9, // not all runs are counted, so never sleep
  ATTENDED: 10, // a debugger may be there, so ask nothing of a thread that stands still

  // numbers of doubles
  LATE: 6, // the account of the present run, see clock.js
  WORKED: 7,
  STILL: 11,
  QUEUED: 12, // ms that the main thread had waited for a processor when the last sample was asked for
  LOOKED: 8, // when the watchdog looked last
  SLEEP: 9, // ms that it meant to sleep from then on
  USED: 10, // ms that the main thread had been on a processor, or would have liked to be, by then

  // numbers of words
  ANSWERED: 26, // the last run after which the loop was free
  SERVED: 27, // samples taken, or refused
  LEAVE: 28, // 1: the worker is to leave; 2: it has
  BELL: 30, // changes to wake the worker
  JOINED: 29 // it has a session with the main thread
}
