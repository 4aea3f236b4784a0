'use strict'

// The content of a report: blockers, the slowest requests, trees.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { STACK, incident } = require('../helpers/incident')
const { file, folder, longstack, nanos, report, span, split } = require('../helpers/span-files')

test('blockers: blocking callbacks and the delays they caused, by function', async (t) => {
  const { model } = await report([file(t, incident())])
  const [worst, outside] = model.blockers
  t.like(worst, { name: 'GET /slow', at: 'work (/app/heavy.js:3:5)', count: 2, totalMs: 120, worstMs: 70, delayedSpans: 2, delayedMs: 105, known: 'runs', open: false })
  t.true(worst.stack.startsWith('    at work (/app/heavy.js:4:5)'), 'the stack of the longest callback')
  t.like(outside, { name: '(outside of any request)', delayedSpans: 2, delayedMs: 0.8, known: 'delays' })
  t.is(model.blockers.length, 2)
  t.false(model.routes.some((/** @type {any} */ { name }) => name === 'blocked'), 'a blocking callback is no route')
})

test('without recorded callbacks, blockers are found by their delays alone', async (t) => {
  const { model } = await report([file(t, incident().filter(({ name }) => name !== 'blocked'))])
  t.like(model.blockers[0], { name: 'GET /slow', at: 'work (/app/heavy.js:3:5)', known: 'delays', count: 1, totalMs: 60, worstMs: 60, delayedSpans: 2, delayedMs: 105 })
})

test('an unfinished callback is reported with what is known', async (t) => {
  const attributes = { 'longstack.blocked_ms': 900, 'longstack.end': 'open', 'code.stacktrace': STACK }
  const spinning = span({ name: 'blocked', kind: 'INTERNAL', ms: 900, attributes })
  const { model } = await report([file(t, [span({ name: 'GET /' }), spinning])])
  t.like(model.blockers[0], { at: 'work (/app/heavy.js:3:5)', name: '(outside of any request)', open: true, totalMs: 900 })
  t.like(model.open[0], { blocked: true, ms: 900 })
  const ended = { ...spinning, endTimeUnixNano: nanos(1000), attributes: { ...spinning.attributes, 'longstack.end': undefined, 'longstack.blocked_ms': 1000 } }
  const after = (await report([file(t, [spinning, ended])])).model
  t.like(after.blockers[0], { open: false, count: 1, totalMs: 1000 })
  t.deepEqual(after.open, [])
})

test('a blocking callback names its request, even if that was written before it or never', async (t) => {
  const run = (/** @type {number} */ ms, more = {}) => span({
    name: 'blocked',
    kind: 'INTERNAL',
    ms,
    parentSpanId: '00000000000000aa',
    attributes: { 'longstack.blocked_ms': ms, 'code.stacktrace': STACK, 'longstack.blocked_by': 'GET /slow', ...more }
  })
  const before = (await report([file(t, [span({ name: 'GET /slow', spanId: '00000000000000aa' }), run(100)])])).model
  t.like(before.blockers[0], { name: 'GET /slow', open: false })
  const killed = file(t, [span(), run(900, { 'longstack.end': 'open' })])
  const { model } = await report([killed])
  t.like(model.blockers[0], { name: 'GET /slow', open: true })
  t.is(model.open[0].blockedBy, 'GET /slow')
  const { stdout } = await longstack(['report', killed])
  t.true(stdout.includes('  GET /slow at work (/app/heavy.js:3:5)\n    blocked the event loop 1 time: 900 ms total'))
  t.true(stdout.includes('  a blocking callback of GET /slow, open for 900 ms when written'))
})

test('frames of Node and packages are not blamed if one of the program is below', async (t) => {
  const inside = ['JSON.parse (node:internal/x:1:1)', 'parse (/app/node_modules/x/i.js:1:1)', 'mine (/app/mine.js:7:1)'].map((frame) => `    at ${frame}`)
  const stack = [...inside, '  ── setTimeout(1) · Timeout · 1 ms earlier ──', '    at other (/app/o.js:1:1)'].join('\n')
  const { model } = await report([file(t, [span({ name: 'blocked', kind: 'INTERNAL', attributes: { 'longstack.blocked_ms': 60, 'code.stacktrace': stack } })])])
  t.is(model.blockers[0].at, 'mine (/app/mine.js:7:1)')
})

test('the slowest requests have their time, delays, and trace tree', async (t) => {
  const runs = { 'longstack.runs': [[0, 2, 'Timeout'], [30, 3, 'TCPWRAP']], 'code.stacktrace': STACK }
  const root = span({ name: 'GET /a', ms: 50, attributes: { ...runs, ...split({ run: 5, waited: 40, delayed: 5 }, { TCP: 40 }) } })
  const child = { ...span({ name: 'GET', kind: 'CLIENT', at: 2, ms: 20, attributes: { 'server.address': 'db', 'server.port': 1 } }), traceId: root.traceId, parentSpanId: root.spanId }
  const others = Array.from({ length: 40 }, (_, i) => span({ ms: i / 10 }))
  const { model } = await report([file(t, [child, root, ...others])])
  t.is(model.slowest.length, 20)
  t.like(model.slowest[0], { name: 'GET /a', ms: 50, stack: STACK, runs: runs['longstack.runs'] })
  t.deepEqual(model.slowest[0].split, { run: 5, waited: 40, delayed: 5, wait: { TCP: 40 } })
  t.true(
    model.slowest.every(
      (/** @type {any} */ { ms }, /** @type {number} */ i) => i === 0 || ms <= model.slowest[i - 1].ms
    )
  )
  t.deepEqual(model.traces[root.traceId].map((/** @type {any} */ { name, parentSpanId }) => [name, parentSpanId]), [['GET /a', undefined], ['GET', root.spanId]])
})

test('a page is written only to its file', async (t) => {
  const to = path.join(folder(t), 'page.html')
  const { stdout, stderr, code } = await longstack(['report', file(t, incident()), '--html', to])
  t.is(code, 0)
  t.is(stdout, '')
  t.regex(stderr, /^Wrote .*page\.html/)
  if (process.platform !== 'win32') t.is(fs.statSync(to).mode & 0o077, 0, 'nobody else may read it')
  const page = fs.readFileSync(to, 'utf8')
  t.regex(page, /^<!doctype html>/i)
  t.true(page.includes('GET /slow'))
  const printed = await longstack(['report', file(t, incident()), '--html', '-'])
  t.regex(printed.stdout, /^<!doctype html>/i)
})
