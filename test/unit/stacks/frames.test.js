'use strict'

const path = require('node:path')
const test = require('ava')
const { RecentMap, Stack, isOwn, parseFrame, readFrames } = require('../../../lib/stacks/frames')
const stacks = require('../../../lib/stacks/numbered-stacks')
const { frameLines, joinFrames, splitFrames } = require('../../../lib/stacks/text-scan')
const { root } = require('../../helpers/run')

/**
 * @type {Array<[line: string, name: string | undefined, file: string | undefined, kind: string, text?:
 *   string]>}
 */
const lines = [
  ['load (/app/pool.js:34:9)', 'load', '/app/pool.js', 'user'],
  ['/app/pool.js:34:9', undefined, '/app/pool.js', 'user'],
  ['Pool.load (/app/pool.js:34:9)', 'load', '/app/pool.js', 'user', 'load (/app/pool.js:34:9)'],
  ['Timeout.warmUp [as _onTimeout] (/app/pool.js:34:9)', 'warmUp', '/app/pool.js', 'user', 'warmUp (/app/pool.js:34:9)'],
  ['Timeout._onTimeout (/app/pool.js:34:9)', undefined, '/app/pool.js', 'user', '/app/pool.js:34:9'],
  ['Pool.<anonymous> (/app/pool.js:34:9)', undefined, '/app/pool.js', 'user', '/app/pool.js:34:9'],
  ['Object.<anonymous> (/app/pool.js:34:9)', 'Object.<anonymous>', '/app/pool.js', 'user'],
  ['new db.Pool (/app/pool.js:34:9)', 'new Pool', '/app/pool.js', 'user', 'new Pool (/app/pool.js:34:9)'],
  ['load (/app (copy)/pool.js:34:9)', 'load', '/app (copy)/pool.js', 'user'],
  ['load (/app (copy/pool.js:34:9)', 'load', '/app (copy/pool.js', 'user'],
  ['load (/app(copy/pool.js:34:9)', 'load', '/app(copy/pool.js', 'user'],
  ['load (/app) copy/pool.js:34:9)', 'load', '/app) copy/pool.js', 'user'],
  ['GET (/users) (/app/pool.js:34:9)', 'GET (/users)', '/app/pool.js', 'user'],
  ['load (pool.js:34:9)', 'load', 'pool.js', 'user'],
  ['load (/app\nbelow/pool.js:34:9)', 'load', '/app\nbelow/pool.js', 'user'],
  ['load (file:///app/pool.mjs:34:9)', 'load', 'file:///app/pool.mjs', 'user'],
  ['query (/app/node_modules/pg/index.js:34:9)', 'query', '/app/node_modules/pg/index.js', 'module'],
  ['eval (eval at run (/app/a.js:1:2), <anonymous>:34:9)', 'eval', 'eval at run (/app/a.js:1:2), <anonymous>', 'user'],
  ['Server.listen (node:net:34:9)', 'Server.listen', 'node:net', 'core'],
  [`load (${path.join(root, 'lib', 'tracer.js')}:34:9)`, 'load', path.join(root, 'lib', 'tracer.js'), 'own']
]
for (const [line, functionName, fileName, kind, text = line] of lines) {
  test(`parseFrame: ${line.replace(root, '')}`, (t) => {
    t.deepEqual(parseFrame(line), {
      text,
      functionName,
      fileName,
      lineNumber: 34,
      columnNumber: 9,
      kind,
      isAsync: false
    })
    t.like(parseFrame(`async ${line}`), { text: `async ${text}`, functionName, fileName, isAsync: true })
  })
}

test('parseFrame: a built-in function has no place', (t) => {
  t.deepEqual(parseFrame('Array.map (<anonymous>)'), {
    text: 'Array.map (<anonymous>)',
    functionName: 'Array.map',
    fileName: undefined,
    lineNumber: undefined,
    columnNumber: undefined,
    kind: 'core',
    isAsync: false
  })
})

test('parseFrame returns the same frame for the same line', (t) => {
  t.is(parseFrame('shared (/app/a.js:1:1)'), parseFrame('shared (/app/a.js:1:1)'))
})

