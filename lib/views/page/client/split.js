'use strict'

// Where a duration went, as one bar of four parts; the figures stand beside it or are its label.

const { h } = require('./dom')
const { percent, time } = require('./format')

/** @typedef {import('../data').Split} Split */

const PARTS = /** @type {const} */ ([
  ['run', 'Run', 'its own code ran'],
  ['waited', 'Waited', 'something of its own was pending: a socket, a timer, a file'],
  ['delayed', 'Delayed', 'the loop ran somebody else’s code'],
  ['idle', 'Idle', 'nothing of its own was pending: it waited for the other side']
])

/** @param {Split} split */
function whole (split) {
  return PARTS.reduce((sum, [name]) => sum + Math.max(0, split[name] ?? 0), 0)
}

/** @param {Split} split */
function inWords (split) {
  return PARTS.filter(([name]) => split[name] !== undefined).map(([name, title]) => `${title.toLowerCase()} ${time(split[name])}`).join(', ')
}

/** @param {Split | undefined} split @param {string} [of] */
function bar (split, of = 'Time') {
  if (split === undefined || whole(split) === 0) return undefined
  const parts = PARTS.filter(([name]) => (split[name] ?? 0) > 0)
  return h('div', { class: 'split', role: 'img', 'aria-label': `${of}: ${inWords(split)}`, title: inWords(split) },
    parts.map(([name]) => h('span', { class: `part ${name}`, css: { 'flex-grow': String(split[name]) } })))
}

function legend () {
  return h('ul', { class: 'legend' }, PARTS.map(([name, title, meaning]) => h('li', {}, h('span', { class: `swatch part ${name}` }), h('b', {}, title), ` ${meaning}`)))
}

/** @param {Split | undefined} split */
function waits (split) {
  return split === undefined ? '' : split.wait.filter(([, ms]) => ms > 0).map(([name, ms]) => `${name} ${time(ms)}`).join(', ')
}

/** @param {Split} split @param {number} total */
function figures (split, total) {
  return h('dl', { class: 'parts' }, PARTS.map(([name, title]) => h('div', {},
    h('dt', {}, h('span', { class: `swatch part ${name}` }), title),
    h('dd', {}, time(split[name]), h('small', {}, percent((split[name] ?? 0) / total))))))
}

module.exports = { PARTS, bar, figures, legend, waits, whole }
