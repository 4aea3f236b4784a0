'use strict'

// The contents of longstack top: the tables with their rows and columns, where to find the chain of each row,
// the curves and the head, as lines that fit a width. Data in, lines out. No foreign text that could control
// the terminal gets through.

const {
  blockLine, columns, digits, grouped, noColours, percent, time, word
} = require('../../report/render/text-parts')
const { columnsOf } = require('../../report/render/wrap')
const { convoySentence, cycleSentence } = require('../format/wait-graph')
const { shortFrame } = require('../text')
const { quantiles } = require('./buckets')

/**
 * @typedef {import('./model').Frame} Frame
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 *
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => number | string | undefined} value that rows are sorted by
 * @property {(row: any) => string} text
 *
 * @typedef {{ place: import('./model').Place } | { stack: string }} Reason where to query a chain, or its
 *   known stack
 *
 * @typedef {object} Pane
 * @property {string} name
 * @property {string} letter that selects it
 * @property {Column[]} columns the first one is wide
 * @property {number} sort index of the column that rows are sorted by at first
 * @property {'routes' | 'waits' | 'handles' | 'blockers' | 'threads'} rows of a frame
 * @property {(frame: Frame) => string} empty a sentence if there is no row
 */

const GAP = 2 // characters between two columns
const MIN_FIRST = 12 // characters of the first column; if there are fewer, the last columns are left out
const PLAIN_ROWS = 20
const MEGABYTE = 1e6

/** @param {(value: number) => string} format @returns {(value?: number) => string} a dash if unknown */
const orDash = (format) => (value) => value === undefined || Number.isNaN(value) ? '-' : format(value)
const duration = orDash(time)
const share = orDash(percent)
const megabytes = orDash((bytes) => `${digits(bytes / MEGABYTE)} MB`)
/** @param {number} count */
const counter = (count) => count === 0 ? '-' : grouped(count)
/** @param {string} site a frame, or the function that was called */
const place = (site) => word(shortFrame(site))

/** @param {number | undefined} perMinute */
function growth (perMinute) {
  if (perMinute === undefined) return '…'
  if (Math.abs(perMinute) < 0.05) return '-'
  return `${perMinute > 0 ? '+' : '-'}${digits(Math.abs(perMinute))}`
}

/**
 * @param {string} key of a row
 * @param {string} title
 * @param {(value: any, row: any) => string} text
 * @returns {Column}
 */
function column (key, title, text) {
  return { title, value: (row) => row[key], text: (row) => text(row[key], row) }
}

/** @type {Pane[]} */
const panes = [
  {
    name: 'Routes',
    letter: 'r',
    columns: [
      column('name', 'route', (name) => word(name)),
      column('perSecond', 'req/s', digits),
      column('p50Ms', 'p50', duration),
      column('p99Ms', 'p99', duration),
      column('maxMs', 'max', duration),
      column('errors', '5xx', counter),
      column('lost', 'lost', counter)
    ],
    sort: 1,
    rows: 'routes',
    empty: () => 'No request was answered yet.'
  },
  {
    name: 'Waits',
    letter: 'a',
    columns: [
      column('site', 'waits at', place),
      column('label', 'for', (label) => word(label, 30)),
      column('isOfRequest', 'of', (isOfRequest) => isOfRequest ? 'requests' : 'others'),
      column('count', 'waiting', digits)
    ],
    sort: 3,
    rows: 'waits',
    empty: ({ boxes, waits }) => {
      if (waits === undefined) return 'What waits is not known where the filter leaves out promises.'
      return boxes === undefined ? 'Nothing waits.' : 'No request is known to wait.'
    }
  },
  {
    name: 'Handles',
    letter: 'h',
    columns: [
      column('site', 'opened at', place),
      column('noun', 'what', (noun) => word(noun, 24)),
      column('count', 'open', grouped),
      column('perMinute', 'per min', growth)
    ],
    sort: 3,
    rows: 'handles',
    empty: ({ handleCount }) =>
      Number.isNaN(handleCount) ? 'Open handles are not counted yet.' : 'Nothing is open.'
  },
  {
    name: 'Blockers',
    letter: 'b',
    columns: [
      column('site', 'blocked in', place),
      column('count', 'times', grouped),
      column('worstMs', 'worst', duration),
      column('ms', 'in all', duration)
    ],
    sort: 3,
    rows: 'blockers',
    empty: ({ blockedMs, boxes }) => {
      if (boxes !== undefined) return 'Not in a black box: --blocked 50 asks for those of 50 ms and above.'
      return blockedMs === undefined
        ? 'Blocking callbacks are not watched: --blocked 50 reports those of 50 ms and above.'
        : `No callback took ${blockedMs} ms or more.`
    }
  },
  {
    name: 'Processes',
    letter: 'c',
    columns: [
      column('pid', 'process', (pid, row) => word(`${threadName(row)} ${row.name.replace(/^.*[/\\]/s, '')}`)),
      column('perSecond', 'req/s', digits),
      { title: 'CPU', value: cpuShare, text: (row) => share(cpuShare(row)) },
      column('loopShare', 'busy', share),
      column('delayMs', 'delay p99', duration),
      column('heap', 'heap', megabytes),
      column('rss', 'RSS', (rss, { silentMs, stuck }) =>
        silentMs > 0 ? `${stuck === undefined ? 'silent' : 'stuck'} ${duration(silentMs)}` : megabytes(rss))
    ],
    sort: 2,
    rows: 'threads',
    empty: () => 'No process answers.'
  }
]

