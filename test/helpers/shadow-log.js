'use strict'

// Runs programs with the run log on, and reads the log.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const layout = require('../../lib/core/run-log-words')
const { root } = require('./run')
const { checkSpans } = require('./span-faults')

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
 * @typedef {object} Names meanings of numbers when the thread ended
 * @property {Record<string, { at?: string, label?: string }>} chains
 * @property {Record<string, string>} requests spanId by number; empty if no longer known
 * @property {Record<string, { type: string, subsystem?: string }>} types types of the runs, by number
 * @property {Record<string, number>} causes recorded causes of the runs: a reference, or 0 if the cause is
 *   gone
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

/** @param {string} file without its extension @returns {Shadow} */
function read (file) {
  const ring = new SharedArrayBuffer(layout.BYTES)
  Buffer.from(ring).set(fs.readFileSync(`${file}.ring`))
  const entries = entriesOf(ring)
  checkSpans(bytesOf(ring), entries[0].number)
  return { ring, entries, names: JSON.parse(fs.readFileSync(`${file}.json`, 'utf8')) }
}

/** @param {SharedArrayBuffer} ring @returns {Entry[]} oldest first */
function entriesOf (ring) {
  const words = new Int32Array(ring)
  const doubles = new Float64Array(ring)
  const count = words[layout.COUNT]
  const entries = []
  for (let number = Math.max(1, count - layout.ENTRIES + 1); number <= count; number++) {
    const place = layout.HEADER + ((number - 1) & (layout.ENTRIES - 1)) * layout.WORDS
    entries.push(entryAt(words, doubles, place, number))
  }
  return entries
}

/**
 * Reads an entry.
 * @param {Int32Array} words
 * @param {Float64Array} doubles the same memory
 * @param {number} place of its first word
 * @param {number} number
 * @returns {Entry}
 */
function entryAt (words, doubles, place, number) {
  return {
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
  }
}

/** Returns the bytes of a ring's entries, oldest first. @param {SharedArrayBuffer} ring */
function bytesOf (ring) {
  const bytes = Buffer.from(ring, layout.HEADER * 4)
  const count = new Int32Array(ring)[layout.COUNT]
  const oldest = (count & (layout.ENTRIES - 1)) * layout.WORDS * 4
  return count > layout.ENTRIES
    ? Buffer.concat([bytes.subarray(oldest), bytes.subarray(0, oldest)])
    : bytes.subarray(0, count * layout.WORDS * 4)
}

/** Returns the log of the thread with the most entries. @param {Shadow[]} shadows */
const mainOf = (shadows) => shadows.reduce((a, b) => a.entries.length > b.entries.length ? a : b)

/** Requests to the server of fixtures/path, one group after another; see critical-path.test.js. */
const pathGroups = [
  ...[
    'sequence', 'read-files', 'repeat', 'all', 'all-settled', 'race', 'any', 'nested', 'remote', 'library',
    'leak', 'heartbeat', 'prefetch-late', 'prefetch-early', 'prefetch-unused', 'gzip', 'readable', 'worker',
    'fetch', 'http', 'http-again', 'tick', 'lazy', 'lazy-again', 'timers', 'read-callback', 'microtasks',
    'compute', 'compute-between', 'spans'
  ].map((name) => [{ path: `/${name}` }]),
  [{ path: '/large', client: 'readSlowly' }],
  [{ path: '/turn-holder' }, { path: '/turn', after: 20 }],
  [{ path: '/bound-holder' }, { path: '/bound', after: 20 }],
  [{ path: '/bare-holder' }, { path: '/bare', after: 20 }],
  [{ path: '/shared-user' }, { path: '/shared-role' }, { path: '/shared-sequence' }],
  [{ path: '/delayed' }, { path: '/blocker' }],
  [{ path: '/abort', client: 'abort' }],
  [{ path: '/open', client: 'leaveOpen' }]
]

module.exports = { bytesOf, entryAt, mainOf, pathGroups, shadowed }
