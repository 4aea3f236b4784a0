'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/loops.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  immediates: [
    'setImmediate × 9999 | turn',
    'setImmediate | start < immediates'
  ],
  ticks: [
    'process.nextTick × 9999 | turn',
    'process.nextTick | start < ticks'
  ],
  microtasks: [
    'queueMicrotask × 9999 | turn',
    'queueMicrotask | start < microtasks'
  ],
  thens: [
    'promise.then × 9999 | turn',
    'promise.then | start < thens'
  ],
  awaits: [
    'await × 9999 | start',
    'await | start < awaits'
  ],
  awaited: [
    'await × 9999 | loop',
    'await | loop < start < awaited'
  ],
  twoSteps: [
    'promise.then × 10000 | one',
    'setImmediate × 9999 | two',
    'setImmediate | start < twoSteps'
  ],
  inner: [
    'setImmediate × 20 | turn',
    'process.nextTick × 9 | turn',
    'setImmediate | start < inner'
  ],
  long: [
    'promise.then × 2 | steps < step',
    'queueMicrotask | step',
    'promise.then | steps < step',
    'queueMicrotask | step',
    'queueMicrotask | step',
    'process.nextTick | step',
    'queueMicrotask | step',
    'process.nextTick | step',
    'process.nextTick | step',
    'setImmediate | step',
    'process.nextTick | step',
    'setImmediate × 2 | step',
    'promise.then | steps < step',
    'setImmediate | step',
    'promise.then | steps < step',
    'promise.then | steps < step'
  ]
}

const told = stories('loops')
/** @type {Record<string, ReturnType<typeof stories>>} */
const alone = { inner: stories('loops', undefined, 'inner'), long: stories('loops', undefined, 'long') }

for (const [name, story] of Object.entries(expected)) {
  test(`loops: ${name}`, async (t) => {
    // Beside loops of 10,000 turns the records of few steps are gone, and the chain alone has folded what
    // repeats itself.
    tells(t, (await (alone[name] ?? told))[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
