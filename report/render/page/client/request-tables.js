'use strict'

// Tables of blockers, of the slowest requests and of open ones.

/* global document */

const { badge, figure, heading, named, started } = require('./columns')
const { foreign, h } = require('./dom')
const { count, NONE, time, waitText } = require('./format')
const { data, ofRun, stackOf } = require('./page-data')
const { bar } = require('./split')
const { folded } = require('./stack')
const { isActive } = require('./filter')
const { selectedBlockers, selectedRequests } = require('./selected')
const { createTable } = require('./table')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../rows').PageRow} PageRow
 * @typedef {import('./filter').Filter} Filter
 * @typedef {ReturnType<typeof import('./waterfall').createWaterfall>} Waterfall
 */

const SLOWEST_ROWS = 10

/** @param {PageRun} run @param {Filter} filter */
function blockersTable (run, filter) {
  const table = createTable({
    caption: `Blockers${ofRun('of', run)}`,
    rows: run.blockers,
    sorted: 3,
    columns: [
      { title: 'What ran', text: true, class: 'route', value: ({ name }) => name, cell: blockerName },
      { title: 'Where', text: true, class: 'at', value: (row) => row.at, cell: placeOf },
      boundColumn('Callbacks', 'count', count),
      boundColumn('Total', 'totalMs', time),
      boundColumn('Longest', 'worstMs', time),
      figure('Spans delayed', 'delayedSpans', count),
      figure('Delayed by', 'delayedMs', time, 'sum over all of them')
    ]
  })
  filter.follow((selection) => table.show(selectedBlockers(run, selection)))
  const isTimed = run.blockers.every(({ byBucket }) => byBucket !== undefined)
  const note = filter.noteOf('Blockers are', isTimed ? ['status'] : ['status', 'range'])
  const bounds = run.blockers.some(({ guessed }) => guessed) && h('p', { class: 'note' },
    '≥: known only by the delays that it caused; no blocking callback of it was recorded.')
  return { table, element: [heading(run), note, table.element, bounds] }
}

/** @param {PageRow} row */
function blockerName ({ name, open }) {
  return named(foreign(name, { class: 'name', title: name }), open && badge('still running'))
}

/** @param {PageRow} row */
function placeOf (row) {
  return [row.at === undefined ? 'not sampled' : foreign(row.at, { class: 'code' }), folded(stackOf(row))]
}

/**
 * Makes the column of a figure that may be a lower bound.
 * @param {string} title
 * @param {string} name
 * @param {(value: unknown) => string} format
 * @returns {any}
 */
function boundColumn (title, name, format) {
  const bound = (/** @type {number} */ value) => (value > 0 ? `≥ ${format(value)}` : NONE)
  return {
    ...figure(title, name, format),
    cell: (/** @type {PageRow} */ { figures, guessed }) => (guessed ? bound : format)(figures[name])
  }
}

/** @param {Filter} filter @param {Waterfall | undefined} waterfall */
function slowestTable (filter, waterfall) {
  const table = createTable({
    caption: 'Slowest requests',
    rows: data.slowest,
    sorted: 1,
    maxRows: SLOWEST_ROWS,
    columns: [
      requestColumn(waterfall),
      figure('Took', 'ms', time),
      started,
      { title: 'Share', text: true, class: 'bar-cell', cell: (row) => bar(row.split, row.name) },
      partColumn('Run', 'run'),
      partColumn('Waited', 'waited'),
      partColumn('Delayed', 'delayed'),
      {
        title: 'Longest waits',
        text: true,
        class: 'waits sites',
        cell: ({ waits, delayedBy: [worst] }) => [waits.map(waitCell), worst && delayer(worst)]
      }
    ]
  })
  return followed(table, data.slowest, filter)
}

/**
 * Lets a table of single requests follow a filter.
 * @param {import('./table').Table<PageRow>} table
 * @param {PageRow[]} rows
 * @param {Filter} filter
 */
function followed (table, rows, filter) {
  const note = h('p', { class: 'note unfiltered', hidden: true })
  filter.follow((selection) => {
    const selected = selectedRequests(rows, selection)
    table.show(selected)
    note.hidden = !isActive(selection)
    note.textContent = `${count(selected.length)} of the ${count(rows.length)} on this page.`
  })
  return [note, table.element]
}

/** @param {string} title @param {'run' | 'waited' | 'delayed'} name */
function partColumn (title, name) {
  const value = (/** @type {PageRow} */ row) => row.split?.[name]
  return { title, value, cell: (/** @type {PageRow} */ row) => time(value(row)) }
}

/** @param {import('../rows').Wait} wait */
function waitCell (wait) {
  return h('span', { class: 'wait', title: wait.at }, foreign(waitText(wait)))
}

/** @param {import('../rows').Delay} delay */
function delayer ({ name = 'code outside any span', ms }) {
  return h('span', { class: 'wait' }, 'delayed by ', foreign(name), ` · ${time(ms)}`)
}

/** @param {Filter} filter @param {Waterfall | undefined} waterfall */
function openTable (filter, waterfall) {
  const table = createTable({
    caption: 'Requests still open',
    rows: data.open,
    sorted: 1,
    columns: [
      requestColumn(waterfall),
      figure('Open for', 'ms', time),
      started,
      { title: 'Created at', text: true, cell: (row) => folded(stackOf(row)) ?? 'unknown' }
    ]
  })
  return followed(table, data.open, filter)
}

/**
 * Makes the column of names, which open a trace in the waterfall.
 * @param {Waterfall | undefined} waterfall
 * @returns {any}
 */
function requestColumn (waterfall) {
  /** @param {PageRow} row */
  const open = (row) => {
    document.getElementById('request')?.scrollIntoView()
    waterfall?.open(row.traceId, row.spanId)
  }
  /** @param {PageRow} row */
  const button = (row) => h('button', {
    type: 'button', class: 'link name', title: `${row.name}: open trace`, on: { click: () => open(row) }
  }, foreign(row.name))
  return {
    title: 'Request',
    text: true,
    class: 'route',
    value: (/** @type {PageRow} */ { name }) => name,
    cell: (/** @type {PageRow} */ row) => {
      const hasTrace = waterfall?.has(row.traceId)
      const name = hasTrace ? button(row) : foreign(row.name, { class: 'name', title: row.name })
      return named(name, row.status === 'ERROR' && badge('error', 'error'))
    }
  }
}

module.exports = { blockersTable, openTable, slowestTable }
