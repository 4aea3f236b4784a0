'use strict'

// Programs that write handmade records through lib/sinks alone.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { recordsOf } = require('./records')
const { program, root } = require('./run')

/**
 * Beginning of every program: `span(i)` is an ended span, `sinks(outputs)` makes sinks and records their
 * warnings, each code once, like lib/warnings.js.
 */
const prelude = `
const fs = require('node:fs')
const { parseOutputs } = require(${JSON.stringify(path.join(root, 'lib/sinks/outputs'))})
const { createSinks } = require(${JSON.stringify(path.join(root, 'lib/sinks/sinks'))})
const warned = []
const sinks = (outputs) => createSinks(parseOutputs(outputs), {
  warn: (code, sentence) => { if (warned.every(([known]) => known !== code)) warned.push([code, sentence]) }
})
const hex = (i, length) => i.toString(16).padStart(length, '0')
const span = (i, { ms = 10, failed = false, traceId = hex(i + 1, 32), attributes = {}, ...rest } = {}) => ({
  ms, failed, traceId, sampled: true,
  record: () => ({
    traceId, spanId: hex(i + 1, 16), name: 'GET /n/' + i, kind: 'SERVER', startTimeUnixNano: '1', endTimeUnixNano: '2', status: { code: 'UNSET' },
    attributes: { i, ...attributes }, ...rest
  })
})
const tell = (value) => fs.writeSync(2, JSON.stringify(value) + '\\n')
const descriptors = (name) => {
  const linked = (fd) => { try { return fs.readlinkSync('/proc/self/fd/' + fd) } catch { return '' } }
  return process.platform === 'linux' ? fs.readdirSync('/proc/self/fd').filter((fd) => linked(fd).includes(name)).map(Number) : []
}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
async function until (holds) { while (!holds()) await wait(2) }
`

/**
 * @param {string} source
 * @param {Parameters<typeof program>[1]} [options]
 */
async function drive (source, options) {
  const result = await program(`${prelude}\n;(async () => {\n${source}\n})()`, { preload: false, ...options })
  return { ...result, told: result.stderr.split('\n').filter((line) => line.startsWith('{')).map((line) => JSON.parse(line)) }
}

/** @param {import('ava').ExecutionContext} t @returns {string} the test's own folder */
function folder (t) {
  const made = fs.mkdtempSync(path.join(fs.realpathSync(os.tmpdir()), 'longstack-sinks-'))
  t.teardown(() => fs.rmSync(made, { recursive: true, force: true }))
  return made
}

/** Reads the records of a file or text; throws on a torn line. @param {string} text @returns {any[]} */
const records = recordsOf

/** @param {string} file */
const read = (file) => records(fs.readFileSync(file, 'utf8'))

/** @param {any[]} list */
const numbers = (list) => list.map(({ attributes }) => attributes.i)

module.exports = { drive, folder, numbers, prelude, read, records }
