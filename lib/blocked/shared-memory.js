'use strict'

// The memory that the event loop's thread shares with its watchdog, and what both expect of each other. The
// first part is `Shared` in native/watchdog.cc; the rest is used by the JavaScript watchdog only.

/**
 * @typedef {object} WatchTarget
 * @property {number} threshold ms
 * @property {() => void} sample to be called inside a blocking callback
 * @property {() => void} callbackEnded to be called by libuv after one
 * @property {(memory: ArrayBuffer | SharedArrayBuffer) => void} share called before it starts
 *
 * @typedef {object} Watch a running watchdog
 * @property {() => void} wake to be called when a callback begins while the watchdog sleeps
 * @property {() => Discount} discount of the armed callback
 * @property {() => void} stop
 * @property {() => void} [again] has `callbackEnded` called in the next iteration of the event loop
 * @property {() => void} [leave] to be called when the process ends
 * @property {() => number} [queuedMs] ms that the thread has waited for a CPU since the last sample was
 *   requested, if `discount` does not contain it
 * @property {(() => void) | undefined} [callbackBegan]
 * @property {number} ownFrames the watchdog's own frames on top of every sample
 *
 * @typedef {object} Discount
 * @property {number} lostMs time that does not count
 * @property {number} stillMs time in which the thread used no CPU
 * @property {boolean} isIdle the loop was in the poll phase meanwhile
 */

module.exports = {
  NATIVE_BYTES: 40,
  BYTES: 128,

  // indexes of doubles, ms of the clock
  START: 0, // when the current callback began
  ARMED_START: 1, // when the armed callback began
  ASKED: 2, // when the last sample was requested

  // indexes of 32-bit words
  CALLBACKS: 6, // callbacks counted
  ASLEEP: 7, // the watchdog is to be woken
  ARMED: 8, // not 0: the callback of this number blocks
  DEBUGGABLE: 9, // a debugger may be attached: do not interrupt a thread that stands still

  // indexes of doubles
  LATE: 6, // the account of the current callback, see cpu-clock.js
  WORKED: 7,
  STILL: 11,
  QUEUED: 12, // ms that the main thread had waited for a CPU when the last sample was requested
  CHECKED: 8, // when the watchdog last checked
  SLEEP: 9, // ms that it meant to sleep from then on
  CPU_TIME: 10, // on-CPU plus run-queue time of the main thread at that time, ms

  // indexes of 32-bit words
  ANSWERED: 26, // the last callback after which the loop was free
  SERVED: 27, // samples taken, or refused
  LEAVE: 28, // 1: the worker is to leave; 2: it has left
  CONNECTED: 29, // it has a session with the main thread
  WAKE_UPS: 30 // changes to wake the worker
}
