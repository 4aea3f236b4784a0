'use strict'

const test = require('ava')
const { stories, tells, major } = require('../helpers/stories')

// Chain of each case in test/fixtures/chains/files.js: newest hop first, each as label | functions.
/** @type {Record<string, string[]>} */
const expected = {
  readFile: ['fs.readFile | start < readFile'],
  missing: ['fs.readFile | start < missing'],
  writeFile: ['fs.writeFile | start < writeFile'],
  stat: [
    'fs.readdir | run',
    'fs.stat | start < stat'
  ],
  openReadClose: [
    'fs.close | read < done',
    'fs.read | opened',
    'fs.open | start < openReadClose'
  ],
  promisesThen: ['promise.then | start < promisesThen'],
  promisesAwait: ['await | start < promisesAwait'],
  promisesMissing: ['promise.then | promisesMissing'],
  fileHandle: [
    'await | start',
    'await | start < fileHandle'
  ],
  access: [
    'fs.rm | ran',
    'fs.mkdtemp | run',
    'fs.access | start < access'
  ],
  opendir: [
    'dir.read | run',
    'fs.opendir | start < opendir'
  ],
  watchFile: ['fs.watchFile | start < watchFile'],
  watch: ['fs.watch | start < watch'],
  readStream: ['fs.createReadStream | start < readStream'],
  readStreamEnd: ['fs.createReadStream | start < readStreamEnd'],
  readStreamMissing: ['fs.createReadStream | start < readStreamMissing'],
  writeStream: ['fs.createWriteStream | start < writeStream'],
  // Node 20 has no resource of its own for the end of a stream.
  pipelines: [`${major > 20 ? 'stream.pipeline' : 'fs.createReadStream'} | start < pipelines`],
  pipelinePromise: ['await | start < pipelinePromise'],
  transform: ['setImmediate | transform < start < transform'],
  finishedStream: [`${major > 20 ? 'stream.finished' : 'stream.resume'} | start < finishedStream`],
  forAwait: [
    'await × 2 | start',
    'await | start < forAwait'
  ]
}

const told = stories('files')

for (const [name, story] of Object.entries(expected)) {
  test(`files: ${name}`, async (t) => {
    const found = (await told)[name]
    // On Node 20 the end of a pipeline may come with that of a write that was begun in its transform.
    const byWrite = name === 'pipelines' && major === 20 && found?.chain.length === 2
    tells(t, found, byWrite ? ['FSREQCALLBACK | transform', ...story] : story)
  })
}

test('the table has every case', async (t) => {
  t.deepEqual(Object.keys(await told).sort(), Object.keys(expected).sort())
})
