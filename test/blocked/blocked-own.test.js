'use strict'

// longstack's own frames and callbacks are not reported as blockers.

const path = require('node:path')
const test = require('ava')
const { BlockingCallback, frameIn } = require('../../lib/blocked/blocking-callback')
const { node, root } = require('../helpers/run')
const { watched } = require('../helpers/watchdog')

const own = `tick (${path.join(root, 'lib', 'top', 'sampler.js')}:10:5)`
const bundled = `now (${path.join(root, 'lib', 'start', 'bundle')}:3791:14)`
const late = `Span.finish (${path.join(root, 'lib', 'start', 'bundle-later')}:14695:3)`
const timer = 'listOnTimeout (node:internal/timers:581:17)'
const load = 'Module._compile (node:internal/modules/cjs/loader:1554:14)'
const write = 'writeSync (node:fs:921:3)'
const emit = 'Server.emit (node:events:524:28)'
const program = 'parse (/app/parse.js:12:3)'

/** @param {Array<{ frames: string[], isOwn?: boolean }>} samples frames innermost first */
function callbackOf (...samples) {
  const callback = new BlockingCallback(0, 0, undefined)
  for (const { frames, isOwn } of samples) {
    callback.addSample({ text: frames.join('\n'), context: undefined, late: undefined, weight: 1, isOwn })
  }
  return callback
}

/** @typedef {{ frames: string[], isOwn?: boolean }} Sampled */

/** @type {Array<[title: string, ...samples: Sampled[]]>} */
const ownCallbacks = [
  ['a timer of longstack', { frames: [own, timer] }],
  ['one of the bundle', { frames: [bundled, late, timer] }],
  ['the start, in a function of Node', { frames: [write, bundled, own, load] }],
  ['a call of Node inside of own work', { frames: [write, own, timer], isOwn: true }]
]

for (const [title, ...samples] of ownCallbacks) {
  test(`not reported: ${title}`, (t) => {
    const callback = callbackOf(...samples)
    t.is(callback.createEvent(60, false), undefined)
    t.is(frameIn(callback), undefined)
  })
}

test('longstack\'s innermost frames are omitted: the frame below is the blocker', (t) => {
  const callback = callbackOf({ frames: [bundled, late, program, timer], isOwn: true })
  const event = callback.createEvent(60, false)
  t.deepEqual(event?.frames.map(({ functionName }) => functionName), ['parse'])
  t.is(event?.stack, `    at ${program}`)
  t.is(frameIn(callback), program)
})

test('a wrapper that Node passes through is omitted, and Node\'s own work is reported', (t) => {
  const event = callbackOf({ frames: [write, own, emit] }).createEvent(60, false)
  t.is(event?.stack, `    at ${write}\n    at ${emit}`)
})

test('the program is reported if another sample found it', (t) => {
  const event = callbackOf({ frames: [own, timer] }, { frames: [program, timer] }).createEvent(60, false)
  t.is(event?.stack, `    at ${program}`)
})

watched(test, 'the start of longstack run is not reported', async (t) => {
  const args = ['run', '--capture=native', '--blocked=1', '--spans=/dev/null', '--',
    path.join(root, 'test', 'fixtures', 'blocked', 'busy-start.js')]
  const { stdout, stderr, code } = await node([path.join(root, 'lib', 'cli', 'main.js'), ...args])
  t.is(code, 0, stderr)
  t.is(stdout, 'over\n')
  t.regex(stderr, /at busyInProgram /, 'it detects')
  const places = stderr.split('\n').filter((line) => / at .*[(/]/.test(line))
  t.deepEqual(places.filter((line) => line.includes(path.join(root, 'lib'))), [])
  t.notRegex(stderr, /\bbundle(-later)?:\d/)
})
