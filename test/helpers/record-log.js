'use strict'

// Runs programs that record their runs but keep no statistics, and reads the logs of their threads.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const layout = require('../../lib/core/run-log-words')
const { withForms } = require('./recordings')
const { root } = require('./run')
const { entryAt } = require('./shadow-log')
const { checkSpans } = require('./span-faults')

const preload = path.join(root, 'test', 'fixtures', 'record', 'preload.js')

/**
 * @typedef {object} RecordLog log of one thread
 * @property {Buffer} bytes of all entries
 * @property {import('./shadow-log').Entry[]} entries
 * @property {any[]} texts
 * @property {any[]} spans those texts that are ended spans
 * @property {Map<number, any>} chains those texts that are chains, by number
 * @property {number} takes how often entries were taken
 */

/**
 * Calls a function that runs programs.
 * @template T
 * @param {(env: Record<string, string>) => Promise<T>} run with these variables
 * @returns {Promise<{ result: T, logs: RecordLog[] }>} the log with most entries first
 */
async function recorded (run) {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-record-'))
  try {
    const result = await run({ NODE_OPTIONS: `--require ${preload}`, RECORD_LOG: directory })
    const names = fs.readdirSync(directory).filter((name) => name.endsWith('.entries'))
    const logs = names.map((name) => read(path.join(directory, name.slice(0, -'.entries'.length))))
    return { result, logs: logs.sort((a, b) => b.entries.length - a.entries.length) }
  } finally {
    fs.rmSync(directory, { recursive: true, force: true })
  }
}

/** @param {string} file without its extension @returns {RecordLog} */
function read (file) {
  const lines = fs.readFileSync(`${file}.texts`, 'utf8').trimEnd().split('\n')
  const texts = withForms(lines.map((line) => JSON.parse(line)))
  const { buffer, byteOffset, length } = fs.readFileSync(`${file}.entries`)
  const bytes = Buffer.from(buffer.slice(byteOffset, byteOffset + length))
  checkSpans(bytes, 1)
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, length / 4)
  const doubles = new Float64Array(bytes.buffer, bytes.byteOffset, length / 8)
  const entries = []
  for (let place = 0; place < words.length; place += layout.WORDS) {
    entries.push(entryAt(words, doubles, place, place / layout.WORDS + 1))
  }
  const chains = new Map()
  for (const text of texts) if (text.chain !== undefined) chains.set(text.chain, text)
  const spans = texts.filter(({ span }) => span !== undefined)
  return { bytes, entries, texts, spans, chains, takes: texts.at(-1).takes }
}

module.exports = { recorded }
