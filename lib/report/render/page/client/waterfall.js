'use strict'

// One request from its start to its end: every span of its trace in a row of its own, below the one that made it, with
// the runs that it had on the loop. What is chosen is told in full beside it.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { detail } = require('./detail')
const { foreign, h, s } = require('./dom')
const { clock, plural, time } = require('./format')
const { createZoom } = require('./zoom')

/** @typedef {import('../data').PageTrace} PageTrace @typedef {import('../data').PageSpan} PageSpan */

const ROW_PX = 26
const BAR_PX = 14
const meanings = [['server', 'server'], ['client', 'client'], ['internal', 'own span'], ['ran', 'it ran'], ['blocker', 'it blocked the loop'], ['failed', 'an error']]
const DEEPEST = 12 // indented so far at most

/**
 * Parents before children, in the order of their starts; one whose parent is not here is a root.
 * @param {PageSpan[]} spans sorted by start
 * @returns {Array<{ span: PageSpan, depth: number }>}
 */
function inTree (spans) {
  const ids = new Set(spans.map((span) => span.id))
  /** @type {Map<string | undefined, PageSpan[]>} */
  const children = new Map()
  for (const span of spans) {
    const parent = span.parent !== undefined && span.parent !== span.id && ids.has(span.parent) ? span.parent : undefined
    children.set(parent, [...(children.get(parent) ?? []), span])
  }
  /** @type {Array<{ span: PageSpan, depth: number }>} */
  const rows = []
  const seen = new Set()
  const waiting = (children.get(undefined) ?? []).map((span) => ({ span, depth: 0 })).reverse()
  const left = [...spans].reverse() // those that are their own ancestors, if a file says so
  for (;;) {
    const next = waiting.pop() ?? orphan(left, seen)
    if (next === undefined) return rows
    if (seen.has(next.span)) continue
    seen.add(next.span)
    rows.push(next)
    for (const span of [...(children.get(next.span.id) ?? [])].reverse()) waiting.push({ span, depth: next.depth + 1 })
  }
}

/** @param {PageSpan[]} left @param {Set<PageSpan>} seen */
function orphan (left, seen) {
  for (let span = left.pop(); span !== undefined; span = left.pop()) {
    if (!seen.has(span)) return { span, depth: 0 }
  }
}

/**
 * @param {PageTrace[]} traces
 * @param {string[]} stacks
 */
