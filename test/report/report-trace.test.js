'use strict'

// longstack report --trace: Chrome trace events, interpreted by Perfetto's rules.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { file, folder, longstack, span, split } = require('../helpers/span-files')
const { processTrace } = require('../helpers/trace-processor')

/** @param {import('ava').ExecutionContext} t @param {string[]} args */
async function trace (t, ...args) {
  const to = path.join(folder(t), 'out.json')
  const { code, stderr, stdout } = await longstack(['report', ...args, '--trace', to])
  t.is(code, 0, stderr)
  t.is(stdout, '')
  if (process.platform !== 'win32') t.is(fs.statSync(to).mode & 0o077, 0, 'nobody else may read it')
  /** @type {any[]} */
  const events = JSON.parse(fs.readFileSync(to, 'utf8')).traceEvents
  const read = processTrace(events)
  t.deepEqual(read.errors, [])
  t.is(read.slices.length, events.filter(({ ph }) => ph === 'X').length, 'no slice is dropped')
  t.is(read.flows.length, events.filter(({ ph }) => /^[tf]$/.test(ph)).length, 'every arrow arrives')
  for (const { track } of read.slices) t.true(read.threads.has(track), 'every track has a name')
  return { ...read, stderr }
}

test('a request, its parallel children and its runs are nested and joined by arrows', async (t) => {
  const root = span({ name: 'GET /a', ms: 50, attributes: { 'longstack.runs': [[0, 2, 'HTTPINCOMINGMESSAGE'], [30, 3, 'TCPWRAP'], [48, 1, 'TCPWRAP']] } })
  const child = (/** @type {number} */ at, /** @type {number} */ ms) => ({ ...span({ name: `GET ${at}`, kind: 'CLIENT', at, ms }), traceId: root.traceId, parentSpanId: root.spanId })
  const spans = [child(1, 28), child(1.5, 40), root, child(60, 5), child(30, 1)]
  const { slices, flows, threads, processes, stderr } = await trace(t, file(t, spans))
  t.regex(stderr, /5 spans.*perfetto/)
  t.is(slices.filter(({ cat }) => cat === 'run').length, 3)
  const named = Object.fromEntries(slices.filter(({ cat }) => cat !== 'run').map((slice) => [slice.name, slice]))
  t.like(named['GET /a'], { start: 0, end: 50_000, parent: undefined })
  t.is(named['GET 1'].parent, named['GET /a'])
  t.is(named['GET 1.5'].parent, undefined, 'it overlaps another child')

  const arrows = flows.filter(({ name }) => name === 'child')
  t.deepEqual(arrows.map((flow) => [flow.out.name, flow.in.name]), ['GET 1', 'GET 1.5', 'GET 30', 'GET 60'].map((name) => ['GET /a', name]))
  const hops = flows.filter(({ name }) => name === 'next run')
  t.deepEqual(hops.map((flow) => [flow.out.start, flow.in.start]), [[0, 30_000], [30_000, 48_000]])
  t.deepEqual([...processes], [[7, 'shop (7)']])
  t.deepEqual([...new Set(threads.values())], ['spans', 'event loop'])
})

test('runs that overlap by rounding stay on one track, and are truncated', async (t) => {
  const runs = (/** @type {number} */ start) => Array.from({ length: 40 }, (_, i) => [i + start, 0.5015, 'TCPWRAP'])
  const two = [
    span({ name: 'GET /a', ms: 60, attributes: { 'longstack.runs': runs(0) } }),
    span({ name: 'GET /b', ms: 60, attributes: { 'longstack.runs': runs(0.5) } })
  ]
  const { slices, threads } = await trace(t, file(t, two))
  t.deepEqual([...threads.values()].sort(), ['event loop', 'spans', 'spans'])
  const loop = slices.filter(({ cat }) => cat === 'run')
  t.is(loop.length, 80)
  t.is(new Set(loop.map(({ track }) => track)).size, 1)
  t.true(loop.every(({ parent }) => parent === undefined))
  t.true(loop.slice(1).every(({ start }, i) => loop[i].end <= start && loop[i].end > start - 3))
})

test('runs of different threads and processes have their own tracks', async (t) => {
  const runs = { 'longstack.runs': [[0, 2, 'Timeout'], [5, 1, 'Timeout']] }
  const of = (/** @type {number} */ pid, /** @type {number} */ thread) =>
    span({ attributes: runs, ms: 9, resource: { 'process.pid': pid, 'longstack.thread': thread } })
  const { threads } = await trace(t, file(t, [of(1, 0), of(1, 2), of(2, 0)]))
  const names = [...threads].map(([track, name]) => `${track.split(' ')[0]} ${name}`)
  t.deepEqual(names.sort(), ['1 event loop', '1 event loop of thread 2', '1 spans', '1 spans', '2 event loop', '2 spans'])
})