/**
 * Returns the CPU share of a thread; for a main thread that of its process if Node reports no other.
 * @param {import('./model').ThreadRow} row
 */
function cpuShare ({ cpuShare, processShare }) {
  return cpuShare ?? processShare
}

/** @param {{ pid: number, threadId: number }} thread */
function threadName ({ pid, threadId }) {
  return threadId === 0 ? String(pid) : `${pid} thread ${threadId}`
}

/** Returns the identity of a row, independent of its figures. @param {any} row @returns {string} */
function idOf ({ key, isOfRequest, label, noun, name, site }) {
  return key ?? [isOfRequest, label, noun, name, site].join(' ').trim()
}

/** Returns the source of a row's chain. @param {any} row @returns {Reason | undefined} */
function reasonOf ({ place, stack }) {
  if (place !== undefined) return { place }
  return stack === undefined ? undefined : { stack }
}

/**
 * Returns the rows that pass a filter, sorted: figures largest first, texts alphabetically.
 * @param {Pane} pane
 * @param {Frame} frame
 * @param {{ sort: number, filter: string }} choice
 * @returns {any[]}
 */
function rowsOf ({ rows, columns }, frame, { sort, filter }) {
  const { value } = columns[sort]
  const textOf = (/** @type {any} */ row) => [idOf(row), ...columns.map(({ text }) => text(row))].join(' ')
  return (frame[rows] ?? []).filter((row) => textOf(row).toLowerCase().includes(filter.toLowerCase()))
    .sort((/** @type {any} */ a, /** @type {any} */ b) =>
      compare(value(b), value(a)) || compare(b.count, a.count) || compare(idOf(b), idOf(a)))
}

/** @param {any} a @param {any} b @returns {number} unknown values first, texts in reverse order */
function compare (a, b) {
  if (typeof a === 'string') return a < b ? 1 : a > b ? -1 : 0
  const [first, second] = [a, b].map((value) => Number.isNaN(Number(value)) ? -Infinity : Number(value))
  return first === second ? 0 : first - second
}

/** Cuts a text to a number of columns. @param {string} text without colours @param {number} max */
function cut (text, max) {
  if (columnsOf(text) <= max) return text
  let kept = ''
  let columns = 1 // of the ellipsis
  for (const char of text) {
    columns += columnsOf(char)
    if (columns > max) break
    kept += char
  }
  return max < 1 ? '' : `${kept}…`
}

/**
 * Makes the lines of a table: the head, then the rows.
 * @param {Pane} pane
 * @param {any[]} rows
 * @param {{ width: number, sort: number, marked?: any, colours?: Colours }} options marked: the selected row
 * @returns {string[]}
 */
function tableLines (pane, rows, { width, sort, marked, colours = noColours }) {
  const titles = pane.columns.map(({ title }, i) => i === sort ? `${title}▾` : title)
  const cells = [titles, ...rows.map((row) => pane.columns.map(({ text }) => text(row)))]
  const widths = titles.map((_, i) => Math.max(...cells.map((row) => columnsOf(row[i]))))
  let columnCount = widths.length
  const restOf = (/** @type {number} */ count) =>
    widths.slice(1, count).reduce((sum, size) => sum + size + GAP, 0)
  while (columnCount > 2 && width - restOf(columnCount) < MIN_FIRST) columnCount--
  const first = Math.max(1, width - restOf(columnCount))
  const shown = cells.map(([text, ...others]) => [cut(text, first), ...others.slice(0, columnCount - 1)])
  shown[0][0] = shown[0][0].padEnd(first)
  const [head, ...body] = columns(shown)
  const lines = body.map((line, i) => rows[i] === marked ? colours.bold(colours.cyan(line)) : line)
  return [colours.dim(head), ...lines]
}

/**
 * @param {Frame} frame
 * @param {number} width
 * @param {string} name of the target
 * @param {string} state
 */
function titleLine (frame, width, name, state) {
  const processes = new Set(frame.threads.map(({ pid }) => pid)).size
  const threads = frame.threads.length
  const parts = [
    `longstack top ${word(name)}`,
    threads > 1 ? `${processes === 1 ? '1 process' : `${processes} processes`}, ${threads} threads` : '',
    new Date(frame.unixMs).toTimeString().slice(0, 8),
    state,
    frame.boxes === undefined ? '' : 'black box (or --ask)'
  ]
  return cut(parts.filter((part) => part !== '').join(' · '), width)
}

