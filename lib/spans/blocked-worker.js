'use strict'

// The worker of blocked-inspector.js. It looks whether the main thread is still in the same run, and asks for a sample where
// that lasts. While nothing runs there, it sleeps.

const { Session } = require('node:inspector')
const { parentPort, workerData } = require('node:worker_threads')
const { used } = require('./blocked-clock')
const { ANSWERED, ARMED, ASKED, ASLEEP, ATTENDED, BEATS, BEGAN, JOINED, LEAVE, LOOKED, LOST, RESTLESS, SERVED, SLEEP, START, STILL, USED } = require('./blocked-words')

const PROBE = 0.3 // of the threshold: when the main thread is asked whether it is free
const SAMPLE = 0.8 // and when the first sample is asked for
const LONGEST_LOOK = 250 // ms
const LONGEST_STEP = 10_000 // ms
const SHORTEST_STEP = 5 // ms
const EVEN = 8 // samples at even steps; then each takes twice as long to come
const DOZE = 1000 // ms
const STANDS = 0.02 // of a time, on a processor: less is none

const { memory, threshold, slack, offset, expression } = workerData
const times = new Float64Array(memory)
const words = new Int32Array(memory)
const session = new Session()

let seen = -1 // the run's number
let lost = 0 // ms of it that do not count
let still = 0 // ms of it in which nothing used a processor
let probed = false
let due = 0 // ms of it, when the next sample is asked for
let step = 0
let samples = 0
let asked = 0 // samples, of all runs

/** ms of the main thread's performance.now() */
function now () {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1e3 + nanos * 1e-6 - offset
}

/** @returns {number} ms up to the next look */
function look () {
  const time = now()
  const beats = words[BEATS]
  const passed = time - times[LOOKED]
  const busy = used() - times[USED]
  const counts = passed <= times[SLEEP] + slack ? passed : Math.min(passed, busy)
  if (beats !== seen) {
    begins(beats, time, Math.min(time - times[START], counts), busy)
  } else {
    lost += passed - counts
    if (busy < counts * STANDS) still += counts
  }
  if (words[ANSWERED] === beats) return doze(beats)
  const ms = time - times[START] - lost
  if (!probed && ms >= threshold * PROBE) {
    probed = true
    parentPort?.postMessage(beats)
  }
  if (probed && ms >= due) ask(time, ms)
  return Math.min((probed ? due : threshold * PROBE) - ms, LONGEST_LOOK)
}

/**
 * @param {number} beats
 * @param {number} time
 * @param {number} counts ms of it, up to now
 * @param {number} busy ms of these on processors
 */
function begins (beats, time, counts, busy) {
  join(false)
  seen = beats
  lost = time - times[START] - counts
  still = busy < counts * STANDS ? counts : 0
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
    lost = 0
    return threshold * PROBE
  }
  Atomics.store(words, ASLEEP, 1)
  if (Atomics.load(words, BEATS) === beats) return DOZE
  words[ASLEEP] = 0
  return 1
}

/** @param {number} time @param {number} ms of the run */
function ask (time, ms) {
  if (++samples > EVEN) step = Math.min(step * 2, LONGEST_STEP)
  due = ms + step
  if (samples === 1) {
    times[BEGAN] = times[START]
    words[ARMED] = seen
  }
  if (words[SERVED] !== asked || (words[ATTENDED] !== 0 && still >= ms)) return
  asked++
  join(true)
  times[ASKED] = time
  session.post('Runtime.evaluate', { expression, silent: true, returnByValue: true, disableBreaks: true })
}

/** A session is there only while a long run is: a process that ends would wait for it, and say so. @param {boolean} wanted */
function join (wanted) {
  if (wanted === (words[JOINED] !== 0)) return
  words[JOINED] = Number(wanted)
  if (wanted) session.connectToMainThread()
  else session.disconnect()
}

function watch () {
  const wait = Math.max(1, look())
  times[LOST] = lost
  times[STILL] = still
  times[USED] = used()
  times[SLEEP] = wait
  times[LOOKED] = now()
  if (words[LEAVE] === 0) Atomics.wait(words, words[ASLEEP] === 0 ? LEAVE : ASLEEP, words[ASLEEP], wait)
  words[ASLEEP] = 0
  if (words[LEAVE] === 0) return setImmediate(watch) // what the inspector answers is to be taken off its queue
  join(false)
  words[LEAVE] = 2
  Atomics.notify(words, LEAVE)
}

watch()
