'use strict'

// Table that sorts by any column. Headings are buttons, so that the keyboard reaches them; the order is in
// aria-sort and, after a change, in a live region.

/* global ResizeObserver */

const { follow } = require('./data')
const { foreign, h } = require('./dom')
const { grouped } = require('../../format')

/**
 * @template Row
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: Row) => number | string | undefined} [value] sort key; columns without it do not sort
 * @property {(row: Row) => any} cell
 * @property {boolean} [text] left-aligned, ascending at first
 * @property {boolean} [descends] descending at first, although it is text
 * @property {any} [below] element below the title
 * @property {string} [hint]
 * @property {string} [class]
 */

const EMPTY = 'None in what is selected.'
const MORE_ROWS = 3 // up to this many extra rows are shown directly: a button would take as much space

let tables = 0

/**
 * @template Row
 * @param {object} options
 * @param {string} options.caption
 * @param {Array<Column<Row>>} options.columns the first one names the row
 * @param {Row[] | (() => Row[])} options.rows the selected rows, or fixed ones
 * @param {number} [options.sorted] column to sort by at first, in descending order; by default rows keep
 *   their order
 * @param {number} [options.maxRows] shown until the button for all is pressed
 * @param {string} [options.class]
 * @param {string} [options.empty] shown instead of the table if there are no rows
 */
function createTable ({ caption, columns, rows: source, sorted, maxRows = 15, class: style, empty = EMPTY }) {
  const id = `table-${++tables}`
  const body = h('tbody')
  const status = h('p', { class: 'hidden', 'aria-live': 'polite' })
  const heads = columns.map(heading)
  const more = h('button', { type: 'button', class: 'more', on: { click: showAll } })
  const none = h('p', { class: 'note', hidden: true }, empty)
  let rows = typeof source === 'function' ? source() : source
  let order = { column: sorted ?? -1, down: true }
  let showsAll = false

  /** @param {Column<Row>} column @param {number} index */
  function heading ({ title, value, text, hint, below, class: kind = '' }, index) {
    const attributes = { scope: 'col', class: classOf(text, kind), title: hint }
    if (value === undefined) return h('th', attributes, title, below)
    return h('th', attributes, h('button', { type: 'button', on: { click: () => sort(index) } }, title))
  }

  /** @param {number} column */
  function sort (column) {
    const { text, descends } = columns[column]
    const down = order.column === column ? !order.down : descends === true || text !== true
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
    const isShort = rows.length <= maxRows + MORE_ROWS
    const visible = inOrder().slice(0, showsAll || isShort ? undefined : maxRows)
    body.replaceChildren(...visible.map(line))
    more.textContent = `Show all ${grouped(rows.length)}`
    more.hidden = showsAll || isShort
    none.hidden = rows.length > 0
    region.hidden = rows.length === 0
    markEdges()
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

  /** Marks the sides on which the table extends beyond the visible part. */
  function markEdges () {
    const { scrollLeft, scrollWidth, clientWidth } = region
    region.classList.toggle('more-left', scrollLeft > 1)
    region.classList.toggle('more-right', scrollLeft + clientWidth < scrollWidth - 1)
  }

  const table = h('table', { class: style },
    h('caption', { id, class: 'hidden' }, caption), h('thead', {}, h('tr', {}, heads)), body)
  const on = { scroll: markEdges }
  const region = h('div', { class: 'scroll', role: 'region', 'aria-labelledby': id, tabindex: 0, on }, table)
  new ResizeObserver(markEdges).observe(region)
  if (typeof source === 'function') follow(() => { rows = source(); draw() })
  else draw()
  return {
    element: h('div', { class: 'table' }, region, none, more, status),
    /** Scrolls to the first row that matches. @param {(row: Row) => boolean} matches */
    reveal (matches) {
      const index = inOrder().findIndex(matches)
      if (index === -1) return
      if (index >= body.rows.length) showsAll = true
      draw()
      point(body.rows[index])
    }
  }
}

/** Scrolls to a row and marks it until another row is marked. @param {any} row */
function point (row) {
  row.ownerDocument.querySelector('tr.pointed')?.classList.remove('pointed')
  row.classList.add('pointed')
  row.tabIndex = -1
  row.scrollIntoView({ block: 'center' })
  row.focus({ preventScroll: true })
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

/**
 * Creates a column of figures.
 * @template Row
 * @param {string} title
 * @param {(row: Row) => number | undefined} value
 * @param {(value: unknown) => string} format
 * @param {Partial<Column<Row>>} [others]
 * @returns {Column<Row>}
 */
function figure (title, value, format, others = {}) {
  return { title, value, cell: (row) => format(value(row)), ...others }
}

/**
 * Creates a text column; the caller can override how rows draw it.
 * @template Row
 * @param {string} title
 * @param {(row: Row) => string | undefined} value
 * @param {Partial<Column<Row>>} [others]
 * @returns {Column<Row>}
 */
function textual (title, value, others = {}) {
  return { title, text: true, value, cell: (row) => foreign(value(row) ?? ''), ...others }
}

module.exports = { createTable, figure, textual }
