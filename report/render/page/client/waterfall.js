'use strict'

// Draws the trace of one request: each span in a row, below its parent, with its callbacks on the event loop.
// The selected span is described in full below.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { detail } = require('./detail')
const { foreign, h, s } = require('./dom')
const { clock, plural, time } = require('./format')
const { selectedTraces } = require('./selected')
const { createZoom } = require('./zoom')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('../traces').PageTrace} PageTrace
 * @typedef {import('../traces').PageSpan} PageSpan
 */

const ROW_PX = 26
const BAR_PX = 14
const MAX_INDENT = 12 // levels
const CHAR_PX = 6.4 // of a label
const MAX_LABEL_PX = 400
const meanings = [
  ['server', 'server'],
  ['client', 'client'],
  ['internal', 'trace.span'],
  ['ran', 'callback'],
  ['gap', 'wait, named by await site'],
  ['late', 'delayed: other code ran'],
  ['unsure', 'delayed or not: not known'],
  ['blocker', 'blocking callback'],
  ['failed', 'error']
]

/**
 * Orders spans: parents before children, then by start; a span without its parent here is a root.
 * @param {PageSpan[]} spans sorted by start
 * @returns {Array<{ span: PageSpan, depth: number }>}
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
  /** @type {Array<{ span: PageSpan, depth: number }>} */
  const rows = []
  const done = new Set()
  const waiting = (children.get(undefined) ?? []).map((span) => ({ span, depth: 0 })).reverse()
  const remaining = [...spans].reverse() // a file may contain spans that are their own ancestors
  for (;;) {
    const next = waiting.pop() ?? firstOrphan(remaining, done)
    if (next === undefined) return rows
    if (done.has(next.span)) continue
    done.add(next.span)
    rows.push(next)
    const nested = children.get(next.span.id) ?? []
    for (const span of nested.toReversed()) waiting.push({ span, depth: next.depth + 1 })
  }
}

/** @param {PageSpan[]} remaining @param {Set<PageSpan>} done */
function firstOrphan (remaining, done) {
  for (let span = remaining.pop(); span !== undefined; span = remaining.pop()) {
    if (!done.has(span)) return { span, depth: 0 }
  }
}

/**
 * @param {PageTrace[]} traces
 * @param {string[]} stacks
 * @param {import('./filter').Filter} filter
 */
