'use strict'

// Tables of waits, failures, changes, blockers and single requests.

const { openFlame } = require('./critical-paths')
const {
  areSitesTimed, data, follow, heading, isActive, isComparison, labels, matchesText, noteOf, ofRun, runs,
  selectedBlockers, selectedFailures, selectedRequests, selectedSites, timedWaits
} = require('./data')
const { badge, folded, foreign, h, link, section } = require('./dom')
const { endOf: settlerAndPeer, requestRoutes } = require('../../../aggregate/route-names')
const { recordedSentence } = require('../../../../lib/format/wait-graph')
const { shortFrame } = require('../../../../lib/text')
const { change, clock, grouped, NONE, percent, time } = require('../../format')
const { changed, kindOf, splitBar } = require('./routes')
const { createTable, figure, textual } = require('./table')
const { hasTrace, openRequest } = require('./waterfall')
const { endOf, framesOf, shortCode, siteName, waitText } = require('./words')

/**
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('./data').SelectedSite} SelectedSite
 * @typedef {import('../../../aggregate/blockers').Blocker} Blocker
 * @typedef {import('../../../aggregate/failures').Failure} Failure
 * @typedef {import('../../../aggregate/digest').Digest} Digest
 *
 * @typedef {object} Changed
 * @property {string} [route]
 * @property {string} [name]
 * @property {string} [at]
 * @property {number} beforeMs
 * @property {number} afterMs
 * @property {number} change
 */

const SLOWEST_ROWS = 10
const MIN_EDGE = 0.01 // share of a route's time
const MAX_ROUTES = 3 // per failure
const QUARTILES = /** @type {const} */ ([
  ['1st Qu.', 'q1'], ['Median', 'median'], ['3rd Qu.', 'q3'], ['Max', 'max']
])

/** Tables of the first run. @type {{ waits?: any, blockers?: any }} */
const tables = {}

/** Waits of each route's requests, one row per site; then the waits for other requests. */
const waitsSections = () => [
  runs.some(({ routes }) => routes.some(({ sites }) => sites.length > 0)) &&
    section('waits', 'Waits', runs.map((run) => waitsTable(run, false))),
  runs.some((run) => edgesOf(run).length > 0) &&
    section('waited-for', 'Who waited for whom', runs.map((run) => [convoys(run), waitsTable(run, true)]))
]

/** Returns the sites that waited for other requests. @param {PageRun} run */
function edgesOf (run) {
  const [{ kind } = { kind: undefined }] = requestRoutes(run.routes)
  return selectedSites(run).filter((site) =>
    site.route.kind === kind && site.share >= MIN_EDGE && settlerOf(site) !== undefined)
}

/** @param {SelectedSite} site */
const settlerOf = ({ until }) => settlerAndPeer(until).settler

/** Lists requests that waited at one place at the same time. @param {PageRun} run */
function convoys (run) {
  const list = h('ul', { class: 'delays' })
  follow(() => list.replaceChildren(...run.convoys
    .filter(({ requests, for: holder }) => matchesText(holder, ...requests.map(({ request }) => request)))
    .map((convoy) => h('li', {}, foreign(recordedSentence(convoy))))))
  const known = 'Known by who settled what was awaited: a callback of the other request.'
  const note = run.convoys.length > 0 && noteOf('What waited at once is', ['range', 'status'])
  return [h('p', { class: 'lead' }, known), note, list]
}

