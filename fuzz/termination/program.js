'use strict'

// A traced program whose code is terminated at random instants. After each it looks at everything that has to
// be as it was: from the same callback, from what that makes, and from flows that were there before. Prints
// each finding as a line of JSON, and counts as the last one.

const fs = require('node:fs')
const net = require('node:net')
const path = require('node:path')
const { inspect } = require('node:util')
const vm = require('node:vm')
const trace = require('../..')
const guard = require('../../lib/core/guard')
const { bodies, endlessCode, globalsFor, isOwnReason, rejecting } = require('./workload')

/**
 * @typedef {object} Settings
 * @property {number} seed
 * @property {number} count of terminations
 * @property {boolean} atStart the first ones come in the main script, with nothing loaded
 * @property {boolean} spans
 * @property {boolean} workers ends workers as well
 */

/** @type {Settings} */
const settings = JSON.parse(process.argv[2])
let findings = 0
const counts = { terminated: 0, inState: 0, inLongstack: 0, workers: 0, lost: 0, byV8: 0 }

const initial = {
  format: Error.prepareStackTrace,
  limit: Error.stackTraceLimit,
  SIGINT: process.listenerCount('SIGINT')
}

let state = settings.seed >>> 0
/** @param {number} below @returns {number} */
function random (below) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0
  return Math.floor(state / 2 ** 32 * below)
}

/** @template T @param {T[]} list @returns {T} */
const pick = (list) => list[random(list.length)]

const FIRST_TO_LOSE = 22 // of Node
const MAX_FINDINGS = 20 // printed
const MAX_OPEN = 5 // spans whose promise was terminated before it was settled

let round = 0
let what = ''
/** @param {unknown} condition @param {string} text */
function expect (condition, text) {
  if (condition || findings++ >= MAX_FINDINGS) return
  // At once: V8 may end the process
  process._rawDebug(JSON.stringify({ finding: `round ${round} (${what}): ${text}` }))
}

// State of longstack's that was set when code was terminated: it was inside.
const { restore } = guard
let isStateSet = false
guard.restore = (saved) => {
  const now = guard.save()
  isStateSet = now.some((value, i) => JSON.stringify(value ?? null) !== JSON.stringify(saved[i] ?? null))
  restore(saved)
}

const server = net.createServer().listen(0).unref()
const bodyNames = Object.keys(bodies).filter((name) => settings.spans || !name.startsWith('span'))
const now = { body: '' }
const globals = { ...globalsFor(trace, server), now }
const losesTerminations = Number(process.versions.node.split('.')[0]) >= FIRST_TO_LOSE
const contexts = [
  vm.createContext({ ...globals }),
  vm.createContext({ ...globals }, { microtaskMode: 'afterEvaluate' })
]
Object.assign(globalThis, globals, { process })

/** Runs code that is terminated. */
function terminate () {
  const isInterrupted = random(8) === 0
  const kind = random(6)
  // Microtasks of a context with a queue of its own wait for ever where no run of it ends
  const names = Array.from({ length: 1 + random(4) }, () => pick(bodyNames))
    .map((name) => kind === 2 && name === 'spanAsync' ? 'span' : name)
  what = `${names.join(', ')}; kind ${kind}${isInterrupted ? ', interrupted' : ''}`
  const code = endlessCode(names, isInterrupted ? 1 + random(20) : 0)
  const timeout = isInterrupted ? 2000 : 1 + (random(4) === 0 ? random(29) : random(4))
  const options = { timeout, breakOnSigint: isInterrupted }
  isStateSet = false
  now.body = ''
  globals.allow(timeout)
  let ended
  fs.writeSync(1, '<')
  try {
    if (kind === 0) ended = vm.runInNewContext(code, { ...globals }, options)
    else if (kind === 1 && !isInterrupted) ended = vm.runInThisContext(code, options)
    else if (kind === 2) ended = vm.runInContext(code, contexts[1], options)
    else ended = new vm.Script(code).runInContext(contexts[0], options)
  } catch (error) {
    ended = /** @type {any} */ (error).code ?? error
  }
  const isLost = globals.isOvertime()
  fs.writeSync(1, '>')
  if (isLost) {
    counts.lost++
    const canBe = losesTerminations && names.some((name) => rejecting.has(name))
    expect(canBe, `the termination was lost, and the code ended with ${ended}`)
  } else {
    expect(/^ERR_SCRIPT_EXECUTION/.test(ended), `the code ended with ${ended}`)
    counts.terminated++
  }
  if (isStateSet) counts.inState++
  if (isStateSet || /stack|errors|trace|chain|why|handles|current|span/i.test(now.body)) counts.inLongstack++
}

/** Looks at what is the program's. */
function checkProgram () {
  if (Error.prepareStackTrace === globals.swapped) Error.prepareStackTrace = initial.format // the code's own
  expect(Error.prepareStackTrace === initial.format, 'Error.prepareStackTrace is another')
  expect(Error.stackTraceLimit === initial.limit, `Error.stackTraceLimit is ${Error.stackTraceLimit}`)
  expect(process.listenerCount('SIGINT') === initial.SIGINT, 'listeners of SIGINT are gone')
  const { stack } = new Error('message')
  const text = String(stack)
  expect(text.startsWith('Error: message\n    at checkProgram ('), `a stack is ${text.slice(0, 80)}`)
  expect(trace.stats().fault === undefined, `fault: ${JSON.stringify(trace.stats().fault)}`)
}

/** @param {string} text @param {string} functionName of the flow that it has to tell of */
function checkHops (text, functionName) {
  const hop = text.slice(text.indexOf('\n  ── '))
  const isThere = text.includes('\n  ── ') && hop.includes(functionName)
  expect(isThere, `no hop by ${functionName} in: ${text.slice(0, 300)}`)
}

