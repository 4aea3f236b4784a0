'use strict'

// The plots of the time axis: one row for each figure, with all runs in it.

/* global d3 */

const { h, s } = require('./dom')
const { count, isNumber, rate, time } = require('./format')
const { labels } = require('./page-data')

/**
 * @typedef {import('../series').PageSeries} PageSeries
 *
 * @typedef {{ series: PageSeries, lines: Array<Array<number | null>> }} RunLines one line, or two and the
 *   band between them
 *
 * @typedef {object} Row
 * @property {string} title
 * @property {string} unit what a value is, and the highest
 * @property {string} style
 * @property {(value: unknown) => string} format
 * @property {Array<RunLines | undefined>} runs
 * @property {string[]} lines names
 * @property {number} max
 */

const ROW_PX = 46
const TOP_PX = 6

/**
 * @param {Array<PageSeries | undefined>} list one for each run
 * @returns {Row[]} without those that are 0 all the time, but for the first two
 */
function rowsOf (list) {
  const perSecond = (/** @type {PageSeries} */ { count: counts, stepMs }) =>
    counts.map((value) => value * 1000 / stepMs)
  const rows = [
    createRow(list, 'Requests', 'per second', 'rate', rate, ['requests'],
      (series) => [perSecond(series)]),
    createRow(list, 'Latency', 'p50 and p99', 'latency', time, ['p50', 'p99'],
      ({ p50, p99 }) => [p50, p99]),
    createRow(list, 'Delayed by others', 'mean', 'delay', time, ['delayed'],
      ({ delayedMs }) => [delayedMs]),
    createRow(list, 'Loop blocked', 'sum', 'blocked', time, ['blocked'],
      ({ blockedMs }) => [blockedMs]),
    createRow(list, 'Errors', 'requests', 'errors', count, ['errors'], ({ errors }) => [errors])
  ]
  return rows.filter(({ max }, i) => i < 2 || max > 0)
}

/**
 * @param {Array<PageSeries | undefined>} list
 * @param {string} title
 * @param {string} unit
 * @param {string} style
 * @param {(value: unknown) => string} format
 * @param {string[]} lines
 * @param {(series: PageSeries) => Array<Array<number | null>>} select
 * @returns {Row}
 */
function createRow (list, title, unit, style, format, lines, select) {
  const runs = list.map((series) => series && { series, lines: select(series) })
  const values = runs.flatMap((run) => run?.lines.flat() ?? []).filter(isNumber)
  const max = Math.max(0, ...values)
  return { title, unit: `${unit} · max ${format(max)}`, style, format, runs, lines, max }
}

/** Draws a row. @param {Row} row @param {any} scale of ms from the start */
function plotRow ({ runs, max, style }, scale) {
  const y = d3.scaleLinear([0, Math.max(max, 1e-9)], [ROW_PX - 1, TOP_PX])
  return runs.flatMap((run, i) => {
    if (run === undefined) return []
    const { series: { stepMs }, lines } = run
    const x = (/** @type {number} */ value, /** @type {number} */ bucket) => scale((bucket + 0.5) * stepMs)
    const upper = lines[lines.length - 1]
    const area = d3.area().x((/** @type {any} */ _, /** @type {number} */ bucket) => x(0, bucket))
      .defined((/** @type {any} */ _, /** @type {number} */ bucket) => upper[bucket] !== null)
      .y0((/** @type {any} */ _, /** @type {number} */ bucket) => y(lines.length > 1 ? lines[0][bucket] : 0))
      .y1((/** @type {any} */ _, /** @type {number} */ bucket) => y(upper[bucket]))
      .curve(d3.curveStep)
    const hill = s('path', { class: 'hill', d: area(upper) ?? undefined })
    const group = s('g', { class: `run-${i} ${style}` }, hill,
      lines.map((values, number) => s('path', {
        class: `ridge line-${number}`,
        d: d3.line(x, y).defined(isNumber).curve(d3.curveStep)(values) ?? undefined
      })))
    return [group]
  }).concat([s('line', { class: 'base', x1: 0, x2: scale.range()[1], y1: ROW_PX - 0.5, y2: ROW_PX - 0.5 })])
}

/** Describes a row in words. @param {Row} row */
function describe ({ title, runs, lines, format }) {
  const parts = runs.flatMap((run, i) => run === undefined
    ? []
    : run.lines.map((values, number) => {
      const present = values.filter(isNumber)
      const [min, max] = [Math.min(...present), Math.max(...present)]
      const label = labels.length > 1 ? `${labels[i]}, ` : ''
      const extent = present.length === 0 ? 'none' : `${format(min)} to ${format(max)}`
      return `${label}${lines[number]}: ${extent}`
    }))
  return `${title} over time. ${parts.join('. ')}`
}

/**
 * Makes the content of the tooltip at a moment.
 * @param {Row[]} rows
 * @param {number} ms from the start
 * @param {string} moment
 */
function tooltip (rows, ms, moment) {
  const heads = labels.map((label, i) => h('th', { class: `run-${i}` }, label))
  const head = labels.length > 1 ? [h('tr', {}, h('td'), heads)] : []
  const body = rows.flatMap(({ runs, lines, title, format }) => lines.map((name, number) => h('tr', {},
    h('td', {}, lines.length > 1 ? name : title),
    runs.map((run) => h('td', { class: 'number' },
      format(run?.lines[number][Math.floor(ms / run.series.stepMs)] ?? undefined))))))
  return [h('b', {}, moment), h('table', {}, head, body)]
}

module.exports = { describe, plotRow, ROW_PX, rowsOf, tooltip }
