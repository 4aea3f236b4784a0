'use strict'

// Spans as Chrome trace events, which Perfetto and chrome://tracing load. Each process has as many lanes of
// spans as are needed for none to overlap another that it is not inside of, and below them the event loop of each thread
// with the runs. Arrows lead from run to run of one span, and from a span to its children.

const { clean } = require('../../text')

/**
 * @typedef {import('../aggregate/digest').Digest & { pid: number, thread: number }} Drawn
 *
 * @typedef {object} Bar something that takes time
 * @property {Drawn} span
 * @property {number} start in ms
 * @property {number} end
 * @property {string | undefined} ran of a run: what ran
 *
 * @typedef {{ pid: number, tid: number }} Track
 * @typedef {Record<string, unknown>} TraceEvent
 */

const LOOPS = 10_000 // tids, and places in the order, from here on are loops

/**
 * @param {Drawn[]} spans
 * @returns {Generator<TraceEvent>}
 */
function * traceEvents (spans) {
  const base = spans.reduce((least, span) => Math.min(least, span.startUnixMs), Infinity)
  const bars = spans.map((span) => ({ span, start: span.startUnixMs - base, end: span.startUnixMs - base + span.ms, ran: undefined })).sort(inOrder)
  const runs = bars.flatMap(runsOf).sort(inOrder)
  const tracks = tracksOf(bars, ({ pid }) => `${pid}`, 1)
  const loops = tracksOf(runs, ({ pid, thread }) => `${pid} ${thread}`, LOOPS)
  yield * names(tracks)
  yield * names(loops)
  for (const bar of bars) yield slice(bar, tracks)
  for (const run of runs) yield runSlice(run, loops)
  yield * arrows(bars, tracks, runs, loops)
}

/** @param {Bar} a @param {Bar} b */
function inOrder (a, b) {
  return a.start - b.start || b.end - a.end
}

/** @param {Bar} bar @returns {Bar[]} */
function runsOf ({ span, start: from }) {
  return span.runs.map(([start, ms, ran]) => ({ span, start: from + start, end: from + start + ms, ran }))
}

/**
 * From a span's parent to it, and from run to run of one span.
 * @param {Bar[]} bars
 * @param {Map<Bar, Track>} tracks
 * @param {Bar[]} runs
 * @param {Map<Bar, Track>} loops
 * @returns {Generator<TraceEvent>}
 */
function * arrows (bars, tracks, runs, loops) {
  const byId = new Map(bars.map((bar) => [idOf(bar.span.traceId, bar.span.spanId), bar]))
  let id = 0
  for (const bar of bars) {
    const { traceId, parentSpanId } = bar.span
    const parent = parentSpanId === undefined ? undefined : byId.get(idOf(traceId, parentSpanId))
    if (parent !== undefined && parent !== bar) yield * arrow(++id, 'child', [[parent, within(parent, bar.start)], [bar, bar.start]], tracks)
  }
  for (const chain of bySpan(runs)) {
    if (chain.length > 1) yield * arrow(++id, 'next run', chain.map((run) => [run, run.start]), loops)
  }
}

/** A child may begin when its parent is over: an arrow has to start inside. @param {Bar} bar @param {number} moment */
function within ({ start, end }, moment) {
  return Math.max(start, Math.min(moment, end - Math.min(0.001, (end - start) / 2)))
}

/** @param {Bar[]} runs @returns {Iterable<Bar[]>} */
function bySpan (runs) {
  /** @type {Map<Drawn, Bar[]>} */
  const chains = new Map()
  for (const run of runs) {
    const chain = chains.get(run.span)
    if (chain === undefined) chains.set(run.span, [run])
    else chain.push(run)
  }
  return chains.values()
}

/** @param {string} traceId @param {string} spanId */
function idOf (traceId, spanId) {
  return `${traceId} ${spanId}`
}