/** @param {Frame} frame */
function requestLine ({ total, inFlight, oldest, windowMs }) {
  const since = oldest === undefined ? '' : `, oldest ${duration(oldest.ms)} ${word(oldest.name, 40)}`
  const parts = [
    `${digits(total.perSecond)} req/s over ${time(windowMs)}`,
    `p50 ${duration(total.p50Ms)}`,
    `p99 ${duration(total.p99Ms)}`,
    `5xx ${grouped(total.errors)}`,
    total.lost > 0 ? `lost ${grouped(total.lost)}` : '',
    `in flight ${grouped(inFlight)}${since}`
  ]
  return parts.filter((part) => part !== '').join('  ')
}

/** @param {Frame} frame */
function loadLine ({ boxes, threads }) {
  if (threads.length === 0) return ''
  const worst = threads.toSorted((a, b) => (b.maxDelayMs || 0) - (a.maxDelayMs || 0))[0]
  const main = threads.filter(({ processShare }) => processShare !== undefined)
  const cpu = main.reduce((sum, thread) => sum + Number(thread.processShare), 0)
  const rss = main.reduce((sum, thread) => sum + (thread.rss ?? 0), 0)
  const heaps = threads.map(({ heap }) => heap).filter((heap) => !Number.isNaN(heap))
  const shares = threads.map(({ loopShare }) => loopShare).filter((share) => !Number.isNaN(share))
  const heap = heaps.length === 0 ? NaN : heaps.reduce((sum, bytes) => sum + bytes)
  const where = threads.length === 1 ? '' : ` (${threadName(worst)})`
  return [
    `CPU ${share(main.length === 0 ? cpuShare(worst) : cpu)}`,
    `loop busy ${share(shares.length === 0 ? NaN : Math.max(...shares))}`,
    boxes === undefined
      ? `delay p99 ${duration(worst.delayMs)} max ${duration(worst.maxDelayMs)}${where}`
      : '',
    `RSS ${megabytes(rss)}`,
    `heap ${megabytes(heap)}`
  ].filter((part) => part !== '').join('  ')
}

/**
 * Returns a sentence for each thread that is stuck, and each cycle and convoy of waits.
 * @param {Frame} frame
 * @returns {string[]}
 */
function alertLines ({ threads, waitsFor: { cycles, convoys } = { cycles: [], convoys: [] } }) {
  const stuck = threads.flatMap((thread) => thread.stuck === undefined ? [] : stuckLine(thread, thread.stuck))
  return [...stuck, ...cycles.map(cycleSentence), ...convoys.map(convoySentence)]
}

/** @param {import('./model').ThreadRow} thread @param {import('./sampler').Stuck} stuck */
function stuckLine (thread, { inside, ms, request }) {
  const where = inside === undefined ? 'a callback' : place(inside)
  const owner = request === undefined ? '' : ` for ${word(request, 40)}`
  return `${threadName(thread)} has been stuck for ${duration(ms)} in ${where}${owner}`
}

/**
 * Draws the rate and the p99 over time.
 * @param {import('./model').Interval[]} steps oldest first
 * @param {number} width
 * @param {string} [route] undefined for all
 */
function curveLine (steps, width, route) {
  const counts = steps.map(({ total, routes }) => route === undefined ? total : routes.get(route))
  const rates = counts.map((step, i) => (step?.count ?? 0) / steps[i].ms * 1000)
  const p99 = counts.map((step) => step === undefined ? 0 : quantiles(step.buckets, [0.99])[0] / 1000 || 0)
  const parts = [`rate ${digits(Math.max(0, ...rates))} `, `  p99 ${duration(Math.max(0, ...p99))} `]
  const space = Math.max(0, Math.floor((width - columnsOf(parts.join(''))) / 2))
  const [rateCurve, p99Curve] = [rates, p99].map((values) => blockLine(values.slice(-space)))
  return cut(`${parts[0]}${rateCurve.padEnd(space)}${parts[1]}${p99Curve}`, width)
}

/**
 * Formats a frame as plain text, for output without a terminal.
 * @param {Frame} frame
 * @param {{ width: number, name: string, choice: { sort: number, filter: string } }} options
 * @returns {string}
 */
function plainText (frame, { width, name, choice }) {
  const head = [titleLine(frame, Infinity, name, ''), requestLine(frame), loadLine(frame)]
  const lines = [...head, ...alertLines(frame)]
  for (const pane of panes) {
    const { sort, filter } = pane.rows === 'routes' ? choice : { sort: pane.sort, filter: '' }
    const rows = rowsOf(pane, frame, { sort, filter })
    if (pane.rows === 'threads' && rows.length < 2) continue
    if (pane.rows === 'blockers' && rows.length === 0 && frame.blockedMs === undefined) continue
    const table = rows.length === 0 ? [] : tableLines(pane, rows.slice(0, PLAIN_ROWS), { width, sort })
    lines.push('', `${pane.name}:${rows.length === 0 ? ` ${pane.empty(frame)}` : ''}`, ...table)
    if (rows.length > PLAIN_ROWS) lines.push(`… ${grouped(rows.length - PLAIN_ROWS)} more`)
  }
  return `${lines.join('\n')}\n`
}

module.exports = {
  alertLines,
  curveLine,
  cut,
  idOf,
  loadLine,
  panes,
  plainText,
  reasonOf,
  requestLine,
  rowsOf,
  tableLines,
  titleLine
}