/** @param {PageRun} run @param {boolean} isOfEdges show only waits for other requests */
function waitsTable (run, isOfEdges) {
  /** @param {SelectedSite} site */
  const siteCell = (site) =>
    siteName(site, openFlame(site.route.name, [...framesOf(site), endOf(site) ?? '']))
  const table = createTable({
    caption: `${isOfEdges ? 'Waits for other requests' : 'Waits by await site'}${ofRun('of', run)}`,
    rows: () => isOfEdges ? edgesOf(run) : selectedSites(run),
    sorted: 2,
    columns: [
      textual('Waited at', ({ at: frame }) => frame ?? '', { class: 'site', cell: siteCell }),
      textual('Route', ({ route }) => route.name, {
        class: 'route',
        cell: ({ route: { name, kind } }) => [foreign(name, { class: 'name', title: name }), kindOf(kind)]
      }),
      figure('Total', ({ ms }) => ms, time),
      isOfEdges
        ? textual('Waited for', settlerOf)
        : { title: 'Of its route', text: true, class: 'share', value: ({ share }) => share, cell: shareCell },
      ...QUARTILES.map(([title, name]) => {
        const quartile = (/** @type {SelectedSite} */ { summary }) => summary?.[name]
        return figure(title, quartile, time, { hint: 'of what one request waited there' })
      }),
      figure('Waits', (site) => site.count, grouped),
      figure('Requests', ({ spans }) => spans, grouped, { hint: 'that waited there', cell: requestsCell })
    ]
  })
  if (run === runs[0] && !isOfEdges) tables.waits = table
  const isTimed = areSitesTimed(run)
  const missing = 1 - timedWaits(run)
  const unknown = h('p', { class: 'note unfiltered' }, 'Quartiles and requests of a range are not known.',
    missing > 0.001 && ` Small sites, ${percent(missing)} of the waits, are left out.`)
  follow(({ range }) => { unknown.hidden = range === undefined || !isTimed })
  const note = noteOf('Waits are', isTimed ? ['status'] : ['status', 'range'])
  return [heading(run), note, unknown, table.element]
}

/** @param {SelectedSite} site */
function shareCell ({ share, route }) {
  const part = Math.max(0, Math.min(1, share || 0))
  return h('span', { class: 'share-bar', role: 'img', 'aria-label': `${percent(share)} of ${route.name}` },
    h('span', { class: 'part waited', css: { '--part': `${part * 100}%` } }), h('span', {}, percent(share)))
}

/**
 * Counts the requests of a site, with a link to the slowest one on the page.
 * @param {SelectedSite} site
 */
function requestsCell (site) {
  const { at: frame, spans } = site
  if (frame === undefined || spans === undefined || isComparison) return grouped(spans)
  const isHere = (/** @type {Digest['waits'][number]} */ wait) =>
    wait.at === frame && endOf(wait) === endOf(site)
  for (const trace of data.traces) {
    const span = trace.spans.find(({ waits }) => waits.some(isHere))
    if (span === undefined) continue
    const title = 'open the slowest of them'
    return link(grouped(spans), () => openRequest(trace.id, span.spanId), { title })
  }
  return grouped(spans)
}

/** Failures: one row per kind of error, with one full chain. */
const failuresSection = () => runs.some(({ failures }) => failures.length > 0) &&
  section('failures', 'What failed', runs.map(failuresTable))

/** @param {PageRun} run */
function failuresTable (run) {
  const day = (/** @type {unknown} */ ms) => clock(ms).slice(0, 8)
  const table = createTable({
    caption: `What failed${ofRun('in', run)}`,
    rows: () => selectedFailures(run),
    sorted: 1,
    empty: 'No failure in what is selected.',
    columns: [
      textual('Error', ({ type, message }) => `${type} ${message}`, { class: 'error-cell', cell: errorCell }),
      figure('Count', (failure) => failure.count, grouped),
      textual('At', ({ at: frame }) => frame, {
        class: 'at', cell: ({ at: frame }) => frame === undefined ? 'not known' : shortCode(frame)
      }),
      textual('Routes', ({ routes }) => routes[0]?.name, { class: 'at', cell: failedRoutes }),
      figure('First (UTC)', ({ firstUnixMs }) => firstUnixMs, day, { class: 'clock' }),
      figure('Last (UTC)', ({ lastUnixMs }) => lastUnixMs, day, { class: 'clock' }),
      {
        title: 'Request',
        text: true,
        cell: ({ traceId, spanId }) => hasTrace(traceId)
          ? link('open trace', () => openRequest(traceId, spanId))
          : h('span', { class: 'code', title: traceId }, traceId?.slice(0, 8))
      }
    ]
  })
  const isTimed = run.failures.every(({ byBucket }) => byBucket !== undefined)
  return [heading(run), noteOf('Failures are', isTimed ? [] : ['range']), table.element]
}

/** @param {Failure} failure */
function errorCell ({ type, message, stack }) {
  const text = message.startsWith(`${type}: `) ? message.slice(type.length + 2) : message
  return [h('b', {}, foreign(type)), text !== '' && [': ', foreign(text)], folded(stack, 'One full chain')]
}

