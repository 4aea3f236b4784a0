'use strict'

// One frame of a flame graph as an element, its figures in words, and the legend of all.

const { foreign, h } = require('./dom')
const { allOf, changeOf } = require('./flame-tree')
const { count, percent, time } = require('./format')
const { shortFrame } = require('../../../../lib/text')

/**
 * @typedef {import('./flame-tree').Frame} Frame
 *
 * @typedef {object} View
 * @property {Frame} root
 * @property {Frame} top fills the width
 * @property {number} run whose widths are drawn
 * @property {Set<Frame>} matches of a search
 * @property {number} width px
 */

const LABEL_PX = 24 // narrower frames have no label
const SIGNS = { grows: '▲ ', shrinks: '▼ ', same: '' }

/** @type {Array<[kind: string, text: string]>} */
const meanings = [
  ['ran', 'ran'],
  ['waited', 'waited'],
  ['delayed', 'delayed: the event loop ran other code'],
  ['beside', 'ran beside: own code that the answer did not wait for']
]

/** Explains the kinds and changes that a tree has. @param {Frame} root @returns {any[]} */
function legendOf (root) {
  const kinds = new Set(allOf(root).map(({ kind }) => kind))
  const changes = [['grows', '▲ grows'], ['shrinks', '▼ shrinks'], ['same', 'no change']]
  const items = [
    ...meanings.filter(([kind]) => kinds.has(kind)),
    ...(root.runs.length > 1 ? changes.map(([name, text]) => [`differential ${name}`, text]) : [])
  ]
  return items.map(([name, text]) => h('li', {}, h('span', { class: `swatch frame ${name}` }), text))
}

/** @param {Frame} frame @param {Frame} root @param {number} run whose widths are drawn */
function figuresOf ({ ms, runs }, root, run) {
  const times = runs[run]?.count
  const share = `${percent(ms / root.ms)} of the whole`
  return [time(ms), share, Number.isFinite(times) && `${count(times)} times`].filter(Boolean).join(', ')
}

/**
 * @param {Frame} frame
 * @param {boolean} isAncestor of the frame that fills the width, as it does then
 * @param {View} view
 * @returns {any}
 */
function frameElement (frame, isAncestor, { root, top, run, matches, width }) {
  const { name, kind, runs, depth } = frame
  const share = isAncestor ? 1 : frame.ms / top.ms
  const offset = isAncestor ? 0 : (frame.start - top.start) / top.ms
  const change = runs.length > 1 ? changeOf(frame) : undefined
  const isLabelled = share * width >= LABEL_PX
  const title = name === kind || kind === 'frame' || kind === 'root' ? name : `${kind}: ${name}`
  const classes = [
    'frame',
    kind,
    change && `differential ${change.direction}`,
    change?.isStrong && 'strong',
    matches.size > 0 && (matches.has(frame) ? 'matched' : 'dimmed')
  ]
  return h('div', {
    class: classes.filter(Boolean).join(' '),
    role: 'treeitem',
    'aria-level': depth + 1,
    'aria-label': `${title}, ${figuresOf(frame, root, run)}`,
    css: { '--left': `${offset * 100}%`, '--width': `${share * 100}%`, '--row': String(depth) }
  }, isLabelled && h('span', {}, change && SIGNS[change.direction], foreign(shortFrame(name))))
}

module.exports = { figuresOf, frameElement, legendOf }
