'use strict'

// The section of the async flame graph: of which requests it is, and links from elsewhere to its frames.

/* global document */

const { radioButtons, selectList } = require('./choices')
const { h } = require('./dom')
const { createFlame } = require('./flame')
const { clock, time } = require('./format')
const { data, labels, runs } = require('./page-data')
const { unpack } = require('./path-trees')

/**
 * @typedef {import('./flame-tree').PathNode} PathNode
 * @typedef {ReturnType<typeof import('./waterfall').createWaterfall>} Waterfall
 */

const ALL = ''
const LEAD = 'The wall time of all requests, along the critical path of each: from the route down through ' +
  'the calls that led to each wait or run. Widths are sums: what is widest took most.'

/** Returns the trees of all runs. @param {'tree' | 'slowTree'} name */
function treesOf (name) {
  return runs.map((run) => run[name] === undefined ? undefined : unpack(run[name], data.names))
}

/**
 * Makes the section's content, or returns undefined if no run has a tree.
 * @param {Waterfall | undefined} waterfall
 */
function createCriticalPaths (waterfall) {
  const trees = { all: treesOf('tree'), slow: treesOf('slowTree') }
  if (trees.all.every((tree) => tree === undefined)) return undefined
  const hasSlow = trees.slow.some((tree) => tree !== undefined)
  let [which, route] = ['all', ALL]

  /** @param {PathNode | undefined} tree @returns {PathNode | undefined} that of the chosen route */
  const chosen = (tree) => route === ALL ? tree : tree?.children?.find(({ name }) => name === route)

  /** @returns {[PathNode, PathNode | undefined]} */
  function current () {
    const [tree, compareTree] = trees[/** @type {'all'} */ (which)].map(chosen)
    const { name, kind } = tree ?? compareTree ?? { name: route === ALL ? 'all' : route, kind: 'route' }
    const none = { name, kind, ms: 0, count: 0, children: [] }
    return [tree ?? none, runs.length > 1 ? compareTree ?? none : undefined]
  }

  const show = () => flame.show(...current())
  const names = new Set(trees.all.flatMap((tree) => tree?.children?.map(({ name }) => name) ?? []))
  /** @type {Array<[string, string]>} */
  const options = [[ALL, 'all routes'], ...[...names].map((name) => pair(name))]
  const routeList = selectList('Route', options, (name) => { route = name; show() })
  /** @type {Array<[string, string]>} */
  const portions = [['all', 'all'], ['slow', 'slowest 1 %']]
  const requestChoice = hasSlow &&
    radioButtons('Requests', 'paths', portions, which, (name) => { which = name; show() })
  const [tree, compareTree] = current()
  const flame = createFlame(tree, {
    compareTree,
    labels,
    controls: [routeList, requestChoice],
    requests: (id) => requestOf(id, waterfall)
  })

  return {
    element: [h('p', { class: 'lead' }, LEAD), flame.element],
    /**
     * Selects a frame of a route and moves there.
     * @param {string} routeName
     * @param {string[]} frames outermost first
     */
    open (routeName, frames) {
      route = ALL
      routeList.querySelector('select').value = ALL
      show()
      flame.select([routeName, ...frames])
      document.getElementById('paths')?.scrollIntoView()
      flame.focus()
    }
  }
}

/** @param {string} name @returns {[string, string]} */
const pair = (name) => [name, name]

/** @param {string} id @param {Waterfall | undefined} waterfall */
function requestOf (id, waterfall) {
  const trace = data.traces.find((candidate) => candidate.id === id)
  if (trace === undefined || waterfall === undefined) return undefined
  return {
    text: `${trace.name} · ${time(trace.ms)} · ${clock(trace.startUnixMs)}`,
    open () {
      document.getElementById('request')?.scrollIntoView()
      waterfall.open(id, undefined)
    }
  }
}

module.exports = { createCriticalPaths }
