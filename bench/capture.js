'use strict'

// Measures the capture of an already known stack of ten frames: node bench/capture.js prints nanoseconds,
// with --json as data. The call from JavaScript is included, the loop is not.

const { explain } = require('../lib/reasons')
const { loadBinding } = require('../lib/stacks/binding')
const { settings } = require('../lib/settings')
const capture = require('../lib/stacks/capture')
const { ROOT_CHAIN } = require('../lib/core/records')
const { median } = require('./median')

/**
 * @typedef {object} Figures ns, medians
 * @property {string} engine
 * @property {string} why
 * @property {number} frames
 * @property {number} [step] the stack and its chain, as captured by a hook
 * @property {number} [walk] only the stack
 * @property {number} clock performance.now(), for comparison
 * @property {number} v8 Error.captureStackTrace, also with ten frames
 * @property {number} hits share of the measured captures with a known stack
 */

const FRAMES = 10
const CALLS = 100_000
const SETS = 25
const WARM_SETS = 10

settings.options = { ...settings.options, frames: FRAMES }
const KIND = 1 // any kind of resource
const holder = { stack: '' }
let sink = 0

/** Calls `work` below `depth` frames. @param {number} depth @param {() => number} work @returns {number} */
function descend (depth, work) {
  return depth === 0 ? work() : descend(depth - 1, work) + 0
}

/** Separate loops, so that they share no type feedback. @type {Record<string, (calls: number) => void>} */
const loops = {
  empty: (calls) => { for (let i = 0; i < calls; i++) sink += i & 1 },
  clock: (calls) => { for (let i = 0; i < calls; i++) sink += performance.now() & 1 },
  step: (calls) => { for (let i = 0; i < calls; i++) sink += capture.step(ROOT_CHAIN, KIND, descend) & 1 },
  v8: (calls) => { for (let i = 0; i < calls / 100; i++) Error.captureStackTrace(holder) }
}

/**
 * Runs a loop in an event loop callback, `depth` frames below it.
 * @param {string} name
 * @param {number} depth
 * @returns {Promise<number>} ns per call
 */
function once (name, depth) {
  const calls = name === 'v8' ? CALLS / 100 : CALLS
  return new Promise((resolve) => setImmediate(() => {
    const ns = descend(depth, () => {
      const began = process.hrtime.bigint()
      loops[name](CALLS)
      return Number(process.hrtime.bigint() - began) / calls
    })
    resolve(ns)
  }))
}

/** @returns {Promise<number>} depth of calls at which the frame of the loop is the tenth */
async function measureDepth () {
  const limit = Error.stackTraceLimit
  Error.stackTraceLimit = Infinity
  let frames = 0
  loops.count = () => { frames = String(new Error().stack).split('\n    at ').length - 1 }
  await once('count', 0)
  Error.stackTraceLimit = limit
  return FRAMES - frames
}

/** @returns {Promise<Figures>} */
async function measure () {
  capture.selectEngine('native')
  const binding = capture.name === 'native' ? loadBinding().binding : undefined
  let unknown = 0
  if (binding !== undefined) {
    loops.walk = (calls) => {
      for (let i = 0; i < calls; i++) {
        const id = binding.capture()
        if (id !== 0) continue
        unknown++
        binding.remember(1)
      }
    }
  }
  Error.stackTraceLimit = FRAMES
  const depth = await measureDepth()
  const excluded = binding === undefined ? ['count', 'step'] : ['count']
  const names = Object.keys(loops).filter((name) => !excluded.includes(name))
  /** @type {Record<string, number[]>} */
  const times = Object.fromEntries(names.map((name) => [name, []]))
  let before = capture.stats()
  for (let set = 0; set < WARM_SETS + SETS; set++) {
    if (set === WARM_SETS) {
      before = capture.stats()
      unknown = 0
    }
    for (const name of names) {
      const ns = await once(name, depth)
      if (set >= WARM_SETS) times[name].push(ns)
    }
  }
  const after = capture.stats()
  const loop = median(times.empty)
  const net = (/** @type {string} */ name) =>
    times[name] === undefined ? undefined : Math.max(0, median(times[name]) - loop)
  const captured = after.captured - before.captured
  if (Number.isNaN(sink)) throw new Error('performance.now() returned NaN')
  return /** @type {Figures} */ ({
    engine: capture.name,
    why: explain('engine', capture.reason()),
    frames: FRAMES,
    step: net('step'),
    walk: net('walk'),
    clock: net('clock'),
    v8: net('v8'),
    hits: captured === 0 ? 0 : 1 - (after.misses - before.misses + unknown) / (2 * captured)
  })
}

measure().then((figures) => {
  if (process.argv.includes('--json')) return console.log(JSON.stringify(figures))
  const ns = (/** @type {number | undefined} */ value) => value === undefined ? '–' : `${value.toFixed(1)} ns`
  const engine = `${figures.engine} engine (${figures.why})`
  console.log(`Node ${process.versions.node}, ${engine}, ${figures.frames} frames: ` +
    `the stack walk ${ns(figures.walk)}, with its chain ${ns(figures.step)} ` +
    `(performance.now() alone: ${ns(figures.clock)}), ` +
    `Error.captureStackTrace ${ns(figures.v8)}; ${(figures.hits * 100).toFixed(3)} % captured before`)
})
