'use strict'

const test = require('ava')
const { queriedAt, startQuery } = require('../../../lib/core/clock')
const { describe, hops } = require('../../../lib/stacks/chain')
const { droppedHops } = require('../../../lib/stacks/loop-folding')
const { defaultOptions } = require('../../../lib/options')
const { settings } = require('../../../lib/settings')
const { chained, contextOf, framesOf } = require('../../helpers/contexts')

/** @param {object} [changes] of the options */
function chainWith (changes = {}) {
  settings.options = { ...defaultOptions(), ...changes }
  startQuery()
  return { describe, hops }
}

const timer = (name, fields = {}) => contextOf('Timeout', { lines: ['setTimeout (node:timers:1:2)', `${name} (/app/a.js:1:2)`], detail: '5', ...fields })
const summary = (hops) => hops.map(({ label, repeats, frames }) => `${label} × ${repeats} ${frames.map(({ functionName }) => functionName)}`)

test('hops: newest first, with ages and without frames of Node', (t) => {
  const hops = chainWith().hops(chained(timer('first', { time: queriedAt() - 90 }), timer('second', { time: queriedAt() - 30 })))
  t.deepEqual(summary(hops), ['setTimeout(5) × 1 second', 'setTimeout(5) × 1 first'])
  t.deepEqual(hops.map(({ ageMs }) => Math.round(ageMs)), [30, 90])
  t.deepEqual(hops[0].lines, ['    at second (/app/a.js:1:2)'])
  t.like(hops[0], { type: 'Timeout', origin: 'registered', triggerAsyncId: 1 })
})

test('without a context there are no hops', (t) => {
  t.deepEqual(chainWith().hops(undefined), [])
})

test("steps that are Node's internals make no hop", (t) => {
  const internal = contextOf('TickObject', { lines: ['emit (node:net:1:2)'] })
  t.deepEqual(summary(chainWith().hops(chained(timer('first'), internal, timer('second')))), ['setTimeout(5) × 1 second', 'setTimeout(5) × 1 first'])
  t.is(chainWith({ internals: true }).hops(chained(timer('first'), internal, timer('second'))).length, 3)
})

test('a resource that Node makes later names the call that requested it', (t) => {
  const handle = contextOf('TCPWRAP', { lines: ['Object.connect (node:net:1:2)', 'dial (/app/a.js:1:2)'] })
  const connect = contextOf('TCPCONNECTWRAP', { lines: ['internalConnect (node:net:1:2)'], detail: 'db:80', parent: handle })
  const [hop, ...others] = chainWith().hops(connect)
  t.deepEqual(others, [])
  t.like(hop, { type: 'TCPCONNECTWRAP', label: 'net.connect(db:80)', asyncId: connect.asyncId })
  t.deepEqual(hop.lines, ['    at dial (/app/a.js:1:2)'])
})

test('the iterations of a loop are one hop', (t) => {
  const chain = chained(timer('main'), ...Array.from({ length: 5 }, () => timer('turn')))
  t.deepEqual(summary(chainWith().hops(chain)), ['setTimeout(5) × 5 turn', 'setTimeout(5) × 1 main'])
})

test('equal neighbours are one hop', (t) => {
  const chain = chained(timer('main'), timer('turn'), contextOf('TickObject', { lines: ['emit (node:net:1:2)'] }), timer('turn'))
  t.deepEqual(summary(chainWith().hops(chain)), ['setTimeout(5) × 2 turn', 'setTimeout(5) × 1 main'])
})

test('depth and frames limit the output', (t) => {
  const long = chained(...'abcdefgh'.split('').map((name) => timer(name)))
  t.deepEqual(summary(chainWith({ depth: 2 }).hops(long)), ['setTimeout(5) × 1 h', 'setTimeout(5) × 1 g'])
  const deep = contextOf('Timeout', { lines: ['setTimeout (node:timers:1:2)', 'a (/app/a.js:1:2)', 'b (/app/a.js:1:2)', 'c (/app/a.js:1:2)'] })
  t.is(chainWith({ frames: 2 }).hops(deep)[0].lines.length, 2)
})

test('an await that V8 prints as "at async" is not repeated', (t) => {
  const awaiting = contextOf('PROMISE', { lines: ['load (/app/a.js:3:2)'], awaited: true })
  const above = framesOf('query (/app/b.js:1:2)', 'async load (/app/a.js:3:2)')
  t.deepEqual(summary(chainWith().hops(chained(timer('main'), awaiting), { above })), ['setTimeout(5) × 1 main'])
  t.deepEqual(summary(chainWith().hops(chained(timer('main'), awaiting))), ['await × 1 load', 'setTimeout(5) × 1 main'])
})

test('a given origin applies to all hops', (t) => {
  const hops = chainWith().hops(chained(timer('first'), timer('second')), { origin: 'reader' })
  t.deepEqual(hops.map(({ origin }) => origin), ['reader', 'reader'])
})

test('hops of another thread follow, aged by the time elapsed here', (t) => {
  const carried = [{ label: 'new Worker', type: 'WORKER', ageMs: 7, repeats: 1, origin: 'worker', frames: [], lines: [] }]
  const { hops: hopsOf } = chainWith()
  const start = contextOf('process', { origin: 'process', time: queriedAt() - 60, carried })
  const hops = hopsOf(chained(start, timer('first', { time: queriedAt() - 100 })))
  t.deepEqual(hops.map(({ label, ageMs }) => [label, Math.round(ageMs)]), [['setTimeout(5)', 100], ['new Worker', 67]])
})

test('describe returns any step as a hop', (t) => {
  t.like(chainWith().describe(contextOf('TickObject', { lines: ['emit (node:net:1:2)'] })), { type: 'TickObject', label: 'process.nextTick', frames: [] })
})

test('the number of dropped contexts is reported', (t) => {
  const before = droppedHops()
  chainWith({ depth: 8 }).hops(chained(...Array.from({ length: 198 }, (_, i) => timer(`step${i}`))))
  t.is(droppedHops() - before, 6)
})
