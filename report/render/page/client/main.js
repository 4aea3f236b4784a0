'use strict'

// Assembles the page from its data: definite problems first, then the run along time, which filters
// everything below: routes, critical paths and waits, failures, blockers and single requests.

/* global document */

const { openFlame, pathsSection } = require('./critical-paths')
const {
  EVERYTHING, data, follow, isActive, isComparison, labels, runs, select, selectedRoutes
} = require('./data')
const { badge, foreign, h, link, moveTo, radioButtons, section, themes } = require('./dom')
const { counted, grouped, moment, NONE, percent, rate, time } = require('../../format')
const { routesSection } = require('./routes')
const {
  blockersSection, changesSection, failuresSection, handlesSection, openSection, slowestSection, tables,
  waitsSections
} = require('./tables')
const { Timeline, momentOf } = require('./timeline')
const { requestSection } = require('./waterfall')
const { framesOf } = require('./words')
const { sum } = require('../../../aggregate/lists')

/** @typedef {import('../data').PageRun['verdict'][number]} Finding */

/** @type {Record<Finding['rule'], string>} */
const rules = {
  blocker: 'blocked event loop',
  pool: 'pool is the limit',
  sequence: 'one after the other',
  dependency: 'slow dependency',
  interval: 'leaked interval',
  grows: 'leaked handles',
  after: 'work after the response',
  failing: 'one path fails',
  delayer: 'delays others',
  loop: 'busy event loop',
  retries: 'retries',
  fanOut: 'too many at once',
  threads: 'thread pool is the limit',
  workers: 'workers are the limit',
  lookups: 'slow lookups',
  opening: 'a connection per call',
  stampede: 'cache stampede',
  background: 'busy event loop',
  collects: 'garbage collection',
  starved: 'no CPU',
  unanswered: 'no response',
  hangs: 'pending for long',
  deadlock: 'deadlock',
  convoy: 'one holds up others',
  death: 'the process died',
  stuck: 'stuck event loop',
  filling: 'memory is filling up'
}
const NO_SPAN = { fromUnixMs: NaN, toUnixMs: NaN }

function header () {
  return h('header', {}, h('div', { class: 'head' }, h('h1', {}, data.title), themes()), runs.map(source))
}

/** Describes the files of a run. @param {import('../data').PageRun} run @param {number} i */
function source ({ files, span: { fromUnixMs: start, toUnixMs: end } = NO_SPAN }, i) {
  const facts = [
    files.length === 1 ? files[0].name : counted(files.length, 'file'),
    counted(sum(files, ({ spans }) => spans), 'record'),
    `${moment(start).slice(0, 19)} to ${moment(end).slice(11, 19)} UTC (${time(end - start)})`
  ]
  const swatch = isComparison && h('span', { class: `swatch run-${i}` })
  return h('p', { class: 'source' }, swatch, foreign(facts.join(' · ')))
}

/**
 * Lists definite problems at the top of the page: each finding with its advice, and links to the row of its
 * wait or blocker, its frame and its route.
 * @returns {any} undefined if nothing is known
 */
function verdict () {
  const [{ verdict: findings, tree }] = runs
  if (findings.length === 0) {
    return tree && h('p', { class: 'note verdict' }, 'No definite problem found.')
  }
  const title = findings.length === 1 ? 'What to change' : `What to change: ${findings.length} findings`
  const inRun = isComparison && h('small', {}, ' in ', foreign(labels[0]))
  return h('section', { class: 'verdict', id: 'verdict' }, h('h2', {}, title, inRun),
    h('ol', { class: 'findings' }, findings.map(item)))
}

/** Predictions that somebody asked for with --what-if. */
function experiments () {
  return data.experiments.map(({ head, predictions }) => h('section', { class: 'verdict' },
    h('h2', {}, 'What if: ', foreign(head)),
    h('ul', {}, predictions.map((text) => h('li', {}, foreign(text))))))
}

/** @param {Finding} finding */
function item (finding) {
  const { rule, sentence, advice, whatIf, lostMs, share } = finding
  const remarks = [lostMs > 0 && `explains ${time(lostMs)}`, share > 0 && `${percent(share)} of the time`]
  return h('li', {},
    h('p', { class: 'rule' }, badge(rules[rule]), h('small', {}, remarks.filter(Boolean).join(', '))),
    h('p', { class: 'sentence' }, foreign(sentence)),
    whatIf !== undefined && h('p', { class: 'what-if' }, foreign(whatIf.sentence)),
    h('p', { class: 'advice' }, foreign(sentenceOf(advice))),
    h('p', { class: 'see' }, linksOf(finding)))
}

/** Capitalizes a text and ends it with a full stop. @param {string} text */
function sentenceOf (text) {
  return `${text[0].toUpperCase()}${text.slice(1)}`.replace(/[^.!?]$/, '$&.')
}