/** @param {Failure} failure */
function failedRoutes ({ routes }) {
  const more = routes.length - MAX_ROUTES
  const names = routes.slice(0, MAX_ROUTES).map((route) =>
    h('span', { class: 'wait' }, foreign(route.name), h('small', {}, ` × ${grouped(route.count)}`)))
  return [names, more > 0 && h('small', {}, `and ${more} more`)]
}

/**
 * Changes of each await site and blocker from the first run to the second, per request.
 * @returns {any} undefined for a single run
 */
function changesSection () {
  if (!isComparison) return undefined
  const { sites, blockers } = data.changes
  return section('changes', 'Changes',
    h('p', { class: 'lead' }, 'From ', foreign(labels[0]), ' to ', foreign(labels[1]), '.'),
    changesTable('Waits by await site, per request', sites, [
      textual('Waited at', ({ at: frame }) => frame ?? '', {
        class: 'site', cell: (site) => siteName(site, openFlame(site.route, framesOf(site)))
      }),
      textual('Route', ({ route }) => route)
    ]),
    changesTable('Blockers, per request', blockers, [textual('What ran', ({ name }) => name, {
      class: 'site',
      cell: ({ name, at: frame }) =>
        [foreign(name), frame !== undefined && h('small', { class: 'until' }, 'in ', foreign(frame))]
    })]))
}

/**
 * @template {Changed} T
 * @param {string} title
 * @param {T[]} rows
 * @param {Array<import('./table').Column<T>>} names
 */
function changesTable (title, rows, names) {
  if (rows.length === 0) return undefined
  const table = createTable({
    caption: title,
    rows: () => rows.filter(({ route, name, at: frame }) => matchesText(route, name, frame)),
    columns: [
      ...names,
      figure('Before', ({ beforeMs }) => beforeMs, time),
      figure('After', ({ afterMs }) => afterMs, time),
      figure('Change', (row) => row.change, time, {
        cell ({ beforeMs, afterMs, change: ms }) {
          const ratio = change(beforeMs, afterMs)
          const text = `${ms > 0 ? '+' : ms < 0 ? '−' : ''}${time(Math.abs(ms))}`
          return changed(beforeMs === 0 ? Infinity : afterMs / beforeMs, text, ratio !== NONE && ratio)
        }
      })
    ]
  })
  return [h('h3', {}, title), noteOf('These changes are', ['range', 'status']), table.element]
}

const blockersSection = () => runs.some(({ blockers }) => blockers.length > 0) &&
  section('blockers', 'Blockers', runs.map(blockersTable))

/** @param {PageRun} run */
function blockersTable (run) {
  const table = createTable({
    caption: `Blockers${ofRun('of', run)}`,
    rows: () => selectedBlockers(run),
    sorted: 3,
    columns: [
      textual('What ran', ({ name }) => name, {
        class: 'route',
        cell: ({ name, open }) =>
          named(foreign(name, { class: 'name', title: name }), open && badge('still running'))
      }),
      textual('Where', ({ at: frame }) => frame, {
        class: 'at',
        cell: ({ at: frame, stack }) =>
          [frame === undefined ? 'not sampled' : foreign(frame, { class: 'code' }), folded(stack)]
      }),
      bound('Callbacks', 'count', grouped),
      bound('Total', 'totalMs', time),
      bound('Longest', 'worstMs', time),
      figure('Spans delayed', ({ delayedSpans }) => delayedSpans, grouped),
      figure('Delayed by', ({ delayedMs }) => delayedMs, time, { hint: 'sum over all of them' })
    ]
  })
  if (run === runs[0]) tables.blockers = table
  const isTimed = run.blockers.every(({ byBucket }) => byBucket !== undefined)
  const bounds = run.blockers.some(({ known }) => known === 'delays') && h('p', { class: 'note' },
    '≥: known only by the delays that it caused; no blocking callback of it was recorded.')
  const note = noteOf('Blockers are', isTimed ? ['status'] : ['status', 'range'])
  return [heading(run), note, table.element, bounds]
}

/**
 * Creates the column of a figure that may be a lower bound.
 * @param {string} title
 * @param {'count' | 'totalMs' | 'worstMs'} name
 * @param {(value: unknown) => string} format
 */
function bound (title, name, format) {
  const atLeast = (/** @type {number} */ value) => value > 0 ? `≥ ${format(value)}` : NONE
  return figure(title, (/** @type {Blocker} */ row) => row[name], format, {
    cell: ({ known, [name]: value }) => (known === 'delays' ? atLeast : format)(value)
  })
}

