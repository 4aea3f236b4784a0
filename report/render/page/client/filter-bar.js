'use strict'

// The fields that filter the page, and a line that stays visible while something is filtered.

const { radioButtons } = require('./choices')
const { h } = require('./dom')
const { clock, time } = require('./format')
const { isActive } = require('./filter')
const { isComparison, runs } = require('./page-data')

/**
 * @typedef {import('./filter').Filter} Filter
 * @typedef {import('./filter').Selection} Selection
 */

/** @type {Array<[Selection['status'], string]>} */
const STATUSES = [['all', 'all'], ['failed', 'failed'], ['ok', 'no error']]

/** @param {Filter} filter @param {any[]} controls more of them */
function createFilterBar (filter, controls) {
  const set = () => filter.set({ text: input.value.trim().toLowerCase() })
  const input = h('input', { type: 'search', placeholder: 'name or id', on: { input: set } })
  const statuses = radioButtons('Status', 'status', STATUSES, 'all',
    (status) => filter.set({ status: /** @type {Selection['status']} */ (status) }))
  filter.follow(({ text, status }) => { // also where another part of the page changes it
    if (text !== input.value.trim().toLowerCase()) input.value = text
    for (const radio of statuses.querySelectorAll('input')) radio.checked = radio.value === status
  })
  return h('search', { class: 'toolbar filters' },
    h('label', { class: 'choice' }, 'Route or trace ', input), statuses, controls)
}

/** Creates the line that is visible while something is filtered. @param {Filter} filter */
function createFilterLine (filter) {
  const text = h('span', { role: 'status' })
  const clear = () => filter.set({ range: undefined, text: '', status: 'all' })
  const button = h('button', { type: 'button', class: 'link', on: { click: clear } }, 'Show all')
  const line = h('p', { class: 'filter-line', hidden: true }, text, button)
  filter.follow((selection) => {
    line.hidden = !isActive(selection)
    text.textContent = line.hidden ? '' : `Only ${describe(selection)}.`
  })
  return line
}

/** @param {Selection} selection */
function describe ({ range, text, status }) {
  const start = runs[0].series?.fromUnixMs ?? 0
  const moment = (/** @type {number} */ ms) =>
    isComparison ? `+ ${time(ms)}` : clock(start + ms).replace(/\.000$/, '')
  return [
    range && `${moment(range[0])} to ${moment(range[1])}`,
    text !== '' && `“${text}”`,
    status !== 'all' && (status === 'failed' ? 'failed requests' : 'requests without an error')
  ].filter(Boolean).join(', ')
}

module.exports = { createFilterBar, createFilterLine }
