'use strict'

// What the terminated code does, over and over: all that makes longstack work. It runs in a vm context, with
// what it needs of this file as its globals.

const { AsyncLocalStorage } = require('node:async_hooks')
const { EventEmitter } = require('node:events')
const channels = require('node:diagnostics_channel')
const fs = require('node:fs')

const MAX_PENDING = 20 // timers and the like that a run leaves

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
 * Returns code that never ends.
 * @param {string[]} names of bodies, in the order in which they are run
 * @param {number} interruptAt turns after which it sends SIGINT; 0: never
 */
function endlessCode (names, interruptAt) {
  const codes = /** @type {Record<string, string>} */ (bodies)
  const steps = names.map((name) => `now.body = '${name}'; ${codes[name]}; now.body = ''`)
  const interrupt = interruptAt === 0 ? '' : `if (turn === ${interruptAt}) process.kill();`
  return `for (let turn = 1; ; turn++) { n++; ${interrupt} ${steps.join('; ')} }`
}

module.exports = { bodies, endlessCode, globalsFor }