test('isOwn: lib and index.js of this package', (t) => {
  t.true(isOwn(path.join(root, 'index.js')))
  t.true(isOwn(path.join(root, 'lib', 'stacks', 'frames.js')))
  t.false(isOwn(path.join(root, 'test', 'a.js')))
  t.false(isOwn(path.join(root, 'library.js')))
})

const text = 'Error: x\n    at second\n    at load (/app/a.js:1:2)\n    at async main (/app/a.js:3:4)\n  more'

test('frameLines: with and without awaiting functions', (t) => {
  t.is(frameLines(text, true), 'second\nload (/app/a.js:1:2)\nasync main (/app/a.js:3:4)')
  t.is(frameLines(text, false), 'second\nload (/app/a.js:1:2)')
  t.is(frameLines('Error: no frames', true), '')
})

test('frameLines: a path with line feeds belongs to one frame', (t) => {
  const frames = ['load (/app\nbelow/a.js:1:2)', '/app\n\n1/a.js:1:2', 'Array.map (<anonymous>)', 'async main (/app\nbelow/a.js:3:4)']
  const stack = ['Error: x', ...frames.map((frame) => `    at ${frame}`)].join('\n')
  for (const end of ['', '\n  more', "\n{ code: 'x' }"]) {
    t.deepEqual(splitFrames(frameLines(stack + end, true)), frames)
    t.deepEqual(splitFrames(frameLines(stack + end, false)), frames.slice(0, 3))
  }
  t.is(joinFrames(frames), frameLines(stack, true))
  t.deepEqual(new Stack(joinFrames(frames)).frames.map(({ text }) => text), frames)
})

test("Stack.frames omits Node's calls of hooks", (t) => {
  const lines = ['emitInit (node:internal/async_hooks:1:1)', 'load (/app/a.js:1:2)', 'init (node:internal/promise_hooks:1:1)']
  t.deepEqual(new Stack(lines.join('\n')).frames.map(({ functionName }) => functionName), ['load'])
  t.deepEqual(new Stack('').frames, [])
})

test('Stack.program tells whether a frame belongs to the program', (t) => {
  t.true(new Stack('Socket.emit (node:net:1:1)\nload (/app/a.js:1:2)').program)
  t.true(new Stack('query (/app/node_modules/pg/a.js:1:2)').program)
  t.false(new Stack('Socket.emit (node:net:1:1)').program)
  t.false(new Stack('').program)
})

test('equal stacks have one number', (t) => {
  const before = stacks.size()
  const intern = stacks.internStack
  const first = intern('load (/app/a.js:1:2)\nmain (/app/a.js:9:1)')
  t.is(intern('load (/app/a.js:1:2)\nmain (/app/a.js:9:1)'), first)
  for (let i = 0; i < 4000; i++) parseFrame(`load (/app/a.js:9:${i})`) // frames are parsed again
  t.is(intern('load (/app/a.js:1:2)\nmain (/app/a.js:9:1)\nemit (node:events:1:1)'), first, 'what called it is no part of it')
  t.not(intern('load (/app/a.js:1:3)\nmain (/app/a.js:9:1)'), first)
  t.not(intern('read (/app/a.js:1:2)\nmain (/app/a.js:9:1)'), first, 'the same hash')
  t.not(intern('main (/app/a.js:9:1)\nload (/app/a.js:1:2)'), first)
  t.is(intern(''), intern(''))
  t.is(stacks.size() - before, 5)
})

test('stacks share common frames', (t) => {
  const [one, two] = ['one', 'two'].map((name) => new Stack(`${name} (/app/${name}.js:1:2)\nrun (/app/node_modules/runner/a.js:9:1)`))
  t.is(one.frames[1], two.frames[1])
})

test('a recent map forgets keys not used since it was last full', (t) => {
  const map = new RecentMap(10)
  for (let i = 0; i < 1000; i++) {
    map.set(String(i), i)
    if (i > 0) t.is(map.get('0'), 0)
    t.true(map.weight <= 20)
  }
  t.is(map.get('999'), 999)
  t.is(map.get('500'), undefined)
  map.set('large', 1, 10)
  t.is(map.get('large', 10), 1)
})

test('readFrames returns frames, including awaiting functions', (t) => {
  t.deepEqual(readFrames(text).map(({ text }) => text), ['second', 'load (/app/a.js:1:2)', 'async main (/app/a.js:3:4)'])
})
