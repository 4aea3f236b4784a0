'use strict'

// Renders spans as Chrome trace events, which Perfetto and chrome://tracing load. Each process has as many
// tracks as are needed for spans that overlap without being nested, and below them a track for the event loop
// of each thread with the callbacks. Arrows lead from callback to callback of one span, and from a span to
// its children.

const { clean } = require('../../text')

/**
 * @typedef {import('../aggregate/digest').Digest & { pid: number, thread: number }} TraceSpan
 *
 * @typedef {object} Bar a span or a callback
 * @property {TraceSpan} span
 * @property {number} start in ms
 * @property {number} end
 * @property {string | undefined} ran type of a callback
 *
 * @typedef {{ pid: number, tid: number }} Track
 * @typedef {Record<string, unknown>} TraceEvent
 */

const FIRST_LOOP_TID = 10_000 // tids of event loops, which also sort below those of spans
const FIRST_SPAN_TID = 1

/**
 * @param {TraceSpan[]} spans
 * @returns {Generator<TraceEvent>}
 */
function * traceEvents (spans) {
  const base = spans.reduce((min, span) => Math.min(min, span.startUnixMs), Infinity)
  const bars = spans.map((span) => barOf(span, span.startUnixMs - base)).sort(inOrder)
  const runs = bars.flatMap(runsOf).sort(inOrder)
  const tracks = tracksOf(bars, ({ pid }) => `${pid}`, FIRST_SPAN_TID)
  const loops = tracksOf(runs, ({ pid, thread }) => `${pid} ${thread}`, FIRST_LOOP_TID)
  yield * names(tracks)
  yield * names(loops)
  for (const bar of bars) yield slice(bar, tracks)
  for (const run of runs) yield runSlice(run, loops)
  yield * arrows(bars, tracks, runs, loops)
}

/** @param {TraceSpan} span @param {number} start @returns {Bar} */
function barOf (span, start) {
  return { span, start, end: start + span.ms, ran: undefined }
}

/** @param {Bar} a @param {Bar} b */
function inOrder (a, b) {
  return a.start - b.start || b.end - a.end
}

/** @param {Bar} bar @returns {Bar[]} */
function runsOf ({ span, start: origin }) {
  return span.runs.map(([start, ms, ran]) => ({ span, start: origin + start, end: origin + start + ms, ran }))
}

/**
 * Draws arrows from a span's parent to it, and from callback to callback of one span.
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
    if (parent === undefined || parent === bar) continue
    yield * arrow(++id, 'child', [[parent, within(parent, bar.start)], [bar, bar.start]], tracks)
  }
  for (const chain of bySpan(runs)) {
    if (chain.length > 1) yield * arrow(++id, 'next run', chain.map((run) => [run, run.start]), loops)
  }
}

/**
 * Moves a moment into a bar: a child may begin after its parent's end, an arrow may not.
 * @param {Bar} bar
 * @param {number} moment
 */
function within ({ start, end }, moment) {
  return Math.max(start, Math.min(moment, end - Math.min(0.001, (end - start) / 2)))
}

/** @param {Bar[]} runs @returns {Iterable<Bar[]>} */
function bySpan (runs) {
  /** @type {Map<TraceSpan, Bar[]>} */
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
 * Gives each bar a track: the first in which it is nested in an open bar, or no bar is open.
 * @param {Bar[]} bars in order
 * @param {(span: TraceSpan) => string} key equal for bars that may share tracks
 * @param {number} first tid
 * @returns {Map<Bar, Track>}
 */
function tracksOf (bars, key, first) {
  /** @type {Map<Bar, Track>} */
  const tracks = new Map()
  /** @type {Map<string, Array<{ tid: number, open: Bar[] }>>} */
  const groups = new Map()
  let tid = first
  for (const bar of bars) {
    const lanes = groups.get(key(bar.span)) ?? []
    groups.set(key(bar.span), lanes)
    for (const { open } of lanes) while (open.length > 0 && open[open.length - 1].end <= bar.start) open.pop()
    let lane = lanes.find(({ open }) => open.length > 0 && isNested(bar, open[open.length - 1])) ??
      lanes.find(({ open }) => open.length === 0)
    if (lane === undefined) lanes.push(lane = { tid: tid++, open: [] })
    lane.open.push(bar)
    tracks.set(bar, { pid: bar.span.pid, tid: lane.tid })
  }
  return tracks
}

/** @param {Bar} bar @param {Bar} outer */
function isNested (bar, outer) {
  return bar.end <= outer.end && bar.span.traceId === outer.span.traceId
}

/** @param {Map<Bar, Track>} tracks @returns {Generator<TraceEvent>} */
function * names (tracks) {
  const tids = new Set()
  for (const [{ span }, { pid, tid }] of tracks) {
    if (tids.has(tid)) continue
    tids.add(tid)
    yield meta('process_name', pid, tid, { name: `${clean(span.service ?? 'process')} (${pid})` })
    const loop = span.thread === 0 ? 'event loop' : `event loop of thread ${span.thread}`
    yield meta('thread_name', pid, tid, { name: tid < FIRST_LOOP_TID ? 'spans' : loop })
    yield meta('thread_sort_index', pid, tid, { sort_index: tid })
  }
}

/** @param {string} name @param {number} pid @param {number} tid @param {object} args @returns {TraceEvent} */
function meta (name, pid, tid, args) {
  return { ph: 'M', name, pid, tid, args }
}

/** @param {Bar} bar @param {Map<Bar, Track>} tracks @returns {TraceEvent} */
function slice (bar, tracks) {
  const { name, kind, blocked, traceId, spanId, parentSpanId, status, end } = bar.span
  const { split, delayedBy, stack, attributes } = bar.span
  const args = {
    ...{ traceId, spanId, parentSpanId, status: status.code, end },
    ...attributes,
    split,
    delayedBy: delayedBy.length > 0 ? delayedBy : undefined,
    stack
  }
  const cat = blocked ? 'blocked' : kind.toLowerCase()
  return { ph: 'X', cat, name: clean(name), ...tracks.get(bar), ...extent(bar), args }
}

/** @param {Bar} run @param {Map<Bar, Track>} loops @returns {TraceEvent} */
function runSlice (run, loops) {
  const { name, spanId, traceId } = run.span
  const args = { ran: clean(String(run.ran)), spanId, traceId }
  return { ph: 'X', cat: 'run', name: clean(name), ...loops.get(run), ...extent(run), args }
}

/** Rounds start and end separately, so that neighbours never overlap. @param {Bar} bar */
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
 * @param {Array<[Bar, number]>} points
 * @param {Map<Bar, Track>} tracks
 * @returns {Generator<TraceEvent>}
 */
function * arrow (id, name, points, tracks) {
  for (const [i, [bar, moment]] of points.entries()) {
    const isLast = i === points.length - 1
    const ph = i === 0 ? 's' : isLast ? 'f' : 't'
    const binding = isLast ? { bp: 'e' } : {}
    yield { ph, ...binding, cat: 'flow', name, id, ...tracks.get(bar), ts: micros(moment) }
  }
}

module.exports = { traceEvents }
