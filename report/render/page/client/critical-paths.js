'use strict'

// The section of the async flame graph: of which requests it is, and links from elsewhere to its frames.

/* global document */

const { radioButtons, selectList } = require('./choices')
const { h } = require('./dom')
const { createFlame } = require('./flame')
const { clock, percent, time } = require('./format')
const { data, labels, runs } = require('./page-data')
const { unpack } = require('./flame-tree')
const { hasTimes, selectedTree, timedShare } = require('./selected-tree')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {import('./filter').Filter} Filter
 */

const ALL = ''
/** @type {Array<[string, string]>} */
const PORTIONS = [['all', 'all'], ['slow', 'slowest 1 %']]
const LEAD = 'The wall time of all requests, along the critical path of each: from the route down through ' +
  'the calls that led to each wait or run. Widths are sums: what is widest took most.'

/** Returns the trees of all runs. @param {'tree' | 'slowTree'} name */
function treesOf (name) {
  return runs.map((run) => run[name] === undefined ? undefined : unpack(run[name], data.names))
}

/**
 * Makes the section's content, or returns undefined if no run has a tree.
 * @param {Filter} filter
 * @param {(traceId: string) => void} openRequest
 */
function createCriticalPaths (filter, openRequest) {
  const trees = { all: treesOf('tree'), slow: treesOf('slowTree') }
  if (trees.all.every((tree) => tree === undefined)) return undefined
  const hasSlow = trees.slow.some((tree) => tree !== undefined)
  const note = h('p', { class: 'note unfiltered' })
  /** @type {{ which: 'all' | 'slow', route: string }} */
  const choice = { which: 'all', route: ALL }

  /** @returns {[PathNode, PathNode | undefined]} */
  function current () {
    const [tree, compareTree] = trees[choice.which].map((whole, i) => {
      const selected = whole && selectedTree(whole, runs[i], filter.selection)
      return choice.route === ALL ? selected : selected?.children?.find(({ name }) => name === choice.route)
    })
    const { name, kind } = tree ?? compareTree ?? { name: choice.route || 'all requests', kind: 'route' }
    const none = { name, kind, ms: 0, count: 0, children: [] }
    return [tree ?? none, runs.length > 1 ? compareTree ?? none : undefined]
  }

  function show () {
    const remark = remarkOf(choice.which, trees[choice.which])
    note.hidden = remark === undefined || filter.selection.range === undefined
    note.textContent = remark ?? ''
    flame.show(...current())
  }

  const routeList = createRouteList(trees.all, (name) => { choice.route = name; show() })
  const choose = (/** @type {string} */ name) => { choice.which = name === 'slow' ? 'slow' : 'all'; show() }
  const requestChoice = hasSlow && radioButtons('Requests', 'paths', PORTIONS, 'all', choose)
  const [tree, compareTree] = current()
  const flame = createFlame(tree, {
    compareTree,
    labels,
    controls: [routeList, requestChoice],
    requests: (id) => requestOf(id, openRequest)
  })
  filter.follow(show)

  return {
    element: [
      h('p', { class: 'lead' }, LEAD), filter.noteOf('The flame graph is', ['status']), note, flame.element
    ],
    /**
     * Selects a frame of a route and moves there.
     * @param {string} routeName
     * @param {string[]} frames outermost first
     */
    open (routeName, frames) {
      choice.route = ALL
      routeList.querySelector('select').value = ALL
      show()
      flame.select([routeName, ...frames])
      document.getElementById('paths')?.scrollIntoView()
      flame.focus()
    }
  }
}

/**
 * Describes what a range of time cannot filter.
 * @param {'all' | 'slow'} which
 * @param {Array<PathNode | undefined>} trees
 */
function remarkOf (which, trees) {
  const present = trees.filter((tree) => tree !== undefined)
  if (!present.every(hasTimes)) {
    const subject = which === 'slow' ? 'The slowest 1 % are' : 'The flame graph is'
    return `${subject} not filtered by the range of time.`
  }
  const missing = 1 - Math.min(...present.map(timedShare))
  return missing < 0.001 ? undefined : `Small frames, ${percent(missing)} of all, are not known along time.`
}

/** @param {Array<PathNode | undefined>} trees @param {(name: string) => void} choose */
function createRouteList (trees, choose) {
  const names = new Set(trees.flatMap((tree) => tree?.children?.map(({ name }) => name) ?? []))
  return selectList('Route', [[ALL, 'all routes'], ...[...names].map((name) => pair(name))], choose)
}

/** @param {string} name @returns {[string, string]} */
const pair = (name) => [name, name]

/** @param {string} id @param {(traceId: string) => void} openRequest */
function requestOf (id, openRequest) {
  const trace = data.traces.find((candidate) => candidate.id === id)
  if (trace === undefined) return undefined
  const text = `${trace.name} · ${time(trace.ms)} · ${clock(trace.startUnixMs)}`
  return { text, open: () => openRequest(id) }
}

module.exports = { createCriticalPaths }
