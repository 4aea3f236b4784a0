'use strict'

// A table that sorts by any of its columns. Headings are buttons, so that a keyboard reaches them; the state is told by
// aria-sort and, after a change, by a line that is read out.

const { h } = require('./dom')
const { count } = require('./format')

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => number | string | undefined} [value] what it sorts by; none: it does not sort
 * @property {(row: Row) => any} cell
 * @property {boolean} [text] to the left, and from A to Z at first
 * @property {string} [hint]
 * @property {string} [class]
 */

let tables = 0

/**
 * @template Row
 * @param {object} options
 * @param {string} options.caption
 * @param {Array<Column<Row>>} options.columns the first one names the row
 * @param {Row[]} options.rows
 * @param {number} [options.sorted] column sorted by at first, the largest on top; none: as the rows come
 * @param {number} [options.most] rows shown until all are asked for
 * @param {string} [options.class]
 * @returns {any} an HTMLElement
 */
function createTable ({ caption, columns, rows, sorted, most = 15, class: style = '' }) {
  const id = `table-${++tables}`
  const body = h('tbody')
  const told = h('p', { class: 'hidden', 'aria-live': 'polite' })
  const heads = columns.map(heading)
  const more = h('button', { type: 'button', class: 'more', on: { click: showAll } }, `Show all ${count(rows.length)}`)
  let order = { column: sorted ?? -1, down: true }
  let all = rows.length <= most + 3 // a button for three more rows is no shorter than they are

  /** @param {Column<Row>} column @param {number} index */
  function heading ({ title, value, text, hint, class: kind = '' }, index) {
    const attributes = { scope: 'col', class: `${text ? '' : 'number'} ${kind}`.trim() || undefined, title: hint }
    if (value === undefined) return h('th', attributes, title)
    return h('th', attributes, h('button', { type: 'button', on: { click: () => sort(index) } }, title))
  }

  /** @param {number} column */
  function sort (column) {
    const down = order.column === column ? !order.down : columns[column].text !== true
    order = { column, down }
    draw()
    told.textContent = `Sorted by ${columns[column].title}, ${down ? 'descending' : 'ascending'}`
  }

  function showAll () {
    all = true
    draw()
    const first = body.rows[most]?.querySelector('button, a, summary')
    first?.focus()
  }

  function draw () {
    heads.forEach((head, i) => {
      if (i === order.column) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending')
      else head.removeAttribute('aria-sort')
    })
    const shown = inOrder().slice(0, all ? undefined : most)
    body.replaceChildren(...shown.map(line))
    more.hidden = all
  }

  function inOrder () {
    const value = columns[order.column]?.value
    if (value === undefined) return rows
    const known = rows.map((row) => ({ row, key: value(row) }))
    return known.sort((a, b) => compare(a.key, b.key, order.down ? -1 : 1)).map(({ row }) => row)
  }

  /** @param {Row} row */
  function line (row) {
    return h('tr', {}, columns.map(({ cell, text, class: kind = '' }, i) => {
      const attributes = { class: `${text ? '' : 'number'} ${kind}`.trim() || undefined }
      return i === 0 ? h('th', { scope: 'row', ...attributes }, cell(row)) : h('td', attributes, cell(row))
    }))
  }

  draw()
  const table = h('table', { class: style || undefined }, h('caption', { id, class: 'hidden' }, caption), h('thead', {}, h('tr', {}, heads)), body)
  return h('div', { class: 'table' }, h('div', { class: 'scroll', role: 'region', 'aria-labelledby': id, tabindex: 0 }, table), more, told)
}

/** What is not known comes last, both ways. @param {any} a @param {any} b @param {number} way */
function compare (a, b, way) {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return way * (typeof a === 'string' ? a.localeCompare(b) : a - b)
}

module.exports = { createTable }
