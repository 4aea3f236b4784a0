'use strict'

// Program of a trial process. Loads the addon and exercises it like a traced program, in this thread and in a
// worker. Compares stacks with V8's own. Prints a Result of trial.js; an earlier end of the process is also a
// result.

const fs = require('node:fs')
const v8 = require('node:v8')
const vm = require('node:vm')
const { Worker, isMainThread, parentPort } = require('node:worker_threads')
const { attempt } = require('../files')
const { loadBinding } = require('./binding')
// On Linux this keeps the process's core file empty, which takes no time: core(5)
attempt(() => fs.writeFileSync('/proc/self/coredump_filter', '0'))
loadBinding(true)
const capture = require('./capture')
const { captureText } = require('./formatter')
const { frameLines } = require('./text-scan')

const ROUNDS = 20
const STEPS = 3000 // enough for V8 to optimize them
const MINOR_GC = 5 // rounds between minor collections
const MAX_FRAMES = 50 // more than any stack here has
const DEPTH = 20
const BLOCKED_MS = 2
const BLOCK_MS = 6
const KIND = 1 // of a step: any number

// (import "" "f" (func)) (func (export "run") call 0)
const WASM = Uint8Array.from([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 4, 1, 96, 0, 0, 2, 6, 1, 0, 1, 102, 0, 0, 3, 2, 1, 0, 7, 7, 1, 3, 114, 117,
  110, 0, 1, 10, 6, 1, 4, 0, 16, 0, 11
])

/** sentences @type {Set<string>} */
const findings = new Set()
let compared = 0

/** Compares the engine's stack with the one that V8 prints. */
function probe () {
  const parts = capture.partsOf(capture.step(0, KIND, probe))
  const lines = frameLines(captureText(probe, MAX_FRAMES), false)
  if (parts?.[1] !== capture.internStack(lines)) findings.add('one stack was taken for another')
  return ++compared
}

/** @param {number} depth @returns {number} */
const descend = (depth) => depth === 0 ? probe() : descend(depth - 1)

function * generate () {
  yield probe()
}

class Constructed {
  constructor () { probe() }
  get value () { return probe() }
}

const fromText = new Function('probe', 'return probe()') // eslint-disable-line no-new-func

/** @type {Array<() => unknown>} */
const shapes = [
  probe,
  () => descend(DEPTH),
  () => [1, 2].map(() => [2, 1].sort(() => probe())),
  () => JSON.parse('[1]', probe),
  () => 'text'.replace(/t/g, () => String(probe())),
  () => [...generate()],
  () => Reflect.construct(Constructed, []).value,
  () => fromText(probe),
  ...wasmShapes()
]

/** @returns {Array<() => unknown>} none without WebAssembly (--jitless) */
function wasmShapes () {
  const { WebAssembly } = /** @type {any} */ (globalThis)
  if (WebAssembly === undefined) return []
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(WASM), { '': { f: () => { probe() } } })
  return [exports.run, () => [1].forEach(exports.run)]
}

/** @returns {(options?: object) => void} */
function collector () {
  v8.setFlagsFromString('--expose-gc')
  return vm.runInNewContext('gc')
}

/** Captures stacks while V8 moves and frees the objects that identify them. */
function takeStacks () {
  const collect = collector()
  const { hits } = capture.stats()
  const first = compared
  for (let round = 0; round < ROUNDS; round++) {
    for (const shape of shapes) shape()
    if (round % MINOR_GC === 0) collect({ type: 'minor' })
    if (round === ROUNDS / 2) collect()
  }
  for (let i = 0; i < STEPS; i++) capture.step(0, KIND, takeStacks)
  descend(DEPTH)
  const isKnown = capture.stats().hits - hits > STEPS / 2 + (compared - first) / 2
  if (!isKnown) findings.add('stacks that recur were not known again')
}

function block () {
  const end = performance.now() + BLOCK_MS
  while (performance.now() < end) probe()
}

async function fail () {
  await null
  probe()
  throw new Error('expected')
}

/** Runs callbacks of several kinds: one throws, one blocks. */
async function runCallbacks () {
  await new Promise((resolve) => setTimeout(resolve, 1))
  await new Promise((resolve) => setImmediate(resolve))
  await new Promise((resolve) => process.nextTick(() => queueMicrotask(() => resolve(probe()))))
  await fail().catch(({ stack }) => stack)
  await new Promise((resolve) => fs.stat(__filename, () => resolve(block())))
}

/** Captures stacks in a worker. @returns {Promise<void>} */
function useWorker () {
  return new Promise((resolve) => {
    const worker = new Worker(__filename)
    worker.on('message', (sentences) => {
      for (const sentence of sentences) findings.add(`in a worker ${sentence}`)
    })
    worker.on('error', ({ message }) => findings.add(`a worker ended with ${message}`))
    worker.on('exit', () => resolve())
  })
}

/** @returns {Promise<import('../reasons').EngineReason>} */
async function use () {
  const trace = require('../../index')
  trace.on('blocked', () => {}) // otherwise reports are printed
  trace.enable({ capture: 'native', blocked: BLOCKED_MS })
  const { engine, engineCode, engineWhy } = trace.stats()
  if (engineCode.endsWith('_FORBIDDEN')) return { code: 'TRIAL_IMPOSSIBLE', detail: engineWhy }
  if (engine !== 'native') return { code: 'TRIAL_FAILED', detail: engineWhy }
  trace.nativeHooks()
  const worker = useWorker()
  takeStacks()
  await runCallbacks()
  takeStacks()
  await worker
  const { fault } = trace.stats()
  if (fault !== undefined) findings.add(fault)
  return findings.size === 0
    ? { code: 'SELF_TEST_PASSED' }
    : { code: 'TRIAL_FAILED', detail: [...findings].join(', ') }
}

if (isMainThread) {
  use().catch(({ message }) => ({ code: 'TRIAL_FAILED', detail: message }))
    .then((reason) => fs.writeSync(1, JSON.stringify({ reason })))
} else {
  capture.selectEngine('native')
  takeStacks()
  parentPort?.postMessage([...findings])
}
