'use strict'

// Writes the spans of files as one Chrome trace, for Perfetto and chrome://tracing. Each process has as many
// tracks as its overlapping, non-nested spans need. Below them are tracks for waits whose times are known,
// then a track per thread for the callbacks on its event loop. Arrows connect the callbacks of one span, and
// a span with its children.
//
// Perfetto (src/trace_processor/importers/common/slice_tracker.cc and flow_tracker.cc) sorts events by time,
// then by their order in the file, drops slices that cross another, and binds an arrow's end to the latest
// slice on its track. So each arrow end follows its slice directly, at the slice's start.

const fs = require('node:fs')
const { Readable } = require('node:stream')
const { pipeline } = require('node:stream/promises')
const { digest } = require('../aggregate/digest')
const { groupsOf } = require('../aggregate/lists')
const { readFiles } = require('../read/span-files')
const { amount } = require('../read/values')
const { clean, escapeJson } = require('../../lib/text')
const { createFrameNames } = require('../aggregate/frames')
const { waitGapsOf } = require('./wait-gaps')

/**
 * @typedef {import('../aggregate/digest').Digest
 *   & { gaps: WaitGap[], pid: number, thread: number }} TraceSpan
 * @typedef {import('./wait-gaps').WaitGap} WaitGap
 * @typedef {import('../aggregate/frames').FrameNames} FrameNames
 * @typedef {Record<string, unknown>} TraceEvent
 *
 * @typedef {object} Bar a span, or one of its runs or waits
 * @property {TraceSpan} span
 * @property {number} start in µs
 * @property {number} end
 * @property {string} [ran] type of a callback
 * @property {WaitGap} [gap] the wait itself, or the wait that the run ended
 * @property {number} tid its track
 *
 * @typedef {{ start: number, end: number, bars: Bar[], open: number[] }} Lane nested bars; open: ends of
 *   the open ones, each nested in the one before
 */

const MAX_SPANS = 50_000 // viewers cannot handle more
const MAX_BARS = 1_000_000 // spans and callbacks
const CHUNK_CHARS = 1 << 18

const FIRST_LOOP_TID = 10_000_000 // sorts event loops below waits
const FIRST_WAIT_TID = 1_000_000 // sorts waits below spans
const FIRST_SPAN_TID = 1
const ROUNDING_US = 3 // runs of one thread may overlap by this much due to rounding
const MAX_LOOKS = 100 // lanes or open bars to compare a bar with

/**
 * @param {string[]} names
 * @param {string} output a file, or `-` for standard output
 * @param {Pick<import('../read/span-files').Reading, 'progress'>} [options]
 * @returns {Promise<{ spans: number, omitted: number, problems: string[] }>} problems with the files, as
 *   sentences
 */
async function writeTrace (names, output, options = {}) {
  /** @type {Map<string, TraceSpan>} */
  const spans = new Map()
  let bars = 0
  let omitted = 0
  const files = await readFiles(names, {
    ...options,
    span (span) {
      const id = `${span.traceId} ${span.spanId}`
      const previous = spans.get(id)
      if (previous !== undefined && previous.end !== 'open') return
      if (previous === undefined && (spans.size >= MAX_SPANS || bars >= MAX_BARS)) {
        omitted++
      } else {
        const traceSpan = traceSpanOf(span)
        bars += 1 + traceSpan.runs.length
        spans.set(id, traceSpan)
      }
    }
  })
  const isStdout = output === '-'
  const target = isStdout ? process.stdout : fs.createWriteStream(output, { mode: 0o600 })
  await pipeline(Readable.from(chunks([...spans.values()])), target, { end: !isStdout })
  const problems = files.flatMap((file) => file.problems.map((problem) => clean(`${file.name}: ${problem}`)))
  return { spans: spans.size, omitted, problems }
}

/**
 * Converts a span for the trace. The chains of its waits are left out; the report has them.
 * @param {import('../read/span-line').Span} span
 * @returns {TraceSpan}
 */
function traceSpanOf (span) {
  const { resource } = span.record
  const pid = amount(resource?.['process.pid']) ?? 0
  const thread = amount(resource?.['longstack.thread']) ?? 0
  const whole = digest(span)
  const waits = whole.waits.map((wait) => ({ ...wait, callers: [], on: [] }))
  return { ...whole, ran: [], waits, gaps: waitGapsOf({ runs: whole.runs, waits }), pid, thread }
}

/** @param {TraceSpan[]} spans */
function * chunks (spans) {
  let chunk = '{"displayTimeUnit":"ms","traceEvents":[\n'
  let separator = ''
  for (const event of traceEvents(spans)) {
    chunk += separator + escapeJson(JSON.stringify(event))
    separator = ',\n'
    if (chunk.length < CHUNK_CHARS) continue
    yield chunk
    chunk = ''
  }
  yield `${chunk}\n]}\n`
}

