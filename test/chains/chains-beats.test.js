'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/beats.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  interval: ['setInterval(1) × 20 | start < interval'],
  timeouts: [
    'setTimeout(1) × 19 | turn',
    'setTimeout(1) | start < timeouts'
  ],
  timerAndPromise: [
    'await × 20 | one',
    'setTimeout(1) × 19 | two < one',
    'setTimeout(1) | start < timerAndPromise'
  ]
}

const told = stories('beats')

for (const [name, story] of Object.entries(expected)) {
  test(`loops that take long: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
