'use strict'

// Lines of longstack top: tables that fit a width, curves, the head. Data in, lines out; nothing foreign
// reaches a terminal that could command it.

const {
  blockLine, columns, digits, grouped, noColours, time, word
} = require('../../report/render/text-parts')
const { columnsOf } = require('../../report/render/wrap')
const { quantiles } = require('./buckets')
const { cpuShare, duration, megabytes, panes, rowsOf, share, threadName } = require('./panes')

/**
 * @typedef {import('./model').Frame} Frame
 * @typedef {import('./panes').Pane} Pane
 * @typedef {import('../../report/render/text-parts').Colours} Colours
 */

const GAP = 2 // columns between two of a table
const MIN_FIRST = 12 // columns of the first one; where there are less, the last ones are left out
const PLAIN_ROWS = 20

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
 * @param {string} name of what is observed
 * @param {string} state
 */
function titleLine (frame, width, name, state) {
  const processes = new Set(frame.threads.map(({ pid }) => pid)).size
  const threads = frame.threads.length
  const parts = [
    `longstack top ${word(name)}`,
    threads > 1 ? `${processes === 1 ? '1 process' : `${processes} processes`}, ${threads} threads` : '',
    new Date(frame.unixMs).toTimeString().slice(0, 8),
    state
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
function loadLine ({ threads }) {
  if (threads.length === 0) return ''
  const worst = threads.toSorted((a, b) => (b.maxDelayMs || 0) - (a.maxDelayMs || 0))[0]
  const main = threads.filter(({ processShare }) => processShare !== undefined)
  const cpu = main.reduce((sum, thread) => sum + Number(thread.processShare), 0)
  const rss = main.reduce((sum, thread) => sum + (thread.rss ?? 0), 0)
  const heap = threads.reduce((sum, thread) => sum + (thread.heap || 0), 0)
  const busiest = Math.max(...threads.map(({ loopShare }) => loopShare || 0))
  const where = threads.length === 1 ? '' : ` (${threadName(worst)})`
  return [
    `CPU ${share(main.length === 0 ? cpuShare(worst) : cpu)}`,
    `loop busy ${share(busiest)}`,
    `delay p99 ${duration(worst.delayMs)} max ${duration(worst.maxDelayMs)}${where}`,
    `RSS ${megabytes(rss)}`,
    `heap ${megabytes(heap)}`
  ].join('  ')
}

/**
 * Draws the rate and the p99 along time.
 * @param {import('./history').Interval[]} steps oldest first
 * @param {number} width
 * @param {string} [route] undefined: all
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
 * Makes a frame as plain text, for where there is no terminal.
 * @param {Frame} frame
 * @param {{ width: number, name: string, choice: { sort: number, filter: string } }} options
 * @returns {string}
 */
function plainText (frame, { width, name, choice }) {
  const lines = [titleLine(frame, Infinity, name, ''), requestLine(frame), loadLine(frame)]
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

module.exports = { curveLine, cut, loadLine, plainText, requestLine, tableLines, titleLine }
