'use strict'

const test = require('ava')
const { stories, tells } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/others.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  'spawn.said': ['child_process.spawn | start < spawn'],
  'spawn.exited': ['spawn(node) | start < spawn'],
  spawnMissing: ['child_process.spawn | start < spawnMissing'],
  exec: ['child_process.exec | start < exec'],
  execPromise: ['await | start < execPromise'],
  fork: ['child_process.fork | start < fork'],
  lines: ['child_process.spawn | start < lines'],
  'worker.message': ['parentPort.postMessage | ', 'worker.postMessage | start < worker'],
  'worker.online': ['new Worker | start < worker'],
  'worker.exited': ['new Worker | start < worker'],
  channel: ['new MessageChannel | channel'],
  broadcast: ['new BroadcastChannel | broadcast'],
  gzip: [
    'zlib.gunzip | done',
    'zlib.gzip | start < gzip'
  ],
  'gzipStream.data': ['zlib.createGzip | start < gzipStream'],
  'gzipStream.end': ['zlib.createGzip | start < gzipStream'],
  brotli: ['zlib.brotliCompress | start < brotli'],
  randomBytes: ['crypto.randomBytes | start < randomBytes'],
  pbkdf2: ['crypto.pbkdf2 | start < pbkdf2'],
  scrypt: ['crypto.scrypt | start < scrypt'],
  keyPair: process.versions.node.startsWith('20.') ? [] : ['crypto.generateKeyPair | start < keyPair'],
  hkdf: ['crypto.hkdf | start < hkdf'],
  digest: ['await | start < digest'],
  signal: ['process.on(signal) | start < signal']
}

const told = stories('others')

for (const [name, story] of Object.entries(expected)) {
  test(`processes, workers, zlib, crypto: ${name}`, async (t) => {
    tells(t, (await told)[name], story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