test('waits and the runs after them have their site\'s name if exactly one gap has their length', async (t) => {
  const waits = [
    { ms: 40.002, at: 'query (/app/lib/pool.js:34:9) via pg', until: 'TCP 127.0.0.1:5432', label: 'await' },
    { ms: 5, at: 'nap (/app/nap.js:3:1)', until: 'TIMER', label: 'setTimeout(5)' },
    { ms: 3, count: 2, at: 'twice (/app/nap.js:9:1)', until: 'TIMER' }
  ]
  const runs = { 'longstack.runs': [[0, 2, 'HTTPINCOMINGMESSAGE'], [42.003, 1, 'TCPWRAP'], [48.003, 1, 'Timeout'], [54.003, 1, 'Timeout'], [57.003, 1, 'Timeout']] }
  const root = span({ name: 'GET /a', ms: 60, attributes: { ...split({ run: 6, waited: 52, delayed: 1.1 }, {}, waits), ...runs } })
  const { slices, threads } = await trace(t, file(t, [root]))
  t.deepEqual(slices.filter(({ cat }) => cat === 'wait').map(({ name, start, end, track }) => [name, start, end, threads.get(track)]), [
    ['waited at query (pool.js:34) via pg until TCP 127.0.0.1:5432', 2000, 42_003, 'waits']
  ], 'two gaps are as long as the second wait')
  t.deepEqual(slices.filter(({ cat }) => cat === 'run').map(({ name }) => name), ['GET /a', 'GET /a after query (pool.js:34) via pg', 'GET /a', 'GET /a', 'GET /a'])
  t.like(slices.find(({ cat }) => cat === 'server')?.args.waits[0], { ms: 40.002, at: waits[0].at })
})

test('slices nest for any overlapping spans and runs', async (t) => {
  let state = 5
  const draw = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
  const roots = Array.from({ length: 300 }, () => {
    const ms = draw() * 40
    return span({ at: draw() * 200, ms, attributes: { 'longstack.runs': [[0, draw() * 9, 'a'], [draw() * ms, draw() * 9, 'b'], [draw() * ms, 0, 'c']] }, resource: { 'process.pid': 1 + Math.floor(draw() * 2) } })
  })
  const children = roots.flatMap((root) =>
    Array.from({ length: 3 }, () => ({
      ...span({ at: draw() * 220, ms: Math.max(0, draw() - 0.1) * 30 }),
      traceId: root.traceId,
      parentSpanId: root.spanId
    }))
  )
  const { slices, flows } = await trace(t, file(t, [...roots, ...children]))
  t.is(slices.length, 1200 + 900)
  for (const { name, out, in: to } of flows.filter((flow) => flow.name === 'child')) {
    t.is(out.args.spanId, to.args.parentSpanId, name)
  }
  for (const { out, in: to } of flows.filter(({ name }) => name === 'next run')) {
    t.true(out.args.spanId === to.args.spanId && out.start <= to.start)
  }
})

test('11,000 concurrent spans have one track each; later spans reuse tracks', async (t) => {
  const count = 11_000
  const waits = [{ ms: 900.499, count: 1, at: 'query (/app/db.js:3:1)', until: 'TCP' }]
  const attributes = { ...split({ waited: 900.499, run: 0.002 }, {}, waits), 'longstack.runs': [[0, 0.001, 'TCPWRAP'], [900.5, 0.001, 'TCPWRAP']] }
  const atOnce = Array.from({ length: count }, (_, i) => span({ name: 'GET /a', at: i / 100, ms: 1000, attributes }))
  const later = Array.from({ length: 20 }, (_, i) => span({ name: 'GET /later', at: 2000 + i, ms: 0.5 }))
  const { slices, threads } = await trace(t, file(t, [...atOnce, ...later]))
  const tracks = (/** @type {string} */ name) => [...threads].filter(([, thread]) => thread === name).length
  t.is(tracks('spans'), count)
  t.is(tracks('event loop'), 1)
  t.is(tracks('waits'), count)
  for (const { cat, track } of slices) {
    const kind = { run: 'event loop', wait: 'waits' }[cat] ?? 'spans'
    if (threads.get(track) !== kind) t.fail(`a ${cat} is on the track "${threads.get(track)}"`)
  }
  const [first] = slices.filter(({ name }) => name === 'GET /a')
  t.true(slices.filter(({ name }) => name === 'GET /later').every(({ track }) => track === first.track))
})

test('an open span is drawn as far as it is known, an ended one once, and hostile names as text', async (t) => {
  const open = span({ name: '</script>\u001b[2J\u202e', ms: 5, attributes: { 'longstack.end': 'open' } })
  const ended = {
    ...open,
    attributes: {},
    endTimeUnixNano: String(BigInt(open.endTimeUnixNano) + 1_000_000n)
  }
  const { slices } = await trace(t, file(t, [open, ended, span({ attributes: { 'longstack.end': 'open' } })]))
  t.deepEqual(slices.map(({ name, start, end, args }) => [name, end - start, args.end]), [['</script>?[2J?', 6000, undefined], ['GET /', 1000, 'open']])
})

test('without data, the trace is empty', async (t) => {
  const { slices, stderr } = await trace(t, file(t, 'foreign\n'))
  t.deepEqual(slices, [])
  t.regex(stderr, /no spans found/)
})
