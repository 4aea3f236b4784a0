'use strict'

// The clock of all that is recorded: the one behind performance.now(), from an origin of its own. Loading
// node:perf_hooks takes 1 to 2 ms, which a program that does not use it does not pay.

const { PRESENT_ERA, current } = require('./current')
const { ERA, TICKS } = require('./record-words')

const ERA_MS = 2 ** 31 / TICKS

const { hrtime } = process
const [originSeconds, originNanos] = hrtime()
/** the origin in ms of the system's monotonic clock, which all processes of a machine share */
const originMs = originSeconds * 1e3 + originNanos * 1e-6

/** its first element is the time of the last step, which the engine of capture writes, in ms of this clock */
const stepClock = new Float64Array(1)

/** Returns the ms since longstack was loaded. @returns {number} */
function now () {
  const time = hrtime()
  return (time[0] - originSeconds) * 1e3 + (time[1] - originNanos) * 1e-6
}

stepClock[0] = now()

/** Reads the clock for what is recorded from now on. */
function readClock () {
  stepClock[0] = now()
  current[PRESENT_ERA] = (stepClock[0] / ERA_MS) << ERA
}

let queryTime = 0

/** A question is asked: ages in its answer are as of now, whatever that takes to make. */
function startQuery () {
  queryTime = now()
}

/** Returns when the present question was asked, ms of the clock. */
const queriedAt = () => queryTime

module.exports = { now, originMs, queriedAt, readClock, startQuery, stepClock }
