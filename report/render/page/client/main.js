'use strict'

// Assembles the page from the data in it: first what is certainly at fault, then the run along time, which
// filters all below: routes, critical paths and waits, failures, blockers and single requests.

/* global document */

const { createChangesTables } = require('./changes-tables')
const { heading } = require('./columns')
const { createCriticalPaths } = require('./critical-paths')
const { foreign, h, section } = require('./dom')
const { failuresTable } = require('./failures-table')
const { createFilter } = require('./filter')
const { createFilterBar, createFilterLine } = require('./filter-bar')
const { footer, header, notes, tiles } = require('./overview')
const { data, isComparison, labels, runs, stacks } = require('./page-data')
const { blockersTable, openTable, slowestTable } = require('./request-tables')
const { routesTable } = require('./routes-table')
const { createTimeline } = require('./timeline')
const { createLinks, createVerdict } = require('./verdict')
const { waitsTable } = require('./waits-table')
const { createWaterfall } = require('./waterfall')

const filter = createFilter()

/** @param {string} id of a section */
const moveTo = (id) => document.getElementById(id)?.scrollIntoView()

/** @param {boolean} isShown @param {() => any} create */
const when = (isShown, create) => isShown && create()

/** @param {(run: import('../data').PageRun) => boolean} test */
const anyRun = (test) => runs.some(test)

function sections () {
  const waterfall = data.traces.length > 0 ? createWaterfall(data.traces, stacks, filter) : undefined
  /** @param {string} traceId @param {string} [spanId] */
  const openRequest = (traceId, spanId) => {
    moveTo('request')
    waterfall?.open(traceId, spanId)
  }
  const paths = createCriticalPaths(filter, openRequest)
  const has = (/** @type {string | undefined} */ id) => waterfall?.has(id) ?? false
  const links = { openFlame: paths?.open, openRequest, has }
  const hasSites = anyRun(({ routes }) => routes.some(({ sites }) => sites.length > 0))
  const waits = hasSites ? runs.map((run) => waitsTable(run, filter, links)) : []
  const hasRoutes = anyRun(({ routes }) => routes.length > 0)
  const hasBlockers = anyRun((run) => run.blockers.length > 0)
  const blockers = hasBlockers ? runs.map((run) => blockersTable(run, filter)) : []
  const timeline = createTimeline(filter)
  const elements = (/** @type {Array<{ element: any }>} */ parts) => parts.map(({ element }) => element)
  return {
    verdict: createVerdict(createLinks(filter, { waits: waits[0], blockers: blockers[0], paths })),
    parts: [
      section('time', 'Over time', createFilterBar(filter, timeline?.controls ?? []), timeline?.element),
      section('routes', 'Routes', hasRoutes ? routesTable(filter) : h('p', {}, 'No finished spans to draw.')),
      paths && section('paths', 'Where the time went', paths.element),
      when(hasSites, () => section('waits', 'Waits', elements(waits))),
      when(anyRun(({ failures }) => failures.length > 0), () =>
        section('failures', 'What failed', runs.map((run) => failuresTable(run, filter, links)))),
      when(isComparison, () => section('changes', 'Changes',
        lead(), createChangesTables(filter, links))),
      when(hasBlockers, () => section('blockers', 'Blockers', elements(blockers))),
      when(data.slowest.length > 0, () =>
        section('slowest', 'Slowest requests', heading(runs[0]), slowestTable(filter, waterfall))),
      waterfall && section('request', 'Trace of a request', heading(runs[0]), waterfall.element),
      when(data.open.length > 0, () =>
        section('open', 'Still open', heading(runs[0]), openTable(filter, waterfall)))
    ].filter(Boolean)
  }
}

function lead () {
  return h('p', { class: 'lead' }, 'From ', foreign(labels[0]), ' to ', foreign(labels[1]), '.')
}

function page () {
  const { verdict, parts } = sections()
  const links = parts.map((part) => h('li', {}, h('a', { href: `#${part.id}` }, part.firstChild.textContent)))
  return [
    h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
    header(),
    h('nav', { 'aria-label': 'Sections' }, h('ul', {}, links), createFilterLine(filter)),
    h('main', { id: 'main', tabindex: -1 }, verdict, tiles(filter), notes(), parts),
    footer()
  ]
}

document.getElementById('page')?.append(...page())
