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
 * @property {'routes' | 'waits' | 'handles' | 'blockers' | 'threads'} rows of a frame
 * @property {(frame: Frame) => string} empty a sentence where there is no row
 */

const MEGABYTE = 1e6

/** @param {(value: number) => string} format @returns {(value?: number) => string} a dash: not known */
const orDash = (format) => (value) => value === undefined || Number.isNaN(value) ? '-' : format(value)
const duration = orDash(time)
const share = orDash(percent)
const megabytes = orDash((bytes) => `${digits(bytes / MEGABYTE)} MB`)
/** @param {number} count */
const counter = (count) => count === 0 ? '-' : grouped(count)
/** @param {string} site a frame, or what was called */
const place = (site) => word(shortFrame(site))

/** @param {number | undefined} perMinute */
function growth (perMinute) {
  if (perMinute === undefined) return '…'
  if (Math.abs(perMinute) < 0.05) return '-'
  return `${perMinute > 0 ? '+' : '-'}${digits(Math.abs(perMinute))}`
}

/**
 * @param {string} key of a row
 * @param {string} title
 * @param {(value: any, row: any) => string} text
 * @returns {Column}
 */
function column (key, title, text) {
  return { title, value: (row) => row[key], text: (row) => text(row[key], row) }
}

/** @type {Pane[]} */
const panes = [
  {
    name: 'Routes',
    letter: 'r',
    columns: [
      column('name', 'route', (name) => word(name)),
      column('perSecond', 'req/s', digits),
      column('p50Ms', 'p50', duration),
      column('p99Ms', 'p99', duration),
      column('maxMs', 'max', duration),
      column('errors', '5xx', counter),
      column('lost', 'lost', counter)
    ],
    sort: 1,
    rows: 'routes',
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
    rows: 'waits',
    empty: ({ waits }) =>
      waits === undefined ? 'What waits is not known where the filter leaves out promises.' : 'Nothing waits.'
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
    rows: 'handles',
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
    rows: 'blockers',
    empty: ({ blockedMs }) => blockedMs === undefined
      ? 'Blocking callbacks are not watched: --blocked 50 reports those of 50 ms and above.'
      : `No callback took ${blockedMs} ms or more.`
  },
  {
    name: 'Processes',
    letter: 'c',
    columns: [
      column('pid', 'process', (pid, row) => word(`${threadName(row)} ${row.name.replace(/^.*[/\\]/s, '')}`)),
      column('perSecond', 'req/s', digits),
      { title: 'CPU', value: cpuShare, text: (row) => share(cpuShare(row)) },
      column('loopShare', 'busy', share),
      column('delayMs', 'delay p99', duration),
      column('heap', 'heap', megabytes),
      column('rss', 'RSS', (rss, { silentMs }) =>
        silentMs > 0 ? `silent ${duration(silentMs)}` : megabytes(rss))
    ],
    sort: 2,
    rows: 'threads',
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

/** @param {{ pid: number, threadId: number }} thread */
function threadName ({ pid, threadId }) {
  return threadId === 0 ? String(pid) : `${pid} thread ${threadId}`
}

/** Returns what a row is known by, whatever its figures are. @param {any} row @returns {string} */
function idOf ({ key, isOfRequest, label, noun, name, site }) {
  return key ?? [isOfRequest, label, noun, name, site].join(' ').trim()
}

/** Returns what tells why there is a row. @param {any} row @returns {Reason | undefined} */
function reasonOf ({ place, stack }) {
  if (place !== undefined) return { place }
  return stack === undefined ? undefined : { stack }
}

/**
 * Returns the rows that a filter leaves, sorted: figures largest first, texts by the alphabet.
 * @param {Pane} pane
 * @param {Frame} frame
 * @param {{ sort: number, filter: string }} choice
 * @returns {any[]}
 */
function rowsOf ({ rows, columns }, frame, { sort, filter }) {
  const { value } = columns[sort]
  const textOf = (/** @type {any} */ row) => [idOf(row), ...columns.map(({ text }) => text(row))].join(' ')
  return (frame[rows] ?? []).filter((row) => textOf(row).toLowerCase().includes(filter.toLowerCase()))
    .sort((/** @type {any} */ a, /** @type {any} */ b) =>
      compare(value(b), value(a)) || compare(b.count, a.count) || compare(idOf(b), idOf(a)))
}

/** @param {any} a @param {any} b @returns {number} unknown values come first, texts the other way round */
function compare (a, b) {
  if (typeof a === 'string') return a < b ? 1 : a > b ? -1 : 0
  const [first, second] = [a, b].map((value) => Number.isNaN(Number(value)) ? -Infinity : Number(value))
  return first === second ? 0 : first - second
}

module.exports = { cpuShare, duration, idOf, megabytes, panes, reasonOf, rowsOf, share, threadName }
