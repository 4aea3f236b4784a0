'use strict'

// The rows of a trace: each span below its parent, with its callbacks on the event loop; inside of it one for
// each site where it is certain when the span waited.

const { foreign, h, s } = require('./dom')
const { plural, time } = require('./format')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('../traces').PageSpan} PageSpan
 *
 * @typedef {object} Entry a row
 * @property {PageSpan} span
 * @property {number} depth
 * @property {number} [wait] index of one of its waits, which the row is of
 */

const ROW_PX = 26
const BAR_PX = 14
const WAIT_PX = 10
const MAX_INDENT = 12 // levels

/**
 * Orders rows: parents before children, then by start; a span without its parent here is a root.
 * @param {PageSpan[]} spans sorted by start
 * @returns {Entry[]}
 */
function inTree (spans) {
  const ids = new Set(spans.map((span) => span.id))
  /** @type {Map<string | undefined, PageSpan[]>} */
  const children = new Map()
  for (const span of spans) {
    const hasParent = span.parent !== undefined && span.parent !== span.id && ids.has(span.parent)
    const parent = hasParent ? span.parent : undefined
    children.set(parent, [...(children.get(parent) ?? []), span])
  }
  /** @type {Entry[]} */
  const rows = []
  const done = new Set()
  /** @type {Entry[]} */
  const waiting = (children.get(undefined) ?? []).map((span) => ({ span, depth: 0 })).reverse()
  const remaining = [...spans].reverse() // a file may contain spans that are their own ancestors
  for (;;) {
    const next = /** @type {Entry | undefined} */ (waiting.pop() ?? firstOrphan(remaining, done))
    if (next === undefined) return rows
    if (next.wait !== undefined) rows.push(next)
    if (next.wait !== undefined || done.has(next.span)) continue
    done.add(next.span)
    rows.push(next)
    const nested = (children.get(next.span.id) ?? []).map((span) => ({ span, wait: undefined }))
    const inside = [...nested, ...waitsOf(next.span)].sort((a, b) => startOf(b) - startOf(a))
    for (const entry of inside) waiting.push({ ...entry, depth: next.depth + 1 })
  }
}

/** Lists the waits of a span of which it is certain when they were. @param {PageSpan} span */
function waitsOf (span) {
  const indexes = new Set(span.gaps.map(([, , wait]) => wait))
  return [...indexes].map((wait) => ({ span, wait }))
}

/** @param {Pick<Entry, 'span' | 'wait'>} entry @returns {number} ms from the start of the trace */
function startOf ({ span, wait }) {
  return wait === undefined ? span.start : span.start + gapsOf(span, wait)[0][0]
}

/** @param {PageSpan} span @param {number} index of a wait @returns {PageSpan['gaps']} in order of time */
function gapsOf ({ gaps }, index) {
  return gaps.filter(([, , wait]) => wait === index)
}

/** @param {PageSpan[]} remaining @param {Set<PageSpan>} done */
function firstOrphan (remaining, done) {
  for (let span = remaining.pop(); span !== undefined; span = remaining.pop()) {
    if (!done.has(span)) return { span, depth: 0 }
  }
}

/**
 * Creates the elements of a row.
 * @param {Entry} entry
 * @param {Record<string, (event: any) => void>} on listeners of its button
 */
function rowOf ({ span, depth, wait }, on) {
  const label = wait === undefined ? describe(span) : describeWait(span, wait)
  const plot = s('svg', { class: 'plot', height: ROW_PX, role: 'img', 'aria-label': label })
  const button = h('button', { type: 'button', class: 'span', 'aria-controls': 'detail', on },
    wait === undefined ? spanName(span) : waitName(span.waits[wait]))
  const ms = wait === undefined ? span.ms : gapsOf(span, wait).reduce((sum, [, length]) => sum + length, 0)
  const indent = { '--depth': String(Math.min(depth, MAX_INDENT)) }
  const row = h('tr', { class: wait === undefined ? undefined : 'wait-row', css: indent },
    h('th', { scope: 'row', title: wait === undefined ? span.name : label }, button),
    h('td', { class: 'number' }, time(ms)),
    h('td', { class: 'track' }, plot))
  return { row, button, plot }
}

/**
 * Draws the plot of a row.
 * @param {Entry & { plot: any }} entry
 * @param {any} view scale of the visible range
 * @param {number} width
 * @param {number[]} ticks
 */
