'use strict'

// A table that sorts by any column. Headings are buttons, so that a keyboard reaches them; the order is in
// aria-sort and, after a change, in a live region.

const { h } = require('./dom')
const { count } = require('./format')

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => number | string | undefined} [value] to sort by; without it the column does not
 *   sort
 * @property {(row: Row) => any} cell
 * @property {boolean} [text] aligned to the left, ascending at first
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
 * @param {number} [options.sorted] column to sort by at first, in descending order; none: the order of the
 *   rows
 * @param {number} [options.maxRows] rows until the button for all is pressed
 * @param {string} [options.class]
 * @returns {any} an HTMLElement
 */
function createTable ({ caption, columns, rows, sorted, maxRows = 15, class: style = '' }) {
  const id = `table-${++tables}`
  const body = h('tbody')
  const status = h('p', { class: 'hidden', 'aria-live': 'polite' })
  const heads = columns.map(heading)
  const label = `Show all ${count(rows.length)}`
  const more = h('button', { type: 'button', class: 'more', on: { click: showAll } }, label)
  let order = { column: sorted ?? -1, down: true }
  let showsAll = rows.length <= maxRows + 3 // a button for three more rows is not shorter than they are

  /** @param {Column<Row>} column @param {number} index */
  function heading ({ title, value, text, hint, class: kind = '' }, index) {
    const attributes = { scope: 'col', class: classOf(text, kind), title: hint }
    if (value === undefined) return h('th', attributes, title)
    return h('th', attributes, h('button', { type: 'button', on: { click: () => sort(index) } }, title))
  }

  /** @param {number} column */
  function sort (column) {
    const down = order.column === column ? !order.down : columns[column].text !== true
    order = { column, down }
    draw()
    status.textContent = `Sorted by ${columns[column].title}, ${down ? 'descending' : 'ascending'}`
  }

  function showAll () {
    showsAll = true
    draw()
    const first = body.rows[maxRows]?.querySelector('button, a, summary')
    first?.focus()
  }

  function draw () {
    heads.forEach((head, i) => {
      if (i === order.column) head.setAttribute('aria-sort', order.down ? 'descending' : 'ascending')
      else head.removeAttribute('aria-sort')
    })
    const visible = inOrder().slice(0, showsAll ? undefined : maxRows)
    body.replaceChildren(...visible.map(line))
    more.hidden = showsAll
  }

  function inOrder () {
    const value = columns[order.column]?.value
    if (value === undefined) return rows
    const keyed = rows.map((row) => ({ row, key: value(row) }))
    return keyed.sort((a, b) => compare(a.key, b.key, order.down ? -1 : 1)).map(({ row }) => row)
  }

  /** @param {Row} row */
  function line (row) {
    return h('tr', {}, columns.map(({ cell, text, class: kind = '' }, i) => {
      const attributes = { class: classOf(text, kind) }
      return i === 0 ? h('th', { scope: 'row', ...attributes }, cell(row)) : h('td', attributes, cell(row))
    }))
  }

  draw()
  const table = h('table', { class: style || undefined },
    h('caption', { id, class: 'hidden' }, caption), h('thead', {}, h('tr', {}, heads)), body)
  const region = h('div', { class: 'scroll', role: 'region', 'aria-labelledby': id, tabindex: 0 }, table)
  return h('div', { class: 'table' }, region, more, status)
}

/** @param {boolean | undefined} isText @param {string} kind */
function classOf (isText, kind) {
  return `${isText ? '' : 'number'} ${kind}`.trim() || undefined
}

/**
 * Compares keys; undefined comes last in both directions.
 * @param {any} a
 * @param {any} b
 * @param {number} direction
 */
function compare (a, b, direction) {
  if (a === undefined || b === undefined) return a === b ? 0 : a === undefined ? 1 : -1
  return direction * (typeof a === 'string' ? a.localeCompare(b) : a - b)
}

module.exports = { createTable }
