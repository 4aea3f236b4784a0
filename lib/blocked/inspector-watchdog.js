'use strict'

// The watchdog without the native engine: a worker that, through Node's inspector, has the main thread take a
// sample of itself while it runs (inspector-worker.js). No port is opened and no debugger is enabled: a
// function is called.
//
// Another thread cannot see whether the loop is in the poll phase. So the worker sends a message when a
// callback has not been followed by another for a while; it is answered as soon as the loop is free.

const path = require('node:path')
const { isMainThread, Worker } = require('node:worker_threads')
const { performance } = require('node:perf_hooks')

const { now, originMs } = require('../core/clock')
const guard = require('../core/guard')
const { share: shareWarnings, warn, warnOnce } = require('../warnings')
const { add, lostMs, queuedMs, cpuTime, SLACK } = require('./cpu-clock')
const {
  ANSWERED, ASLEEP, BYTES, CALLBACKS, CHECKED, CONNECTED, CPU_TIME, LATE, LEAVE, QUEUED, SERVED, SLEEP, STILL,
  WAKE_UPS, WORKED
} = require('./shared-memory')

const NAME = Symbol.for('longstack.blocked.1')

const LEAVE_TIMEOUT_MS = 1000 // that the end of the process waits for the worker to end its session
const POLLED_MS = 1 // in the poll phase: the loop was not in a callback

/**
 * @param {import('./shared-memory').WatchTarget} target
 * @returns {import('./shared-memory').Watch | undefined} undefined: it cannot start, and has warned
 */
function startInspectorWatchdog (target) {
  if (!isMainThread) {
    warnOnce('BLOCKED_THREAD', 'without the native engine blocking callbacks are detected in the main ' +
      'thread only, not in workers.')
    return undefined
  }
  // Under --permission Node aborts where a worker of a process without that right connects to it
  // (src/inspector_agent.cc).
  if (/** @type {any} */ (process).permission?.has('inspector') === false) {
    warn('BLOCKED', 'blocking callbacks cannot be detected: the permission model allows ' +
      'no inspector (--allow-inspector) and no addons (--allow-addons).')
    return undefined
  }
  const memory = new SharedArrayBuffer(BYTES)
  const times = new Float64Array(memory)
  const words = new Int32Array(memory)
  target.share(memory)
  shareWarnings()
  publish(() => {
    words[SERVED]++
    target.sample()
  })
  let { idleTime } = performance.nodeTiming // when the current callback began
  times[CHECKED] = now() // the worker takes a while to start
  times[CPU_TIME] = cpuTime()
  /** @type {Worker} */
  let worker
  try {
    worker = guard.run(() => startWorker(target, memory))
  } catch (error) {
    warnOf(error)
    return undefined
  }

  function wakeWorker () {
    Atomics.add(words, WAKE_UPS, 1)
    Atomics.notify(words, WAKE_UPS)
  }

  return {
    ownFrames: 2, // the function above, and the expression that called it
    queuedMs: () => queuedMs() - times[QUEUED],

    callbackBegan () { idleTime = performance.nodeTiming.idleTime },

    wake () {
      words[ASLEEP] = 0
      wakeWorker()
    },

    discount () {
      const account = { late: times[LATE], used: times[WORKED], still: times[STILL] }
      const passed = now() - times[CHECKED]
      const isLate = passed > times[SLEEP] + target.threshold * SLACK
      add(account, { passed, part: passed, busy: cpuTime() - times[CPU_TIME], isLate })
      const isIdle = performance.nodeTiming.idleTime - idleTime > POLLED_MS
      return { lostMs: lostMs(account), stillMs: account.still, isIdle }
    },

    stop () {
      Reflect.deleteProperty(globalThis, NAME)
      guard.run(() => worker.terminate())
    },

    leave () {
      Atomics.store(words, LEAVE, 1) // from now on it begins no session
      if (Atomics.load(words, CONNECTED) === 0) return
      wakeWorker()
      Atomics.wait(words, LEAVE, 1, LEAVE_TIMEOUT_MS)
    }
  }
}

/**
 * @param {import('./shared-memory').WatchTarget} target
 * @param {SharedArrayBuffer} memory
 * @returns {Worker}
 */
function startWorker ({ threshold, callbackEnded }, memory) {
  const words = new Int32Array(memory)
  const expression = `globalThis[Symbol.for(${JSON.stringify(NAME.description)})]()`
  const worker = new Worker(path.join(__dirname, 'inspector-worker.js'), {
    workerData: { memory, threshold, originMs, expression },
    execArgv: [],
    env: {},
    stdout: true,
    stderr: true,
    trackUnmanagedFds: false
  })
  worker.on('message', () => {
    words[ANSWERED] = words[CALLBACKS]
    callbackEnded()
  })
  worker.on('error', warnOf)
  worker.unref()
  return worker
}

/** @param {any} error */
function warnOf (error) {
  warn('BLOCKED', `blocking callbacks cannot be detected: ${String(error?.message).slice(0, 200)}`)
}

/** Makes the sample function reachable for the worker's expression. @param {() => void} value */
function publish (value) {
  Object.defineProperty(globalThis, NAME, { value, enumerable: false, configurable: true })
}

module.exports = { startInspectorWatchdog }
