'use strict'

// The tables of longstack top: their rows, columns, and what each row is asked for.

const { digits, grouped, percent, time, word } = require('../../report/render/text-parts')
const { shortFrame } = require('../text')

/**
 * @typedef {import('./model').Frame} Frame
 *
 * @typedef {object} Column
 * @property {string} title
 * @property {(row: any) => number | string | undefined} value that rows are sorted by
 * @property {(row: any) => string} text
 *
 * @typedef {{ place: import('./model').Place } | { stack: string }} Reason whom to ask for a chain, or what
 *   is known of it
 *
 * @typedef {object} Pane
 * @property {string} name
 * @property {string} letter that chooses it
 * @property {Column[]} columns the first one is wide
 * @property {number} sort index of the column that rows are sorted by at first
 * @property {(frame: Frame) => any[]} rows
 * @property {(row: any) => string} id
 * @property {(row: any) => Reason | undefined} why
 * @property {(frame: Frame) => string} empty a sentence where there is no row
 */

const MEGABYTE = 1e6

/** @param {number} ms */
const duration = (ms) => Number.isNaN(ms) ? '-' : time(ms)
/** @param {number} count */
const counter = (count) => count === 0 ? '-' : grouped(count)
/** @param {number | undefined} share */
const share = (share) => share === undefined || Number.isNaN(share) ? '-' : percent(share)
/** @param {number | undefined} bytes */
const megabytes = (bytes) =>
  bytes === undefined || Number.isNaN(bytes) ? '-' : `${digits(bytes / MEGABYTE)} MB`
/** @param {string} site a frame, or what was called */
const place = (site) => word(shortFrame(site))

/** @param {number | undefined} perMinute */
function growth (perMinute) {
  if (perMinute === undefined) return '…'
  if (Math.abs(perMinute) < 0.05) return '-'
  return `${perMinute > 0 ? '+' : '-'}${digits(Math.abs(perMinute))}`
}

/** @param {string} key @param {string} title @param {(value: any) => string} text @returns {Column} */
function column (key, title, text) {
  return { title, value: (row) => row[key], text: (row) => text(row[key]) }
}

/** @type {Pane[]} */
const panes = [
  {
    name: 'Routes',
    letter: 'r',
    columns: [
      column('name', 'route', word),
      column('perSecond', 'req/s', digits),
      column('p50Ms', 'p50', duration),
      column('p99Ms', 'p99', duration),
      column('maxMs', 'max', duration),
      column('errors', '5xx', counter),
      column('lost', 'lost', counter)
    ],
    sort: 1,
    rows: (frame) => frame.routes,
    id: (row) => row.name,
    why: () => undefined,
    empty: () => 'No request was answered yet.'
  },
  {
    name: 'Waits',
    letter: 'a',
    columns: [
      column('site', 'waits at', place),
      column('label', 'for', (label) => word(label, 30)),
      column('isOfRequest', 'of', (isOfRequest) => isOfRequest ? 'requests' : 'others'),
      column('count', 'waiting', digits)
    ],
    sort: 3,
    rows: (frame) => frame.waits ?? [],
    id: (row) => `${row.isOfRequest} ${row.label} ${row.site}`,
    why: (row) => ({ place: row.place }),
    empty: (frame) => frame.waits === undefined
      ? 'What waits is not known where the filter leaves out promises.'
      : 'Nothing waits.'
  },
  {
    name: 'Handles',
    letter: 'h',
    columns: [
      column('site', 'opened at', place),
      column('noun', 'what', (noun) => word(noun, 24)),
      column('count', 'open', grouped),
      column('perMinute', 'per min', growth)
    ],
    sort: 3,
    rows: (frame) => frame.handles,
    id: (row) => `${row.noun} ${row.site}`,
    why: (row) => ({ place: row.place }),
    empty: () => 'Nothing is open.'
  },
  {
    name: 'Blockers',
    letter: 'b',
    columns: [
      column('site', 'blocked in', place),
      column('count', 'times', grouped),
      column('worstMs', 'worst', duration),
      column('ms', 'in all', duration)
    ],
    sort: 3,
    rows: (frame) => frame.blockers,
    id: (row) => row.site,
    why: (row) => ({ stack: row.stack }),
    empty: (frame) => frame.blockedMs === undefined
      ? 'Blocking callbacks are not watched: --blocked 50 reports those of 50 ms and above.'
      : `No callback took ${frame.blockedMs} ms or more.`
  },
  {
    name: 'Processes',
    letter: 'c',
    columns: [
      {
        title: 'process',
        value: (row) => row.pid,
        text: ({ pid, threadId, name }) =>
          word(`${pid}${threadId === 0 ? '' : ` thread ${threadId}`} ${baseName(name)}`)
      },
      column('perSecond', 'req/s', digits),
      { title: 'CPU', value: cpuShare, text: (row) => share(cpuShare(row)) },
      column('loopShare', 'busy', share),
      column('delayMs', 'delay p99', duration),
      { title: 'heap', value: (row) => row.heap, text: (row) => megabytes(row.heap) },
      {
        title: 'RSS',
        value: (row) => row.rss,
        text: ({ rss, silentMs }) => silentMs > 0 ? `silent ${duration(silentMs)}` : megabytes(rss)
      }
    ],
    sort: 2,
    rows: (frame) => frame.threads,
    id: (row) => row.key,
    why: () => undefined,
    empty: () => 'No process answers.'
  }
]

/**
 * Returns the CPU of a thread; of a main thread that of its process where Node tells no other.
 * @param {import('./model').ThreadRow} row
 */
function cpuShare ({ cpuShare, processShare }) {
  return cpuShare ?? processShare
}

/** @param {string} file */
function baseName (file) {
  return file.slice(Math.max(file.lastIndexOf('/'), file.lastIndexOf('\\')) + 1)
}

/**
 * Returns the rows that a filter leaves, sorted: figures largest first, texts by the alphabet.
 * @param {Pane} pane
 * @param {Frame} frame
 * @param {{ sort: number, filter: string }} choice
 * @returns {any[]}
 */
function rowsOf (pane, frame, { sort, filter }) {
  const { value } = pane.columns[sort]
  const wanted = filter.toLowerCase()
  const rows = pane.rows(frame).filter((row) => wanted === '' || textOf(pane, row).includes(wanted))
  return rows.sort((a, b) =>
    compare(value(b), value(a)) || compare(b.count, a.count) || compare(pane.id(b), pane.id(a)))
}

/** @param {Pane} pane @param {any} row */
function textOf ({ columns, id }, row) {
  return `${id(row)} ${columns.map(({ text }) => text(row)).join(' ')}`.toLowerCase()
}

/** @param {any} a @param {any} b @returns {number} unknown values come first, texts the other way round */
function compare (a, b) {
  if (typeof a === 'string') return a < b ? 1 : a > b ? -1 : 0
  const [first, second] = [a, b].map(rankOf)
  return first === second ? 0 : first - second
}

/** @param {any} value */
function rankOf (value) {
  return value === undefined || Number.isNaN(value) ? -Infinity : Number(value)
}

module.exports = { baseName, cpuShare, duration, megabytes, panes, rowsOf, share }
