'use strict'

// Warnings of longstack itself: passed to listeners of `warning`, or printed as one line on stderr if there
// are none. Each code is reported once per thread and printed once per process. Never writes to the program's
// streams.

const fs = require('node:fs')
const { Listeners, afterChange } = require('./listeners')

// setEnvironmentData copies its values to each worker that is created later, and no API lists its keys
const KEY = 'longstack.printed'
const MAX_CODES = 64

/** @type {Listeners<any>} */
const listeners = new Listeners()
/** @type {Set<string>} */
const reported = new Set()
/** @type {Set<string>} */
const printed = new Set()
/** hashes of printed codes, shared with other threads @type {Int32Array | undefined} */
let shared

/** @param {string} code @returns {boolean} true if no other thread has printed it */
function isFirst (code) {
  shared ??= inheritedCodes()
  printed.add(code)
  return shared === undefined || claim(shared, hashOf(code))
}

/** @param {string} code @param {string} message */
function warn (code, message) {
  if (reported.has(code)) return
  reported.add(code)
  if (listeners.size === 0) {
    if (isFirst(code)) printSentence(message)
    return
  }
  const warning = Object.assign(new Error(message), { code: `LONGSTACK_WARN_${code}` })
  afterChange(() => listeners.emit(warning))
}

/** Warns, unless another thread already has. @param {string} code @param {string} message */
function warnOnce (code, message) {
  if (isFirst(`${code} of any thread`)) warn(code, message)
}

/** Shares the printed codes with workers created from now on: thousands of them may hit the same fault. */
function share () {
  if (shared !== undefined) return
  const table = inheritedCodes() ?? new Int32Array(new SharedArrayBuffer(4 * MAX_CODES))
  require('node:worker_threads').setEnvironmentData(KEY, table)
  for (const code of printed) claim(table, hashOf(code))
  shared = table
}

/** Returns the table of the parent thread, if that has shared it. */
function inheritedCodes () {
  const table = require('node:worker_threads').getEnvironmentData(KEY)
  return table instanceof Int32Array ? table : undefined
}

/**
 * Adds a hash to a table that several threads share.
 * @param {Int32Array} table
 * @param {number} hash not 0
 * @returns {boolean} true if it is new, or if the table is full
 */
function claim (table, hash) {
  for (let i = 0; i < table.length; i++) {
    const present = Atomics.compareExchange(table, i, 0, hash)
    if (present === 0) return true
    if (present === hash) return false
  }
  return true
}

/** Computes FNV-1a, with the lowest bit set. @param {string} text */
function hashOf (text) {
  let hash = 0x811c9dc5
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193)
  return hash | 1
}

/** Writes one line to stderr, synchronously. @param {string} line */
function printLine (line) {
  try {
    fs.writeSync(2, `${line}\n`)
  } catch {}
}

/** Prints one line; names and errors in the sentence may contain anything. @param {string} sentence */
function printSentence (sentence) {
  printLine(`longstack: ${require('./text').clean(sentence)}`)
}

/**
 * Prints one line, from the main thread only.
 * @param {string} text only its first line is printed; messages of Node may have several
 */
function printFromMainThread (text) {
  if (require('node:worker_threads').isMainThread) printSentence(text.split('\n', 1)[0])
}

/**
 * Returns whether an active hook makes a caught stack overflow fatal on a version of Node (CVE-2025-59466).
 * No program can prevent that.
 * @param {string} version
 */
function isUnsafeVersion (version) {
  const [major, minor] = version.split('.').map(Number)
  /** @type {Record<number, number>} first safe minor */
  const safe = { 20: 20, 22: 22, 24: 13, 25: 3 }
  return major < 20 || major === 21 || major === 23 || minor < (safe[major] ?? 0)
}

/** Returns the first line of a thrown value's message. @param {unknown} thrown */
function messageOf (thrown) {
  try {
    return String(/** @type {any} */ (thrown)?.message ?? thrown).split('\n', 1)[0].slice(0, 200)
  } catch {
    return 'a value that cannot be shown'
  }
}

module.exports = {
  isUnsafeVersion, listeners, messageOf, printFromMainThread, printLine, share, warn, warnOnce
}
