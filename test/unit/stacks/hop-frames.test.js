'use strict'

const test = require('ava')
const { formatFrames, publicFrame } = require('../../../lib/stacks/hop-frames')
const { framesOf } = require('../../helpers/contexts')

const frames = framesOf(
  'load (/app/a.js:1:2)',
  'query (/app/node_modules/pg/index.js:1:2)',
  'connect (/app/node_modules/pg/lib/socket.js:1:2)',
  'get (/app/node_modules/@scope/pool/index.js:1:2)',
  'main (/app/b.js:1:2)'
)

test('formatFrames without a rule: as V8 prints them', (t) => {
  t.deepEqual(formatFrames(frames.slice(0, 2), undefined), ['    at load (/app/a.js:1:2)', '    at query (/app/node_modules/pg/index.js:1:2)'])
})

test('formatFrames: hidden neighbours of one package are one line', (t) => {
  t.deepEqual(formatFrames(frames, 'node_modules'), [
    '    at load (/app/a.js:1:2)', '    ... 2 frames in pg', '    ... 1 frame in @scope/pool', '    at main (/app/b.js:1:2)'
  ])
})

test('formatFrames: a rule may be an expression for files, or a function of a frame', (t) => {
  const hidden = ['    ... 1 frame in a.js', ...formatFrames(frames.slice(1), undefined)]
  t.deepEqual(formatFrames(frames, /a\.js$/), hidden)
  t.deepEqual(formatFrames(frames, (frame) => frame.functionName === 'load'), hidden)
})

test('formatFrames: a rule that throws hides nothing', (t) => {
  t.deepEqual(formatFrames(frames, () => { throw new Error('x') }), formatFrames(frames, undefined))
})

test('formatFrames: the innermost package counts', (t) => {
  const nested = framesOf('get (/app/node_modules/pg/node_modules/pool/index.js:1:2)')
  t.deepEqual(formatFrames(nested, 'node_modules'), ['    ... 1 frame in pool'])
})

test('publicFrame has the bare name of the function', (t) => {
  const names = ['Timeout.warmUp [as _onTimeout]', 'new db.Pool', 'Object.<anonymous>', 'load'].map((functionName) => publicFrame({ ...frames[0], functionName }).functionName)
  t.deepEqual(names, ['warmUp', 'Pool', undefined, 'load'])
  t.is(publicFrame({ ...frames[0], functionName: undefined }).functionName, undefined)
})

test("publicFrame: longstack's own frames are core, and its text stays inside", (t) => {
  t.deepEqual(publicFrame({ ...frames[0], kind: 'own' }), {
    functionName: 'load', fileName: '/app/a.js', lineNumber: 1, columnNumber: 2, kind: 'core', isAsync: false
  })
})
