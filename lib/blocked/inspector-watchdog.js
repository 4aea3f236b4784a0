'use strict'

// The watchdog without the native engine: a worker that, through Node's inspector, has the main thread take a sample of
// itself while that runs (inspector-worker.js). No port is opened, no debugger is switched on: a function is called.
//
// Whether the loop waits is not to be seen from another thread; so the worker sends a message when a run has not been
// followed by another for a while, which is answered as soon as the loop is free.

const path = require('node:path')
const { getEnvironmentData, isMainThread, setEnvironmentData, Worker } = require('node:worker_threads')
const { performance } = require('node:perf_hooks')

const guard = require('../context/guard')
const { add, lost, queued, used, SLACK } = require('./cpu-clock')
const { ANSWERED, ASLEEP, BEATS, BELL, BYTES, JOINED, LATE, LEAVE, LOOKED, QUEUED, SERVED, SLEEP, STILL, USED, WORKED } = require('./shared-memory')

const KEY = 'longstack.blocked'
const NAME = Symbol.for('longstack.blocked.1')

const PATIENCE = 1000 // ms that the end of the process waits for the worker to end its session
const WAITED = 1 // ms in the poll: the loop was not in a run

/**
 * @param {object} deps
 * @param {() => number} deps.now
 * @param {(code: string, sentence: string) => void} deps.warn
 * @returns {import('./detector').Watchdog | undefined}
 */
function createInspectorWatchdog ({ now, warn }) {
  if (!isMainThread) {
    if (firstToSay()) warn('BLOCKED_THREAD', 'without the native engine long runs are seen in the main thread only, not in workers.')
    return undefined
  }
  // Under --permission Node aborts where a worker of a process without that right connects to it
  // (src/inspector_agent.cc).
  if (/** @type {any} */ (process).permission?.has('inspector') === false) {
    warn('BLOCKED', 'long runs of the event loop cannot be watched: the permission model allows ' +
      'no inspector (--allow-inspector) and no addons (--allow-addons).')
    return undefined
  }
  const memory = new SharedArrayBuffer(BYTES)
  const times = new Float64Array(memory)
  const words = new Int32Array(memory)
  let polled = 0

  function ring () {
    Atomics.add(words, BELL, 1)
    Atomics.notify(words, BELL)
  }

  /** @param {import('./detector').Given} given @returns {Worker} */
  function hire ({ threshold, turned }) {
    const worker = new Worker(path.join(__dirname, 'inspector-worker.js'), {
      workerData: { memory, threshold, offset: clockOffset(now()), expression: `globalThis[Symbol.for(${JSON.stringify(NAME.description)})]()` },
      execArgv: [],
      env: {},
      stdout: true,
      stderr: true,
      trackUnmanagedFds: false
    })
    worker.on('message', () => {
      words[ANSWERED] = words[BEATS]
      turned()
    })
    worker.on('error', (error) => warn('BLOCKED', `long runs of the event loop cannot be watched: ${String(error?.message).slice(0, 200)}`))
    worker.unref()
    return worker
  }

  return {
    memory,

    start (given) {
      setEnvironmentData(KEY, new Int32Array(new SharedArrayBuffer(4)))
      publish(() => {
        words[SERVED]++
        given.sample()
      })
      polled = performance.nodeTiming.idleTime
      times[LOOKED] = now() // the worker takes a while to come
      times[USED] = used()
      /** @type {Worker} */
      let worker
      try {
        worker = guard.run(() => hire(given))
      } catch (error) {
        warn('BLOCKED', `long runs of the event loop cannot be watched: ${/** @type {any} */ (error)?.message}`)
        return undefined
      }
      return {
        above: 2, // the function above, and the expression that called it
        queued: () => queued() - times[QUEUED],

        beat () { polled = performance.nodeTiming.idleTime },

        wake () {
          words[ASLEEP] = 0
          ring()
        },

        lost () {
          const account = { late: times[LATE], used: times[WORKED], still: times[STILL] }
          const passed = now() - times[LOOKED]
          const late = passed > times[SLEEP] + given.threshold * SLACK
          add(account, { passed, part: passed, busy: used() - times[USED], late })
          return { lost: lost(account), still: account.still, idle: performance.nodeTiming.idleTime - polled > WAITED }
        },

        stop () {
          Reflect.deleteProperty(globalThis, NAME)
          guard.run(() => worker.terminate())
        },

        leave () {
          Atomics.store(words, LEAVE, 1) // from now on it begins no session
          if (Atomics.load(words, JOINED) === 0) return
          ring()
          Atomics.wait(words, LEAVE, 1, PATIENCE)
        }
      }
    }
  }
}

/** Where the worker's expression finds it. @param {() => void} value */
function publish (value) {
  Object.defineProperty(globalThis, NAME, { value, enumerable: false, configurable: true })
}

/** One sentence for all workers. */
function firstToSay () {
  const said = getEnvironmentData(KEY)
  return !(said instanceof Int32Array) || Atomics.exchange(said, 0, 1) === 0
}

/** Returns the ms that longstack's clock is behind libuv's: other threads have an origin of their own. @param {number} time of it */
function clockOffset (time) {
  const [seconds, nanos] = process.hrtime()
  return seconds * 1e3 + nanos * 1e-6 - time
}

module.exports = { createInspectorWatchdog }
