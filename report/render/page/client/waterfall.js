'use strict'

// The trace of one request: each span below its parent, with its callbacks on the event loop, inside of it a
// row for each site where it is certain when the span waited, and for what it asked on connections; over a
// time axis that zooms. The selected span is described in full below.

/* global d3, ResizeObserver */

const { axis, createZoom, gridLine, ticksOf } = require('./axis')
const { data, follow, heading, runs, selectedTraces } = require('./data')
const { badge, foreign, h, legend, moveTo, s, section } = require('./dom')
const { clock, counted, time } = require('../../format')
const { endOf, shortCode, spanDetail } = require('./words')
const { waitGapsOf } = require('../../wait-gaps')
const { askedName } = require('../../../../lib/text')

/**
 * @typedef {import('../data').PageTrace} PageTrace
 * @typedef {import('../../../aggregate/digest').Digest} Digest
 * @typedef {import('../../wait-gaps').WaitGap} WaitGap
 *
 * @typedef {object} Entry a row: of a span or, with a wait or what it asked, of that
 * @property {Digest} span
 * @property {number} depth
 * @property {WaitGap[]} gaps that are certain, of the span or of the wait, in order of time
 * @property {WaitGap['wait']} [wait]
 * @property {import('../../../aggregate/asked').Asked} [asked]
 *
 * @typedef {Entry & { element: any, button: any, plot: any }} Row
 */

const ROW_PX = 26
const [BAR_PX, WAIT_PX] = [14, 10]
const BAR_TOP = (ROW_PX - BAR_PX) / 2
const MAX_INDENT = 12 // levels
/** @type {Array<[string, string]>} */
const MEANINGS = [
  ['server', 'server'],
  ['client', 'client, or a query'],
  ['internal', 'trace.span'],
  ['ran', 'callback'],
  ['gap', 'wait at the named site'],
  ['late', 'delayed: other code ran'],
  ['unsure', 'delayed or not: not known'],
  ['blocker', 'blocking callback'],
  ['failed', 'error']
]

/**
 * Orders rows: parents before children, then by start; a span without its parent here is a root.
 * @param {Digest[]} spans sorted by start
 * @returns {Entry[]}
 */
function entriesOf (spans) {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const children = Map.groupBy(spans, ({ spanId, parentSpanId }) =>
    parentSpanId !== spanId && ids.has(String(parentSpanId)) ? parentSpanId : undefined)
  /** @type {Entry[]} */
  const entries = []
  const done = new Set()
  /** @param {Digest} span @param {number} depth */
  function add (span, depth) {
    if (done.has(span)) return
    done.add(span)
    const gaps = waitGapsOf(span)
    entries.push({ span, depth, gaps })
    const nested = (children.get(span.spanId) ?? []).map((child) =>
      ({ start: child.startUnixMs, enter: () => add(child, depth + 1) }))
    const waits = [...Map.groupBy(gaps, ({ wait }) => wait)].map(([wait, own]) => ({
      start: span.startUnixMs + own[0].start,
      enter: () => entries.push({ span, depth: depth + 1, gaps: own, wait })
    }))
    const questions = span.asked.map((asked) => ({
      start: span.startUnixMs + asked.start,
      enter: () => entries.push({ span, depth: depth + 1, gaps: [], asked })
    }))
    for (const { enter } of [...nested, ...waits, ...questions].sort((a, b) => a.start - b.start)) enter()
  }
  for (const span of children.get(undefined) ?? []) add(span, 0)
  for (const span of spans) add(span, 0) // a file may contain spans that are their own ancestors
  return entries
}

/** @param {Entry} entry @param {number} origin of the trace, unix ms */
function labelOf ({ span, gaps, wait, asked }, origin) {
  const start = span.startUnixMs - origin
  if (asked !== undefined) {
    const unsent = asked.unsent === undefined ? '' : `, after ${time(asked.unsent)} in the driver`
    const end = asked.unanswered ? 'no answer' : time(start + asked.start + asked.ms)
    const place = asked.at === undefined ? '' : ` at ${asked.at}`
    return `asked ${asked.peer ?? ''}${place} from ${time(start + asked.start)} to ${end}${unsent}`
  }
  if (wait === undefined) {
    const callbacks = span.runs.length > 0 ? `, ${counted(span.runs.length, 'callback')}` : ''
    return `from ${time(start)} to ${time(start + span.ms)}${callbacks}`
  }
  const times = gaps.map((gap) => `${time(gap.end - gap.start)} from + ${time(gap.start)}`)
  const end = endOf(wait)
  const parts = [`waited ${times.join(', ')}`, wait.at && `at ${wait.at}`, end && `until ${end}`]
  return parts.filter(Boolean).join(' ')
}

