'use strict'

// The trace of one request: its rows over a time axis that zooms. The selected span is described in full
// below.

/* global d3, ResizeObserver */

const { axis, ticksOf } = require('./axis')
const { detail } = require('./detail')
const { h } = require('./dom')
const { clock, plural, time } = require('./format')
const { selectedTraces } = require('./selected')
const { drawRow, inTree, rowOf } = require('./waterfall-rows')
const { createZoom } = require('./zoom')

/** @typedef {import('../traces').PageTrace} PageTrace */

const meanings = [
  ['server', 'server'],
  ['client', 'client'],
  ['internal', 'trace.span'],
  ['ran', 'callback'],
  ['gap', 'wait at the named site'],
  ['late', 'delayed: other code ran'],
  ['unsure', 'delayed or not: not known'],
  ['blocker', 'blocking callback'],
  ['failed', 'error']
]

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
  /** @type {Array<import('./waterfall-rows').Entry & ReturnType<typeof rowOf>>} */
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
    rows = inTree(trace.spans).map((entry) => {
      const row = { ...entry, ...rowOf(entry, { click: () => choose(row), keydown: onKey }) }
      return row
    })
    body.replaceChildren(...rows.map(({ row }) => row))
    note.textContent = trace.more > 0 ? `${plural(trace.more, 'later span')} not on this page.` : ''
    zoom.attach(rows.map(({ plot }) => plot))
    zoom.reset()
    choose(rows.find(({ span }) => span.id === spanId) ?? rows[0])
  }

  /** @param {typeof rows[number]} entry */
  function choose (entry) {
    for (const other of rows) {
      other.row.classList.toggle('chosen', other === entry)
      other.button.setAttribute('aria-pressed', String(other === entry))
    }
    const { span } = entry
    const buttonOf = (/** @type {string} */ id) => rows.find(({ span: { id: own }, wait }) =>
      own === id && wait === undefined)?.button
    panel.replaceChildren(...detail(span, trace, stacks, buttonOf))
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
    for (const row of rows) drawRow(row, view, width, ticks)
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

module.exports = { createWaterfall }