/**
 * A lane for each bar: the first where it is inside of what is open, or where nothing is open.
 * @param {Bar[]} bars in order
 * @param {(span: Drawn) => string} key bars that may share lanes
 * @param {number} first tid
 * @returns {Map<Bar, Track>}
 */
function tracksOf (bars, key, first) {
  /** @type {Map<Bar, Track>} */
  const found = new Map()
  /** @type {Map<string, Array<{ tid: number, open: Bar[] }>>} */
  const groups = new Map()
  let tid = first
  for (const bar of bars) {
    const lanes = groups.get(key(bar.span)) ?? []
    groups.set(key(bar.span), lanes)
    for (const { open } of lanes) while (open.length > 0 && open[open.length - 1].end <= bar.start) open.pop()
    let lane = lanes.find(({ open }) => open.length > 0 && fits(bar, open[open.length - 1])) ?? lanes.find(({ open }) => open.length === 0)
    if (lane === undefined) lanes.push(lane = { tid: tid++, open: [] })
    lane.open.push(bar)
    found.set(bar, { pid: bar.span.pid, tid: lane.tid })
  }
  return found
}

/** @param {Bar} bar @param {Bar} around */
function fits (bar, around) {
  return bar.end <= around.end && bar.span.traceId === around.span.traceId
}

/** @param {Map<Bar, Track>} tracks @returns {Generator<TraceEvent>} */
function * names (tracks) {
  const said = new Set()
  for (const [{ span }, { pid, tid }] of tracks) {
    if (said.has(tid)) continue
    said.add(tid)
    yield meta('process_name', pid, tid, { name: `${clean(span.service ?? 'process')} (${pid})` })
    yield meta('thread_name', pid, tid, { name: tid < LOOPS ? 'spans' : span.thread === 0 ? 'event loop' : `event loop of thread ${span.thread}` })
    yield meta('thread_sort_index', pid, tid, { sort_index: tid })
  }
}

/** @param {string} name @param {number} pid @param {number} tid @param {object} args @returns {TraceEvent} */
function meta (name, pid, tid, args) {
  return { ph: 'M', name, pid, tid, args }
}

/** @param {Bar} bar @param {Map<Bar, Track>} tracks @returns {TraceEvent} */
function slice (bar, tracks) {
  const { name, kind, blocked, traceId, spanId, parentSpanId, status, end, split, delayedBy, stack, attributes } = bar.span
  const args = { traceId, spanId, parentSpanId, status: status.code, end, ...attributes, split, delayedBy: delayedBy.length > 0 ? delayedBy : undefined, stack }
  return { ph: 'X', cat: blocked ? 'blocked' : kind.toLowerCase(), name: clean(name), ...tracks.get(bar), ...extent(bar), args }
}

/** @param {Bar} run @param {Map<Bar, Track>} loops @returns {TraceEvent} */
function runSlice (run, loops) {
  const { name, spanId, traceId } = run.span
  return { ph: 'X', cat: 'run', name: clean(name), ...loops.get(run), ...extent(run), args: { ran: clean(String(run.ran)), spanId, traceId } }
}

/** Both ends rounded alike: neighbours must not overlap by a rounding. @param {Bar} bar */
function extent ({ start, end }) {
  return { ts: micros(start), dur: Math.round((micros(end) - micros(start)) * 1000) / 1000 }
}

/** @param {number} ms */
function micros (ms) {
  return Math.round(ms * 1e6) / 1000
}

/**
 * @param {number} id
 * @param {string} name
 * @param {Array<[Bar, number]>} places
 * @param {Map<Bar, Track>} tracks
 * @returns {Generator<TraceEvent>}
 */
function * arrow (id, name, places, tracks) {
  for (const [i, [bar, moment]] of places.entries()) {
    const last = i === places.length - 1
    yield { ph: i === 0 ? 's' : last ? 'f' : 't', ...(last ? { bp: 'e' } : {}), cat: 'flow', name, id, ...tracks.get(bar), ts: micros(moment) }
  }
}

module.exports = { traceEvents }
