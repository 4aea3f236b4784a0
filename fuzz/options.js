'use strict'

// trace.enable with any value for any option: accepted, or a TypeError with a code; and disable puts back
// what the process had.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const trace = require('..')
const { rules } = require('../lib/options')
const { anything } = require('./helpers/values')
const { mustThrowCode } = require('./helpers/expectations')
const { check, fc } = require('./helpers/property')

/** What longstack sets in a process while it is enabled. */
function stateOfProcess () {
  const listeners = process.eventNames().map((name) => process.listenerCount(name))
  return [Error.prepareStackTrace, Error.stackTraceLimit, ...listeners]
}

/** Values next to the right ones. */
const near = {
  filter: fc.array(fc.constantFrom('TCP', '*', '-PROMISE', 'tcp', '', '-', 'type:X', 'Timeout', '__proto__')),
  frames: fc.integer({ min: -2, max: 300 }),
  depth: fc.integer({ min: -2, max: 1200 }),
  capture: fc.constantFrom('auto', 'native', 'js', 'wasm'),
  internals: fc.boolean(),
  hide: fc.constantFrom('node_modules', 'express', /x/, () => true),
  errors: fc.boolean(),
  signal: fc.constantFrom('SIGUSR2', 'SIGUSR1', 'SIGKILL', 'SIGWINCH', 'toString', '__proto__'),
  spans: fc.oneof(
    fc.constantFrom('spans.ndjson', 'http://127.0.0.1:9', 'otlp:', '.', '/dev/full', '/', 'ftp://x', 'a,b'),
    fc.string().filter((text) => !/-|\.\.|\//.test(text))),
  propagate: fc.boolean(),
  blocked: fc.integer({ min: -1, max: 3_600_001 }),
  budget: fc.oneof(fc.integer(), fc.constantFrom(1 << 20, 64 << 20, 2 ** 40, 2 ** 41))
}

/** An arbitrary of arguments of trace.enable. */
function options () {
  const names = /** @type {Array<keyof typeof near>} */ (Object.keys(rules))
  const good = fc.constantFrom(...names)
    .chain((name) => fc.tuple(fc.constant(name), near[name] ?? anything()))
  const name = fc.oneof(fc.constantFrom(...names, 'mode', '__proto__', 'toString', 'frame', ''), fc.string())
  const odd = fc.tuple(name, anything())
  const entries = fc.array(fc.oneof({ arbitrary: good, weight: 4 }, odd), { maxLength: 5 })
  return fc.oneof({ arbitrary: entries, weight: 4 }, anything())
}

/** @param {any} drawn of options() */
function argumentOf (drawn) {
  if (!Array.isArray(drawn)) return drawn.make()
  // defineProperty: an own property called __proto__ is an unknown option
  const object = {}
  for (const [name, value] of drawn) {
    const isMaker = value !== null && typeof value === 'object' && typeof value.make === 'function'
    const plain = isMaker ? value.make() : value
    Object.defineProperty(object, name, { value: plain, enumerable: true, configurable: true })
  }
  return object
}

/** @type {import('./helpers/targets').Target} */
module.exports = {
  name: 'options',
  async run (settings) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-fuzz-'))
    // Else each is printed.
    const removers = [trace.on('warning', () => {}), trace.on('blocked', () => {})]
    process.chdir(directory)
    try {
      trace.enable().disable() // what stays loaded
      const before = stateOfProcess()
      return await check(fc.asyncProperty(options(), async (drawn) => {
        mustThrowCode(() => trace.enable(argumentOf(drawn)))
        new Error('read').stack // eslint-disable-line no-unused-expressions
        await new Promise(setImmediate)
        trace.disable()
        if (trace.enabled) throw new Error('still enabled')
        const after = stateOfProcess()
        const isBack = after.every((value, index) => value === before[index])
        if (!isBack) throw new Error(`not put back: ${after} from ${before}`)
      }), settings)
    } finally {
      for (const remove of removers) remove()
      process.chdir(os.tmpdir())
      fs.rmSync(directory, { recursive: true, force: true })
    }
  }
}
