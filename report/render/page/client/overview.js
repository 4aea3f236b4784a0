'use strict'

// The top of the page: files, notes, totals and the worst blocker.

const { foreign, h } = require('./dom')
const { NONE, count, day, isNumber, percent, plural, rate, time } = require('./format')
const { data, isComparison, labels, runs, total } = require('./page-data')
const { selectedRoutes } = require('./selected')
const { themes } = require('./theme')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('./filter').Filter} Filter
 */

function header () {
  const head = h('div', { class: 'head' }, h('h1', {}, data.title), themes())
  return h('header', {}, head, runs.map(source))
}

/** Describes the files of a run. @param {PageRun} run @param {number} i */
function source ({ files, from: start, to: end }, i) {
  const length = isNumber(start) && isNumber(end) ? ` (${time(end - start)})` : ''
  const facts = [
    files.length === 1 ? files[0].name : plural(files.length, 'file'),
    plural(total(files.map((file) => file.spans)), 'record'),
    `${day(start)} to ${day(end).slice(11)} UTC${length}`
  ]
  const swatch = isComparison && h('span', { class: `swatch run-${i}` })
  return h('p', { class: 'source' }, swatch, foreign(facts.join(' · ')))
}

/** Lists what is missing or wrong, below the verdict and the totals. */
function notes () {
  const ofRuns = runs.flatMap((run) => [...run.notes, ...run.files.flatMap((file) => file.problems)])
  const sentences = [...new Set(ofRuns), ...data.thinned]
  if (sentences.length === 0) return undefined
  const list = h('ul', { class: 'notes' }, sentences.map((sentence) => h('li', {}, sentence)))
  if (sentences.length <= 3) return list
  const summary = h('summary', {}, plural(sentences.length, 'note'), ' on these files and this page')
  return h('details', { class: 'folded-notes' }, summary, list)
}

/** @param {Filter} filter */
function tiles (filter) {
  const list = h('dl', { class: 'tiles' })
  filter.follow((selection) => list.replaceChildren(...factsOf(selection).map(([name, value, remark]) =>
    h('div', {}, h('dt', {}, name), h('dd', {}, value, h('small', {}, foreign(remark)))))))
  return list
}

/** @param {import('./filter').Selection} selection @returns {Array<[string, string, string]>} */
function factsOf (selection) {
  const routes = selectedRoutes(runs[0], selection)
  const isRange = selection.range !== undefined
  const sum = (/** @type {string} */ name) => total(routes.map((route) => route.figures[name]))
  const [spans, errors] = [sum('weighted'), sum('errors')]
  const slowest = Math.max(-Infinity, ...routes.map((route) => route.figures.max ?? -Infinity))
  const delayed = routes.map(({ split, figures }) => (split?.delayed ?? 0) * (figures.weighted ?? 0))
  const worst = routes.find((route) => route.figures.max === slowest)
  return [
    [isRange ? 'Requests' : 'Spans', count(spans), `ended, on ${plural(routes.length, 'route')}`],
    ['Rate', rate(sum('rate')), 'over all routes'],
    ['Errors', count(errors), spans > 0 ? percent(errors / spans) : ''],
    ['Still open', isRange ? NONE : count(sum('open')), isRange ? 'not known of a range' : 'no end recorded'],
    ['Slowest', time(slowest), worst?.name ?? ''],
    ['Delayed', time(total(delayed)), 'sum over all spans']
  ]
}

/** Describes the worst blocker in a sentence. */
function finding () {
  const [worst] = runs[0].blockers
  if (worst === undefined) return undefined
  const { name, at: frame, guessed, figures } = worst
  const { count: callbacks, totalMs, worstMs, delayedSpans, delayedMs } = figures
  const blocked = guessed
    ? undefined
    : `it blocked the event loop for ${time(totalMs)} in ${plural(callbacks, 'callback')}, ` +
      `${time(worstMs)} at most`
  const delayed = delayedSpans > 0
    ? `it delayed ${plural(delayedSpans, 'span')} by ${time(delayedMs)} in total`
    : 'it is not known to have delayed any span'
  return h('p', { class: 'finding' },
    isComparison && ['In ', foreign(labels[0]), ', '], isComparison ? 'the' : 'The',
    ' worst blocker is ', h('b', {}, foreign(name)),
    frame !== undefined && [' in ', foreign(frame, { class: 'code' })],
    `: ${[blocked, delayed].filter(Boolean).join('; ')}.`)
}

function footer () {
  const files = runs.flatMap((run) => run.files)
  const items = files.map(({ name, spans = 0 }) =>
    h('li', {}, foreign(name), ` · ${plural(spans, 'record')}`))
  return h('footer', {},
    files.length > 1 && h('details', {}, h('summary', {}, plural(files.length, 'file')), h('ul', {}, items)),
    h('p', {}, 'Made by longstack, drawn with D3 (© Mike Bostock, ISC licence). ' +
      'This file is self-contained and makes no requests.'))
}

module.exports = { finding, footer, header, notes, tiles }
