'use strict'

// Renders spans as Chrome trace events, which Perfetto and chrome://tracing load. Each process has as many
// tracks as are needed for spans that overlap without being nested; below them those of their waits, as far
// as it is known when these were; and below these a track for the event loop of each thread, with callbacks.
// Arrows lead from callback to callback of one span, and from a span to its children.
//
// Perfetto (src/trace_processor/importers/common/slice_tracker.cc and flow_tracker.cc) reads events by time,
// equal ones by their order in the file, drops slices that cross another, and binds an arrow's end to the
// slice that began last on its track. So the ends of an arrow come right after their slices, at their start.

const { clean } = require('../../lib/text')
const { createFrameNames } = require('./frame-names')
const { cutOverlaps, inOrder, setTracks } = require('./chrome-tracks')
const { waitGapsOf } = require('./wait-gaps')

/**
 * @typedef {import('../aggregate/digest').Digest & { pid: number, thread: number }} TraceSpan
 * @typedef {import('./chrome-tracks').Bar} Bar
 * @typedef {import('./frame-names').FrameNames} FrameNames
 * @typedef {Record<string, unknown>} TraceEvent
 */

const FIRST_LOOP_TID = 10_000_000 // tids of event loops sort below those of waits
const FIRST_WAIT_TID = 1_000_000 // and these below those of spans
const FIRST_SPAN_TID = 1

/**
 * @param {TraceSpan[]} spans
 * @returns {Generator<TraceEvent>}
 */
function * traceEvents (spans) {
  const base = spans.reduce((min, span) => Math.min(min, span.startUnixMs), Infinity)
  const frameName = createFrameNames(framesOf(spans))
  const bars = spans.map((span) => barOf(span, base)).sort(inOrder)
  const gaps = new Map(spans.map((span) => [span, waitGapsOf(span)]))
  const waits = spans.flatMap((span) => waitBarsOf(span, base, gaps)).sort(inOrder)
  const runs = spans.flatMap((span) => runBarsOf(span, base, gaps)).sort(inOrder)
  cutOverlaps(runs, threadOf)
  setTracks(bars, { key: processOf, first: FIRST_SPAN_TID })
  setTracks(waits, { key: processOf, first: FIRST_WAIT_TID })
  setTracks(runs.sort(inOrder), { key: threadOf, first: FIRST_LOOP_TID, isMixed: true })
  for (const list of [bars, waits, runs]) yield * names(list)
  yield * spansWithArrows(bars)
  for (const wait of waits) yield waitSlice(wait, frameName)
  yield * runsWithArrows(runs, frameName)
}

/** @param {Bar} bar */
function processOf ({ span }) {
  return `${span.pid}`
}

/** @param {Bar} bar */
function threadOf ({ span }) {
  return `${span.pid} ${span.thread}`
}

/** @param {TraceSpan[]} spans @returns {Generator<string>} */
function * framesOf (spans) {
  for (const { waits } of spans) for (const { at: frame } of waits) if (frame !== undefined) yield frame
}

/** @param {TraceSpan} span @param {number} base @returns {Bar} */
function barOf (span, base) {
  return barBetween(span, base, 0, span.ms)
}

/**
 * Makes a bar in whole microseconds. Start and end are rounded each, so that neighbours never overlap.
 * @param {TraceSpan} span
 * @param {number} base
 * @param {number} start ms since the span's
 * @param {number} end
 * @param {Pick<Bar, 'ran' | 'gap'>} [more]
 * @returns {Bar}
 */
function barBetween (span, base, start, end, more) {
  const origin = span.startUnixMs - base
  return { span, start: micros(origin + start), end: micros(origin + end), tid: 0, ...more }
}

/** @param {number} ms */
function micros (ms) {
  return Math.round(ms * 1000)
}

/**
 * @param {TraceSpan} span
 * @param {number} base
 * @param {Map<TraceSpan, import('./wait-gaps').WaitGap[]>} gaps
 */
function waitBarsOf (span, base, gaps) {
  return (gaps.get(span) ?? []).map((gap) => barBetween(span, base, gap.start, gap.end, { gap }))
}

/**
 * @param {TraceSpan} span
 * @param {number} base
 * @param {Map<TraceSpan, import('./wait-gaps').WaitGap[]>} gaps
 */
function runBarsOf (span, base, gaps) {
  return span.runs.map(([start, ms, ran]) => {
    const gap = gaps.get(span)?.find(({ end }) => end === start)
    return barBetween(span, base, start, start + ms, { ran, gap })
  })
}

/**
 * Writes spans, and arrows from each to its children.
 * @param {Bar[]} bars in order
 * @returns {Generator<TraceEvent>}
 */
function * spansWithArrows (bars) {
  const arrows = childArrows(bars)
  for (const bar of bars) {
    yield slice(bar)
    for (const { id, ph } of arrows.get(bar) ?? []) yield arrowEnd('child', id, ph, bar)
  }
}

/**
 * Numbers the arrows to children. One that begins before its parent, by another machine's clock, has none.
 * @param {Bar[]} bars in order
 * @returns {Map<Bar, Array<{ id: number, ph: 's' | 'f' }>>}
 */
