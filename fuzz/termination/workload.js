'use strict'

// What the terminated code does, over and over: all that makes longstack work. It runs in a vm context, with
// what it needs of this file as its globals.

const { AsyncLocalStorage } = require('node:async_hooks')
const { EventEmitter } = require('node:events')
const channels = require('node:diagnostics_channel')
const fs = require('node:fs')

const MAX_PENDING = 20 // timers and the like that a run leaves
const TURNS = 16 // between two looks at the time
const OVERTIME_MS = 400 // of CPU; code that is not terminated by then has lost its termination

// Bodies that reject a promise without a handler, whereupon V8 has Node call JavaScript
// (PromiseRejectCallback in src/node_task_queue.cc). From Node 22 on they lose some terminations, without
// longstack too; others do not.
const rejecting = new Set(['newFunction', 'hostRejection', 'asyncFunction'])

/** Returns whether a rejection is of a body that was terminated before it could catch it. */
const isOwnReason = (/** @type {any} */ reason) => {
  return typeof reason === 'number' || ['', 'r'].includes(reason?.message)
}

/** Bodies by name; `n` differs from call to call. */
const bodies = {
  stack: 'try { null.x } catch (error) { error.stack }',
  hostStack: 'new HostError("host " + n).stack',
  manyErrors: 'for (let i = 0; i < 5; i++) new HostError("many").stack',
  newFunction: 'new Function("P", "P.reject(" + n + ").catch(() => { throw 1 }).catch(() => {})")(Promise)',
  newCode: 'new HostFunction("return new Promise(() => {}) && " + n)()',
  promises: 'Promise.resolve(n).then((v) => v).then((v) => { throw v }).catch(() => {})',
  hostPromise: 'HostPromise.all([1, HostPromise.resolve(2)]).then(() => {})',
  hostRejection: 'new HostPromise((_, reject) => reject(new HostError("r"))).catch(() => {})',
  asyncFunction: '(async () => { try { await Promise.reject(Error()) } catch (e) { e.stack } })()',
  timer: 'pending.timer(() => new HostError("late").stack)',
  immediate: 'pending.immediate(() => {})',
  tick: 'pending.tick(() => new HostError("tick").stack)',
  microtask: 'pending.microtask(() => {})',
  storage: 'storage.run({ n }, () => new HostError("s").stack)',
  emit: 'emitter.emit("event", n)',
  publish: 'publish(n)',
  file: 'pending.file()',
  overflow: '(function down (k) { try { return down(k + 1) + 1 } catch (e) { e.stack; return 0 } })(0)',
  formatter: `HostError.prepareStackTrace = swapped; new HostError("f").stack
    HostError.prepareStackTrace = before`,
  chain: 'trace.chain()',
  traceStack: 'trace.stack()',
  errorStack: 'trace.stack(new HostError("asked"))',
  why: 'trace.why(server)',
  handles: 'String(trace.handles())',
  current: 'trace.current(); trace.stats()',
  span: 'trace.span("inner " + n % 7, { n }, () => new HostError("in span").stack)',
  spanAsync: 'trace.span("later", async () => { await null })'
}

/**
 * Returns the globals of terminated code.
 * @param {any} trace
 * @param {import('node:net').Server} server
 */
function globalsFor (trace, server) {
  const storage = new AsyncLocalStorage()
  const emitter = new EventEmitter().on('event', () => new Error('emitted').stack)
  const channel = channels.channel('net.server.socket')
  let left = 0
  const start = (/** @type {Function} */ schedule) => (/** @type {Function} */ callback) => {
    if (left >= MAX_PENDING) return
    left++
    schedule(() => {
      left--
      callback()
    })
  }
  let cpuTime = process.cpuUsage()
  let endOfTime = Infinity
  const startStat = start((/** @type {() => void} */ callback) => fs.stat('/', callback))
  const pending = {
    timer: start((/** @type {() => void} */ callback) => setTimeout(callback, 1)),
    immediate: start(setImmediate),
    tick: start(process.nextTick),
    microtask: start(queueMicrotask),
    file: () => startStat(() => {})
  }
  return {
    n: 0,
    /** Called before a run. @param {number} ms after which its termination is due */
    allow (ms) {
      cpuTime = process.cpuUsage()
      endOfTime = ms + OVERTIME_MS
    },
    isOvertime () {
      const { user, system } = process.cpuUsage(cpuTime)
      return (user + system) / 1000 > endOfTime
    },
    trace,
    server,
    storage,
    emitter,
    pending,
    publish: (/** @type {number} */ n) => channel.publish({ socket: { n } }),
    swapped: (/** @type {Error} */ error) => `swapped ${error.message}`,
    before: Error.prepareStackTrace,
    HostError: Error,
    HostPromise: Promise,
    HostFunction: Function,
    process: { kill: () => process.kill(process.pid, 'SIGINT') }
  }
}

/**
 * Returns code that is to be terminated, and ends by itself where that does not happen.
 * @param {string[]} names of bodies, in the order in which they are run
 * @param {number} interruptAt turns after which it sends SIGINT; 0: never
 */
function endlessCode (names, interruptAt) {
  const codes = /** @type {Record<string, string>} */ (bodies)
  const steps = names.map((name) => `now.body = '${name}'; ${codes[name]}; now.body = ''`)
  const interrupt = interruptAt === 0 ? '' : `if (turn === ${interruptAt}) process.kill();`
  const loop = `for (let turn = 1; turn % ${TURNS} !== 0 || !isOvertime(); turn++)`
  return `${loop} { n++; ${interrupt} ${steps.join('; ')} }`
}

module.exports = { bodies, endlessCode, globalsFor, isOwnReason, rejecting }
