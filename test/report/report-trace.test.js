'use strict'

// longstack report --trace: Chrome trace events whose slices nest on every track, as the format asks for, and
// whose arrows begin and end inside of slices.

const test = require('ava')
const fs = require('node:fs')
const path = require('node:path')
const { file, folder, longstack, span } = require('../helpers/span-files')

/** @param {import('ava').ExecutionContext} t @param {string[]} args */
async function trace (t, ...args) {
  const to = path.join(folder(t), 'out.json')
  const { code, stderr, stdout } = await longstack(['report', ...args, '--trace', to])
  t.is(code, 0, stderr)
  t.is(stdout, '')
  /** @type {any[]} */
  const events = JSON.parse(fs.readFileSync(to, 'utf8')).traceEvents
  const slices = events.filter(({ ph }) => ph === 'X')
  return { events, slices, stderr, flows: events.filter(({ ph }) => /^[stf]$/.test(ph)) }
}

/**
 * Every two slices of a track are apart, or one is inside of the other.
 * @param {import('ava').ExecutionContext} t
 * @param {any[]} slices
 */
function nested (t, slices) {
  const tracks = Map.groupBy?.(slices, ({ pid, tid }) => `${pid} ${tid}`) ?? grouped(slices)
  for (const track of tracks.values()) {
    /** @type {number[]} */
    const ends = []
    for (const { ts, dur } of track.sort((a, b) => a.ts - b.ts || b.dur - a.dur)) {
      while (ends.length > 0 && ends[ends.length - 1] <= ts + 1e-6) ends.pop()
      if (ends.length > 0 && ts + dur > ends[ends.length - 1] + 1e-3) t.fail(`${ts} + ${dur} crosses ${ends[ends.length - 1]}`)
      ends.push(ts + dur)
    }
  }
}

/** @param {any[]} slices @returns {Map<string, any[]>} */
function grouped (slices) {
  const tracks = new Map()
  for (const one of slices) tracks.set(`${one.pid} ${one.tid}`, [...(tracks.get(`${one.pid} ${one.tid}`) ?? []), one])
  return tracks
}

/** @param {any} flow @param {any} slice */
function inside (flow, slice) {
  return (
    flow.pid === slice.pid &&
    flow.tid === slice.tid &&
    flow.ts >= slice.ts &&
    (flow.ts < slice.ts + slice.dur || slice.dur === 0)
  )
}

test('a request, its parallel children and its runs: nested right, joined by arrows', async (t) => {
  const root = span({ name: 'GET /a', ms: 50, attributes: { 'longstack.runs': [[0, 2, 'HTTPINCOMINGMESSAGE'], [30, 3, 'TCPWRAP'], [48, 1, 'TCPWRAP']] } })
  const child = (/** @type {number} */ at, /** @type {number} */ ms) => ({ ...span({ name: 'GET', kind: 'CLIENT', at, ms }), traceId: root.traceId, parentSpanId: root.spanId })
  const late = child(60, 5)
  const { slices, flows, events, stderr } = await trace(
    t,
    file(t, [child(1, 28), child(1.5, 40), root, late])
  )
  nested(t, slices)
  t.regex(stderr, /4 spans.*perfetto/)
  t.is(slices.filter(({ cat }) => cat === 'run').length, 3)
  const at = (/** @type {string} */ spanId) => slices.find(({ cat, args }) => cat !== 'run' && args.spanId === spanId)
  t.like(at(root.spanId), { name: 'GET /a', pid: 7, ts: 0, dur: 50_000 })

  const children = flows.filter(({ name }) => name === 'child')
  t.is(children.length, 6, 'a beginning and an end for each')
  for (const { id, ph, ...flow } of children) {
    const other = children.find((one) => one.id === id && one.ph !== ph)
    t.truthy(other)
    t.true(slices.some((slice) => inside(flow, slice)))
    if (ph === 's') t.true(inside(flow, at(root.spanId)), 'an arrow begins at the parent')
    else t.is(other.ph, 's')
  }
  const hops = flows.filter(({ name }) => name === 'next run')
  t.deepEqual(hops.map(({ ph, ts }) => [ph, ts]), [['s', 0], ['t', 30_000], ['f', 48_000]])
  t.true(hops.every((hop) => slices.some((slice) => slice.cat === 'run' && inside(hop, slice))))
  t.true(events.some(({ ph, name, args }) => ph === 'M' && name === 'process_name' && args.name === 'shop (7)'))
  t.true(events.some(({ ph, name, args }) => ph === 'M' && name === 'thread_name' && args.name === 'event loop'))
})

test('whatever spans overlap, and whatever a file says of runs, slices nest', async (t) => {
  let state = 5
  const draw = () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32
  const roots = Array.from({ length: 300 }, () => {
    const ms = draw() * 40
    return span({ at: draw() * 200, ms, attributes: { 'longstack.runs': [[0, draw() * 9, 'a'], [draw() * ms, draw() * 9, 'b']] }, resource: { 'process.pid': 1 + Math.floor(draw() * 2) } })
  })
  const children = roots.flatMap((root) =>
    Array.from({ length: 3 }, () => ({
      ...span({ at: draw() * 220, ms: draw() * 30 }),
      traceId: root.traceId,
      parentSpanId: root.spanId
    }))
  )
  const { slices, flows } = await trace(t, file(t, [...roots, ...children]))
  t.is(slices.length, 1200 + 600)
  nested(t, slices)
  t.true(flows.every((flow) => slices.some((slice) => inside(flow, slice))))
})

test('an open span is there as far as it came, an ended one once, and hostile names are only text', async (t) => {
  const open = span({ name: '</script>\u001b[2J\u202e', ms: 5, attributes: { 'longstack.end': 'open' } })
  const ended = {
    ...open,
    attributes: {},
    endTimeUnixNano: String(BigInt(open.endTimeUnixNano) + 1_000_000n)
  }
  const { slices } = await trace(t, file(t, [open, ended, span({ attributes: { 'longstack.end': 'open' } })]))
  t.deepEqual(slices.map(({ name, dur, args }) => [name, dur, args.end]), [['</script>?[2J?', 6000, undefined], ['GET /', 1000, 'open']])
})

test('with nothing to draw it is an empty trace', async (t) => {
  const { events, stderr } = await trace(t, file(t, 'foreign\n'))
  t.deepEqual(events, [])
  t.regex(stderr, /no spans found/)
})
