'use strict'

// The worker of inspector-watchdog.js. It checks whether the main thread is still in the same callback, and
// requests samples while that lasts. While nothing runs there, it sleeps.

const { Session } = require('node:inspector')
const { parentPort, workerData } = require('node:worker_threads')
const { add, lostMs, queuedMs, cpuTime, SLACK, STILL_RATIO } = require('./cpu-clock')
const {
  ANSWERED, ARMED, ARMED_START, ASKED, ASLEEP, CALLBACKS, CHECKED, CONNECTED, CPU_TIME, DEBUGGABLE, LATE,
  LEAVE, QUEUED, SERVED, SLEEP, START, STILL, WAKE_UPS, WORKED
} = require('./shared-memory')

const PROBE = 0.3 // of the threshold, after which the main thread is asked whether it is free
const SAMPLE = 0.8 // of the threshold, after which the first sample is requested
const MAX_CHECK_MS = 250 // between two checks
const MAX_STEP_MS = 10_000 // between two samples
const MIN_STEP_MS = 5
const EVEN_SAMPLES = 8 // at even steps; from then on each step is twice as long
const SLEEP_MS = 1000
const REPORT_INSIDE_MS = 501 // past the threshold: a sample is reported at once, see detector.js

const { memory, threshold, originMs, expression } = workerData
const times = new Float64Array(memory)
const words = new Int32Array(memory)
const session = new Session()

let callback = -1 // its number
let account = { late: 0, used: 0, still: 0 }
let isProbed = false
let due = 0 // ms of the callback, after which the next sample is requested
let step = 0
let samples = 0
let awaited = 0 // number of the next sample, while it is awaited
let checkedAt = 0 // ms
let checkedCpuTime = 0 // ms

/** Returns the ms of the main thread's clock: performance.now() of another thread has another origin. */
const now = () => Number(process.hrtime.bigint()) / 1e6 - originMs

/**
 * Looks at the main thread. Each instant belongs to the time between two checks, that of a check as well: the
 * process may be stopped in the middle of it.
 * @returns {number} ms until the next check
 */
function check () {
  const time = checkedAt = now()
  const current = Atomics.load(words, CALLBACKS) // before START
  const passed = time - times[CHECKED]
  const isLate = passed > times[SLEEP] + threshold * SLACK
  if (current !== callback) begin(current)
  checkedCpuTime = cpuTime()
  const busy = checkedCpuTime - times[CPU_TIME]
  add(account, { passed, part: Math.min(passed, time - times[START]), busy, isLate })
  if (words[ANSWERED] === current) return sleep(current)
  const ms = time - times[START] - lostMs(account)
  if (!isProbed && ms >= threshold * PROBE) {
    isProbed = true
    parentPort?.postMessage(current)
  }
  if (isProbed && ms >= due) requestSample(ms, busy < passed * STILL_RATIO)
  return Math.min((isProbed ? due : threshold * PROBE) - ms, MAX_CHECK_MS)
}

/** @param {number} current number of the callback */
function begin (current) {
  disconnect()
  callback = current
  account = { late: 0, used: 0, still: 0 }
  isProbed = false
  samples = 0
  due = threshold * SAMPLE
  step = Math.max(due, MIN_STEP_MS)
}

/**
 * Sleeps while the loop is free.
 * @param {number} current number of the callback
 * @returns {number} ms until the next check
 */
function sleep (current) {
  disconnect()
  Atomics.store(words, ASLEEP, 1)
  if (Atomics.load(words, CALLBACKS) === current) return SLEEP_MS
  words[ASLEEP] = 0
  return 1
}

/**
 * @param {number} ms length of the callback so far
 * @param {boolean} isStill the thread used no CPU since the last check
 */
function requestSample (ms, isStill) {
  if (++samples > EVEN_SAMPLES) step = Math.min(step * 2, MAX_STEP_MS)
  due = ms + step
  const reported = threshold + REPORT_INSIDE_MS
  if (ms < reported && due > reported) due = reported
  if (samples === 1) {
    times[ARMED_START] = times[START]
    words[ARMED] = callback
  }
  if (words[SERVED] < awaited || (words[DEBUGGABLE] !== 0 && isStill)) return
  if (!connect()) return
  awaited = words[SERVED] + 1
  times[QUEUED] = queuedMs()
  times[ASKED] = now()
  session.post('Runtime.evaluate', { expression, silent: true, returnByValue: true, disableBreaks: true })
}

/**
 * Opens the session. It exists only during a blocking callback: a process that ends would wait for it, and
 * print so.
 * @returns {boolean} whether there is one
 */
function connect () {
  if (words[CONNECTED] !== 0) return true
  Atomics.store(words, CONNECTED, 1)
  if (Atomics.load(words, LEAVE) === 0) session.connectToMainThread()
  else words[CONNECTED] = 0
  return words[CONNECTED] !== 0
}

function disconnect () {
  if (words[CONNECTED] === 0) return
  session.disconnect()
  awaited = 0 // what was not served by then never is
  words[CONNECTED] = 0
}

function watch () {
  const wakeUps = Atomics.load(words, WAKE_UPS)
  const wait = Math.max(1, check())
  times[LATE] = account.late
  times[WORKED] = account.used
  times[STILL] = account.still
  times[CPU_TIME] = checkedCpuTime
  times[SLEEP] = wait
  times[CHECKED] = checkedAt
  if (words[LEAVE] === 0) Atomics.wait(words, WAKE_UPS, wakeUps, wait)
  words[ASLEEP] = 0
  if (words[LEAVE] === 0) return setImmediate(watch) // takes the inspector's answers off the queue
  disconnect()
  words[LEAVE] = 2
  Atomics.notify(words, LEAVE)
}

watch()
