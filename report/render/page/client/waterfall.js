'use strict'

// Trace of one request on a zoomable time axis: each span below its parent, with its callbacks on the event
// loop. Within a span, there is a row for each site whose wait times are certain, and for each query on a
// connection. The selected span is described in full below.

/* global d3, ResizeObserver */

const { axis, createZoom, gridLine, ticksOf } = require('./axis')
const { data, follow, heading, runs, selectedTraces } = require('./data')
const { badge, fill, foreign, h, legend, moveTo, s, section } = require('./dom')
const { clock, counted, time } = require('../../format')
const { endOf, shortCode, spanDetail } = require('./words')
const { waitGapsOf } = require('../../wait-gaps')
const { sum } = require('../../../aggregate/lists')
const { askedName } = require('../../../../lib/text')

/**
 * @typedef {import('../data').PageTrace} PageTrace
 * @typedef {import('../../../aggregate/digest').Digest} Digest
 * @typedef {import('../../wait-gaps').WaitGap} WaitGap
 *
 * @typedef {(style: string, times: [start: number, end: number], box: any, min?: number) => any} Bar
 *
 * @typedef {object} Entry a row: a span, one of its waits, or one of its queries
 * @property {Digest} span
 * @property {boolean} isSpan
 * @property {number} depth
 * @property {number} start unix ms
 * @property {number} ms
 * @property {any} name
 * @property {string} title
 * @property {string} label
 * @property {(bar: Bar, xOf: (ms: number) => number) => any[]} bars bars, with times since the start of the
 *   span
 *
 * @typedef {Entry & { element: any, button: any, plot: any }} Row
 */

const ROW_PX = 26
const [BAR_PX, WAIT_PX] = [14, 10]
const BAR_TOP = (ROW_PX - BAR_PX) / 2
const WAIT_BOX = { y: (ROW_PX - WAIT_PX) / 2, height: WAIT_PX, rx: 1 }
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
 * Orders rows: parents before children, then by start. A span whose parent is missing becomes a root.
 * @param {PageTrace} trace whose spans are sorted by start
 * @returns {Entry[]}
 */
function entriesOf ({ spans, startUnixMs: origin }) {
  const ids = new Set(spans.map(({ spanId }) => spanId))
  const children = Map.groupBy(spans, ({ spanId, parentSpanId }) =>
    parentSpanId !== spanId && ids.has(String(parentSpanId)) ? parentSpanId : undefined)
  const done = new Set()
  /** @param {Digest} span @param {number} depth @returns {Entry[]} the span's own and those below it */
  function entriesFrom (span, depth) {
    if (done.has(span)) return []
    done.add(span)
    const waits = Map.groupBy(waitGapsOf(span), ({ wait }) => wait)
    const below = [
      ...(children.get(span.spanId) ?? []).map((child) => entriesFrom(child, depth + 1)),
      ...[...waits.values()].map((gaps) => [waitEntry(span, depth + 1, gaps)]),
      ...span.asked.map((asked) => [askedEntry(span, depth + 1, asked, origin)])
    ].filter(({ length }) => length > 0)
    return [spanEntry(span, depth, origin), ...below.sort(([a], [b]) => a.start - b.start).flat()]
  }
  // A file may contain spans that are their own ancestors
  return [...(children.get(undefined) ?? []), ...spans].flatMap((span) => entriesFrom(span, 0))
}

/**
 * @param {Digest} span
 * @param {number} depth
 * @param {number} origin of the trace, unix ms
 * @returns {Entry}
 */
function spanEntry (span, depth, origin) {
  const { name: title, status, end, ms, runs, startUnixMs } = span
  const callbacks = runs.length > 0 ? `, ${counted(runs.length, 'callback')}` : ''
  const label = `from ${time(startUnixMs - origin)} to ${time(startUnixMs - origin + ms)}${callbacks}`
  const badges = [status.code === 'ERROR' && badge('error', 'error'), end !== undefined && badge(end)]
  const bars = (/** @type {Bar} */ bar, /** @type {(ms: number) => number} */ xOf) => spanBars(span, xOf, bar)
  const name = [badges, foreign(title)]
  return { span, isSpan: true, depth, start: startUnixMs, ms, name, title, label, bars }
}

