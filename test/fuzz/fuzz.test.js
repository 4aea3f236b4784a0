'use strict'

// Runs each target of fuzz/ on a few inputs: with a fixed seed for every version of Node, and a random one.

const test = require('ava')
const { listTargets } = require('../../fuzz/helpers/targets')
const { node } = require('../helpers/run')

/** Inputs for targets whose inputs cost more than a millisecond. @type {Record<string, number>} */
const counts = {
  attach: 10,
  binding: 4,
  collector: 4,
  environment: 5,
  errors: 40,
  exchanges: 200,
  handles: 40,
  intercept: 80,
  ndjson: 10,
  profile: 20,
  report: 3,
  traceparent: 500
}
const COUNT = 60
const SEED = 20261122

const random = Math.floor(Math.random() * 2 ** 31)

for (const name of listTargets()) {
  test(`${name}: no failure`, async (t) => {
    const count = String(counts[name] ?? COUNT)
    const runs = await Promise.all([SEED, random].map((seed) =>
      node(['fuzz/run.js', name, '--count', count, '--seed', String(seed)])))
    for (const { stdout, stderr, code } of runs) {
      t.log(stdout.trimEnd())
      t.is(code, 0, stderr)
    }
  })
}

test('wrong usage ends with exit code 2', async (t) => {
  for (const args of [['nothing'], ['--seconds', 'ten'], ['--unknown']]) {
    const { code, stderr } = await node(['fuzz/run.js', ...args])
    t.is(code, 2)
    t.regex(stderr, /Usage: npm run fuzz/)
  }
})
