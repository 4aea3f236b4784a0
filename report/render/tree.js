'use strict'

// Renders a tree of paths (where time went along chains of calls and waits) as indented text, hot path first.
// Each kind has a mark and a word, so that colour is never the only distinction. Data in, lines out.

const { allOf } = require('../aggregate/lists')
const { createFrameNames } = require('../aggregate/frames')
const { grouped, noColours, time, word } = require('./text-parts')
const { columnsOf, glued, painted, prose, wrap } = require('./wrap')

/**
 * @typedef {object} PathNode
 * @property {string} name
 * @property {string} kind root, route, frame, ran, waited, delayed or beside
 * @property {number} ms including children
 * @property {number} count requests or waits
 * @property {PathNode[]} children
 *
 * @typedef {import('./text-parts').Colours} Colours
 * @typedef {import('../aggregate/frames').FrameNames} FrameNames
 *
 * @typedef {object} TreeOptions
 * @property {Colours} [colours]
 * @property {number} [width] of the terminal; default 80
 * @property {number} [maxDepth] deepest printed level; default 100
 * @property {number} [minShare] share of the whole, below which a node is left out; default 0.01
 *
 * @typedef {object} Row
 * @property {number} depth
 * @property {number} ms
 * @property {string} text
 */

/** @type {Record<string, [mark: string, colour: keyof Colours] | undefined>} */
const LEAVES = {
  ran: ['█', 'green'], waited: ['░ waited:', 'cyan'], delayed: ['▒', 'yellow'], beside: ['◇', 'dim']
}
const ARROW = '→'
const MAX_INDENT = 0.4 // share of the width
const MAX_DEPTH = 100

/**
 * Renders share, time and name of each node; a straight line of calls shares one row.
 * @param {PathNode} tree
 * @param {TreeOptions} [options]
 * @returns {string[]} at least one line
 */
function treeLines (tree, options = {}) {
  const { colours = noColours, width = 80, maxDepth = MAX_DEPTH, minShare = 0.01 } = options
  const frames = allOf(tree).filter(({ kind }) => kind === 'frame')
  const frameName = createFrameNames(frames.map(({ name }) => name))
  /** @type {Row[]} */
  const rows = []
  addRows(tree, 0)
  return linesOf(rows, tree.ms, colours, width)

  /** @param {PathNode} start @param {number} depth */
  function addRows (start, depth) {
    const texts = [nodeText(start, colours, frameName)]
    let node = start
    while (node.kind === 'frame' && node.children.length === 1) { // an only child joins its parent's row
      node = node.children[0]
      const isFrame = node.kind === 'frame'
      texts.push(`${isFrame ? glued(`${ARROW} `) : ''}${nodeText(node, colours, frameName)}`)
    }
    const isCut = depth >= maxDepth && node.children.length > 0
    rows.push({ depth, ms: start.ms, text: `${texts.join(' ')}${isCut ? glued(' …') : ''}` })
    if (!isCut) addChildren(node, depth + 1)
  }

  /** @param {PathNode} node @param {number} depth */
  function addChildren ({ children }, depth) {
    const sorted = [...children].sort((a, b) => b.ms - a.ms)
    const visible = sorted.filter(({ ms }) => ms >= minShare * tree.ms)
    for (const child of visible) addRows(child, depth)
    const hidden = sorted.slice(visible.length)
    const ms = hidden.reduce((sum, child) => sum + child.ms, 0)
    if (ms < 0.0005 * tree.ms || hidden.length === 0) return
    rows.push({ depth, ms, text: painted(glued(`… ${grouped(hidden.length)} smaller`), colours.dim) })
  }
}

/** @param {PathNode} node @param {Colours} colours @param {FrameNames} frameName */
function nodeText ({ name, kind, count }, colours, frameName) {
  if (kind === 'frame') return glued(word(frameName(name), 200))
  const times = count > 1 ? ` ${colours.dim(glued(`× ${grouped(count)}`))}` : ''
  const leaf = LEAVES[kind]
  if (leaf === undefined) return colours.bold(glued(word(name))) + times
  const [mark, colour] = leaf
  return painted(glued(`${mark} `) + prose(word(name, 200)), colours[colour]) + times
}

/** @param {Row[]} rows @param {number} whole ms @param {Colours} colours @param {number} width */
function linesOf (rows, whole, colours, width) {
  const times = rows.map(({ ms }) => time(ms))
  const column = Math.max(...times.map(columnsOf))
  return rows.flatMap(({ depth, ms, text }, i) => {
    const figures = `${share(ms, whole).padStart(7)}  ${times[i].padStart(column)}  `
    const indent = ' '.repeat(Math.min(2 * depth, Math.floor(MAX_INDENT * width)))
    const hanging = ' '.repeat(figures.length + indent.length + 2)
    return wrap(text, width, figures + indent, hanging)
  })
}

/** Formats a part of a whole: `62.0 %`. @param {number} part @param {number} whole */
function share (part, whole) {
  const percent = whole > 0 ? part / whole * 100 : 0
  if (percent > 0 && percent < 0.05) return '<0.1 %'
  return `${percent >= 99.95 ? '100' : percent.toFixed(1)} %`
}

module.exports = { treeLines }
