'use strict'

// Where a duration went, as one bar: run, waited by subsystem, delayed. The figures stand beside it or are its
// label.

const { h } = require('./dom')
const { percent, time } = require('./format')

/** @typedef {import('../data').Split} Split */

const PARTS = /** @type {const} */ ([
  ['run', 'Run', 'its own code ran'],
  ['waited', 'Waited', 'the loop ran nothing: for sockets, timers, files, other requests; a piece for each'],
  ['delayed', 'Delayed', 'the loop ran somebody else’s code']
])

/** @param {Split} split */
function whole (split) {
  return PARTS.reduce((sum, [name]) => sum + Math.max(0, split[name] ?? 0), 0)
}

/** @param {Split} split */
function inWords (split) {
  const subsystems = split.wait.some(([, ms]) => ms > 0) ? ` (${waits(split)})` : ''
  const known = PARTS.filter(([name]) => split[name] !== undefined)
  const parts = known.map(([name, title]) => [title.toLowerCase(), time(split[name]) + (name === 'waited' ? subsystems : '')])
  return parts.map((words) => words.join(' ')).join(', ')
}

/** @param {Split | undefined} split @param {string} [of] */
function bar (split, of = 'Time') {
  if (split === undefined || whole(split) === 0) return undefined
  const parts = PARTS.filter(([name]) => (split[name] ?? 0) > 0)
  return h('div', { class: 'split', role: 'img', 'aria-label': `${of}: ${inWords(split)}`, title: inWords(split) },
    parts.flatMap(([name]) => pieces(split, name)).map(([name, ms]) =>
      h('span', { class: `part ${name}`, css: { 'flex-grow': String(ms) } })))
}

/**
 * Divides the waits by subsystem; in old files these may add up to more than the whole.
 * @param {Split} split @param {'run' | 'waited' | 'delayed'} name
 * @returns {Array<[string, number]>}
 */
function pieces (split, name) {
  const length = split[name] ?? 0
  const waits = name === 'waited' ? split.wait.filter(([, ms]) => ms > 0) : []
  const sum = waits.reduce((total, [, ms]) => total + ms, 0)
  return waits.length === 0 ? [[name, length]] : waits.map(([, ms]) => [name, length * ms / sum])
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
