'use strict'

// The page without scripts: the same figures as tables that stand still. Everything foreign is escaped.

const { clock, count, day, NONE, percent, plural, rate, shown, time, waitText } = require('./client/format')

/** @typedef {import('./data').PageData} PageData @typedef {import('./data').PageRun} PageRun */

const ROWS = 100

/** @type {Record<string, string>} */
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** @param {unknown} text */
function escape (text) {
  return shown(text).replace(/[&<>"']/g, (one) => entities[one])
}

/** @param {PageData} data */
function plain (data) {
  const { runs, slowest, open, thinned } = data
  const parts = [
    `<header><h1>${escape(data.title)}</h1><p>Charts, sorting and single requests need JavaScript; the figures are here without it.</p></header>`,
    ...runs.map((run) => figures(run, runs.length > 1 ? `: ${run.label}` : '')),
    table('Slowest requests', ['Name', 'Took', 'Started (UTC)', 'Run', 'Waited', 'Delayed', 'Waited longest'],
      slowest.slice(0, ROWS).map(request)),
    table('Still open', ['Name', 'Open for', 'Started (UTC)'], open.slice(0, ROWS).map(({ name, figures }) =>
      [name, time(figures.ms), clock(figures.startUnixMs)])),
    list([...thinned, ...shortened(data)])
  ]
  return `<main>${parts.filter(Boolean).join('\n')}</main>`
}

/** @param {PageRun} run @param {string} which */
function figures (run, which) {
  const spans = run.files.reduce((sum, file) => sum + (file.spans ?? 0), 0)
  return [
    `<p>${escape([plural(spans, 'record'), `${day(run.from)} to ${day(run.to)} UTC`].join(' · '))}</p>`,
    list([...run.notes, ...run.files.flatMap((file) => file.problems)]),
    table(`Figures per route${which}`, ['Route', 'Kind', 'Count', 'Rate', 'Errors', 'Open', 'Min', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'p99', 'p99.9', 'Max'],
      run.routes.slice(0, ROWS).map(({ name, kind, figures: f }) => [name, kind, count(f.weighted), rate(f.rate), count(f.errors), count(f.open),
        ...[f.min, f.q1, f.median, f.mean, f.q3, f.p99, f.p999, f.max].map(time)])),
    table(`Where the time went${which}, mean`, ['Route', 'Mean', 'Run', 'Waited', 'Delayed'],
      run.routes.filter(({ split }) => split).slice(0, ROWS).map(share)),
    table(`Who held up others${which}`, ['What ran', 'Where', 'Runs', 'Total', 'Worst', 'Spans held up', 'They waited'], run.blockers.slice(0, ROWS).map(blocker))
  ].join('\n')
}

/** Makes the cells of a request. @param {import('./data').PageRow} row */
function request ({ name, figures, split, waits }) {
  const times = [figures.ms, split?.run, split?.waited, split?.delayed].map(time)
  return [name, times[0], clock(figures.startUnixMs), ...times.slice(1), waits.map(waitText).join('; ')]
}

/** @param {import('./data').PageRoute} route */
function share ({ name, split, figures: f }) {
  const parts = [split?.run, split?.waited, split?.delayed]
  return [name, time(f.mean), ...parts.map((ms) => `${time(ms)} (${percent(Number(ms) / f.mean)})`)]
}

/** @param {import('./data').PageRow} row */
function blocker ({ name, at, guessed, figures: f }) {
  const least = (/** @type {number} */ value, /** @type {string} */ shown) => (!guessed ? shown : value > 0 ? `at least ${shown}` : NONE)
  const ran = [least(f.count, count(f.count)), least(f.totalMs, time(f.totalMs)), least(f.worstMs, time(f.worstMs))]
  return [name, at ?? '', ...ran, count(f.delayedSpans), time(f.delayedMs)]
}

/** @param {PageData} data */
function shortened ({ runs, slowest, open }) {
  const most = Math.max(slowest.length, open.length, ...runs.map((run) => Math.max(run.routes.length, run.blockers.length)))
  return most > ROWS ? [`Without JavaScript, each table shows its first ${ROWS} rows.`] : []
}

/** @param {string} title @param {string[]} columns @param {string[][]} rows */
function table (title, columns, rows) {
  if (rows.length === 0) return ''
  const numeric = (/** @type {number} */ i) => /^(name|route|kind|what ran|where|waited longest)$/i.test(columns[i]) ? '' : ' class="number"'
  const head = columns.map((name, i) => `<th scope="col"${numeric(i)}>${escape(name)}</th>`).join('')
  const body = rows.map((cells) => `<tr>${cells.map((cell, i) => `<td${numeric(i)}>${escape(cell)}</td>`).join('')}</tr>`).join('\n')
  return `<section><h2>${escape(title)}</h2><div class="scroll"><table><thead><tr>${head}</tr></thead><tbody>\n${body}</tbody></table></div></section>`
}

/** @param {string[]} sentences */
function list (sentences) {
  return sentences.length === 0 ? '' : `<ul class="notes">${sentences.map((one) => `<li>${escape(one)}</li>`).join('')}</ul>`
}

module.exports = { escape, plain }
