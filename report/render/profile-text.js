'use strict'

// Renders a profile as text: where the loop ran, with what used the CPU there, and where callbacks waited.

const { sum } = require('../aggregate/lists')
const { columns, counted, noColours, percent, time, word } = require('./text-parts')
const { treeLines } = require('./tree')
const { glued, wrap } = require('./wrap')

/**
 * @typedef {import('../../lib/profile/profile').Profile} Profile
 * @typedef {import('../../lib/profile/path-tree').PathNode} PathNode
 * @typedef {import('./text-parts').Colours} Colours
 */

const MAX_ROUTES = 10
const MIN_SHARE = 0.02 // of the whole, for a line of a tree
const titles = /** @type {const} */ ([['ran', 'Where it ran'], ['waited', 'Where it waited']])

/**
 * @param {Profile} profile
 * @param {{ colours?: Colours, width?: number }} [options]
 * @returns {string}
 */
function profileText (profile, { colours = noColours, width = 80 } = {}) {
  const { tree, lacks } = profile
  const parts = [head(profile, colours, width)]
  for (const [kind, title] of titles) {
    const part = partOf(tree, kind)
    if (part === undefined || part.ms === 0) continue
    parts.push([colours.bold(title), ...treeLines(part, { colours, width, minShare: MIN_SHARE })])
  }
  const routes = routeRows(profile)
  if (routes.length > 1) parts.push([colours.bold('By route'), ...columns(routes)])
  if (lacks.length > 0) parts.push(lacks.flatMap((sentence) => wrap(word(sentence, 1000), width)))
  return `${parts.map((lines) => lines.join('\n')).join('\n\n')}\n`
}

/** @param {Profile} profile @param {Colours} colours @param {number} width */
function head (profile, colours, width) {
  const { pid, threadId, nodeVersion, seconds, ranMs, chains, sampleCount } = profile
  const thread = threadId === 0 ? '' : `, worker ${threadId}`
  const title = colours.bold(glued(`Process ${pid}${thread}`))
  const callbacks = sum(chains, ({ count }) => count)
  const samples = sampleCount === 0 ? '' : `; ${glued(counted(sampleCount, 'CPU sample'))}`
  const share = percent(ranMs / (seconds * 1000))
  const duration = glued(time(seconds * 1000))
  const ran = glued(`${time(ranMs)} (${share})`)
  return wrap(`${title}, Node ${word(nodeVersion)}: ${duration}, of which its event loop ran ${ran}; ` +
    `${glued(counted(callbacks, 'callback'))} of ${glued(counted(chains.length, 'chain'))}${samples}.`, width)
}

/**
 * Returns what is of one kind of time in a tree.
 * @param {PathNode} node
 * @param {'ran' | 'waited'} kind
 * @returns {PathNode | undefined} undefined: nothing
 */
function partOf (node, kind) {
  if (node.kind === kind) return node
  if (node.kind === 'ran' || node.kind === 'waited') return undefined
  const children = node.children.map((child) => partOf(child, kind)).filter((part) => part !== undefined)
  if (children.length === 0) return undefined
  const count = node.kind === 'route' ? node.count : sum(children, (child) => child.count)
  return { ...node, ms: sum(children, ({ ms }) => ms), count, children }
}

/** @param {Profile} profile @returns {string[][]} */
function routeRows ({ tree }) {
  const routes = tree.children.filter(({ kind }) => kind === 'route').slice(0, MAX_ROUTES)
  const rows = routes.map((route) => {
    const ran = partOf(route, 'ran')?.ms ?? 0
    const waited = partOf(route, 'waited')?.ms ?? 0
    return [word(route.name), String(route.count), time(ran), time(waited)]
  })
  return [['', 'requests', 'ran', 'waited'], ...rows]
}

module.exports = { profileText }