/** @param {Digest} span @param {number} depth @param {WaitGap[]} gaps of one wait @returns {Entry} */
function waitEntry (span, depth, gaps) {
  const [{ wait, start: first }] = gaps
  const until = endOf(wait)
  const times = gaps.map(({ start, end }) => `${time(end - start)} from + ${time(start)}`)
  const parts = [`waited ${times.join(', ')}`, wait.at && `at ${wait.at}`, until && `until ${until}`]
  const label = parts.filter(Boolean).join(' ')
  const name = wait.at === undefined
    ? foreign(until ?? 'an unknown place', { class: 'code' })
    : [shortCode(wait.at), until !== undefined && h('small', {}, ' until ', foreign(until))]
  const bars = (/** @type {Bar} */ bar) => gaps.map(({ start, end }) => bar('gap', [start, end], WAIT_BOX))
  const start = span.startUnixMs + first
  const ms = sum(gaps, (gap) => gap.end - gap.start)
  return { span, isSpan: false, depth, start, ms, name, title: label, label, bars }
}

/**
 * @param {Digest} span
 * @param {number} depth
 * @param {Digest['asked'][number]} asked
 * @param {number} origin of the trace, unix ms
 * @returns {Entry}
 */
function askedEntry (span, depth, asked, origin) {
  const { ms, at: frame, peer = '', unsent, unanswered } = asked
  const start = span.startUnixMs + asked.start
  const driver = unsent === undefined ? '' : `, after ${time(unsent)} in the driver`
  const end = unanswered ? 'no answer' : time(start - origin + ms)
  const place = frame === undefined ? '' : ` at ${frame}`
  const label = `asked ${peer}${place} from ${time(start - origin)} to ${end}${driver}`
  const name = foreign(askedName(asked), { class: 'code', title: frame })
  const bars = (/** @type {Bar} */ bar) =>
    [bar('bar client', [asked.start, asked.start + ms], WAIT_BOX, 2)]
  return { span, isSpan: false, depth, start, ms, name, title: label, label, bars }
}

/**
 * Creates the elements of a row.
 * @param {Entry} entry
 * @param {Record<string, (event: any) => void>} on listeners of its button
 * @returns {Row}
 */
function createRow (entry, on) {
  const { isSpan, depth, ms, name, title, label } = entry
  const plot = s('svg', { class: 'plot', height: ROW_PX, role: 'img', 'aria-label': label })
  const button = h('button', { type: 'button', class: 'span', 'aria-controls': 'detail', on }, name)
  const style = isSpan ? undefined : 'wait-row'
  const element = h('tr', { class: style, css: { '--depth': String(Math.min(depth, MAX_INDENT)) } },
    h('th', { scope: 'row', title }, button),
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
function drawRow ({ span, bars, plot }, view, width, ticks, origin) {
  fill(plot, { width, viewBox: `0 0 ${width} ${ROW_PX}` })
  const xOf = (/** @type {number} */ ms) => view(span.startUnixMs - origin + ms)
  /** @type {Bar} */
  const bar = (style, [start, end], box, min = 1) => {
    const x = xOf(start)
    return s('rect', { class: style, x, width: Math.max(min, xOf(end) - x), ...box })
  }
  plot.replaceChildren(...ticks.map((value) => gridLine(view(value), ROW_PX)), ...bars(bar, xOf))
}

/**
 * @param {Digest} span
 * @param {(ms: number) => number} xOf x of a time since the span's start
 * @param {Bar} bar
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
  if (!option.isConnected) select.append(option) // opened by a link, although filtered out
  select.value = option.value
  rows = entriesOf(trace).map((entry) => {
    const row = createRow(entry, { click: () => choose(row), keydown: onKey })
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
  const buttonOf = (/** @type {string} */ id) =>
    rows.find(({ span, isSpan }) => isSpan && span.spanId === id)?.button
  panel.replaceChildren(...spanDetail(row.span, trace, buttonOf))
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

/** @returns {any} undefined if the page has no trace */
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

/** Shows a span of a trace and scrolls to it. @param {string} traceId @param {string} [spanId] */
function openRequest (traceId, spanId) {
  moveTo('request')
  const next = data.traces.find(({ id }) => id === traceId)
  if (next !== undefined) show(next, spanId)
  select.focus({ preventScroll: true })
}

module.exports = { hasTrace, openRequest, requestSection }
