'use strict'

// What longstack costs this thread, as an estimate: what V8 does slower around events is not seen, samples of
// V8's profiler see it no better (a fifth to three quarters of the truth). Hooks count nothing for it: how
// many resources there were tell the asyncIds, how many promises the number of stacks taken, and of which
// types they were a sample of the records that are there. Each costs what one of its type has cost where that
// was measured (bench/own-cost.js), by the speed of this machine against that one.

const { typeOfStep } = require('../core/context')
const { CHAIN, FLAGS, PASSED, REF, findResource, newestId } = require('../core/records')
const { settings } = require('../settings')
const capture = require('../stacks/capture')

const { parse, stringify } = JSON // programs replace them
const SAMPLE = 200 // records that are looked at in a go
const RING = 1 << 14 // ids back that have a record for sure
const PROBE_ROUNDS = 60 // some 1.5 ms: the first ones may be slower
const REFERENCE_MS = 0.0255 // of a round of the probe, where the costs were measured
const PROBE = stringify(Array.from({ length: 100 }, (_, i) =>
  ({ name: `resource ${i}`, id: i * 7919, at: [i, i + 0.5, null, true] })))

/**
 * µs of CPU for one of each type, without spans and with them: bench/own-cost.js, with Node 24 and the native
 * engine. `request`: of a server; `passed`: what the filter leaves out.
 * @type {Record<string, [number, number]>}
 */
const COSTS = {
  request: [16.6, 46],
  promise: [0.17, 0.2],
  passed: [0.1, 0.1],
  TickObject: [0.25, 0.9],
  Timeout: [1.4, 1.8],
  Immediate: [1, 2],
  FSREQCALLBACK: [2.4, 7.6],
  FSREQPROMISE: [4, 6],
  FILEHANDLE: [18, 24],
  FILEHANDLECLOSEREQ: [4, 6],
  HTTPCLIENTREQUEST: [58, 190],
  GETADDRINFOREQWRAP: [40, 60],
  TCPWRAP: [60, 90],
  TCPCONNECTWRAP: [60, 90],
  SHUTDOWNWRAP: [15, 20],
  ZLIB: [60, 90],
  other: [3, 5]
}

/** Returns the ms that V8's own work takes here, at best: what is compiled later makes no difference. */
function probe () {
  let best = Infinity
  for (let round = 0; round < PROBE_ROUNDS; round++) {
    const start = process.hrtime.bigint()
    parse(PROBE)
    best = Math.min(best, Number(process.hrtime.bigint() - start) / 1e6)
  }
  return best
}

class OwnCost {
  #slowness = probe() / REFERENCE_MS
  #lastId = newestId()
  #captured = capture.stats().captured
  #requests = 0
  #us = 0

  /**
   * Adds what came since the last call, and returns the ms since the beginning.
   * @param {number} requests that servers got so far
   */
  add (requests) {
    const id = newestId()
    const made = id - this.#lastId
    const { captured } = capture.stats()
    const { us, selected } = sampled(id, made)
    const promises = Math.max(0, captured - this.#captured - selected * made)
    this.#us += us * made + costOf('promise') * promises + costOf('request') * (requests - this.#requests)
    this.#lastId = id
    this.#captured = captured
    this.#requests = requests
    return this.#us * this.#slowness / 1000
  }
}

/** @param {string} type */
function costOf (type) {
  const row = Object.hasOwn(COSTS, type) ? COSTS[type] : COSTS.other
  return row[settings.options.spans === undefined ? 0 : 1]
}

/**
 * Looks at some of the last records.
 * @param {number} id the last one
 * @param {number} made how many there are
 * @returns {{ us: number, selected: number }} µs of one on the average; the share that took a stack
 */
function sampled (id, made) {
  const range = Math.min(made, RING)
  const count = Math.min(range, SAMPLE)
  let us = 0
  let selected = 0
  for (let i = 0; i < count; i++) {
    const record = findResource(id - Math.floor(i * range / count))
    const isPassed = record === undefined || (record.words[record.offset + FLAGS] & PASSED) !== 0
    if (!isPassed) selected++
    us += costOf(isPassed ? 'passed' : typeOf(record))
  }
  return count === 0 ? { us: 0, selected: 0 } : { us: us / count, selected: selected / count }
}

/** @param {{ words: Int32Array, offset: number }} record */
function typeOf ({ words, offset }) {
  const type = typeOfStep(words[offset + CHAIN], words[offset + REF])
  return type === 'PROMISE' ? 'promise' : type
}

module.exports = { OwnCost }