/** @param {Finding} finding */
function linksOf ({ route, at: frame }) {
  if (frame === undefined) return route === undefined ? [] : [linkToRoute(route)]
  const sites = runs[0].routes.flatMap(({ name, sites: ofRoute }) => ofRoute.map((site) => ({ name, site })))
  const isThere = (/** @type {{ at?: string, callers: string[] }} */ site) =>
    site.at === frame || site.callers.includes(frame)
  const first = sites.find(({ name, site }) => isThere(site) && (route === undefined || name === route))
  const frames = first === undefined ? [] : framesOf(first.site)
  const open = first && openFlame(first.name, frames.slice(0, frames.indexOf(frame) + 1))
  /** @param {string} text @param {any} table @param {(row: any) => boolean} matches */
  const linkToRow = (text, table, matches) => link(text, () => { select(EVERYTHING); table?.reveal(matches) })
  return [
    first && linkToRow('show its waits', tables.waits,
      (row) => isThere(row) && row.route.name === first.name),
    open && link('show it in the flame graph', open),
    runs[0].blockers.some((row) => row.at === frame) &&
      linkToRow('show the blocker', tables.blockers, (row) => row.at === frame),
    route !== undefined && linkToRoute(route)
  ]
}

/** @param {string} route */
const linkToRoute = (route) => link(`show only ${route}`, () => {
  select({ ...EVERYTHING, text: route.toLowerCase() })
  moveTo('time')
})

/** Lists missing or wrong data, below the verdict and the totals. */
function notes () {
  const problemsOf = (/** @type {import('../data').PageRun['files'][number]} */ { name, problems }) =>
    problems.map((problem) => `${name}: ${problem}`)
  const ofRuns = runs.flatMap((run) => [...run.notes, ...run.files.flatMap(problemsOf)])
  const sentences = [...new Set([...ofRuns, ...data.thinned])]
  if (sentences.length === 0) return undefined
  const list = h('ul', { class: 'notes' }, sentences.map((sentence) => h('li', {}, sentence)))
  if (sentences.length <= 3) return list
  const summary = h('summary', {}, counted(sentences.length, 'note'), ' on these files and this page')
  return h('details', { class: 'folded-notes' }, summary, list)
}

/** Shows totals of the selection. */
function tiles () {
  const list = h('dl', { class: 'tiles' })
  follow(({ range }) => {
    const routes = selectedRoutes(runs[0])
    const isRange = range !== undefined
    const spans = sum(routes, ({ weighted }) => weighted)
    const errors = sum(routes, (route) => route.errors)
    const [worst] = routes.toSorted((a, b) => (b.summary?.max ?? 0) - (a.summary?.max ?? 0))
    const delayed = sum(routes, ({ split, weighted }) => split && split.delayed * weighted)
    const tile = (/** @type {string} */ name, /** @type {string} */ value, /** @type {string} */ remark) =>
      h('div', {}, h('dt', {}, name), h('dd', {}, value, h('small', {}, foreign(remark))))
    list.replaceChildren(
      tile(isRange ? 'Requests' : 'Spans', grouped(spans), `ended, on ${counted(routes.length, 'route')}`),
      tile('Rate', rate(sum(routes, (route) => route.rate)), 'over all routes'),
      tile('Errors', grouped(errors), spans > 0 ? percent(errors / spans) : ''),
      isRange
        ? tile('Still open', NONE, 'not known of a range')
        : tile('Still open', grouped(sum(routes, ({ open }) => open)), 'no end recorded'),
      tile('Slowest', time(worst?.summary?.max), worst?.name ?? ''),
      tile('Delayed', time(delayed), 'sum over all spans'))
  })
  return list
}

/** Creates the run along time, and the fields that filter the page. */
function timeSection () {
  const timeline = runs[0].series && new Timeline()
  const set = () => select({ text: input.value.trim().toLowerCase() })
  const input = h('input', { type: 'search', placeholder: 'name or id', on: { input: set } })
  const choices = [['all', 'all'], ['failed', 'failed'], ['ok', 'no error']]
  const statuses = radioButtons('Status', 'status', choices,
    (status) => select({ status: /** @type {import('./data').Selection['status']} */ (status) }))
  follow(({ text, status }) => { // also if another part of the page changes it
    if (text !== input.value.trim().toLowerCase()) input.value = text
    for (const radio of statuses.querySelectorAll('input')) radio.checked = radio.value === status
  })
  const fields = h('search', { class: 'toolbar filters' },
    h('label', { class: 'choice' }, 'Route or trace ', input), statuses, timeline?.controls)
  return section('time', 'Over time', fields, timeline?.element)
}

/** Creates the line that stays visible while a filter is active. */
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
  const items = files.map(({ name, spans }) => h('li', {}, foreign(name), ` · ${counted(spans, 'record')}`))
  return h('footer', {},
    files.length > 1 && h('details', {}, h('summary', {}, counted(files.length, 'file')), h('ul', {}, items)),
    h('p', {}, 'Made by longstack, drawn with D3 (© Mike Bostock, ISC licence). ' +
      'This file is self-contained and makes no requests.'))
}

const sections = [
  timeSection(), routesSection(), pathsSection(), ...waitsSections(), failuresSection(), changesSection(),
  blockersSection(), slowestSection(), requestSection(), openSection(),
  handlesSection()
].filter(Boolean)
const links = sections.map(({ id, firstChild }) =>
  h('li', {}, h('a', { href: `#${id}` }, firstChild.textContent)))
document.getElementById('page')?.append(
  h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
  header(),
  h('nav', { 'aria-label': 'Sections' }, h('ul', {}, links), filterLine()),
  h('main', { id: 'main', tabindex: -1 }, verdict(), experiments(), tiles(), notes(), sections),
  footer())
