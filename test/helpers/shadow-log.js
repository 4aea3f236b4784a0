'use strict'

// Runs programs with the run log beside today's account of their spans, and reads what it wrote.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const layout = require('../../lib/core/run-log-words')
const { root } = require('./run')

const preload = path.join(root, 'test', 'fixtures', 'shadow-log', 'preload.js')
const KIND = (1 << layout.KIND_BITS) - 1

/**
 * @typedef {object} Entry
 * @property {number} number
 * @property {number} kind
 * @property {number} flags
 * @property {number} ref
 * @property {number} chain
 * @property {number} request
 * @property {number} registered
 * @property {number} settled
 * @property {number} time
 * @property {number} a
 * @property {number} b
 * @property {number} x
 *
 * @typedef {object} Names what numbers stood for when the thread ended
 * @property {Record<string, { at?: string, label?: string }>} chains
 * @property {Record<string, string>} requests spanId by number; empty: it was no longer known
 * @property {Record<string, { type: string, subsystem?: string }>} types of what ran, by number of the run
 * @property {Record<string, number>} causes of it by its record: reference, 0: there is none any more
 *
 * @typedef {{ ring: SharedArrayBuffer, entries: Entry[], names: Names }} Shadow of one thread
 */

/**
 * Calls a function that runs programs, and reads the run logs of all their threads.
 * @template T
 * @param {(env: Record<string, string>) => Promise<T>} run with these variables
 * @returns {Promise<{ result: T, shadows: Shadow[] }>}
 */
async function shadowed (run) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-shadow-'))
  try {
    const result = await run({ NODE_OPTIONS: `--require ${preload}`, SHADOW_LOG: directory })
    const files = fs.readdirSync(directory).filter((name) => name.endsWith('.ring'))
    return { result, shadows: files.map((name) => read(path.join(directory, name.slice(0, -'.ring'.length)))) }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** @param {string} file without its ending @returns {Shadow} */
function read (file) {
  const ring = new SharedArrayBuffer(layout.BYTES)
  Buffer.from(ring).set(fs.readFileSync(`${file}.ring`))
  return { ring, entries: entriesOf(ring), names: JSON.parse(fs.readFileSync(`${file}.json`, 'utf8')) }
}

/** @param {SharedArrayBuffer} ring @returns {Entry[]} oldest first */
function entriesOf (ring) {
  const words = new Int32Array(ring)
  const doubles = new Float64Array(ring)
  const count = words[layout.COUNT]
  const entries = []
  for (let number = Math.max(1, count - layout.ENTRIES + 1); number <= count; number++) {
    const place = layout.HEADER + ((number - 1) & (layout.ENTRIES - 1)) * layout.WORDS
    entries.push({
      number,
      kind: words[place + layout.HEAD] & KIND,
      flags: words[place + layout.HEAD] >>> layout.KIND_BITS,
      ref: words[place + layout.REF],
      chain: words[place + layout.CHAIN],
      request: words[place + layout.REQUEST],
      registered: words[place + layout.REGISTERED],
      settled: words[place + layout.SETTLED],
      time: doubles[(place >> 1) + layout.TIME],
      a: words[place + layout.A],
      b: words[place + layout.B],
      x: doubles[(place >> 1) + layout.X]
    })
  }
  return entries
}

module.exports = { preload, shadowed }
