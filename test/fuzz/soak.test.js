'use strict'

// The verdict of a soak on constructed samples, and a short soak: nothing lost, nothing open. Only the long
// soak judges memory.

const fs = require('node:fs')
const os = require('node:os')
const path = require('node:path')
const test = require('ava')
const { createRotation } = require('../../fuzz/soak/rotation')
const { judgeSamples, judgeSpans } = require('../../fuzz/soak/verdict')
const { node, runsAll } = require('../helpers/run')

const MB = 2 ** 20

/** @param {number} heap MB @param {object} [changed] */
const sample = (heap, changed) => ({
  second: 0,
  heapUsed: heap * MB,
  external: 10 * MB,
  rss: 100 * MB,
  descriptors: 20,
  threads: 12,
  stats: { bytes: 5, budget: 10, spans: { open: 0, dropped: 0 } },
  made: { jobs: 0, blocks: 0, reported: 0 },
  ...changed
})

/** @param {ReturnType<typeof sample>[]} samples @param {object} changed */
const judge = (samples, changed) =>
  judgeSamples({ samples, first: sample(20), last: sample(20), judgesMemory: true, ...changed })

/** @param {Array<{ isFine: boolean, line: string }>} verdicts @returns {string[]} what they are about */
const wrong = (verdicts) => verdicts.filter(({ isFine }) => !isFine).map(({ line }) => line.split(':')[0])

test('growth of more than 2 % from the second to the last quarter, and more than bare, is an error', (t) => {
  const flat = Array.from({ length: 60 }, (_, index) => sample(index < 6 ? 10 : 20))
  t.deepEqual(wrong(judge(flat, {})), [])
  const growing = Array.from({ length: 60 }, (_, index) => sample(20 + index * 0.02))
  t.deepEqual(wrong(judge(growing, {})), ['heapUsed'])
  t.deepEqual(wrong(judge(growing, { judgesMemory: false })), [])
  t.deepEqual(wrong(judge(growing, { bareSamples: flat })), ['heapUsed'])
  t.deepEqual(wrong(judge(growing, { bareSamples: growing })), [])
  const spiky = Array.from({ length: 60 }, (_, index) => sample(index % 5 === 0 ? 20 : 30 + index))
  t.deepEqual(wrong(judge(spiky, {})), [], 'what is there for a moment')
})

test('open and dropped spans, descriptors, the budget and faults are judged', (t) => {
  const stats = { bytes: 11, budget: 10, spans: { open: 1, dropped: 2 }, fault: 'x' }
  t.deepEqual(wrong(judge([sample(20), sample(20)], { last: sample(20, { descriptors: 45, stats }) })),
    ['descriptors at rest', 'open spans at the end', 'dropped spans', 'contexts and stacks', 'fault'])
})

test('one span too few or too many is an error', (t) => {
  t.deepEqual(wrong(judgeSpans({ '/a': 3, failed: 0 }, { '/a': 3, broken: 0 })), [])
  t.deepEqual(wrong(judgeSpans({ '/a': 3, '/b': 1, failed: 0 }, { '/a': 4, broken: 0 })),
    ['/a', '/b', 'requests and spans'])
  t.deepEqual(wrong(judgeSpans({ failed: 1 }, { broken: 1 })), ['requests failed', 'broken lines'])
})

test('span files are renamed, counted after the next rotation, and removed', (t) => {
  const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'longstack-soak-'))
  t.teardown(() => fs.rmSync(directory, { recursive: true, force: true }))
  const file = path.join(directory, 'spans.ndjson')
  const span = (/** @type {string} */ kind, /** @type {string} */ route) =>
    JSON.stringify({ kind, name: 'x', attributes: { 'http.request.method': 'GET', 'url.path': route } }) + '\n'
  const { counts, rotate, finish } = createRotation(directory, file)
  t.is(rotate(), 0)
  fs.writeFileSync(file, span('SERVER', '/a') + span('CLIENT', '/up'))
  t.is(rotate(), 1)
  t.false(fs.existsSync(file))
  fs.appendFileSync(path.join(directory, 'spans.1'), span('SERVER', '/a')) // the writer has not noticed yet
  fs.writeFileSync(file, span('SERVER', '/ws') + '{"broken')
  finish()
  t.like(counts, { '/a': 2, 'upstream /up': 1, upgrades: 1, broken: 1, files: 2 })
  t.deepEqual(fs.readdirSync(directory), [])
})

const soak = runsAll ? test : test.skip

soak('20 s of load: a span for each request, none open at the end', async (t) => {
  const { stdout, stderr, code } = await node(['fuzz/soak.js', '--seconds', '20', '--rate', '40'])
  t.log(stdout)
  t.is(code, 0, stderr)
  t.regex(stdout, /^fine {3}requests and spans: \d\d+$/m)
})
