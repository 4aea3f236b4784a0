'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/timers.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  timeout: ['setTimeout(20) | start < timeout'],
  twoTimeouts: [
    'setTimeout(7) | second',
    'setTimeout(12) | first < twoTimeouts'
  ],
  interval: ['setInterval(5) × 3 | start < interval'],
  refreshed: ['setTimeout(30) | start < refreshed'],
  immediate: ['setImmediate | start < immediate'],
  tick: ['process.nextTick | start < tick'],
  microtask: ['queueMicrotask | start < microtask'],
  mixed: [
    'setTimeout(3) | four',
    'queueMicrotask | three',
    'process.nextTick | two',
    'setImmediate | one < mixed'
  ],
  timersPromises: ['await | start < timersPromises'],
  timersPromisesThen: ['promise.then | start < timersPromisesThen'],
  timersPromisesImmediate: ['await | timersPromisesImmediate'],
  timersPromisesInterval: [
    'await | timersPromisesInterval',
    'await | timersPromisesInterval'
  ],
  schedulerWait: ['await | schedulerWait'],
  abortTimeout: ['AbortSignal.timeout(10) | start < abortTimeout'],
  resource: ['new AsyncResource(POOL) | Pool < fill < resource'],
  resourceBind: ['AsyncResource.bind(answer) | bindIt < resourceBind'],
  emitter: ['new EventEmitterAsyncResource(QUEUE) | Queue < open < emitter'],
  traceBind: ['trace.bind(job) | enqueue < start < traceBind'],
  storageRun: ['setTimeout(3) | start < storageRun'],
  storageBind: ['AsyncLocalStorage.bind | start < storageBind'],
  storageSnapshot: ['AsyncLocalStorage.snapshot | start < storageSnapshot']
}

const told = stories('timers')

for (const [name, story] of Object.entries(expected)) {
  test(`timers: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
