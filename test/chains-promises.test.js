'use strict'

const test = require('ava')
const { stories, tells } = require('./helpers/stories')

// What each case of test/fixtures/chains/promises.js tells: the newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  then: ['promise.then | start < then'],
  thenThen: ['promise.then | thenThen'],
  nested: [
    'promise.then | one',
    'promise.then | start < nested'
  ],
  rejected: ['promise.catch | start < rejected'],
  settled: ['promise.finally | start < settled'],
  made: ['promise.then | join < made'],
  awaited: ['await | start'],
  deep: ['await | bottom'],
  steps: [
    'await | walk',
    'await | walk < steps'
  ],
  fromTimer: ['setTimeout(4) | start < fromTimer'],
  all: ['await | start < all'],
  allThen: ['promise.then | start < allThen'],
  allSettled: ['await | allSettled'],
  any: ['await | any'],
  race: ['await | race'],
  caught: ['await | start < caught'],
  thenable: ['await | start < thenable'],
  thenableThen: ['Promise.resolve | start < thenableThen'],
  generator: [
    'await | start',
    'await | start < generator'
  ],
  insideGenerator: ['await | count < insideGenerator'],
  withResolvers: ['await | wait < withResolvers'],
  dynamicImport: ['await | start < dynamicImport']
}

const told = stories('promises')

for (const [name, story] of Object.entries(expected)) {
  test(`promises: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('nothing else tells a story', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
