'use strict'

// Draws the page of a profile: its figures, and the flame graph of what ran and what waited.

/* global document */

const { radioButtons } = require('./choices')
const { foreign, h, section } = require('./dom')
const { createFlame } = require('./flame')
const { count, day, percent, plural, time } = require('./format')
const { themes } = require('./theme')

/** @typedef {import('./flame-tree').PathNode} PathNode */

/** @type {Array<[string, string]>} */
const PORTIONS = [['ran', 'ran'], ['waited', 'waited'], ['all', 'both']]
const LEAD = 'Chains of callbacks, from the start of the program or from the request inwards, with the ' +
  'steps that were waited for between the calls. Below what ran: samples of the CPU. Waits overlap, so ' +
  'their sum may be longer than the profile.'

const data = JSON.parse(document.getElementById('data')?.textContent ?? '')

/**
 * Returns what is of one kind of time in a tree.
 * @param {PathNode} node
 * @param {string} kind
 * @returns {PathNode | undefined} undefined: nothing
 */
function partOf (node, kind) {
  if (node.kind === kind) return node
  if (node.kind === 'ran' || node.kind === 'waited') return undefined
  /** @type {PathNode[]} */
  const children = []
  for (const child of node.children ?? []) {
    const part = partOf(child, kind)
    if (part !== undefined) children.push(part)
  }
  const ms = children.reduce((sum, child) => sum + child.ms, 0)
  return children.length === 0 ? undefined : { ...node, ms, children }
}

/** @param {string} kind @returns {PathNode} */
function treeOf (kind) {
  const tree = kind === 'all' ? data.tree : partOf(data.tree, kind)
  return tree ?? { ...data.tree, ms: 0, children: [] }
}

function header () {
  const { pid, threadId, nodeVersion, startUnixMs, seconds, ranMs, sampleCount } = data
  const facts = [
    `process ${pid}${threadId === 0 ? '' : `, worker ${threadId}`}`,
    `Node ${nodeVersion}`,
    `${day(startUnixMs)} UTC, ${time(seconds * 1000)}`,
    `event loop ran ${time(ranMs)} (${percent(ranMs / (seconds * 1000))})`,
    plural(sampleCount, 'CPU sample')
  ]
  const notes = data.lacks.map((/** @type {string} */ sentence) => h('li', {}, foreign(sentence)))
  return h('header', {},
    h('div', { class: 'head' }, h('h1', {}, foreign(data.title)), themes()),
    h('p', { class: 'source' }, foreign(facts.join(' \u00b7 '))),
    notes.length > 0 && h('ul', { class: 'notes' }, notes))
}

function routes () {
  const rows = data.tree.children.filter((/** @type {PathNode} */ { kind }) => kind === 'route')
  if (rows.length === 0) return undefined
  const cells = (/** @type {PathNode} */ route) => [
    h('th', { scope: 'row' }, foreign(route.name)),
    h('td', {}, count(route.count ?? 0)),
    h('td', {}, time(partOf(route, 'ran')?.ms ?? 0)),
    h('td', {}, time(partOf(route, 'waited')?.ms ?? 0))
  ]
  const titles = ['Route', 'Requests', 'Ran', 'Waited'].map((title) => h('th', { scope: 'col' }, title))
  const body = h('tbody', {}, rows.map((/** @type {PathNode} */ route) => h('tr', {}, cells(route))))
  return section('routes', 'By route', h('table', {}, h('thead', {}, h('tr', {}, titles)), body))
}

function page () {
  const choose = (/** @type {string} */ name) => flame.show(treeOf(name))
  const flame = createFlame(treeOf('ran'), {
    title: 'Chains of callbacks',
    counted: 'Count',
    controls: [radioButtons('Time', 'time', PORTIONS, 'ran', choose)]
  })
  const paths = section('paths', 'Where async time went', h('p', { class: 'lead' }, LEAD), flame.element)
  return [header(), h('main', { id: 'main', tabindex: -1 }, [paths, routes()].filter(Boolean))]
}

document.getElementById('page')?.append(...page())