function drawRow ({ span, wait, plot }, view, width, ticks) {
  plot.setAttribute('width', width)
  plot.setAttribute('viewBox', `0 0 ${width} ${ROW_PX}`)
  plot.replaceChildren(...ticks.map((value) => gridLine(view(value))),
    ...(wait === undefined ? bars(span, view) : gapBars(span, wait, view)))
}

/** @param {number} x */
function gridLine (x) {
  return s('line', { class: 'grid', x1: x, x2: x, y1: 0, y2: ROW_PX })
}

/** @param {PageSpan} span @param {any} view */
function bars (span, view) {
  const top = (ROW_PX - BAR_PX) / 2
  const end = view(span.start + span.ms)
  const kind = span.blocked ? 'blocker' : span.kind.toLowerCase()
  const className = `bar ${/^(server|client|blocker)$/.test(kind) ? kind : 'internal'}`
  /** @param {number} start @param {number} ms @param {number} min px */
  const extent = (start, ms, min) => {
    const x = view(start)
    return { x, width: Math.max(min, view(start + ms) - x) }
  }
  const callback = { class: 'ran', y: top + 3, height: BAR_PX - 6, rx: 1 }
  const events = span.events.filter((event) => event.at !== undefined)
  const eventXs = events.map((event) => view(span.start + Number(event.at)))
  return [
    s('rect', { class: className, ...extent(span.start, span.ms, 2), y: top, height: BAR_PX, rx: 2 }),
    ...span.delays.flatMap((delay) => late(span.start, delay, view, top)),
    ...span.runs.map(([start, ms]) => s('rect', { ...callback, ...extent(span.start + start, ms, 1.5) })),
    span.end === 'open' &&
      s('path', { class: 'open', d: `M${end},${top} l6,${BAR_PX / 2} l-6,${BAR_PX / 2}` }),
    ...eventXs.map((x) => s('path', { class: 'failed', d: `M${x},${top - 2} l4,4 l-4,4 l-4,-4 z` }))
  ].filter(Boolean)
}

/**
 * Draws when a span was delayed, where it was; hatched where only that it may have been is known.
 * @param {number} origin of the span, in ms
 * @param {PageSpan['delays'][number]} delay
 * @param {any} view
 * @param {number} top
 */
function late (origin, [start, ms, certain], view, top) {
  const [from, sure, to] = [start, start + ms - certain, start + ms].map((after) => view(origin + after))
  const middle = top + BAR_PX / 2
  const title = `delayed ${certain < ms ? `${time(certain)} to ` : ''}${time(ms)}`
  return [s('g', {}, s('title', {}, title),
    certain < ms && s('line', { class: 'unsure', x1: from, x2: sure, y1: middle, y2: middle }),
    s('rect', { class: 'late', x: sure, y: top + BAR_PX - 5, width: Math.max(1, to - sure), height: 4 }))]
}

/** Draws when a span waited at one site. @param {PageSpan} span @param {number} wait @param {any} view */
function gapBars (span, wait, view) {
  return gapsOf(span, wait).map(([start, ms]) => {
    const [from, to] = [view(span.start + start), view(span.start + start + ms)]
    const y = { y: (ROW_PX - WAIT_PX) / 2, height: WAIT_PX }
    return s('rect', { class: 'gap', x: from, width: Math.max(1, to - from), ...y, rx: 1 })
  })
}

/** @param {PageSpan} span */
function spanName ({ name, status, end }) {
  return [
    status === 'ERROR' && h('span', { class: 'badge error' }, 'error'),
    end !== undefined && h('span', { class: 'badge' }, end),
    foreign(name)
  ]
}

/** @param {import('../rows').Wait} wait */
function waitName ({ at: frame, until }) {
  return [foreign(frame === undefined ? until ?? 'an unknown place' : shortFrame(frame), { class: 'code' }),
    frame !== undefined && until !== undefined && h('small', {}, ' until ', foreign(until))]
}

/** @param {PageSpan} span */
function describe (span) {
  const callbacks = span.runs.length > 0 ? `, ${plural(span.runs.length, 'callback')}` : ''
  return `from ${time(span.start)} to ${time(span.start + span.ms)}${callbacks}`
}

/** @param {PageSpan} span @param {number} wait */
function describeWait (span, wait) {
  const { at: frame, until } = span.waits[wait]
  const times = gapsOf(span, wait).map(([start, ms]) => `${time(ms)} from + ${time(start)}`)
  const parts = [`waited ${times.join(', ')}`, frame && `at ${frame}`, until && `until ${until}`]
  return parts.filter(Boolean).join(' ')
}

module.exports = { drawRow, inTree, rowOf }
