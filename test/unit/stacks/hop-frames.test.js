'use strict'

const test = require('ava')
const { lineOf } = require('../../../lib/stacks/frames')
const { publicFrame, shortLines } = require('../../../lib/stacks/hop-frames')
const { framesOf } = require('../../helpers/contexts')

const frames = framesOf(
  'load (/app/a.js:1:2)',
  'query (/app/node_modules/pg/index.js:1:2)',
  'connect (/app/node_modules/pg/lib/socket.js:1:2)',
  'get (/app/node_modules/@scope/pool/index.js:1:2)',
  'main (/app/b.js:1:2)'
)

test('lineOf formats a frame like V8', (t) => {
  t.deepEqual(frames.slice(0, 2).map(lineOf), ['    at load (/app/a.js:1:2)', '    at query (/app/node_modules/pg/index.js:1:2)'])
})

test('shortLines: hidden neighbours are one line, which names their packages', (t) => {
  t.deepEqual(shortLines(frames, 'node_modules'), [
    '    at load (/app/a.js:1:2)', '    ... 3 frames in pg, @scope/pool', '    at main (/app/b.js:1:2)'
  ])
})

test('shortLines: a rule may be a pattern of files, or a function of a frame', (t) => {
  const hidden = ['    ... 1 frame in a.js', ...frames.slice(1).map(lineOf)]
  t.deepEqual(shortLines(frames, /a\.js$/), hidden)
  t.deepEqual(shortLines(frames, (frame) => frame.functionName === 'load'), hidden)
})

test('shortLines: a rule that throws hides nothing', (t) => {
  t.deepEqual(shortLines(frames, () => { throw new Error('x') }), frames.map(lineOf))
})

test('shortLines: the innermost package counts', (t) => {
  const nested = framesOf('get (/app/node_modules/pg/node_modules/pool/index.js:1:2)')
  t.deepEqual(shortLines(nested, 'node_modules'), ['    ... 1 frame in pool'])
})

test('shortLines: frames shown further up are named, except where the hop begins', (t) => {
  const own = framesOf('load (/app/a.js:1:2)', 'get (/app/a.js:8:2)', '/app/c.js:3:4', 'main (/app/b.js:1:2)')
  t.deepEqual(shortLines(own, 'node_modules', [true, true, true]), [
    '    at load (/app/a.js:1:2)', '    ... as above: get, c.js', '    at main (/app/b.js:1:2)'
  ])
})

test('publicFrame has the bare function name', (t) => {
  const names = ['Timeout.warmUp [as _onTimeout]', 'new db.Pool', 'Object.<anonymous>', 'load'].map((functionName) => publicFrame({ ...frames[0], functionName }).functionName)
  t.deepEqual(names, ['warmUp', 'Pool', undefined, 'load'])
  t.is(publicFrame({ ...frames[0], functionName: undefined }).functionName, undefined)
})

test("publicFrame: longstack's own frames are core, and their text is not exposed", (t) => {
  t.deepEqual(publicFrame({ ...frames[0], kind: 'own' }), {
    functionName: 'load', fileName: '/app/a.js', lineNumber: 1, columnNumber: 2, kind: 'core', isAsync: false
  })
})
