'use strict'

// Assembles the page from the data in it: first what is most important, then distributions, shares, blockers
// and single requests.

/* global document */

const { heading } = require('./columns')
const { createCriticalPaths } = require('./critical-paths')
const { distributions } = require('./distributions')
const { foreign, h, section } = require('./dom')
const { finding, footer, header, tiles } = require('./overview')
const { data, isComparison, labels, runs, stacks } = require('./page-data')
const { blockersTable, openTable, slowestTable } = require('./request-tables')
const { changesTable, figuresTable, sharesTable } = require('./route-tables')
const { legend } = require('./split')
const { createWaterfall } = require('./waterfall')

function sections () {
  const waterfall = data.traces.length > 0 ? createWaterfall(data.traces, stacks) : undefined
  const paths = createCriticalPaths(waterfall)
  const hasShares = runs.some((run) => run.routes.some((route) => route.split !== undefined))
  const hasBlockers = runs.some((run) => run.blockers.length > 0)
  return [
    paths && section('paths', 'Critical paths', paths.element),
    section('durations', 'Durations', distributions(runs.map((run) => run.routes), labels)),
    isComparison && section('changes', 'Changes', lead(), changesTable()),
    section('figures', 'Figures per route', runs.map(figuresTable)),
    hasShares && section('shares', 'Where the time went', legend(), runs.map(sharesTable)),
    hasBlockers && section('blockers', 'Blockers', runs.map(blockersTable)),
    data.slowest.length > 0 &&
      section('slowest', 'Slowest requests', heading(runs[0]), slowestTable(waterfall)),
    waterfall && section('request', 'Trace of a request', heading(runs[0]), waterfall.element),
    data.open.length > 0 && section('open', 'Still open', heading(runs[0]), openTable(waterfall))
  ].filter(Boolean)
}

function lead () {
  return h('p', { class: 'lead' }, 'From ', foreign(labels[0]), ' to ', foreign(labels[1]), '.')
}

function page () {
  const parts = sections()
  const links = parts.map((part) => h('li', {}, h('a', { href: `#${part.id}` }, part.firstChild.textContent)))
  return [
    h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
    header(),
    h('nav', { 'aria-label': 'Sections' }, h('ul', {}, links)),
    h('main', { id: 'main', tabindex: -1 }, finding(), tiles(), parts),
    footer()
  ]
}

document.getElementById('page')?.append(...page())
