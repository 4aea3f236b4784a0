'use strict'

// Spans with any names, attributes and events, through the writer of NDJSON: each line is what JSON.stringify
// makes of the record that listeners get, and members are what it makes of any value.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const trace = require('..')
const { member, onOneLine, quote, quoteLong, textOf } = require('../lib/encoding/json')
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

/** @param {string} key @param {() => any} make */
function expectMember (key, make) {
  const expected = outcome(() => {
    const holder = Object.create(null)
    holder[key] = make()
    const json = onOneLine(JSON.stringify(holder))
    return json === '{}' ? undefined : json.slice(1, -1)
  })
  const actual = outcome(() => {
    const json = member(key, make())
    return json === undefined ? undefined : textOf(json)
  })
  if (actual !== expected) throw new Error(`member: ${actual}, JSON.stringify: ${expected}`)
  for (const write of [quote, quoteLong]) {
    const json = onOneLine(JSON.stringify(key))
    if (textOf(write(key)) !== json) throw new Error(`${write.name} of ${json}`)
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
  const lines = fs.readFileSync(file, 'utf8').split('\n').slice(0, -1)
  if (lines.length !== records.length) throw new Error(`${lines.length} lines of ${records.length} spans`)
  for (const [index, line] of lines.entries()) {
    const parsed = JSON.parse(line)
    const expected = outcome(() => onOneLine(JSON.stringify(records[index])))
    if (expected !== 'threw' && line !== expected) throw new Error(`${line}\nJSON.stringify: ${expected}`)
    if (parsed.spanId !== records[index].spanId) throw new Error('another order')
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
          for (const [key, value] of first) expectMember(key, value.make)
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
