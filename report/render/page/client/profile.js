'use strict'

// Draws the page of a profile: its figures, and the flame graph of runs and waits.

/* global document */

const { foreign, h, radioButtons, section, themes } = require('./dom')
const { Flame } = require('./flame')
const { counted, grouped, moment, percent, time } = require('../../format')
const { unpack } = require('./pack')
const { partOf } = require('../../../aggregate/lists')

/** @typedef {import('./flame-tree').PathNode} PathNode */

const LEAD = 'Chains of callbacks, from the start of the program or from the request inwards, with the ' +
  'steps that were waited for between the calls. Below what ran: samples of the CPU. Waits overlap, so ' +
  'their sum may be longer than the profile.'

/**
 * @typedef {import('../../../../lib/profile/profile').Profile} Profile
 * @type {Omit<Profile, 'tree'> & { title: string, tree: PathNode }}
 */
const data = unpack(document.getElementById('data')?.textContent ?? '')

/** @param {string} kind @returns {PathNode[]} */
function treesOf (kind) {
  const tree = kind === 'all' ? data.tree : partOf(data.tree, kind)
  return [tree ?? { ...data.tree, ms: 0, children: [] }]
}

function header () {
  const { pid, threadId, nodeVersion, startUnixMs, seconds, ranMs, sampleCount } = data
  const facts = [
    `process ${pid}${threadId === 0 ? '' : `, worker ${threadId}`}`,
    `Node ${nodeVersion}`,
    `${moment(startUnixMs).slice(0, 19)} UTC, ${time(seconds * 1000)}`,
    `event loop ran ${time(ranMs)} (${percent(ranMs / (seconds * 1000))})`,
    counted(sampleCount, 'CPU sample')
  ]
  const notes = data.lacks.map((sentence) => h('li', {}, foreign(sentence)))
  return h('header', {},
    h('div', { class: 'head' }, h('h1', {}, foreign(data.title)), themes()),
    h('p', { class: 'source' }, foreign(facts.join(' · '))),
    notes.length > 0 && h('ul', { class: 'notes' }, notes))
}

function routesSection () {
  const routes = (data.tree.children ?? []).filter(({ kind }) => kind === 'route')
  if (routes.length === 0) return undefined
  const msOf = (/** @type {PathNode} */ route, /** @type {string} */ kind) =>
    time(partOf(route, kind)?.ms ?? 0)
  const rows = routes.map((route) => h('tr', {}, h('th', { scope: 'row' }, foreign(route.name)),
    [grouped(route.count), msOf(route, 'ran'), msOf(route, 'waited')].map((text) => h('td', {}, text))))
  const titles = ['Route', 'Requests', 'Ran', 'Waited'].map((title) => h('th', { scope: 'col' }, title))
  return section('routes', 'By route',
    h('table', {}, h('thead', {}, h('tr', {}, titles)), h('tbody', {}, rows)))
}

const flame = new Flame(treesOf('ran'), {
  title: 'Chains of callbacks',
  counted: 'Count',
  controls: [radioButtons('Time', 'time', [['ran', 'ran'], ['waited', 'waited'], ['all', 'both']],
    (kind) => flame.show(treesOf(kind)))]
})
document.getElementById('page')?.append(header(), h('main', { id: 'main', tabindex: -1 },
  section('paths', 'Where async time went', h('p', { class: 'lead' }, LEAD), flame.element), routesSection()))
