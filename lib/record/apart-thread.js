'use strict'

// The thread that builds spans and writes them: see apart.js.

const process = require('node:process')
const v8 = require('node:v8')
const { parentPort, workerData } = require('node:worker_threads')
const { keptOpen } = require('../files')
const loopIterations = require('../core/loop-iterations')
const { createSinks } = require('../sinks/sinks')
require('../sinks/file') // early: without a free descriptor, the program's thread takes over
const { SpanSource } = require('./span-source')

/**
 * @typedef {object} Task
 * @property {import('./apart').PlacedOutput[]} outputs
 * @property {string | undefined} main the program's file
 * @property {Int32Array} words shared memory, see apart.js
 * @property {typeof import('./apart').slots} slots
 * @property {typeof import('./apart').states} states
 * @property {number} heap limit of this thread in MiB
 * @property {import('node:worker_threads').MessagePort} news port for reports to the program's thread
 */

/** @type {Task} */
const { outputs, main, words, slots, states, heap, news } = workerData
if (main !== undefined) process.argv[1] = main // an exporter installed by the program is resolved from there

const source = new SpanSource(() => Atomics.add(words, slots.TICKS, 1))
const port = /** @type {import('node:worker_threads').MessagePort} */ (parentPort)
let sinks = sinksFor(outputs)
let kept = ''
/** codes of warnings already sent: each is sent once */
const warned = new Set()

/** @param {import('./apart').PlacedOutput[]} list */
function sinksFor (list) {
  return createSinks(list, { warn, isOwnThread: true })
}

/** @param {string} code @param {string} sentence */
function warn (code, sentence) {
  if (warned.has(code)) return
  warned.add(code)
  news.postMessage({ warning: [code, sentence] })
}

/**
 * Commands that a message can name. A command that continues after it returns gives a promise.
 * @type {Record<string, (value: any) => any>}
 */
const commands = {
  take (/** @type {import('./span-source').Batch} */ { parts, isAll, isLast }) {
    for (let i = 0; i < Math.max(1, parts.length); i++) {
      const isEnd = i >= parts.length - 1
      const part = parts.slice(i, i + 1)
      const made = source.take({ parts: part, isAll: isAll && isEnd, isLast: isLast && isEnd })
      for (const span of made) sinks.write(span)
      Atomics.add(words, slots.MADE, made.length)
      Atomics.add(words, slots.TICKS, 1)
    }
    const isTooMuch = v8.getHeapStatistics().used_heap_size > heap * 2 ** 20
    if (isTooMuch) throw new Error(`it took more than ${heap} MiB`)
  },
  flush () {
    sinks.flush()
    return sinks.settled()
  },
  sync: () => {},
  setOutputs (/** @type {import('./apart').PlacedOutput[]} */ list) {
    sinks.close()
    sinks = sinksFor(list)
  },
  close () {
    sinks.close()
    port.unref() // pending requests to a collector keep the thread alive
  }
}

/** Marks this thread as begun. Returns false if the program's thread has taken over the work. */
function hasBegun () {
  return Atomics.compareExchange(words, slots.STATE, states.NEW, states.BEGUN) !== states.REPLACED
}

/** Reports the counts of written spans, and the files that are open for longstack, not for the program. */
function tellNews () {
  const list = [...keptOpen]
  const text = String(list.map(([fd, { dev, ino }]) => [fd, dev, ino]))
  news.postMessage({ stats: sinks.stats(), ...(text !== kept && { kept: list }) })
  kept = text
}

port.on('message', async (/** @type {Record<string, any>} */ message) => {
  if (!hasBegun()) return port.close()
  const { number, ...rest } = message
  const [[command, value]] = Object.entries(rest)
  /** @type {unknown} */
  let done
  loopIterations.batch(() => { done = commands[command](value) })
  if (done !== undefined) await done
  tellNews()
  Atomics.store(words, slots.WAITING, source.waiting)
  if (command === 'take') Atomics.add(words, slots.BYTES, value.size)
  // A command with a promise may end after a later command
  if (((number - Atomics.load(words, slots.DONE)) | 0) > 0) Atomics.store(words, slots.DONE, number)
  Atomics.notify(words, slots.DONE)
})
tellNews()
process.on('exit', () => {
  Atomics.store(words, slots.HAS_ENDED, 1)
  Atomics.notify(words, slots.DONE)
})
