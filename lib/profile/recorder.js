'use strict'

// Records a profile: reads the run log from the start on, and restarts V8's profiler at intervals, since it
// keeps all samples until it is stopped.

const guard = require('../core/guard')
const { mistake } = require('../errors')
const { logPresent } = require('../core/current-step')
const runLog = require('../core/run-log')
const served = require('../core/served-requests')
const taking = require('../record/taking')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { CpuProfiler, CpuTotals } = require('./cpu-samples')
const { createProfile } = require('./profile')
const { Steps } = require('./steps')
const { Totals } = require('./totals')

const SLICE_MS = 10_000 // after which V8's profiler is emptied
const LAG = 1 << 10 // newest steps that are not added up yet: routes of requests become known late
const MAX_STEPS = 1 << 19 // that are kept until samples are joined with them: 8 MB

/** @typedef {import('./profile').Profile} Profile */

/** ends the running profile @type {(() => Profile | undefined) | undefined} */
let finishPresent

/**
 * Records a profile of this thread.
 * @param {{ seconds: number, samples: boolean }} options
 * @returns {Promise<Profile>} resolves when the time is over, the program has nothing left to do, or
 *   `finish` was called
 */
function record ({ seconds, samples }) {
  if (finishPresent !== undefined) throw mistake('PROFILE_RUNS')
  return new Promise((resolve, reject) => {
    const end = startRecording(samples)
    const finish = () => guard.run(() => {
      finishPresent = undefined
      clearTimeout(timer)
      process.off('beforeExit', finish)
      try {
        const profile = end()
        resolve(profile)
        return profile
      } catch (error) {
        reject(error)
      }
    })
    const timer = setTimeout(finish, seconds * 1000).unref()
    process.on('beforeExit', finish)
    finishPresent = finish
  })
}

/**
 * Ends the running profile: its promise resolves.
 * @returns {Profile | undefined} undefined if none is running
 */
const finish = () => finishPresent?.()

/**
 * Starts a recording.
 * @param {boolean} withSamples
 * @returns {() => Profile} ends it
 */
function startRecording (withSamples) {
  const startUnixMs = Date.now()
  const cpuBefore = process.cpuUsage()
  const totals = new Totals()
  const cpu = withSamples ? new CpuTotals() : undefined
  const { profiler, failure } = withSamples ? startProfiler() : { profiler: undefined, failure: undefined }
  const isSampled = profiler !== undefined
  const steps = isSampled ? new Steps(MAX_STEPS, slice) : new Steps(2 * LAG, () => addUp(steps.count - LAG))
  const slices = isSampled ? setInterval(() => guard.run(sliceNow), SLICE_MS).unref() : undefined
  const ignoreResponses = watchResponses()
  taking.add(steps)
  runLog.expectInterrupts(isSampled)
  logPresent()

  /** Adds up steps, and drops them. @param {number} [count] default: all but the last, which still runs */
  function addUp (count = steps.count - 1) {
    const taken = profiler?.stop()
    totals.add(steps, count)
    if (taken !== undefined) cpu?.add(taken, steps, totals)
    steps.forget(count)
  }

  function slice () {
    addUp()
    profiler?.start()
  }

  function sliceNow () {
    taking.take()
    slice()
  }

  return () => {
    logPresent()
    ignoreResponses()
    clearInterval(slices)
    runLog.expectInterrupts(false)
    taking.remove(steps)
    addUp()
    profiler?.close()
    const { user, system } = process.cpuUsage(cpuBefore)
    return createProfile({
      startUnixMs,
      seconds: steps.since / 1e6,
      cpuSeconds: (user + system) / 1e6,
      totals,
      cpu: profiler === undefined ? undefined : cpu,
      lacks: failure === undefined ? lacks() : [...lacks(), failure]
    })
  }
}

/** Reads routes as requests end; returns a function that stops it. */
const watchResponses = () => channels.subscribe([['http.server.response.finish', served.answered]])

/** Returns the limits of a profile under the options in force, as sentences. */
function lacks () {
  const { filter } = settings.options
  if (filter.length === 1 && filter[0] === '*') return []
  return [`The filter ${filter.join(',')} leaves resources out: what they run counts for the chain that ` +
    'made them.']
}

/** @returns {{ profiler: CpuProfiler | undefined, failure: string | undefined }} */
function startProfiler () {
  try {
    const profiler = new CpuProfiler()
    profiler.start()
    return { profiler, failure: undefined }
  } catch (error) {
    const reason = /** @type {Error} */ (error).message
    return { profiler: undefined, failure: `No CPU samples: V8's profiler does not start (${reason}).` }
  }
}

module.exports = { finish, record }
