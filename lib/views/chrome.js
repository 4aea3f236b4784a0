'use strict'

// Spans as Chrome trace events, which Perfetto and chrome://tracing load. A process of the program is a process there;
// its event loop is one track with the runs; above it lie as many lanes of spans as are needed for none to overlap
// another that it is not inside of. Arrows lead from run to run of one span, and from a span to its children.

const { clean } = require('./text')

/**
 * @typedef {import('../report/digest').Digest & { pid: number }} Drawn
 *
 * @typedef {object} Lane
 * @property {Drawn[]} stack spans that are open at a time, the innermost last
 *
 * @typedef {Record<string, unknown>} TraceEvent
 */

const LOOP = 1 // tid of the runs
const FIRST_LANE = 10

/**
 * @param {Drawn[]} spans
 * @returns {Generator<TraceEvent>}
 */
function * traceEvents (spans) {
  const sorted = [...spans].sort((a, b) => a.startUnixMs - b.startUnixMs || b.ms - a.ms)
  const base = sorted[0]?.startUnixMs ?? 0
  const lanes = lanesOf(sorted)
  yield * names(sorted, lanes)
  const byId = new Map(sorted.map((span) => [idOf(span.traceId, span.spanId), span]))
  let flow = 0
  for (const span of sorted) {
    const tid = /** @type {number} */ (lanes.get(span))
    yield slice(span, tid, base)
    const parent = span.parentSpanId === undefined ? undefined : byId.get(idOf(span.traceId, span.parentSpanId))
    if (parent !== undefined) yield * arrow(++flow, 'child', [placeIn(parent, span, lanes, base), placeOf(span, tid, base)])
    yield * runs(span, base)
    const places = span.runs.map((run) => ({ pid: span.pid, tid: LOOP, ts: micros(span.startUnixMs - base + run[0]) })).sort((a, b) => a.ts - b.ts)
    if (places.length > 1) yield * arrow(++flow, 'next run', places)
  }
}

/** @param {string} traceId @param {string} spanId */
function idOf (traceId, spanId) {
  return `${traceId} ${spanId}`
}

/** @param {number} ms */
function micros (ms) {
  return Math.round(ms * 1e6) / 1000
}

/** @param {Drawn} span */
function endOf ({ startUnixMs, ms }) {
  return startUnixMs + ms
}

/**
 * A lane for each span: its parent's, where it fits in there, else the first where it is inside of what is open, and of its
 * trace, or where nothing is open.
 * @param {Drawn[]} sorted by start
 */
function lanesOf (sorted) {
  /** @type {Map<Drawn, number>} */
  const found = new Map()
  /** @type {Map<number, Lane[]>} */
  const processes = new Map()
  for (const span of sorted) {
    const lanes = processes.get(span.pid) ?? []
    processes.set(span.pid, lanes)
    for (const { stack } of lanes) {
      while (stack.length > 0 && endOf(stack[stack.length - 1]) <= span.startUnixMs) stack.pop()
    }
    let at = lanes.findIndex(({ stack }) => stack.length > 0 && fits(span, stack[stack.length - 1]))
    if (at === -1) at = lanes.findIndex(({ stack }) => stack.length === 0)
    if (at === -1) at = lanes.push({ stack: [] }) - 1
    lanes[at].stack.push(span)
    found.set(span, FIRST_LANE + at)
  }
  return found
}

/** @param {Drawn} span @param {Drawn} around */
function fits (span, around) {
  return span.traceId === around.traceId && endOf(span) <= endOf(around)
}

/** @param {Drawn[]} sorted @param {Map<Drawn, number>} lanes @returns {Generator<TraceEvent>} */
function * names (sorted, lanes) {
  const said = new Set()
  for (const span of sorted) {
    const { pid, service } = span
    const tid = Number(lanes.get(span))
    if (!said.has(pid)) {
      yield meta('process_name', pid, 0, { name: `${clean(service ?? 'process')} (${pid})` })
      yield meta('thread_name', pid, LOOP, { name: 'event loop' })
      yield meta('thread_sort_index', pid, LOOP, { sort_index: 1000 })
    }
    said.add(pid)
    if (said.has(`${pid} ${tid}`)) continue
    said.add(`${pid} ${tid}`)
    yield meta('thread_name', pid, tid, { name: 'spans' })
    yield meta('thread_sort_index', pid, tid, { sort_index: tid })
  }
}

/** @param {string} name @param {number} pid @param {number} tid @param {object} args @returns {TraceEvent} */
function meta (name, pid, tid, args) {
  return { ph: 'M', name, pid, tid, args }
}

/** @param {Drawn} span @param {number} tid @param {number} base @returns {TraceEvent} */
function slice (span, tid, base) {
  const { name, kind, blocked, traceId, spanId, parentSpanId, status, end, split, delayedBy, stack, attributes } = span
  const args = { traceId, spanId, parentSpanId, status: status.code, end, ...attributes, split, delayedBy: delayedBy.length > 0 ? delayedBy : undefined, stack }
  return { ph: 'X', cat: blocked ? 'blocked' : kind.toLowerCase(), name: clean(name), ...placeOf(span, tid, base), dur: lengthOf(span.startUnixMs - base, span.ms), args }
}

/** A length that ends, rounded, where its end does: neighbours must not overlap by a rounding. @param {number} start @param {number} ms */
function lengthOf (start, ms) {
  return Math.max(0, Math.round((micros(start + ms) - micros(start)) * 1000) / 1000)
}

/** @param {Drawn} span @param {number} tid @param {number} base */
function placeOf (span, tid, base) {
  return { pid: span.pid, tid, ts: micros(span.startUnixMs - base) }
}

/** Where a child begins, inside its parent; a child may begin when its parent is over. @param {Drawn} parent @param {Drawn} child @param {Map<Drawn, number>} lanes @param {number} base */
function placeIn (parent, child, lanes, base) {
  const moment = Math.max(parent.startUnixMs, Math.min(child.startUnixMs, endOf(parent)))
  return { pid: parent.pid, tid: Number(lanes.get(parent)), ts: micros(moment - base) }
}

/** @param {Drawn} span @param {number} base @returns {Generator<TraceEvent>} */
function * runs (span, base) {
  for (const [start, ms, type] of span.runs) {
    const at = span.startUnixMs - base + start
    yield { ph: 'X', cat: 'run', name: clean(span.name), pid: span.pid, tid: LOOP, ts: micros(at), dur: lengthOf(at, ms), args: { ran: clean(type), spanId: span.spanId, traceId: span.traceId } }
  }
}

/** @param {number} id @param {string} name @param {Array<{ pid: number, tid: number, ts: number }>} places @returns {Generator<TraceEvent>} */
function * arrow (id, name, places) {
  for (let i = 0; i < places.length; i++) {
    const last = i === places.length - 1
    yield { ph: i === 0 ? 's' : last ? 'f' : 't', ...(last ? { bp: 'e' } : {}), cat: 'flow', name, id, ...places[i] }
  }
}

module.exports = { traceEvents }
