'use strict'

// Draws the breakdown of a duration as one bar: run, waited by subsystem, delayed. The figures are its label.

const { h } = require('./dom')
const { percent, time } = require('./format')
const { wordOf } = require('./words')

/** @typedef {import('../rows').Split} Split */

const PARTS = /** @type {const} */ ([
  ['run', 'Run', 'its own code ran'],
  ['waited', 'Waited', 'the event loop ran nothing: for sockets, timers, files, requests; a part for each'],
  ['delayed', 'Delayed', 'the event loop ran other code']
])

/** @param {Split} split */
function sumOf (split) {
  return PARTS.reduce((sum, [name]) => sum + Math.max(0, split[name] ?? 0), 0)
}

/** @param {Split} split */
function describe (split) {
  const subsystems = split.wait.some(([, ms]) => ms > 0) ? ` (${waits(split)})` : ''
  const parts = PARTS.filter(([name]) => split[name] !== undefined)
  return parts.map(([name, title]) =>
    `${title.toLowerCase()} ${time(split[name])}${name === 'waited' ? subsystems : ''}`).join(', ')
}

/** @param {Split | undefined} split @param {string} [name] of the span */
function bar (split, name = 'Time') {
  if (split === undefined || sumOf(split) === 0) return undefined
  const parts = PARTS.filter(([part]) => (split[part] ?? 0) > 0)
  const description = describe(split)
  const label = `${name}: ${description}`
  return h('div', { class: 'split', role: 'img', 'aria-label': label, title: description },
    parts.flatMap(([part]) => pieces(split, part)).map(([part, ms]) =>
      h('span', { class: `part ${part}`, css: { 'flex-grow': String(ms) } })))
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
  return h('ul', { class: 'legend' }, PARTS.map(([name, title, meaning]) =>
    h('li', {}, h('span', { class: `swatch part ${name}` }), h('b', {}, title), ` ${meaning}`)))
}

/** Lists run, waited and delayed in percent. @param {Split} split */
function sharesOf (split) {
  const sum = sumOf(split)
  return PARTS.map(([name]) => percent(sum > 0 ? (split[name] ?? 0) / sum : 0)).join(' · ')
}

/** @param {Split | undefined} split */
function waits (split) {
  const positive = (split?.wait ?? []).filter(([, ms]) => ms > 0)
  return positive.map(([name, ms]) => `${wordOf(name)} ${time(ms)}`).join(', ')
}

/** @param {Split} split @param {number} total */
function figures (split, total) {
  return h('dl', { class: 'parts' }, PARTS.map(([name, title]) => h('div', {},
    h('dt', {}, h('span', { class: `swatch part ${name}` }), title),
    h('dd', {}, time(split[name]), h('small', {}, percent((split[name] ?? 0) / total))))))
}

module.exports = { bar, figures, legend, sharesOf, sumOf, waits }
