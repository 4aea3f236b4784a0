'use strict'

// Distributions under one another on one logarithmic axis of time, by the code that `longstack report` draws with: R's
// summary as a table, then of each a density and a box plot.

const { boxOf, logDensityOf, summarize } = require('../../lib/report/aggregate/summary')
const { boxLine, columns, curve, figure, time } = require('../../lib/report/render/text-parts')

const TITLES = { min: 'Min.', q1: '1st Qu.', median: 'Median', mean: 'Mean', q3: '3rd Qu.', max: 'Max.', p99: 'p99' }
const POINTS = 512

/** @typedef {{ name: string, values: number[] }} Series durations in ms, not empty */

/** @param {number[]} values */
const sampleOf = (values) => ({ values: Float64Array.from(values).sort(), total: values.length })

/** @param {Series[]} all @returns {string} */
function summaries (all) {
  const rows = all.map(({ name, values }) => {
    const summary = summarize(sampleOf(values))
    return [name, ...Object.keys(TITLES).map((key) => figure(summary[/** @type {keyof typeof TITLES} */ (key)]))]
  })
  return columns([['', ...Object.values(TITLES)], ...rows]).map((line, i) => i === 0 ? `${line}  ms` : line).join('\n')
}

/**
 * @param {Series[]} all of two values or more
 * @param {number} [width] in characters
 * @returns {string}
 */
function pictures (all, width = 90) {
  const margin = Math.max(...all.map(({ name }) => name.length)) + 2
  const values = all.flatMap((one) => one.values)
  const axis = { from: Math.log10(Math.min(...values) / 1.1), to: Math.log10(Math.max(...values) * 1.1), width: width - margin }
  const lines = all.flatMap((one) => {
    const sample = sampleOf(one.values)
    const density = logDensityOf(sample, POINTS)
    return [
      one.name.padEnd(margin) + (density === undefined ? '' : curve({ ...density, x: density.x.map(Math.log10), bandwidth: 0, beyond: 0 }, axis)),
      ' '.repeat(margin) + boxLine(inDecades(boxOf(sample)), axis)
    ]
  })
  return [...lines, (' '.repeat(margin) + ticks(axis)).trimEnd()].join('\n')
}

/** @param {ReturnType<typeof boxOf>} box */
function inDecades ({ low, q1, median, q3, high, outliers, outlierCount }) {
  const log = Math.log10
  return { low: log(low), q1: log(q1), median: log(median), q3: log(q3), high: log(high), outliers: outliers.map(log), outlierCount }
}

/** 1, 2, 5, 10 …, where there is room. @param {import('../../lib/report/render/text-parts').Axis} axis in decades */
function ticks ({ from, to, width }) {
  let line = ''
  for (let decade = Math.floor(from); decade <= to; decade++) {
    for (const step of [1, 2, 5]) {
      const value = step * 10 ** decade
      const at = Math.round((Math.log10(value) - from) / (to - from) * (width - 1))
      const label = `┴ ${time(value).replace(/\.0+(?= )/, '')}`
      if (at < 0 || at < line.length + 1 || at + label.length > width) continue
      line = line.padEnd(at) + label
    }
  }
  return line
}

module.exports = { summaries, pictures }
