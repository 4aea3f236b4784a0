'use strict'

// Spans with any names, attributes and events, written to a file: each line, with what it refers to in place,
// is what JSON makes of the record that listeners get.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const { isDeepStrictEqual } = require('node:util')
const trace = require('..')
const { Definitions } = require('../report/read/definitions')
const { mustThrowCode } = require('./helpers/expectations')
const { anything } = require('./helpers/values')
const { check, fc } = require('./helpers/property')

const BATCH = 20
/** Graphs that JSON.stringify, which writes them as trees, does not finish: modules with all exports. */
const HUGE = ['process', 'global']

const oddText = fc.constantFrom('', '__proto__', '\u2028', '\ud800')
const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' }), oddText)

/** @param {() => unknown} call @returns {unknown} what it returns, or that it threw */
function outcome (call) {
  try {
    return call()
  } catch {
    return 'threw'
  }
}

/** @param {Array<[string, any]>} entries @returns {object} */
function objectOf (entries) {
  const object = {}
  for (const [key, value] of entries) {
    Object.defineProperty(object, key, { value: value.make(), enumerable: true, configurable: true })
  }
  return object
}

/** @param {string} file @param {any[]} records that listeners got */
function expectLines (file, records) {
  const text = fs.readFileSync(file, 'utf8')
  if (/[\u2028\u2029]/.test(text)) throw new Error('an editor takes one line for two')
  const definitions = new Definitions()
  const lines = text.split('\n').slice(0, -1).map((line) => JSON.parse(line))
    .filter((line) => !definitions.add(line))
  if (lines.length !== records.length) throw new Error(`${lines.length} lines of ${records.length} spans`)
  for (const [index, line] of lines.entries()) {
    const record = records[index]
    if (line.spanId !== record.spanId) throw new Error('another order')
    if (Object.hasOwn(record.attributes, 'toJSON')) continue // makes something else of all of them
    const expected = outcome(() => JSON.parse(JSON.stringify(record)))
    const actual = JSON.parse(JSON.stringify(definitions.resolve(line))) // without what is undefined
    if (expected !== 'threw' && !isDeepStrictEqual(actual, expected)) {
      throw new Error(`${JSON.stringify(actual)}\nexpected: ${JSON.stringify(expected)}`)
    }
  }
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'ndjson',
  async run (settings) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-fuzz-'))
    const file = path.join(directory, 'spans.ndjson')
    /** @type {any[]} */
    let records = []
    const removers = [trace.on('span', (record) => { records.push(record) }), trace.on('warning', () => {})]
    const attributes = fc.array(fc.tuple(text, anything(HUGE)), { maxLength: 6 })
    const spans = fc.array(fc.tuple(text, attributes, attributes), { minLength: 1, maxLength: 8 })
    try {
      return await check(fc.asyncProperty(spans, async (list) => {
        fs.rmSync(file, { force: true })
        records = []
        trace.enable({ spans: file, filter: ['TIMER'] })
        for (const [name, first, later] of list) {
          mustThrowCode(() => trace.span(name, objectOf(first), (span) => {
            for (const [key, value] of later) mustThrowCode(() => span.set(objectOf([[key, value]])))
          }), { allowsHostile: true })
        }
        trace.disable()
        if (records.length > 0) expectLines(file, records)
      }), settings, BATCH)
    } finally {
      for (const remove of removers) remove()
      trace.disable()
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}