/** @param {Entry} entry */
function nameOf ({ span: { name, status, end }, wait, asked }) {
  if (asked !== undefined) return foreign(askedName(asked), { class: 'code', title: asked.at })
  if (wait === undefined) {
    const isFailed = status.code === 'ERROR'
    return [isFailed && badge('error', 'error'), end !== undefined && badge(end), foreign(name)]
  }
  const until = endOf(wait)
  if (wait.at === undefined) return foreign(until ?? 'an unknown place', { class: 'code' })
  return [shortCode(wait.at), until !== undefined && h('small', {}, ' until ', foreign(until))]
}

/**
 * Creates the elements of a row.
 * @param {Entry} entry
 * @param {number} origin of the trace, unix ms
 * @param {Record<string, (event: any) => void>} on listeners of its button
 * @returns {Row}
 */
function createRow (entry, origin, on) {
  const { span, depth, gaps, wait, asked } = entry
  const label = labelOf(entry, origin)
  const plot = s('svg', { class: 'plot', height: ROW_PX, role: 'img', 'aria-label': label })
  const button = h('button', { type: 'button', class: 'span', 'aria-controls': 'detail', on }, nameOf(entry))
  const isSpan = wait === undefined && asked === undefined
  const ms = isSpan ? span.ms : asked?.ms ?? gaps.reduce((sum, { start, end }) => sum + end - start, 0)
  const style = isSpan ? undefined : 'wait-row'
  const element = h('tr', { class: style, css: { '--depth': String(Math.min(depth, MAX_INDENT)) } },
    h('th', { scope: 'row', title: isSpan ? span.name : label }, button),
    h('td', { class: 'number' }, time(ms)),
    h('td', { class: 'track' }, plot))
  return { ...entry, element, button, plot }
}

/**
 * Draws the plot of a row.
 * @param {Row} row
 * @param {any} view scale of the visible range, in ms from the start of the trace
 * @param {number} width
 * @param {number[]} ticks
 * @param {number} origin of the trace, unix ms
 */
function drawRow ({ span, gaps, wait, asked, plot }, view, width, ticks, origin) {
  plot.setAttribute('width', width)
  plot.setAttribute('viewBox', `0 0 ${width} ${ROW_PX}`)
  const xOf = (/** @type {number} */ ms) => view(span.startUnixMs - origin + ms)
  /** @type {(style: string, times: [start: number, end: number], box: any, min?: number) => any} */
  const bar = (style, [start, end], box, min = 1) => {
    const x = xOf(start)
    return s('rect', { class: style, x, width: Math.max(min, xOf(end) - x), ...box })
  }
  const gapBox = { y: (ROW_PX - WAIT_PX) / 2, height: WAIT_PX, rx: 1 }
  const waits = () => gaps.map(({ start, end }) => bar('gap', [start, end], gapBox))
  const query = asked && bar('bar client', [asked.start, asked.start + asked.ms], gapBox, 2)
  const bars = wait === undefined ? spanBars(span, xOf, bar) : waits()
  plot.replaceChildren(...ticks.map((value) => gridLine(view(value), ROW_PX)),
    ...(query === undefined ? bars : [query]))
}

/**
 * @param {Digest} span
 * @param {(ms: number) => number} xOf a time since its start
 * @param {(style: string, times: [number, number], box: any, min?: number) => any} bar
 */
function spanBars (span, xOf, bar) {
  const kind = span.blocked ? 'blocker' : span.kind.toLowerCase()
  const style = /^(server|client|blocker)$/.test(kind) ? kind : 'internal'
  const half = BAR_PX / 2
  const delays = span.delays.map(([start, ms, certain]) => {
    const sure = start + ms - certain
    const title = `delayed ${certain < ms ? `${time(certain)} to ` : ''}${time(ms)}`
    const y = BAR_TOP + half
    return s('g', {}, s('title', {}, title),
      certain < ms && s('line', { class: 'unsure', x1: xOf(start), x2: xOf(sure), y1: y, y2: y }),
      bar('late', [sure, start + ms], { y: BAR_TOP + BAR_PX - 5, height: 4 }))
  })
  return [
    bar(`bar ${style}`, [0, span.ms], { y: BAR_TOP, height: BAR_PX, rx: 2 }, 2),
    ...delays,
    ...span.runs.map(([start, ms]) =>
      bar('ran', [start, start + ms], { y: BAR_TOP + 3, height: BAR_PX - 6, rx: 1 }, 1.5)),
    ...(span.end === 'open'
      ? [s('path', { class: 'open', d: `M${xOf(span.ms)},${BAR_TOP} l6,${half} l-6,${half}` })]
      : []),
    ...span.events.filter(({ unixMs }) => unixMs > 0).map(({ unixMs }) => s('path', {
      class: 'failed', d: `M${xOf(unixMs - span.startUnixMs)},${BAR_TOP - 2} l4,4 l-4,4 l-4,-4 z`
    }))
  ]
}

