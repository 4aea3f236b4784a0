'use strict'

const test = require('ava')
const { program, root } = require('../helpers/run')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/promises.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  then: ['promise.then | start < then'],
  thenThen: ['promise.then | thenThen'],
  nested: [
    'promise.then | one',
    'promise.then | start < nested'
  ],
  rejected: ['promise.then | start < rejected'],
  settled: ['promise.finally | start < settled'],
  made: ['promise.then | join < made'],
  awaited: ['await | start < awaited'],
  deep: ['await | bottom < middle < top < deep'],
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
  insideGenerator: ['await | count < start < insideGenerator'],
  withResolvers: ['await | wait < withResolvers'],
  dynamicImport: ['await | start < dynamicImport']
}

const told = stories('promises')

for (const [name, story] of Object.entries(expected)) {
  test(`promises: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})

test('a promise is named after the call that made it', async (t) => {
  const makers = {
    fetch: "fetch('http://127.0.0.1:1/')",
    'fs.promises.readFile': "require('node:fs').promises.readFile('/x')",
    'timers.promises.setTimeout': "require('node:timers/promises').setTimeout(1)",
    'dns.promises.lookup': "require('node:dns').promises.lookup('localhost')",
    'events.once': "require('node:events').once(process, 'x')",
    'stream.finished': "require('node:stream/promises').finished(process.stdout)",
    'Promise.all': 'Promise.all([])',
    'Promise.reject': 'Promise.reject(1)',
    'new Promise': 'new Promise(() => {})',
    'promise.then': 'Promise.resolve().then(() => {})',
    'work()': '(async function work () {})()',
    'async function': '(async () => {})()'
  }
  const { stdout } = await program(`
    const trace = require(${JSON.stringify(root)})
    function label (promise) {
      promise.catch(() => {})
      return trace.chain(promise).map(({ label }) => label)
    }
    console.log(JSON.stringify([${Object.values(makers).map((maker) => `label(${maker})`).join(', ')}]))
    process.exit()`)
  t.deepEqual(JSON.parse(stdout), Object.keys(makers).map((name) => [name]))
})