function childArrows (bars) {
  /** @type {Map<Bar, Array<{ id: number, ph: 's' | 'f' }>>} */
  const ends = new Map(bars.map((bar) => [bar, []]))
  /** @type {Map<string, Bar>} */
  const begun = new Map()
  let id = 0
  for (const bar of bars) {
    const { traceId, spanId, parentSpanId } = bar.span
    const parent = begun.get(`${traceId} ${parentSpanId}`)
    begun.set(`${traceId} ${spanId}`, bar)
    if (parent === undefined) continue
    ends.get(parent)?.push({ id: ++id, ph: 's' })
    ends.get(bar)?.push({ id, ph: 'f' })
  }
  return ends
}

/**
 * Writes callbacks, and an arrow through those of each span.
 * @param {Bar[]} runs in order
 * @param {FrameNames} frameName
 * @returns {Generator<TraceEvent>}
 */
function * runsWithArrows (runs, frameName) {
  /** @type {Map<TraceSpan, { id: number, left: number }>} */
  const arrows = new Map()
  for (const { span } of runs) {
    const arrow = arrows.get(span)
    if (arrow === undefined) arrows.set(span, { id: arrows.size + 1, left: 1 })
    else arrow.left++
  }
  const started = new Set()
  for (const run of runs) {
    yield runSlice(run, frameName)
    const arrow = /** @type {{ id: number, left: number }} */ (arrows.get(run.span))
    const isLast = --arrow.left === 0
    const isFirst = !started.has(arrow)
    started.add(arrow)
    if (isFirst && isLast) continue
    yield arrowEnd('next run', arrow.id, isFirst ? 's' : isLast ? 'f' : 't', run)
  }
}

/** Names the tracks of bars. @param {Bar[]} bars @returns {Generator<TraceEvent>} */
function * names (bars) {
  const tids = new Set()
  for (const { span, tid } of bars) {
    if (tids.has(tid)) continue
    tids.add(tid)
    const { pid } = span
    yield meta('process_name', pid, tid, { name: `${clean(span.service ?? 'process')} (${pid})` })
    yield meta('thread_name', pid, tid, { name: trackName(tid, span.thread) })
    yield meta('thread_sort_index', pid, tid, { sort_index: tid })
  }
}

/** @param {number} tid @param {number} thread */
function trackName (tid, thread) {
  if (tid < FIRST_WAIT_TID) return 'spans'
  if (tid < FIRST_LOOP_TID) return 'waits'
  return thread === 0 ? 'event loop' : `event loop of thread ${thread}`
}

/** @param {string} name @param {number} pid @param {number} tid @param {object} args @returns {TraceEvent} */
function meta (name, pid, tid, args) {
  return { ph: 'M', name, pid, tid, args }
}

/** @param {Bar} bar */
function slice (bar) {
  const { name, kind, blocked, traceId, spanId, parentSpanId, status, end } = bar.span
  const { split, waits, delayedBy, stack, attributes } = bar.span
  const args = {
    ...{ traceId, spanId, parentSpanId, status: status.code, end },
    ...attributes,
    split,
    waits: waits.length > 0 ? waits.map(({ callers, on, ...wait }) => wait) : undefined,
    delayedBy: delayedBy.length > 0 ? delayedBy : undefined,
    stack
  }
  const cat = blocked ? 'blocked' : kind.toLowerCase()
  return { ph: 'X', cat, name: clean(name), ...trackOf(bar), ...extent(bar), args }
}

/** @param {Bar} bar @param {FrameNames} frameName */
function waitSlice (bar, frameName) {
  const { name: span, spanId, traceId } = bar.span
  const { at: frame, until, label } = /** @type {import('./wait-gaps').WaitGap} */ (bar.gap).wait
  const name = `waited at ${siteOf(bar, frameName)}${until === undefined ? '' : ` until ${until}`}`
  const args = { span, at: frame, until, label, spanId, traceId }
  return { ph: 'X', cat: 'wait', name: clean(name), ...trackOf(bar), ...extent(bar), args }
}

/** @param {Bar} run @param {FrameNames} frameName */
function runSlice (run, frameName) {
  const { name, spanId, traceId } = run.span
  const args = { ran: clean(String(run.ran)), after: run.gap?.wait.at, spanId, traceId }
  const site = run.gap === undefined ? '' : ` after ${siteOf(run, frameName)}`
  return { ph: 'X', cat: 'run', name: clean(name + site), ...trackOf(run), ...extent(run), args }
}

/** @param {Bar} bar with a gap @param {FrameNames} frameName */
function siteOf ({ gap }, frameName) {
  const { at: frame, label } = /** @type {import('./wait-gaps').WaitGap} */ (gap).wait
  return frame === undefined ? label ?? 'an unknown site' : frameName(frame)
}

/** @param {Bar} bar */
function trackOf ({ span, tid }) {
  return { pid: span.pid, tid }
}

/** @param {Bar} bar */
function extent ({ start, end }) {
  return { ts: start, dur: end - start }
}

/**
 * Writes an end of an arrow, or a point between, at the start of a slice.
 * @param {string} name
 * @param {number} id
 * @param {'s' | 't' | 'f'} ph
 * @param {Bar} bar
 * @returns {TraceEvent}
 */
function arrowEnd (name, id, ph, bar) {
  const binding = ph === 'f' ? { bp: 'e' } : {}
  return { ph, ...binding, cat: 'flow', name, id, ...trackOf(bar), ts: bar.start }
}

module.exports = { traceEvents }