/**
 * @param {TraceSpan[]} spans
 * @returns {Generator<TraceEvent>}
 */
function * traceEvents (spans) {
  const base = spans.reduce((min, span) => Math.min(min, span.startUnixMs), Infinity)
  const waitsOfAll = spans.flatMap((span) => span.waits)
  const frameName = createFrameNames(waitsOfAll.flatMap(({ at: frame }) => frame ?? []))
  const bars = spans.map((span) => barBetween(span, base, 0, span.ms)).sort(inOrder)
  const waits = spans.flatMap((span) =>
    span.gaps.map((gap) => barBetween(span, base, gap.start, gap.end, { gap }))).sort(inOrder)
  const runs = spans.flatMap((span) => span.runs.map(([start, ms, ran]) => {
    const gap = span.gaps.find(({ end }) => end === start)
    return barBetween(span, base, start, start + ms, { ran, gap })
  })).sort(inOrder)
  cutOverlaps(runs)
  setTracks(bars, FIRST_SPAN_TID, processOf, traceOf)
  setTracks(waits, FIRST_WAIT_TID, processOf, traceOf)
  setTracks(runs.sort(inOrder), FIRST_LOOP_TID, threadOf, threadOf)
  for (const list of [bars, waits, runs]) yield * names(list)
  yield * withArrows(bars, 'child', parentsWithChildren(bars), slice)
  for (const wait of waits) yield waitSlice(wait, frameName)
  yield * withArrows(runs, 'next run', groupsOf(runs, spanOf), (run) => runSlice(run, frameName))
}

/** @param {Bar} bar */
const processOf = ({ span }) => `${span.pid}`
/** @param {Bar} bar */
const threadOf = ({ span }) => `${span.pid} ${span.thread}`
/** @param {Bar} bar */
const traceOf = ({ span }) => span.traceId
/** @param {Bar} bar */
const spanOf = ({ span }) => `${span.traceId} ${span.spanId}`

/** @param {Bar} a @param {Bar} b */
function inOrder (a, b) {
  return a.start - b.start || b.end - a.end
}

/**
 * Cuts runs that end slightly after the next run of their thread began, because times in a file are rounded.
 * @param {Bar[]} runs in order
 */
function cutOverlaps (runs) {
  for (const thread of groupsOf(runs, threadOf)) {
    /** @type {Bar[]} */
    let open = []
    for (const run of thread) {
      open = open.filter(({ end }) => end > run.start)
      for (const previous of open) {
        const isRounded = run.start > previous.start && previous.end - run.start <= ROUNDING_US
        if (isRounded) previous.end = run.start
      }
      open = [...open, run].filter(({ end }) => end > run.start).slice(-MAX_LOOKS)
    }
  }
}

/**
 * Assigns a track to each bar. Trace viewers drop a slice that begins within another and ends after it, so
 * bars that may nest are arranged in lanes; each lane goes to the first track that is free for its duration.
 * @param {Bar[]} bars in order
 * @param {number} first tid
 * @param {(bar: Bar) => string} ownerOf equal for bars that may share tracks
 * @param {(bar: Bar) => string} nestOf equal for bars that may also nest
 */
function setTracks (bars, first, ownerOf, nestOf) {
  let nextTid = first
  for (const owned of groupsOf(bars, ownerOf)) {
    const lanes = groupsOf(owned, nestOf).flatMap(lanesOf).sort((a, b) => a.start - b.start || a.end - b.end)
    /** @type {Array<{ tid: number, end: number }>} */
    const tracks = []
    for (const { start, end, bars } of lanes) {
      let track = tracks.find((free) => free.end <= start)
      if (track === undefined) tracks.push(track = { tid: nextTid++, end })
      track.end = end
      for (const bar of bars) bar.tid = track.tid
    }
  }
}

/** @param {Bar[]} bars sorted @returns {Lane[]} */
function lanesOf (bars) {
  /** @type {Lane[]} */
  const lanes = []
  for (const bar of bars) {
    let lane = lanes.slice(0, MAX_LOOKS).find(({ open }) => {
      while (open.length > 0 && open[open.length - 1] <= bar.start) open.pop()
      return open.length === 0 || bar.end <= open[open.length - 1]
    })
    if (lane === undefined) {
      lane = { start: bar.start, end: bar.end, bars: [], open: [] }
      lanes.push(lane)
    }
    lane.end = Math.max(lane.end, bar.end)
    lane.bars.push(bar)
    lane.open.push(bar.end)
  }
  return lanes
}

/**
 * Creates a bar in whole microseconds. Start and end are rounded separately so that neighbours never overlap.
 * @param {TraceSpan} span
 * @param {number} base
 * @param {number} start ms since the span started
 * @param {number} end
 * @param {Pick<Bar, 'ran' | 'gap'>} [more]
 * @returns {Bar}
 */
