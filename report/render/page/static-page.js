'use strict'

// Renders the page without scripts: the same figures as static tables. Everything from files is escaped.

const {
  clock, count, day, escapeInvisible, NONE, percent, plural, rate, time, waitText
} = require('./client/format')
const { shortFrame } = require('../../../lib/text')

/**
 * @typedef {import('./data').PageData} PageData
 * @typedef {import('./data').PageRun} PageRun
 * @typedef {import('./rows').PageRow} PageRow
 * @typedef {import('./rows').PageRoute} PageRoute
 */

const MAX_ROWS = 100
const ROUTE_COLUMNS = [
  ...['Route', 'Kind', 'Count', 'Rate', 'Errors', 'Open'],
  ...['Min', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'p99', 'p99.9', 'Max'], 'Run', 'Waited', 'Delayed'
]
const BLOCKER_COLUMNS = ['What ran', 'Where', 'Callbacks', 'Total', 'Longest', 'Spans delayed', 'Delayed by']
const REQUEST_COLUMNS = ['Name', 'Took', 'Started (UTC)', 'Run', 'Waited', 'Delayed', 'Longest waits']
const OPEN_COLUMNS = ['Name', 'Open for', 'Started (UTC)']
const WAIT_COLUMNS = ['Waited at', 'Until', 'Route', 'Total', 'Median', 'Max', 'Waits']
const FAILURE_COLUMNS = ['Error', 'Where', 'Count', 'First (UTC)', 'Last (UTC)']
const TEXT_COLUMNS = /^(name|route|kind|what ran|where|longest waits|waited at|until|error)$/i

/** @type {Record<string, string>} */
const entities = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

/** @param {unknown} text */
function escape (text) {
  return escapeInvisible(text).replace(/[&<>"']/g, (char) => entities[char])
}

/** @param {PageData} data */
function createStaticPage (data) {
  const { runs, slowest, open, thinned, names } = data
  const parts = [
    `<header><h1>${escape(data.title)}</h1><p>Charts, sorting and traces need JavaScript.</p></header>`,
    ...runs.map((run) => figures(run, names, runs.length > 1 ? `: ${run.label}` : '')),
    table('Slowest requests', REQUEST_COLUMNS, slowest.slice(0, MAX_ROWS).map(requestCells)),
    table('Still open', OPEN_COLUMNS, open.slice(0, MAX_ROWS).map(openCells)),
    list([...thinned, ...shortened(data)])
  ]
  return `<main>${parts.filter(Boolean).join('\n')}</main>`
}

/** @param {PageRun} run @param {string[]} names @param {string} which */
function figures (run, names, which) {
  const spans = run.files.reduce((sum, file) => sum + (file.spans ?? 0), 0)
  return [
    `<p>${escape(`${plural(spans, 'record')} · ${day(run.from)} to ${day(run.to)} UTC`)}</p>`,
    list(run.verdict.map(({ sentence, advice }) => `${sentence} ${advice}`.trim())),
    list([...run.notes, ...run.files.flatMap((file) => file.problems)]),
    table(`Routes${which}`, ROUTE_COLUMNS, run.routes.slice(0, MAX_ROWS).map(routeCells)),
    table(`Waits by await site${which}`, WAIT_COLUMNS, waitRows(run, names)),
    table(`What failed${which}`, FAILURE_COLUMNS, run.failures.slice(0, MAX_ROWS).map(failureCells)),
    table(`Blockers${which}`, BLOCKER_COLUMNS, run.blockers.slice(0, MAX_ROWS).map(blockerCells))
  ].join('\n')
}

/** @param {PageRoute} route */
function routeCells ({ name, kind, split, figures: f }) {
  const times = [f.min, f.q1, f.median, f.mean, f.q3, f.p99, f.p999, f.max].map(time)
  const shares = [split?.run, split?.waited, split?.delayed].map((ms) =>
    ms === undefined ? NONE : `${time(ms)} (${percent(ms / f.mean)})`)
  const counts = [count(f.weighted), rate(f.rate), count(f.errors), count(f.open)]
  return [name, kind, ...counts, ...times, ...shares]
}

/** Lists the worst waits of all routes. @param {PageRun} run @param {string[]} names */
function waitRows ({ routes }, names) {
  const sites = routes.flatMap((route) =>
    route.sites.filter(({ figures: { ms } }) => ms > 0).map((site) => ({ route, site })))
  sites.sort((a, b) => b.site.figures.ms - a.site.figures.ms)
  return sites.slice(0, MAX_ROWS).map(({ route, site: { at: frame, callers, until, figures: f } }) => {
    const frames = frame === undefined ? callers : [frame, ...callers]
    const place = frames.map((index) => shortFrame(names[index])).join(' ← ')
    const times = [f.ms, f.median, f.max].map(time)
    return [place, until === undefined ? '' : names[until], route.name, ...times, count(f.count)]
  })
}

/** @param {import('./findings').PageFailure} failure */
function failureCells ({ type, message, at: frame, figures: f }) {
  const error = message === '' ? type : `${type}: ${message}`
  return [error, frame ?? '', count(f.count), clock(f.firstUnixMs), clock(f.lastUnixMs)]
}

/** @param {PageRow} row */
function openCells ({ name, figures }) {
  return [name, time(figures.ms), clock(figures.startUnixMs)]
}

/** @param {PageRow} row */
function requestCells ({ name, figures, split, waits }) {
  const times = [figures.ms, split?.run, split?.waited, split?.delayed].map(time)
  return [name, times[0], clock(figures.startUnixMs), ...times.slice(1), waits.map(waitText).join('; ')]
}

/** @param {PageRow} row */
function blockerCells ({ name, at: frame, guessed, figures: f }) {
  const bound = (/** @type {number} */ value, /** @type {(value: number) => string} */ format) =>
    !guessed ? format(value) : value > 0 ? `≥ ${format(value)}` : NONE
  const callbacks = [bound(f.count, count), bound(f.totalMs, time), bound(f.worstMs, time)]
  return [name, frame ?? '', ...callbacks, count(f.delayedSpans), time(f.delayedMs)]
}

/** @param {PageData} data */
function shortened ({ runs, slowest, open }) {
  const lengths = runs.flatMap((run) => [run.routes.length, run.blockers.length])
  const isShortened = Math.max(slowest.length, open.length, ...lengths) > MAX_ROWS
  return isShortened ? [`Without JavaScript, each table shows its first ${MAX_ROWS} rows.`] : []
}

/** @param {string} title @param {string[]} columns @param {string[][]} rows */
function table (title, columns, rows) {
  if (rows.length === 0) return ''
  const classes = columns.map((name) => TEXT_COLUMNS.test(name) ? '' : ' class="number"')
  const head = columns.map((name, i) => `<th scope="col"${classes[i]}>${escape(name)}</th>`)
  const cell = (/** @type {string} */ text, /** @type {number} */ i) =>
    `<td${classes[i]}>${escape(text)}</td>`
  const body = rows.map((row) => `<tr>${row.map(cell).join('')}</tr>`)
  return `<section><h2>${escape(title)}</h2>
<div class="scroll"><table><thead><tr>${head.join('')}</tr></thead><tbody>
${body.join('\n')}</tbody></table></div></section>`
}

/** @param {string[]} sentences */
function list (sentences) {
  const items = sentences.map((sentence) => `<li>${escape(sentence)}</li>`)
  return items.length === 0 ? '' : `<ul class="notes">${items.join('')}</ul>`
}

module.exports = { createStaticPage, escape }
