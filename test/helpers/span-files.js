'use strict'

// Span files, made line by line for tests of their readers; and the command line.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { node, root } = require('./run')

const main = path.join(root, 'lib', 'cli', 'main.js')
const START = 1763685600000

let count = 0

/** @param {number} digits */
function id (digits) {
  return (++count).toString(16).padStart(digits, '0')
}

/**
 * Returns a time in nanoseconds, exact to the microsecond.
 * @param {number} ms since the tests' beginning of time
 */
function nanos (ms) {
  return String(BigInt(START) * 1_000_000n + BigInt(Math.round(ms * 1000)) * 1000n)
}

/**
 * Makes a record as longstack writes it.
 * @param {object} [given]
 * @param {number} [given.at] start in ms
 * @param {number} [given.ms]
 * @param {boolean} [given.failed]
 * @param {Record<string, unknown>} [given.attributes]
 */
function span ({ at = 0, ms = 1, failed = false, attributes = {}, ...rest } = {}) {
  return {
    traceId: id(32),
    spanId: id(16),
    name: 'GET /',
    kind: 'SERVER',
    startTimeUnixNano: nanos(at),
    endTimeUnixNano: nanos(at + ms),
    status: { code: failed ? 'ERROR' : 'UNSET' },
    attributes,
    resource: { 'service.name': 'shop', 'process.pid': 7 },
    ...rest
  }
}

/**
 * Makes the attributes for the time breakdown of a span.
 * @param {Partial<Record<'run' | 'waited' | 'delayed', number>>} parts
 * @param {Record<string, number>} [wait] by subsystem
 * @param {Array<{ ms: number, count?: number, at?: string, until?: string, label?: string }>} [waits]
 */
function split ({ run = 0, waited = 0, delayed = 0 }, wait = {}, waits = []) {
  return {
    'longstack.run_ms': run,
    'longstack.waited_ms': waited,
    'longstack.delayed_ms': delayed,
    'longstack.wait_ms': wait,
    'longstack.waits': waits.map((one) => ({ count: 1, ...one }))
  }
}

/** @param {import('ava').ExecutionContext} t */
function folder (t) {
  const made = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-report-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  return made
}

/** @param {unknown[]} records @returns {string} */
function lines (records) {
  return records.map((record) => `${typeof record === 'string' ? record : JSON.stringify(record)}\n`).join('')
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {unknown[] | string | Buffer} content records, or content of the file
 * @param {string} [name]
 */
function file (t, content, name = 'spans.jsonl') {
  const to = path.join(folder(t), name)
  fs.writeFileSync(to, Array.isArray(content) ? lines(content) : content)
  return to
}

/** Runs the command. @param {string[]} args @param {Parameters<typeof node>[1]} [options] */
function longstack (args, options) {
  return node([main, ...args], options)
}

/** Runs longstack report --json. @param {string[]} args @param {Parameters<typeof node>[1]} [options] */
async function report (args, options) {
  const { stdout, stderr, code } = await longstack(['report', '--json', ...args], options)
  return { model: stdout === '' ? undefined : JSON.parse(stdout), stderr, code, stdout }
}

module.exports = { span, split, folder, file, lines, longstack, report, nanos, main, START }
