'use strict'

// Assembles the page from the data in it: first what is certainly at fault, then the run along time, which
// filters all below: routes, critical paths and waits, failures, blockers and single requests.

/* global document */

const { pathsSection } = require('./critical-paths')
const { data, isComparison, runs, total } = require('./data')
const { foreign, h, link, radioButtons, section, themes } = require('./dom')
const { NONE, count, day, percent, plural, rate, time } = require('./format')
const { routesSection } = require('./routes')
const { EVERYTHING, follow, isActive, select, selectedRoutes } = require('./selection')
const {
  blockersSection, changesSection, failuresSection, openSection, slowestSection, waitsSection
} = require('./tables')
const { Timeline, momentOf } = require('./timeline')
const { verdict } = require('./verdict')
const { requestSection } = require('./waterfall')

const NO_SPAN = { fromUnixMs: NaN, toUnixMs: NaN }

function header () {
  return h('header', {}, h('div', { class: 'head' }, h('h1', {}, data.title), themes()), runs.map(source))
}

/** Describes the files of a run. @param {import('../data').PageRun} run @param {number} i */
function source ({ files, span: { fromUnixMs, toUnixMs } = NO_SPAN }, i) {
  const facts = [
    files.length === 1 ? files[0].name : plural(files.length, 'file'),
    plural(total(files, ({ spans }) => spans), 'record'),
    `${day(fromUnixMs)} to ${day(toUnixMs).slice(11)} UTC (${time(toUnixMs - fromUnixMs)})`
  ]
  const swatch = isComparison && h('span', { class: `swatch run-${i}` })
  return h('p', { class: 'source' }, swatch, foreign(facts.join(' · ')))
}

/** Lists what is missing or wrong, below the verdict and the totals. */
function notes () {
  const problemsOf = (/** @type {import('../data').PageRun['files'][number]} */ { name, problems }) =>
    problems.map((problem) => `${name}: ${problem}`)
  const ofRuns = runs.flatMap((run) => [...run.notes, ...run.files.flatMap(problemsOf)])
  const sentences = [...new Set([...ofRuns, ...data.thinned])]
  if (sentences.length === 0) return undefined
  const list = h('ul', { class: 'notes' }, sentences.map((sentence) => h('li', {}, sentence)))
  if (sentences.length <= 3) return list
  const summary = h('summary', {}, plural(sentences.length, 'note'), ' on these files and this page')
  return h('details', { class: 'folded-notes' }, summary, list)
}

/** Shows totals of what is selected. */
function tiles () {
  const list = h('dl', { class: 'tiles' })
  follow(({ range }) => {
    const routes = selectedRoutes(runs[0])
    const isRange = range !== undefined
    const spans = total(routes, ({ weighted }) => weighted)
    const errors = total(routes, (route) => route.errors)
    const [worst] = routes.toSorted((a, b) => (b.summary?.max ?? 0) - (a.summary?.max ?? 0))
    const delayed = total(routes, ({ split, weighted }) => split && split.delayed * weighted)
    const tile = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ remark) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value, h('small', {}, foreign(remark))))
    list.replaceChildren(
      tile(isRange ? 'Requests' : 'Spans', count(spans), `ended, on ${plural(routes.length, 'route')}`),
      tile('Rate', rate(total(routes, (route) => route.rate)), 'over all routes'),
      tile('Errors', count(errors), spans > 0 ? percent(errors / spans) : ''),
      isRange
        ? tile('Still open', NONE, 'not known of a range')
        : tile('Still open', count(total(routes, ({ open }) => open)), 'no end recorded'),
      tile('Slowest', time(worst?.summary?.max), worst?.name ?? ''),
      tile('Delayed', time(delayed), 'sum over all spans'))
  })
  return list
}

/** Makes the run along time, and the fields that filter the page. */
function timeSection () {
  const timeline = runs[0].series && new Timeline()
  const set = () => select({ text: input.value.trim().toLowerCase() })
  const input = h('input', { type: 'search', placeholder: 'name or id', on: { input: set } })
  const choices = [['all', 'all'], ['failed', 'failed'], ['ok', 'no error']]
  const statuses = radioButtons('Status', 'status', choices,
    (status) => select({ status: /** @type {import('./selection').Selection['status']} */ (status) }))
  follow(({ text, status }) => { // also where another part of the page changes it
    if (text !== input.value.trim().toLowerCase()) input.value = text
    for (const radio of statuses.querySelectorAll('input')) radio.checked = radio.value === status
  })
  const fields = h('search', { class: 'toolbar filters' },
    h('label', { class: 'choice' }, 'Route or trace ', input), statuses, timeline?.controls)
  return section('time', 'Over time', fields, timeline?.element)
}

/** Creates the line that stays visible while something is filtered. */
function filterLine () {
  const text = h('span', { role: 'status' })
  const line = h('p', { class: 'filter-line' }, text, link('Show all', () => select(EVERYTHING)))
  follow(({ range, text: part, status }) => {
    const filters = [
      range && `${momentOf(range[0])} to ${momentOf(range[1])}`,
      part !== '' && `“${part}”`,
      status !== 'all' && (status === 'failed' ? 'failed requests' : 'requests without an error')
    ]
    line.hidden = !isActive()
    text.textContent = line.hidden ? '' : `Only ${filters.filter(Boolean).join(', ')}.`
  })
  return line
}

function footer () {
  const files = runs.flatMap((run) => run.files)
  const items = files.map(({ name, spans }) => h('li', {}, foreign(name), ` · ${plural(spans, 'record')}`))
  return h('footer', {},
    files.length > 1 && h('details', {}, h('summary', {}, plural(files.length, 'file')), h('ul', {}, items)),
    h('p', {}, 'Made by longstack, drawn with D3 (© Mike Bostock, ISC licence). ' +
      'This file is self-contained and makes no requests.'))
}

const sections = [
  timeSection(), routesSection(), pathsSection(), waitsSection(), failuresSection(), changesSection(),
  blockersSection(), slowestSection(), requestSection(), openSection()
].filter(Boolean)
const links = sections.map(({ id, firstChild }) =>
  h('li', {}, h('a', { href: `#${id}` }, firstChild.textContent)))
document.getElementById('page')?.append(
  h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
  header(),
  h('nav', { 'aria-label': 'Sections' }, h('ul', {}, links), filterLine()),
  h('main', { id: 'main', tabindex: -1 }, verdict(), tiles(), notes(), sections),
  footer())
