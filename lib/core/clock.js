'use strict'

// The clock for all recorded times: the one behind performance.now(), with its own origin. Loading
// node:perf_hooks takes 1 to 2 ms, and this spares programs that do not use it.

const { PRESENT_ERA, current } = require('./current')
const { ERA, TICKS } = require('./record-words')

const ERA_MS = 2 ** 31 / TICKS

const { hrtime } = process
const [originSeconds, originNanos] = hrtime()
/** the origin in ms of the system's monotonic clock, which all processes of a machine share */
const originMs = originSeconds * 1e3 + originNanos * 1e-6

/** [0]: time of the last step in ms of this clock, written by the capture engine */
const stepClock = new Float64Array(1)

/** Returns ms since longstack was loaded. @returns {number} */
function now () {
  const time = hrtime()
  return (time[0] - originSeconds) * 1e3 + (time[1] - originNanos) * 1e-6
}

stepClock[0] = now()

/** Reads the clock for the following records. */
function readClock () {
  stepClock[0] = now()
  current[PRESENT_ERA] = (stepClock[0] / ERA_MS) << ERA
}

let queryTime = 0

/** Starts a query: ages in its response are relative to now, however long it takes. */
function startQuery () {
  queryTime = now()
}

/** Returns when the current query started, ms of the clock. */
const queriedAt = () => queryTime

module.exports = { now, originMs, queriedAt, readClock, startQuery, stepClock }
