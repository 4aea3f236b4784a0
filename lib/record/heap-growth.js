'use strict'

// Names the functions that allocated the memory retained by the heap, once memory is short:
// native/heap-growth.cc.

const path = require('node:path')
const process = require('node:process')
const { growthOf } = require('./growth-text')
const { loadBinding } = require('../stacks/binding')

const OWN_DIRECTORY = path.join(__dirname, '..', path.sep)
const MB = 2 ** 20
const MAX_YOUNG = 20 // at most one part in 20 of the heap limit

let isOn = false

/**
 * @returns {{ start: (youngBytes: number, directory: string) => void, stop: () => void,
 *   read: () => string | undefined } | undefined}
 */
const binding = () => /** @type {any} */ (loadBinding().binding)?.heapGrowth

/** @returns {number} bytes of V8's heap limit that are for the young generation, if known */
function youngBytes () {
  const { maxYoungGenerationSizeMb: ofWorker } = require('node:worker_threads').resourceLimits ?? {}
  if (ofWorker !== undefined) return ofWorker * MB
  const { heap_size_limit: limit } = require('node:v8').getHeapStatistics()
  const flags = [...process.execArgv, process.env.NODE_OPTIONS].join(' ')
  const [, old] = /--max[-_]old[-_]space[-_]size[= ](\d+)/.exec(flags) ?? []
  if (old !== undefined) return Math.max(0, limit - Number(old) * MB)
  return limit / MAX_YOUNG // V8 makes it smaller than usual on small machines
}

module.exports = {
  youngBytes,

  /** Starts to watch the heap, unless it is watched. */
  start () {
    if (isOn) return
    isOn = true
    binding()?.start(youngBytes(), OWN_DIRECTORY)
  },

  stop () {
    if (isOn) binding()?.stop()
    isOn = false
  },

  /**
   * @returns {(import('./growth-text').HeapGrowth & { used: number }) | undefined} used: bytes of the heap
   *   after its last full collection; undefined: memory is not short, or as before
   */
  read () {
    const text = binding()?.read()
    if (text === undefined) return undefined
    const [sampled, used, ...places] = text.split('\n')
    return { sampled: Number(sampled), used: Number(used), growth: growthOf(places.join('\n')) }
  }
}
