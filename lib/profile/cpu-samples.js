'use strict'

// Samples of V8's CPU profiler (domain Profiler of node:inspector), each assigned to the chain that ran when
// it was taken. Their times are microseconds of the clock behind process.hrtime on Node 20 to 26 (both V8's
// TimeTicks and libuv's uv_hrtime read it). Times of another clock are shifted to match the start of the
// profiler.

const { now, originMs } = require('../core/clock')
const { BoundedMap } = require('../group-by')
const { IDLE } = require('./steps')

const INTERVAL_US = 4000 // V8's default of 1000 costs a busy server three times as much
const MAX_STACKS = 50_000
const MAX_TOTALS = 100_000 // pairs of chain and stack
const SLACK_MS = 5 // between the clocks
const ROOT = 0 // number of the empty stack
const SLOTS = 2 ** 20 // more than there are slots of totals

/**
 * @typedef {{ functionName: string, url: string, lineNumber: number, columnNumber: number }} CallFrame
 *
 * @typedef {object} CpuProfile as the inspector returns it
 * @property {Array<{ id: number, callFrame: CallFrame, children?: number[] }>} nodes
 * @property {number} startTime µs
 * @property {number[]} [samples] ids of nodes
 * @property {number[]} [timeDeltas] µs since the sample before
 *
 * @typedef {object} StackTotal
 * @property {number} slot of the chain and route
 * @property {number} stack number of the innermost frame, see `framesOf`
 * @property {number} ms
 * @property {number} count
 */

/** Starts and stops V8's profiler in this thread. */
class CpuProfiler {
  /** @throws {Error} if Node was built without the inspector */
  constructor () {
    const { Session } = require('node:inspector')
    /** @type {import('node:inspector').Session} */
    this.session = new Session()
    this.session.connect()
    this.post('Profiler.enable')
    this.post('Profiler.setSamplingInterval', { interval: INTERVAL_US })
  }

  /** Starts sampling. Takes 10 to 20 ms, since V8 records the compiled functions. */
  start () {
    this.before = now()
    this.post('Profiler.start')
    this.after = now()
  }

  /**
   * Stops sampling.
   * @returns {{ profile: CpuProfile, offset: number }} offset: ms of the clock at 0 µs of the profile
   */
  stop () {
    const { profile } = this.post('Profiler.stop')
    const { before = 0, after = 0 } = this
    const started = profile.startTime / 1e3 - originMs
    const isSameClock = started > before - SLACK_MS && started < after + SLACK_MS
    return { profile, offset: isSameClock ? -originMs : before - profile.startTime / 1e3 }
  }

  close () {
    this.session.disconnect()
  }

  /**
   * Calls a method of the inspector, which responds synchronously within the same thread.
   * @param {string} method
   * @param {object} [params]
   * @returns {any}
   */
  post (method, params) {
    /** @type {any} */
    let answer
    /** @type {Error | null} */
    let failure = null
    this.session.post(method, params, (error, result) => {
      failure = error
      answer = result
    })
    if (failure !== null) throw failure
    return answer
  }
}

/** CPU time by chain and stack. A stack is a number, with the stack of its caller and a frame. */
class CpuTotals {
  /** numbers by caller and frame @type {Map<string, number>} */
  numbers = new Map()
  /** @type {number[]} */
  callers = [ROOT]
  /** @type {CallFrame[]} */
  frames = [{ functionName: '(root)', url: '', lineNumber: -1, columnNumber: -1 }]
  /** by slot and stack @type {BoundedMap<number, StackTotal>} */
  totals = new BoundedMap(MAX_TOTALS)
  sampleCount = 0

  /**
   * Adds each sample of a profile to the step that ran when it was taken.
   * @param {{ profile: CpuProfile, offset: number }} taken
   * @param {import('./steps').Steps} steps
   * @param {import('./totals').Totals} totals
   */
  add ({ profile, offset }, { chains, count, requests, start, times }, totals) {
    const { nodes, startTime, samples = [], timeDeltas = [] } = profile
    const stacks = this.numberStacks(nodes)
    const shift = (offset - start) * 1e3 // to µs of the steps
    let time = startTime + shift
    let step = 0
    for (let i = 0; i < samples.length; i++) {
      time += timeDeltas[i]
      while (step + 1 < count && times[step + 1] <= time) step++
      const stack = stacks.get(samples[i])
      const isOutside = time < times[0] || step + 1 >= count
      if (stack === undefined || isOutside || chains[step] === IDLE) continue
      this.sampleCount++
      this.addSample(totals.slotOf(chains[step], requests[step]), stack, timeDeltas[i] / 1e3)
    }
  }

  /** @param {number} slot @param {number} stack @param {number} ms */
  addSample (slot, stack, ms) {
    const key = stack * SLOTS + slot
    const total = this.totals.find(key, () => ({ slot, stack, ms: 0, count: 0 }))
    if (total === undefined) return
    total.ms += ms
    total.count++
  }

  /**
   * Numbers the stacks of a profile.
   * @param {CpuProfile['nodes']} nodes each after its caller (flattenNodesTree in V8's
   *   src/inspector/v8-profiler-agent-impl.cc)
   * @returns {Map<number, number>} by id of the node; without V8's idle time
   */
  numberStacks (nodes) {
    /** @type {Map<number, number>} */
    const stacks = new Map()
    /** stack of the caller, by id of the node @type {Map<number, number>} */
    const callers = new Map()
    for (const { id, callFrame, children = [] } of nodes) {
      if (callFrame.functionName === '(idle)') continue
      const caller = callers.get(id) ?? ROOT
      const stack = callFrame.functionName === '(root)' ? ROOT : this.numberOf(caller, callFrame)
      stacks.set(id, stack)
      for (const child of children) callers.set(child, stack)
    }
    return stacks
  }

  /** @param {number} caller @param {CallFrame} frame @returns {number} */
  numberOf (caller, frame) {
    const { functionName, url, lineNumber, columnNumber } = frame
    const key = `${caller}\n${functionName}\n${url}\n${lineNumber}\n${columnNumber}`
    const number = this.numbers.get(key)
    if (number !== undefined) return number
    if (this.numbers.size >= MAX_STACKS) return caller
    const added = this.callers.push(caller) - 1
    this.frames.push(frame)
    this.numbers.set(key, added)
    return added
  }

  /** Returns the numbers of the frames of a stack, innermost first. @param {number} stack */
  framesOf (stack) {
    const numbers = []
    for (let number = stack; number !== ROOT; number = this.callers[number]) numbers.push(number)
    return numbers
  }
}

module.exports = { CpuProfiler, CpuTotals }