/** Puts a remark next to a name. @param {any} name @param {any} remark */
const named = (name, remark) => h('span', { class: 'named' }, remark, name)

function slowestSection () {
  return requestsSection('slowest', 'Slowest requests', data.slowest, SLOWEST_ROWS, [
    figure('Took', ({ ms }) => ms, time),
    started,
    { title: 'Share', text: true, class: 'bar-cell', cell: ({ split, name }) => splitBar(split, name) },
    figure('Run', ({ split }) => split?.run, time),
    figure('Waited', ({ split }) => split?.waited, time),
    figure('Delayed', ({ split }) => split?.delayed, time),
    {
      title: 'Longest waits',
      text: true,
      class: 'waits sites',
      cell: ({ waits, delayedBy: [worst] }) => [
        waits.map((wait) => h('span', { class: 'wait', title: wait.at }, foreign(waitText(wait)))),
        worst && h('span', { class: 'wait' }, 'delayed by ', foreign(worst.name ?? 'code outside any span'),
          ` · ${time(worst.ms)}`)
      ]
    }
  ])
}

function openSection () {
  return requestsSection('open', 'Still open', data.open, undefined, [
    figure('Open for', ({ ms }) => ms, time),
    started,
    ...data.open.some(({ pending }) => pending !== undefined) ? [waitsFor] : [],
    { title: 'Created at', text: true, cell: ({ stack }) => folded(stack) ?? 'unknown' }
  ])
}

/**
 * Column for black boxes, which know what open requests wait for.
 * @type {import('./table').Column<Digest>}
 */
const waitsFor = {
  title: 'Waits for',
  text: true,
  class: 'waits sites',
  cell: ({ pending = [] }) => pending.map(({ what, ms }) =>
    h('span', { class: 'wait', title: what }, foreign(what), ms === undefined ? '' : ` · ${time(ms)}`))
}

/** Handles that were open in the processes of black boxes, by opener. */
function handlesSection () {
  if (data.handles.length === 0) return undefined
  const table = createTable({
    caption: 'Open handles',
    rows: () => data.handles,
    sorted: 2,
    columns: [
      textual('Handle', ({ noun }) => noun),
      textual('Opened at', ({ at: place }) => place, {
        cell: ({ at: place }) => foreign(shortFrame(place), { class: 'code', title: place })
      }),
      figure('Open', ({ count }) => count, grouped),
      figure('Process', ({ pid }) => pid, String)
    ]
  })
  return section('handles', 'Open handles', heading(runs[0]), noteOf('Open handles are', ['status', 'range']),
    table.element)
}

/** @type {import('./table').Column<Digest>} */
const started = figure('Started (UTC)', ({ startUnixMs }) => startUnixMs, clock, { class: 'clock' })

/**
 * @param {string} id
 * @param {string} title
 * @param {Digest[]} rows requests of the first run
 * @param {number | undefined} maxRows
 * @param {Array<import('./table').Column<Digest>>} columns
 */
function requestsSection (id, title, rows, maxRows, columns) {
  if (rows.length === 0) return undefined
  const nameOf = (/** @type {Digest} */ { name }) => name
  const withName = [textual('Request', nameOf, { class: 'route', cell: requestCell }), ...columns]
  const select = () => selectedRequests(rows)
  const table = createTable({ caption: title, rows: select, sorted: 1, maxRows, columns: withName })
  const note = h('p', { class: 'note unfiltered' })
  follow(() => {
    note.hidden = !isActive()
    note.textContent = `${grouped(select().length)} of the ${grouped(rows.length)} on this page.`
  })
  return section(id, title, heading(runs[0]), note, table.element)
}

/** Names a request; a click opens its trace in the waterfall. @param {Digest} request */
function requestCell ({ name, traceId, spanId, status }) {
  const title = `${name}: open trace`
  const element = hasTrace(traceId)
    ? link(foreign(name), () => openRequest(traceId, spanId), { class: 'name', title })
    : foreign(name, { class: 'name', title: name })
  return named(element, status.code === 'ERROR' && badge('error', 'error'))
}

module.exports = {
  blockersSection,
  changesSection,
  failuresSection,
  handlesSection,
  openSection,
  slowestSection,
  tables,
  waitsSections
}