function createWaterfall (traces, stacks, filter) {
  const options = traces.map(({ name, ms, startUnixMs }, i) =>
    h('option', { value: i }, `${i + 1}. ${name} · ${time(ms)} · ${clock(startUnixMs)}`))
  const select = h('select', { on: { change: () => show(traces[select.value]) } }, options)
  const body = h('tbody')
  const ruler = h('th', { scope: 'col', class: 'ruler' })
  const panel = h('div', { class: 'detail', id: 'detail' })
  const note = h('p', { class: 'note' })
  /** @type {PageTrace} */
  let trace = traces[0]
  /** @type {Array<{ span: PageSpan, row: any, button: any, plot: any }>} */
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
    const option = options[traces.indexOf(next)]
    if (!option.isConnected) select.append(option) // opened by a link, though it is not in what is filtered
    select.value = option.value
    rows = inTree(trace.spans).map(({ span, depth }) => line(span, depth))
    body.replaceChildren(...rows.map(({ row }) => row))
    note.textContent = trace.more > 0 ? `${plural(trace.more, 'later span')} not on this page.` : ''
    zoom.attach(rows.map(({ plot }) => plot))
    zoom.reset()
    choose((rows.find(({ span }) => span.id === spanId) ?? rows[0]).span)
  }

  /** @param {PageSpan} span @param {number} depth */
  function line (span, depth) {
    const plot = s('svg', { class: 'plot', height: ROW_PX, role: 'img', 'aria-label': describe(span) })
    const on = { click: () => choose(span), keydown: onKey }
    const button = h('button', { type: 'button', class: 'span', 'aria-controls': 'detail', on },
      span.status === 'ERROR' && h('span', { class: 'badge error' }, 'error'),
      span.end !== undefined && h('span', { class: 'badge' }, span.end),
      foreign(span.name))
    const row = h('tr', { css: { '--depth': String(Math.min(depth, MAX_INDENT)) } },
      h('th', { scope: 'row', title: span.name }, button),
      h('td', { class: 'number' }, time(span.ms)),
      h('td', { class: 'track' }, plot))
    return { span, row, button, plot }
  }

  /** @param {PageSpan} span */
  function choose (span) {
    for (const { span: other, row, button } of rows) {
      row.classList.toggle('chosen', other === span)
      button.setAttribute('aria-pressed', String(other === span))
    }
    const buttonOf = (/** @type {string} */ id) => rows.find((row) => row.span.id === id)?.button
    panel.replaceChildren(...detail(span, trace, stacks, buttonOf))
  }

  /** Selects the next or previous row with the arrow keys. @param {any} event */
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
      plot.replaceChildren(...ticks.map((value) => gridLine(view(value))), ...bars(span, view))
    }
    ruler.replaceChildren(h('span', { class: 'hidden' }, 'Timeline'), axis(view, width, ticks, 'top'))
  }

  const durationHead = h('th', { scope: 'col', class: 'number' }, 'Took')
  const element = h('div', { class: 'waterfall' },
    h('div', { class: 'toolbar' }, h('label', { class: 'choice wide' }, 'Request ', select), zoom.toolbar),
    legend(),
    h('div', { class: 'scroll', role: 'region', 'aria-label': 'Trace of the selected request', tabindex: 0 },
      h('table', { class: 'spans' }, h('caption', { class: 'hidden' }, 'Spans of the selected request'),
        h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Span'), durationHead, ruler)), body)),
    note, panel)
  show(trace)
  filter.follow((selection) => {
    const selected = selectedTraces(selection)
    const visible = options.filter((_, i) => selected.includes(traces[i]) || traces[i] === trace)
    select.replaceChildren(...visible)
    if (!selected.includes(trace) && selected.length > 0) show(selected[0])
    else select.value = options[traces.indexOf(trace)].value
  })
  new ResizeObserver(() => {
    const now = rows[0]?.plot.parentNode.clientWidth ?? 0
    if (now === 0 || now === width) return
    if (width === 0) draw()
    else zoom.resized(now / width)
  }).observe(element)

  return {
    element,
    /** @param {string | undefined} traceId */
    has: (traceId) => traces.some(({ id }) => id === traceId),
    /** @param {string | undefined} traceId @param {string | undefined} spanId */
    open (traceId, spanId) {
      const next = traces.find(({ id }) => id === traceId)
      if (next !== undefined) show(next, spanId)
      select.focus({ preventScroll: true })
    }
  }
}

function legend () {
  return h('ul', { class: 'legend' }, meanings.map(([name, text]) =>
    h('li', {}, h('span', { class: `swatch ${name}` }), text)))
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
    ...span.gaps.flatMap(([start, ms, wait]) =>
      gap(extent(span.start + start, ms, 0), span.waits[wait], top)),
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

/**
 * Draws the gap between two callbacks that was one wait, with the name of its site if there is room.
 * @param {{ x: number, width: number }} extent
 * @param {import('../rows').Wait} wait
 * @param {number} top
 */
function gap ({ x, width }, { at: frame, until }, top) {
  const site = frame === undefined ? until ?? '' : shortFrame(frame)
  const chars = Math.floor((Math.min(width, MAX_LABEL_PX) - 8) / CHAR_PX)
  const label = site.length <= chars ? site : chars > 4 ? `${site.slice(0, chars - 1)}…` : undefined
  const title = [frame, until && `until ${until}`].filter(Boolean).join(' ')
  return [s('g', { class: 'gap' }, s('title', {}, `waited at ${title}`),
    s('rect', { x, y: top + 1, width: Math.max(1, width - 1), height: BAR_PX - 2 }),
    label && s('text', { x: x + 4, y: top + BAR_PX - 4 }, label))]
}

/** @param {PageSpan} span */
function describe (span) {
  const callbacks = span.runs.length > 0 ? `, ${plural(span.runs.length, 'callback')}` : ''
  const waits = span.gaps.map(([start, ms, wait]) =>
    `, waited ${time(ms)} from + ${time(start)} at ${shortFrame(span.waits[wait].at ?? 'an unknown place')}`)
  return `from ${time(span.start)} to ${time(span.start + span.ms)}${callbacks}${waits.join('')}`
}

module.exports = { createWaterfall, inTree }
