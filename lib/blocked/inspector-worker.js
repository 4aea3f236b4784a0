'use strict'

// The worker of inspector.js. It looks whether the main thread is still in the same run, and asks for a sample where
// that lasts. While nothing runs there, it sleeps.

const { Session } = require('node:inspector')
const { parentPort, workerData } = require('node:worker_threads')
const { add, lost, queued, used, SLACK, STANDS } = require('./cpu-clock')
const { ANSWERED, ARMED, ASKED, ASLEEP, ATTENDED, BEATS, BEGAN, BELL, JOINED, LATE, LEAVE, LOOKED, QUEUED, RESTLESS, SERVED, SLEEP, START, STILL, USED, WORKED } = require('./shared-memory')

const PROBE = 0.3 // of the threshold: when the main thread is asked whether it is free
const SAMPLE = 0.8 // and when the first sample is asked for
const LONGEST_LOOK = 250 // ms
const LONGEST_STEP = 10_000 // ms
const SHORTEST_STEP = 5 // ms
const EVEN = 8 // samples at even steps; then each takes twice as long to come
const DOZE = 1000 // ms
const LASTS = 501 // ms past the threshold: a sample then is told at once, see STILL in blocked.js

const { memory, threshold, offset, expression } = workerData
const times = new Float64Array(memory)
const words = new Int32Array(memory)
const session = new Session()

let seen = -1 // the run's number
let account = { late: 0, used: 0, still: 0 }
let probed = false
let due = 0 // ms of it, when the next sample is asked for
let step = 0
let samples = 0
let asked = 0 // the number that the next sample has, while it is awaited

/** ms of the main thread's clock */
function now () {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1e3 + nanos * 1e-6 - offset
}

/** @returns {number} ms up to the next look */
function look () {
  const time = now()
  const beats = words[BEATS]
  const passed = time - times[LOOKED]
  const late = passed > times[SLEEP] + threshold * SLACK
  if (beats !== seen) begins(beats)
  const busy = used() - times[USED]
  add(account, { passed, part: Math.min(passed, time - times[START]), busy, late })
  if (words[ANSWERED] === beats) return doze(beats)
  const ms = time - times[START] - lost(account)
  if (!probed && ms >= threshold * PROBE) {
    probed = true
    parentPort?.postMessage(beats)
  }
  if (probed && ms >= due) ask(ms, busy < passed * STANDS)
  return Math.min((probed ? due : threshold * PROBE) - ms, LONGEST_LOOK)
}

/** @param {number} beats */
function begins (beats) {
  join(false)
  seen = beats
  account = { late: 0, used: 0, still: 0 }
  probed = false
  samples = 0
  due = threshold * SAMPLE
  step = Math.max(due, SHORTEST_STEP)
}

/** The loop is free. @param {number} beats */
function doze (beats) {
  join(false)
  if (words[RESTLESS] !== 0) {
    words[ANSWERED] = 0
    probed = false
    times[START] = now()
    account = { late: 0, used: 0, still: 0 }
    return threshold * PROBE
  }
  Atomics.store(words, ASLEEP, 1)
  if (Atomics.load(words, BEATS) === beats) return DOZE
  words[ASLEEP] = 0
  return 1
}

/** @param {number} ms of the run @param {boolean} stands the thread used no processor since the last look */
function ask (ms, stands) {
  if (++samples > EVEN) step = Math.min(step * 2, LONGEST_STEP)
  due = ms + step
  const lasts = threshold + LASTS
  if (ms < lasts && due > lasts) due = lasts
  if (samples === 1) {
    times[BEGAN] = times[START]
    words[ARMED] = seen
  }
  if (words[SERVED] < asked || (words[ATTENDED] !== 0 && stands)) return
  if (!join(true)) return
  asked = words[SERVED] + 1
  times[QUEUED] = queued()
  times[ASKED] = now()
  session.post('Runtime.evaluate', { expression, silent: true, returnByValue: true, disableBreaks: true })
}

/**
 * A session is there only while a long run is: a process that ends would wait for it, and say so.
 * @param {boolean} wanted
 * @returns {boolean} there is one
 */
function join (wanted) {
  if (wanted === (words[JOINED] !== 0)) return wanted
  if (!wanted) {
    session.disconnect()
    asked = 0 // what was not served by then never is
    words[JOINED] = 0
    return false
  }
  Atomics.store(words, JOINED, 1)
  if (Atomics.load(words, LEAVE) === 0) session.connectToMainThread()
  else words[JOINED] = 0
  return words[JOINED] !== 0
}

function watch () {
  const bell = Atomics.load(words, BELL)
  const wait = Math.max(1, look())
  times[LATE] = account.late
  times[WORKED] = account.used
  times[STILL] = account.still
  times[USED] = used()
  times[SLEEP] = wait
  times[LOOKED] = now()
  if (words[LEAVE] === 0) Atomics.wait(words, BELL, bell, wait)
  words[ASLEEP] = 0
  if (words[LEAVE] === 0) return setImmediate(watch) // what the inspector answers is to be taken off its queue
  join(false)
  words[LEAVE] = 2
  Atomics.notify(words, LEAVE)
}

watch()