function barBetween (span, base, start, end, more) {
  const micros = (/** @type {number} */ ms) => Math.round((span.startUnixMs - base + ms) * 1000)
  return { span, start: micros(start), end: micros(end), tid: 0, ...more }
}

/**
 * Pairs spans with their children. A child that starts before its parent, by another machine's clock, is
 * skipped.
 * @param {Bar[]} bars in order
 * @returns {Bar[][]}
 */
function parentsWithChildren (bars) {
  /** @type {Map<string, Bar>} */
  const begun = new Map()
  return bars.flatMap((bar) => {
    const { traceId, parentSpanId } = bar.span
    const parent = begun.get(`${traceId} ${parentSpanId}`)
    begun.set(spanOf(bar), bar)
    return parent === undefined ? [] : [[parent, bar]]
  })
}

/**
 * Writes slices, and arrows along chains of slices.
 * @param {Bar[]} bars in order
 * @param {string} name of the arrows
 * @param {Bar[][]} chains
 * @param {(bar: Bar) => TraceEvent} sliceOf
 * @returns {Generator<TraceEvent>}
 */
function * withArrows (bars, name, chains, sliceOf) {
  /** @type {Map<Bar, Array<{ id: number, ph: 's' | 't' | 'f' }>>} */
  const ends = new Map(bars.map((bar) => [bar, []]))
  chains.forEach((chain, i) => chain.forEach((bar, j) => {
    const ph = j === 0 ? 's' : j === chain.length - 1 ? 'f' : 't'
    if (chain.length > 1) ends.get(bar)?.push({ id: i + 1, ph })
  }))
  for (const [bar, arrows] of ends) {
    yield sliceOf(bar)
    for (const { id, ph } of arrows) yield arrowEnd(name, id, ph, bar)
  }
}

/** Names the tracks of bars. @param {Bar[]} bars @returns {Generator<TraceEvent>} */
function * names (bars) {
  const tids = new Set()
  for (const { span, tid } of bars) {
    if (tids.has(tid)) continue
    tids.add(tid)
    const { pid, thread, service = 'process' } = span
    yield { ph: 'M', name: 'process_name', pid, tid, args: { name: `${clean(service)} (${pid})` } }
    yield { ph: 'M', name: 'thread_name', pid, tid, args: { name: trackName(tid, thread) } }
    yield { ph: 'M', name: 'thread_sort_index', pid, tid, args: { sort_index: tid } }
  }
}

/** @param {number} tid @param {number} thread */
function trackName (tid, thread) {
  if (tid < FIRST_WAIT_TID) return 'spans'
  if (tid < FIRST_LOOP_TID) return 'waits'
  return thread === 0 ? 'event loop' : `event loop of thread ${thread}`
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
  return sliceOf(bar, cat, name, args)
}

/** @param {Bar} bar @param {FrameNames} frameName */
function waitSlice (bar, frameName) {
  const { name: span, spanId, traceId } = bar.span
  const { at: frame, until, label } = /** @type {WaitGap} */ (bar.gap).wait
  const name = `waited at ${siteOf(bar, frameName)}${until === undefined ? '' : ` until ${until}`}`
  const args = { span, at: frame, until, label, spanId, traceId }
  return sliceOf(bar, 'wait', name, args)
}

/** @param {Bar} run @param {FrameNames} frameName */
function runSlice (run, frameName) {
  const { name, spanId, traceId } = run.span
  const args = { ran: clean(String(run.ran)), after: run.gap?.wait.at, spanId, traceId }
  const site = run.gap === undefined ? '' : ` after ${siteOf(run, frameName)}`
  return sliceOf(run, 'run', name + site, args)
}

/** @param {Bar} bar with a gap @param {FrameNames} frameName */
function siteOf ({ gap }, frameName) {
  const { at: frame, label } = /** @type {WaitGap} */ (gap).wait
  return frame === undefined ? label ?? 'an unknown site' : frameName(frame)
}

/** @param {Bar} bar @param {string} cat @param {string} name @param {object} args @returns {TraceEvent} */
function sliceOf ({ span: { pid }, tid, start, end }, cat, name, args) {
  return { ph: 'X', cat, name: clean(name), pid, tid, ts: start, dur: end - start, args }
}

/**
 * Writes the start, a midpoint or the end of an arrow, at the start of a slice.
 * @param {string} name
 * @param {number} id
 * @param {'s' | 't' | 'f'} ph
 * @param {Bar} bar
 * @returns {TraceEvent}
 */
function arrowEnd (name, id, ph, { span: { pid }, tid, start }) {
  return { ph, ...(ph === 'f' ? { bp: 'e' } : {}), cat: 'flow', name, id, pid, tid, ts: start }
}

module.exports = { writeTrace }