function createWaterfall (traces, stacks) {
  const select = h('select', { on: { change: () => show(traces[select.selectedIndex]) } }, traces.map((trace, i) =>
    h('option', {}, `${i + 1}. ${trace.name} · ${time(trace.ms)} · ${clock(trace.startUnixMs)}`)))
  const [body, ruler, panel, note] = [h('tbody'), h('th', { scope: 'col', class: 'ruler' }), h('div', { class: 'detail', id: 'detail' }), h('p', { class: 'note' })]
  /** @type {PageTrace} */
  let trace = traces[0]
  /** @type {Array<{ span: PageSpan, row: any, button: any, plot: any }>} */
  let rows = []
  let width = 0
  /** @type {any} */
  let view

  const zoom = createZoom({
    label: 'timeline', width: () => width, draw, tell: () => `${time(Math.max(0, view.domain()[0]))} to ${time(view.domain()[1])}`
  })

  /** @param {PageTrace} next @param {string} [spanId] */
  function show (next, spanId) {
    trace = next
    select.selectedIndex = traces.indexOf(next)
    rows = inTree(trace.spans).map(({ span, depth }) => line(span, depth))
    body.replaceChildren(...rows.map(({ row }) => row))
    note.textContent = trace.more > 0 ? `${plural(trace.more, 'later span')} of this trace ${trace.more === 1 ? 'is' : 'are'} not on this page.` : ''
    zoom.attach(rows.map(({ plot }) => plot))
    zoom.reset()
    choose((rows.find(({ span }) => span.id === spanId) ?? rows[0]).span)
  }

  /** @param {PageSpan} span @param {number} depth */
  function line (span, depth) {
    const plot = s('svg', { class: 'plot', height: ROW_PX, role: 'img', 'aria-label': inWords(span) })
    const button = h('button', { type: 'button', class: 'span', 'aria-controls': 'detail', on: { click: () => choose(span), keydown: onKey } },
      span.status === 'ERROR' && h('span', { class: 'badge error' }, 'error'), span.end !== undefined && h('span', { class: 'badge' }, span.end), foreign(span.name))
    const row = h('tr', { css: { '--depth': String(Math.min(depth, DEEPEST)) } },
      h('th', { scope: 'row', title: span.name }, button), h('td', { class: 'number' }, time(span.ms)), h('td', { class: 'track' }, plot))
    return { span, row, button, plot }
  }

  /** @param {PageSpan} span */
  function choose (span) {
    for (const one of rows) {
      const chosen = one.span === span
      one.row.classList.toggle('chosen', chosen)
      one.button.setAttribute('aria-pressed', String(chosen))
    }
    panel.replaceChildren(...detail(span, trace, stacks, (id) => rows.find((one) => one.span.id === id)?.button))
  }

  /** Up and down go through the rows. @param {any} event */
  function onKey (event) {
    const step = event.key === 'ArrowDown' ? 1 : event.key === 'ArrowUp' ? -1 : 0
    const next = rows[rows.findIndex(({ button }) => button === event.currentTarget) + step]
    if (step === 0 || next === undefined) return
    event.preventDefault()
    next.button.focus()
    choose(next.span)
  }

  function draw () {
    width = rows[0]?.plot.parentNode.clientWidth ?? 0
    if (width === 0) return
    view = zoom.view(d3.scaleLinear([0, Math.max(trace.ms, 0.001) * 1.02], [0, width]))
    const ticks = ticksOf(view, width)
    for (const { span, plot } of rows) {
      plot.setAttribute('width', width)
      plot.setAttribute('viewBox', `0 0 ${width} ${ROW_PX}`)
      plot.replaceChildren(...ticks.map((value) => s('line', { class: 'grid', x1: view(value), x2: view(value), y1: 0, y2: ROW_PX })), ...bars(span, view))
    }
    ruler.replaceChildren(h('span', { class: 'hidden' }, 'Timeline'), axis(view, width, ticks, 'top'))
  }

  const element = h('div', { class: 'waterfall' },
    h('div', { class: 'toolbar' }, h('label', { class: 'choice wide' }, 'Request ', select), zoom.toolbar),
    h('ul', { class: 'legend' }, meanings.map(([name, text]) => h('li', {}, h('span', { class: `swatch ${name}` }), text))),
    h('div', { class: 'scroll', role: 'region', 'aria-label': 'Waterfall of the chosen request', tabindex: 0 },
      h('table', { class: 'spans' }, h('caption', { class: 'hidden' }, 'Spans of the chosen request'),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Span'), h('th', { scope: 'col', class: 'number' }, 'Took'), ruler)), body)),
    note, panel)
  show(trace)
  new ResizeObserver(() => {
    const now = rows[0]?.plot.parentNode.clientWidth ?? 0
    if (now !== 0 && now !== width) { if (width === 0) draw(); else zoom.resized(now / width) }
  }).observe(element)

  return {
    element,
    /** @param {string | undefined} traceId */
    has: (traceId) => traces.some((one) => one.id === traceId),
    /** @param {string | undefined} traceId @param {string | undefined} spanId */
    open (traceId, spanId) {
      const next = traces.find((one) => one.id === traceId)
      if (next !== undefined) show(next, spanId)
      select.focus({ preventScroll: true })
    }
  }
}

/** @param {PageSpan} span @param {any} view */
function bars (span, view) {
  const top = (ROW_PX - BAR_PX) / 2
  const [from, to] = [view(span.start), view(span.start + span.ms)]
  const kind = span.blocked ? 'blocker' : span.kind.toLowerCase()
  const place = (/** @type {number} */ start, /** @type {number} */ ms) => ({ x: view(start), width: Math.max(1.5, view(start + ms) - view(start)) })
  return [
    s('rect', { class: `bar ${/^(server|client|blocker)$/.test(kind) ? kind : 'internal'}`, x: from, y: top, width: Math.max(2, to - from), height: BAR_PX, rx: 2 }),
    ...span.runs.map(([start, ms]) => s('rect', { class: 'ran', ...place(span.start + start, ms), y: top + 3, height: BAR_PX - 6, rx: 1 })),
    ...(span.end === 'open' ? [s('path', { class: 'open', d: `M${to},${top} l6,${BAR_PX / 2} l-6,${BAR_PX / 2}` })] : []),
    ...span.events.filter(({ at }) => at !== undefined).map(({ at }) => {
      const x = view(span.start + Number(at))
      return s('path', { class: 'failed', d: `M${x},${top - 2} l4,4 l-4,4 l-4,-4 z` })
    })
  ]
}

/** @param {PageSpan} span */
function inWords (span) {
  const ran = span.runs.length > 0 ? `, ran ${plural(span.runs.length, 'time')} on the loop` : ''
  return `from ${time(span.start)} to ${time(span.start + span.ms)}${ran}`
}

module.exports = { createWaterfall, inTree }