const select = h('select', { on: { change: () => show(data.traces[select.value]) } })
const options = data.traces.map(({ name, ms, startUnixMs }, i) =>
  h('option', { value: i }, `${i + 1}. ${name} · ${time(ms)} · ${clock(startUnixMs)}`))
const body = h('tbody')
const ruler = h('th', { scope: 'col', class: 'ruler' })
const panel = h('div', { class: 'detail', id: 'detail' })
const note = h('p', { class: 'note' })
let trace = data.traces[0]
/** @type {Row[]} */
let rows = []
let width = 0
/** @type {any} */
let view

const zoom = createZoom({
  label: 'timeline',
  width: () => width,
  draw,
  describe: () => `${time(Math.max(0, view.domain()[0]))} to ${time(view.domain()[1])}`
})

/** @param {PageTrace} next @param {string} [spanId] */
function show (next, spanId) {
  trace = next
  const option = options[data.traces.indexOf(next)]
  if (!option.isConnected) select.append(option) // opened by a link, though it is not in what is filtered
  select.value = option.value
  rows = entriesOf(trace.spans).map((entry) => {
    const row = createRow(entry, trace.startUnixMs, { click: () => choose(row), keydown: onKey })
    return row
  })
  body.replaceChildren(...rows.map(({ element }) => element))
  note.textContent = trace.more > 0 ? `${counted(trace.more, 'later span')} not on this page.` : ''
  zoom.attach(rows.map(({ plot }) => plot))
  choose(rows.find(({ span }) => span.spanId === spanId) ?? rows[0])
}

/** @param {Row} row */
function choose (row) {
  for (const other of rows) {
    other.element.classList.toggle('chosen', other === row)
    other.button.setAttribute('aria-pressed', String(other === row))
  }
  const ofSpan = (/** @type {string} */ id) =>
    rows.find(({ span, wait, asked }) => span.spanId === id && wait === undefined && asked === undefined)
  const gaps = ofSpan(row.span.spanId)?.gaps ?? []
  panel.replaceChildren(...spanDetail(row.span, gaps, trace, (id) => ofSpan(id)?.button))
}

/** Selects the next or previous row with the arrow keys. @param {any} event */
function onKey (event) {
  const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
  const next = rows[rows.findIndex(({ button }) => button === event.currentTarget) + step]
  if (step === 0 || next === undefined) return
  event.preventDefault()
  next.button.focus()
  choose(next)
}

function draw () {
  width = rows[0]?.plot.parentNode.clientWidth ?? 0
  if (width === 0) return
  view = zoom.view(d3.scaleLinear([0, Math.max(trace.ms, 0.001) * 1.02], [0, width]))
  const ticks = ticksOf(view, width)
  for (const row of rows) drawRow(row, view, width, ticks, trace.startUnixMs)
  ruler.replaceChildren(h('span', { class: 'hidden' }, 'Timeline'), axis(view, width, ticks, 'top'))
}

/** @returns {any} undefined where the page has no trace */
function requestSection () {
  if (data.traces.length === 0) return undefined
  show(trace)
  const element = h('div', { class: 'waterfall' },
    h('div', { class: 'toolbar' }, h('label', { class: 'choice wide' }, 'Request ', select), zoom.toolbar),
    legend(MEANINGS),
    h('div', { class: 'scroll', role: 'region', 'aria-label': 'Trace of the selected request', tabindex: 0 },
      h('table', { class: 'spans' }, h('caption', { class: 'hidden' }, 'Spans of the selected request'),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Span'),
          h('th', { scope: 'col', class: 'number' }, 'Took'), ruler)), body)),
    note, panel)
  follow(() => {
    const selected = selectedTraces()
    select.replaceChildren(...options.filter((_, i) =>
      selected.includes(data.traces[i]) || data.traces[i] === trace))
    if (!selected.includes(trace) && selected.length > 0) show(selected[0])
    else select.value = options[data.traces.indexOf(trace)].value
  })
  new ResizeObserver(() => {
    const now = rows[0]?.plot.parentNode.clientWidth ?? 0
    if (now !== 0 && now !== width) zoom.resized(width === 0 ? 1 : now / width)
  }).observe(element)
  return section('request', 'Trace of a request', heading(runs[0]), element)
}

/** Returns whether the page has a trace. @param {string | undefined} traceId */
const hasTrace = (traceId) => data.traces.some(({ id }) => id === traceId)

/** Shows a span of a trace, and moves there. @param {string} traceId @param {string} [spanId] */
function openRequest (traceId, spanId) {
  moveTo('request')
  const next = data.traces.find(({ id }) => id === traceId)
  if (next !== undefined) show(next, spanId)
  select.focus({ preventScroll: true })
}

module.exports = { hasTrace, openRequest, requestSection }
