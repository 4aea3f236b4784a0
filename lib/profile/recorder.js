'use strict'

// Records a profile: from its start on each step is logged, pieces of the log are added up as it fills, and
// V8's profiler is emptied now and then, since it keeps all samples until it is stopped.

const guard = require('../core/guard')
const { OWN_WORK_CHAIN } = require('../core/records')
const { mistake } = require('../errors')
const { logSteps } = require('../core/current-step')
const served = require('../core/served-requests')
const channels = require('../requests/channels')
const { settings } = require('../settings')
const { CpuProfiler, CpuTotals } = require('./cpu-samples')
const { createProfile } = require('./profile')
const { RESUMED, StepLog } = require('./step-log')
const { Totals } = require('./totals')

const SLICE_MS = 10_000 // after which V8's profiler is emptied
const CAPACITY = 1 << 13 // entries of the log
const SAMPLED_CAPACITY = 1 << 19 // the same where samples are joined with them: 8 MB

/** @typedef {import('./profile').Profile} Profile */

/** ends the profile that is on @type {(() => Profile | undefined) | undefined} */
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
 * Ends the profile that is on: its promise resolves.
 * @returns {Profile | undefined} undefined if none is on
 */
const finish = () => finishPresent?.()

/**
 * Starts to record.
 * @param {boolean} withSamples
 * @returns {() => Profile} ends it
 */
function startRecording (withSamples) {
  const startUnixMs = Date.now()
  const cpuBefore = process.cpuUsage()
  const totals = new Totals()
  const cpu = withSamples ? new CpuTotals() : undefined
  const { profiler, failure } = withSamples ? startProfiler() : { profiler: undefined, failure: undefined }
  const capacity = profiler === undefined ? CAPACITY : SAMPLED_CAPACITY
  const log = new StepLog(capacity, totals, () => guard.run(slice), profiler !== undefined)
  const slices = profiler === undefined ? undefined : setInterval(() => guard.run(sliceNow), SLICE_MS).unref()
  const ignoreResponses = watchResponses()
  logSteps(log)

  /** Adds up all entries but the last, which goes on, and forgets them. */
  function addUp () {
    const taken = profiler?.stop()
    log.handOn(log.count - 1)
    if (taken !== undefined) cpu?.add(taken, log, totals)
    log.keepLast()
  }

  /** Empties the log and V8's profiler; what that takes is longstack's own. */
  function slice () {
    const time = log.now()
    addUp()
    log.add(time, OWN_WORK_CHAIN, 0, RESUMED)
    profiler?.start()
  }

  function sliceNow () {
    log.resume() // the last entry ends here
    slice()
    log.resume()
  }

  return () => {
    log.addPoll(log.now())
    log.resume()
    ignoreResponses()
    clearInterval(slices)
    logSteps(undefined)
    addUp()
    profiler?.close()
    const { user, system } = process.cpuUsage(cpuBefore)
    return createProfile({
      startUnixMs,
      seconds: log.since / 1e6,
      cpuSeconds: (user + system) / 1e6,
      totals,
      cpu: profiler === undefined ? undefined : cpu,
      lacks: failure === undefined ? lacks() : [...lacks(), failure]
    })
  }
}

/** Has routes read as requests end; returns what stops that. */
const watchResponses = () => channels.subscribe([['http.server.response.finish', served.answered]])

/** Returns what a profile lacks under the options in force, as sentences. */
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
