'use strict'

// longstack run --fail-on-leak and --why-still-running: a preload that follows register. The program counts
// as finished once its main script has ended and none of its code, except repeating timers, has run for a
// while; anything that still keeps it alive is a leak. The watch itself uses an unreferenced timer.

const { createHook, executionAsyncResource } = require('node:async_hooks')
const fs = require('node:fs')
const { inspect } = require('node:util')
const guard = require('./core/guard')
const { OWN_WORK, contextTag } = require('./core/context')
const { printLine } = require('./warnings')

const VARIABLE = '_LONGSTACK_LEAK_MS'
const EXIT_CODE = 3
const CHECKS = 8 // per waiting time
const LATE_MS = 20
const BUSY = 0.5 // event loop utilization of a worker that counts as working

/** Captured before the program or its test runner can replace them. */
const { exit, reallyExit } = /** @type {any} */ (process)
let hasFailed = false

/**
 * @typedef {object} Watches
 * @property {number} [failMs] quiet time after which the process ends with the exit code of a leak
 * @property {number} [reportMs] quiet time after which the open handles are printed, once
 *
 * @param {Watches} watches
 * @returns {Record<string, string>} environment that enables the watch in the preload
 */
function leakWatchEnvironment (watches) {
  return { [VARIABLE]: JSON.stringify(watches) }
}

/** @param {number} ms quiet time @param {(ms: number) => void} onQuiet called once */
function watch (ms, onQuiet) {
  const step = Math.max(1, ms / CHECKS)
  let lastWork = 0
  let lastCheck = 0

  /** Records that the program ran. The resource of a timer is the timer itself. */
  function noteWork () {
    const resource = /** @type {any} */ (executionAsyncResource())
    if (contextTag.read(resource) !== OWN_WORK && !(resource?._repeat > 0)) lastWork = performance.now()
  }

  function check () {
    const time = performance.now()
    // A late check means that the process was stopped, or the machine is busy: the program could not run
    // either.
    if (time - lastCheck > 2 * step + LATE_MS) lastWork = time
    if (isWorkerBusy(time - lastCheck)) lastWork = time
    lastCheck = time
    if (time - lastWork >= ms) {
      hook.disable()
      return onQuiet(ms)
    }
    guard.run(() => setTimeout(check, step).unref())
  }

  const callbacks = { __proto__: null, before: noteWork, after: noteWork, trackPromises: false }
  const hook = createHook(/** @type {any} */ (callbacks)).enable()
  // The main script's synchronous code runs before the first iteration of the event loop.
  guard.run(() => setImmediate(() => {
    lastWork = lastCheck = performance.now()
    check()
  }).unref())
}

/** idle ms of each worker at the last check @type {WeakMap<object, number>} */
const idleTimes = new WeakMap()

/** Returns whether a worker was busy since the last check; waiting for it is work. @param {number} ms */
function isWorkerBusy (ms) {
  return guard.run(() => {
    const { callNative } = require('./node-objects')
    let isBusy = false
    const othersRan = cpuShareOfOthers(ms)
    for (const { context, resource } of require('./shared').tracer.openEntries()) {
      const handle = context.type === 'WORKER' ? resource.deref() : undefined
      const idle = handle && callNative(handle, 'loopIdleTime')
      if (handle === undefined || typeof idle !== 'number') continue
      const before = idleTimes.get(handle)
      idleTimes.set(handle, idle)
      // Idle time is 0 before and during its main script. A worker in Atomics.wait, as in an idle pool, is
      // not in its event loop and uses no CPU.
      const isAway = idle === 0 || (before !== undefined && idle - before < ms * (1 - BUSY))
      if (isAway && (othersRan === undefined || othersRan >= BUSY)) isBusy = true
    }
    return isBusy
  })
}

/** ms that each thread had run or waited for a CPU at the last check @type {Map<string, number>} */
let cpuTimes = new Map()

/**
 * Returns the largest share of the time since the last check that a thread other than the main one ran or
 * waited for a CPU. The system does not report which of them are workers.
 * @param {number} ms since the last check
 * @returns {number | undefined} undefined if the system does not report it
 */
function cpuShareOfOthers (ms) {
  const before = cpuTimes
  cpuTimes = new Map()
  try {
    for (const id of fs.readdirSync('/proc/self/task')) {
      if (id === String(process.pid)) continue
      const [ran, waited] = fs.readFileSync(`/proc/self/task/${id}/schedstat`, 'utf8').split(' ', 2)
      cpuTimes.set(id, (Number(ran) + Number(waited)) / 1e6) // ns: Documentation/scheduler/sched-stats.rst
    }
  } catch {
    return undefined
  }
  return Math.max(0, ...[...cpuTimes].map(([id, time]) => (time - (before.get(id) ?? 0)) / ms))
}

/** @param {number} ms */
function print (ms) {
  printLine(guard.run(() => report(ms)).trimEnd())
}

/** @param {number} ms */
function fail (ms) {
  print(ms)
  hasFailed = true
  try {
    exit.call(process, EXIT_CODE)
  } catch (error) { // thrown by an `exit` listener
    printLine(guard.run(() => inspect(error)))
    exitWithLastWord(EXIT_CODE)
  }
}

/**
 * Ends the process with the exit code of a leak, even if `exit` listeners have set another: process.exit
 * calls process.reallyExit with process.exitCode (lib/internal/process/per_thread.js).
 * @param {number} code
 */
function exitWithLastWord (code) {
  return reallyExit.call(process, hasFailed ? EXIT_CODE : code)
}

/** @param {number} ms */
function report (ms) {
  const { trace } = require('./shared')
  const open = trace.handles().filter(({ referenced }) => referenced !== false)
  const head = `longstack: the program has done nothing for ${ms} ms, and does not end.`
  if (open.length > 0) {
    const { paint } = require('./format/paint')
    return `${head}\n${paint(require('./format/handles').summary(open))}`
  }
  const names = process.getActiveResourcesInfo().join(', ') || 'nothing that Node names'
  return `${head} What keeps it alive is not known: ${names}.`
}

const value = process.env[VARIABLE]
if (value !== undefined) {
  delete process.env[VARIABLE]
  const { failMs, reportMs } = /** @type {Watches} */ (JSON.parse(value))
  if (failMs !== undefined) {
    Object.assign(process, { reallyExit: exitWithLastWord })
    watch(failMs, fail)
  }
  if (reportMs !== undefined && reportMs !== failMs) watch(reportMs, print)
}

module.exports = { leakWatchEnvironment }