/** Checks that what this callback makes from now on is traced. @returns {Promise<void>} */
async function makeAfter () {
  const timer = new Promise((resolve) => setTimeout(function later () {
    checkHops(String(new Error('timer').stack), 'makeAfter')
    checkProgram()
    resolve(undefined)
  }, 1))
  const immediate = new Promise((resolve) => setImmediate(() => {
    checkHops(trace.stack(), 'makeAfter')
    resolve(undefined)
  }))
  await null
  checkHops(String(new Error('awaited').stack), 'terminateNow')
  await Promise.all([timer, immediate])
}

/** Flows that were there before: their stories must stay theirs. */
const waiting = /** @type {Array<{ timer: NodeJS.Timeout, maker: string }>} */ ([])

function startWaiting () {
  const makers = [
    function makerOne () { return setTimeout(() => {}, 1e6).unref() },
    function makerTwo () { return setTimeout(() => {}, 1e6).unref() },
    function makerThree () { return setTimeout(() => {}, 1e6).unref() }
  ]
  for (const maker of makers) waiting.push({ timer: maker(), maker: maker.name })
}

function checkWaiting () {
  for (const { timer, maker } of waiting) checkHops(`\n${trace.stack(timer)}`, maker)
}

/** One round in a callback of its own. @returns {Promise<void>} */
function playRound () {
  return new Promise((resolve) => setTimeout(function terminateNow () {
    round++
    terminate()
    checkProgram()
    makeAfter().then(() => {
      if (round % 8 === 0) checkWaiting()
      resolve()
    })
  }, 0))
}

/** Starts a worker that is traced as well, and ends it at a random instant. */
async function endWorker () {
  const { Worker } = require('node:worker_threads')
  const workerData = { seed: random(2 ** 31), bodies: bodyNames }
  const worker = new Worker(path.join(__dirname, 'worker.js'), { workerData })
  worker.on('error', (/** @type {any} */ error) => {
    // Node takes the termination of a promise hook, of an empty one, too, for an uncaught error, and cannot
    // serialize that; on Node 20 V8 then ends the process (ValueSerializer::WriteObject)
    if (error?.code === 'ERR_WORKER_UNSERIALIZABLE_ERROR') counts.byV8++
    else expect(false, `a worker: ${error?.stack ?? error}`)
  })
  worker.on('message', (text) => expect(false, `in a worker: ${text}`))
  fs.writeSync(1, '[')
  await new Promise((resolve) => setTimeout(resolve, 15 + random(120)))
  await worker.terminate()
  fs.writeSync(1, ']')
  counts.workers++
  checkProgram()
}

/** Built-ins that may have been half-loaded. */
const builtIns = { net: 14, http: 14, v8: 15, worker_threads: 12, fs: 80, tls: 10, zlib: 20, util: 30 }

function checkBuiltIns () {
  for (const [name, keys] of Object.entries(builtIns)) {
    try {
      const found = Object.keys(require(name)).length
      expect(found >= keys, `${name} has ${found} keys`)
    } catch (error) {
      expect(false, `require('${name}'): ${/** @type {Error} */ (error).message}`)
    }
  }
  try {
    new console.Console(fs.createWriteStream('/dev/null')).log('printed')
  } catch (error) {
    expect(false, `console.log: ${/** @type {Error} */ (error).message}`)
  }
}

/** Checks that spans still come, and reports of blocking callbacks. */
async function checkFeatures () {
  const span = await new Promise((resolve) => {
    const remove = trace.on('span', (record) => {
      if (record.name !== 'after all') return
      remove()
      resolve(record)
    })
    setTimeout(() => trace.span('after all', () => {}), 1)
    setTimeout(resolve, 3000).unref()
  })
  expect(span !== undefined, 'no span')
  if (process.env.LONGSTACK_CAPTURE === 'js') return // which detects none
  const blocked = await new Promise((resolve) => {
    const remove = trace.on('blocked', (event) => {
      if (event.ms < 60) return
      remove()
      resolve(event)
    })
    setTimeout(() => {
      const start = process.cpuUsage() // a wait for a CPU does not count
      while (process.cpuUsage(start).user < 150_000);
    }, 1)
    setTimeout(resolve, 5000)
  })
  expect(blocked !== undefined, 'no blocking callback')
}

let isEnded = false

// Code that is terminated while it makes a timer can leave Node's lists of timers so that none fires any more
// (lib/internal/timers.js): then nothing is left to wait for, without longstack too
process.on('exit', () => {
  const hasTimer = what.split(/[,;] /).includes('timer')
  if (isEnded || !hasTimer) return
  process._rawDebug(JSON.stringify({ isEnd: true, ...counts, byV8: counts.byV8 + 1 }))
})

async function main () {
  for (let i = 0; i < settings.count; i++) await playRound()
  for (let i = 0; settings.workers && i < 3; i++) await endWorker()
  checkWaiting()
  checkBuiltIns()
  if (settings.spans) await checkFeatures()
  const { open } = trace.stats().spans ?? { open: 0 }
  expect(open <= MAX_OPEN, `${open} spans are open`)
  process._rawDebug(JSON.stringify({ isEnd: true, ...counts, openSpans: open }))
  isEnded = true
  process.exit(0)
}

// Code was terminated before it could catch
process.on('unhandledRejection', (reason) => expect(isOwnReason(reason), `rejected: ${inspect(reason)}`))
if (settings.atStart) {
  terminate()
  checkProgram()
}
startWaiting()
main().catch((error) => {
  expect(false, `the program: ${error.stack}`)
  process._rawDebug(JSON.stringify({ isEnd: true, ...counts }))
  isEnded = true
  process.exit(1)
})
