'use strict'

// Puts the page together, from what lies in it as JSON: first what stands out, then the distributions, the shares, who held
// up whom, and single requests.

/* global document */

const { distributions, lanesOf } = require('./distributions')
const { foreign, h, section } = require('./dom')
const { change, clock, count, day, fromTo, known, NONE, percent, plural, rate, time, waitText } = require('./format')
const { bar, legend, waits } = require('./split')
const { folded } = require('./stack')
const { createTable } = require('./table')
const { themes } = require('./theme')
const { createWaterfall } = require('./waterfall')

/**
 * @typedef {import('../data').PageData} PageData
 * @typedef {import('../data').PageRun} PageRun
 * @typedef {import('../data').PageRoute} PageRoute
 * @typedef {import('../data').PageRow} PageRow
 */

/** @type {PageData} */
const data = JSON.parse(document.getElementById('data')?.textContent ?? '')
const { runs, stacks } = data
const labels = runs.map((run) => run.label)
const comparing = runs.length > 1

/** @param {Array<number | undefined>} values */
const total = (values) => values.reduce((/** @type {number} */ sum, value) => sum + (value ?? 0), 0)

/** @param {PageRow} row */
const stackOf = (row) => (row.stack === undefined ? undefined : stacks[row.stack])

function header () {
  return h('header', {}, h('div', { class: 'head' }, h('h1', {}, data.title), themes()), runs.map(source), notes())
}

/** @param {PageRun} run @param {number} i */
function source (run, i) {
  const spans = total(run.files.map((file) => file.spans))
  const length = known(run.from) && known(run.to) ? ` (${time(run.to - run.from)})` : ''
  const facts = [run.files.length === 1 ? run.files[0].name : plural(run.files.length, 'file'), plural(spans, 'record'), `${day(run.from)} to ${day(run.to).slice(11)} UTC${length}`]
  return h('p', { class: 'source' }, comparing && h('span', { class: `swatch run-${i}` }), foreign(facts.join(' · ')))
}

/** What is missing or wrong is said at the top, where nobody overlooks it. */
function notes () {
  const sentences = [...new Set(runs.flatMap((run) => [...run.notes, ...run.files.flatMap((file) => file.problems)])), ...data.thinned]
  if (sentences.length === 0) return undefined
  const list = h('ul', { class: 'notes' }, sentences.map((sentence) => h('li', {}, sentence)))
  return sentences.length <= 3 ? list : h('details', { class: 'folded-notes' }, h('summary', {}, plural(sentences.length, 'remark'), ' on these files and this page'), list)
}

function tiles () {
  const { routes } = runs[0]
  const sum = (/** @type {string} */ name) => total(routes.map((route) => route.figures[name]))
  const [spans, errors] = [sum('weighted'), sum('errors')]
  const slowest = Math.max(-Infinity, ...routes.map((route) => route.figures.max ?? -Infinity))
  /** @type {Array<[string, string, string]>} */
  const facts = [
    ['Spans', count(spans), `ended, on ${plural(routes.length, 'route')}`],
    ['Rate', rate(sum('rate')), 'over all routes'],
    ['Errors', count(errors), spans > 0 ? percent(errors / spans) : ''],
    ['Still open', count(sum('open')), 'never seen to end'],
    ['Slowest', time(slowest), routes.find((route) => route.figures.max === slowest)?.name ?? ''],
    ['Held up by others', time(total(routes.map((route) => (route.split?.delayed ?? 0) * (route.figures.weighted ?? 0)))), 'all spans together']
  ]
  return h('dl', { class: 'tiles' }, facts.map(([name, value, remark]) => h('div', {}, h('dt', {}, name), h('dd', {}, value, h('small', {}, foreign(remark))))))
}

/** What a reader should see first, in a sentence; only what the figures say. */
function finding () {
  const [worst] = runs[0].blockers
  if (worst === undefined) return undefined
  const { count: times, totalMs, worstMs, delayedSpans, delayedMs } = worst.figures
  const where = worst.at === undefined ? '' : [' in ', foreign(worst.at, { class: 'code' })]
  const ran = worst.guessed ? undefined : `it blocked the loop for ${time(totalMs)} in ${plural(times, 'run')}, ${time(worstMs)} at worst`
  const held = delayedSpans > 0 ? `${plural(delayedSpans, 'span')} waited for it, ${time(delayedMs)} all together` : 'no span is known to have waited for it'
  return h('p', { class: 'finding' }, comparing && ['In ', foreign(labels[0]), ', '], comparing ? 'the' : 'The', ' worst blocker is ', h('b', {}, foreign(worst.name)), where,
    `: ${[ran, held].filter(Boolean).join('; ')}.`)
}

/** @param {PageRoute} route */
const routeName = (route) => [foreign(route.name, { class: 'name', title: route.name }), h('small', { class: 'kind' }, route.kind.toLowerCase())]

/** @param {string} title @param {string} name @param {(value: unknown) => string} format @param {string} [hint] @returns {any} */
function figure (title, name, format, hint) {
  return { title, hint, value: (/** @type {any} */ row) => row.figures[name], cell: (/** @type {any} */ row) => format(row.figures[name]) }
}

/** @type {any} */
const byName = { title: 'Route', text: true, class: 'route', value: (/** @type {PageRoute} */ route) => route.name, cell: routeName }

/** @param {PageRun} run */
function routes (run) {
  return [heading(run), createTable({
    caption: `Figures per route${comparing ? ` of ${run.label}` : ''}`,
    rows: run.routes,
    sorted: 1,
    columns: [
      byName,
      figure('Count', 'weighted', count), figure('Rate', 'rate', rate), errors, figure('Open', 'open', count, 'never seen to end'),
      figure('Min', 'min', time), figure('1st Qu.', 'q1', time), figure('Median', 'median', time), figure('Mean', 'mean', time), figure('3rd Qu.', 'q3', time),
      figure('p99', 'p99', time), figure('p99.9', 'p999', time), figure('Max', 'max', time)
    ]
  })]
}

/** @type {any} */
const errors = {
  title: 'Errors',
  value: (/** @type {PageRoute} */ { figures }) => figures.errors,
  cell: (/** @type {PageRoute} */ { figures }) => figures.errors > 0
    ? [h('span', { class: 'failure' }, count(figures.errors)), h('small', {}, ` ${percent(figures.errors / figures.weighted)}`)]
    : count(figures.errors)
}

/** @param {PageRun} run */
function heading (run) {
  return comparing && h('h3', { class: 'run-title' }, h('span', { class: `swatch run-${runs.indexOf(run)}` }), foreign(run.label))
}

/** @param {PageRun} run */
function shares (run) {
  const rows = run.routes.filter((route) => route.split !== undefined)
  if (rows.length === 0) return undefined
  const part = (/** @type {string} */ title, /** @type {'run' | 'waited' | 'delayed'} */ name) => ({
    title,
    value: (/** @type {PageRoute} */ route) => route.split?.[name],
    cell: (/** @type {PageRoute} */ route) => [time(route.split?.[name]), h('small', {}, ` ${percent((route.split?.[name] ?? NaN) / route.figures.mean)}`)]
  })
  return [heading(run), createTable({
    caption: `Where the time went, mean per route${comparing ? ` of ${run.label}` : ''}`,
    rows,
    sorted: 2,
    columns: [
      byName,
      { title: 'Share', text: true, class: 'bar-cell', cell: (route) => bar(route.split, route.name) },
      figure('Mean', 'mean', time), part('Run', 'run'), part('Waited', 'waited'), part('Delayed', 'delayed'),
      { title: 'Waited for', text: true, class: 'waits', cell: (route) => waits(route.split) }
    ]
  })]
}

function changes () {
  const quartiles = /** @type {Array<[string, string]>} */ ([['Min', 'min'], ['1st Qu.', 'q1'], ['Median', 'median'], ['Mean', 'mean'], ['3rd Qu.', 'q3'], ['p99', 'p99'], ['Max', 'max']])
  const ratio = (/** @type {any} */ lane, /** @type {string} */ name) => {
    const [before, after] = lane.runs.map((/** @type {PageRoute | undefined} */ route) => route?.figures[name])
    return before > 0 && known(after) ? after / before : undefined
  }
  return createTable({
    caption: `Change of each quartile from ${labels[0]} to ${labels[1]}`,
    rows: lanesOf(runs.map((run) => run.routes)),
    columns: [
      { title: 'Route', text: true, class: 'route', value: (lane) => lane.name, cell: (/** @type {any} */ lane) => routeName(lane) },
      {
        title: 'Count',
        value: (lane) => lane.runs[0]?.figures.weighted,
        cell: (lane) => lane.runs.map((route) => (route === undefined ? 'none' : count(route.figures.count))).join(' → ')
      },
      ...quartiles.map(([title, name]) => ({ title, value: (/** @type {any} */ lane) => ratio(lane, name), cell: (/** @type {any} */ lane) => changed(lane, name, ratio(lane, name)) }))
    ]
  })
}

/** @param {any} lane @param {string} name @param {number | undefined} ratio */
function changed ({ runs: [a, b] }, name, ratio) {
  const style = ratio === undefined || Math.abs(ratio - 1) < 0.02 ? 'same' : ratio > 1 ? 'slower' : 'faster'
  return [h('span', { class: `change ${style}` }, change(a?.figures[name], b?.figures[name])), h('small', {}, fromTo(a?.figures[name], b?.figures[name]))]
}

/** @param {PageRun} run */
function blockers (run) {
  return [heading(run), createTable({
    caption: `Who held up others${comparing ? ` in ${run.label}` : ''}`,
    rows: run.blockers,
    sorted: 3,
    columns: [
      { title: 'What ran', text: true, class: 'route', value: ({ name }) => name, cell: culprit },
      { title: 'Where', text: true, class: 'at', value: ({ at }) => at, cell: (row) => place(row) },
      blocked('Runs', 'count', count), blocked('Total', 'totalMs', time), blocked('Worst', 'worstMs', time),
      figure('Spans held up', 'delayedSpans', count), figure('They waited', 'delayedMs', time, 'all of them together')
    ]
  }), run.blockers.some(({ guessed }) => guessed) && h('p', { class: 'note' },
    '≥: known only by the delays that it caused, no blocked run of it was recorded; it ran at least that often and that long.')]
}

/** @param {PageRow} row */
function culprit ({ name, open }) {
  return named(foreign(name, { class: 'name', title: name }), open && badge('still runs'))
}

/** @param {string} title @param {string} name @param {(value: unknown) => string} format @returns {any} */
function blocked (title, name, format) {
  const least = (/** @type {number} */ value) => (value > 0 ? `≥ ${format(value)}` : NONE)
  return { ...figure(title, name, format), cell: (/** @type {PageRow} */ { figures, guessed }) => (guessed ? least : format)(figures[name]) }
}

/** @param {any} name @param {any} [remark] @returns {any} */
function named (name, remark) {
  return h('span', { class: 'named' }, remark, name)
}

/** @param {string} text @param {string} [kind] */
function badge (text, kind = '') {
  return h('span', { class: `badge ${kind}` }, text)
}

/** @param {PageRow} row */
function place (row) {
  return [row.at === undefined ? 'not sampled' : foreign(row.at, { class: 'code' }), folded(stackOf(row))]
}

/** @param {ReturnType<typeof createWaterfall> | undefined} waterfall @returns {any} */
function opener (waterfall) {
  /** @param {PageRow} row */
  const open = (row) => {
    document.getElementById('request')?.scrollIntoView()
    waterfall?.open(row.traceId, row.spanId)
  }
  return {
    title: 'Request',
    text: true,
    class: 'route',
    value: (/** @type {PageRow} */ { name }) => name,
    cell: (/** @type {PageRow} */ row) => named(waterfall?.has(row.traceId)
      ? h('button', { type: 'button', class: 'link name', title: `${row.name}: show step by step`, on: { click: () => open(row) } }, foreign(row.name))
      : foreign(row.name, { class: 'name', title: row.name }), row.status === 'ERROR' && badge('error', 'error'))
  }
}

/** @type {any} */
const started = { ...figure('Started (UTC)', 'startUnixMs', clock), class: 'clock' }

/** @param {ReturnType<typeof createWaterfall> | undefined} waterfall */
function slowest (waterfall) {
  const part = (/** @type {string} */ title, /** @type {'run' | 'waited' | 'delayed'} */ name) =>
    ({ title, value: (/** @type {PageRow} */ row) => row.split?.[name], cell: (/** @type {PageRow} */ row) => time(row.split?.[name]) })
  return createTable({
    caption: 'Slowest requests',
    rows: data.slowest,
    sorted: 1,
    most: 10,
    columns: [
      opener(waterfall), figure('Took', 'ms', time), started,
      { title: 'Share', text: true, class: 'bar-cell', cell: (row) => bar(row.split, row.name) },
      part('Run', 'run'), part('Waited', 'waited'), part('Delayed', 'delayed'),
      { title: 'Waited longest', text: true, class: 'waits sites', cell: ({ waits: all }) => sites(all) },
      { title: 'Held up most by', text: true, class: 'at', cell: ({ delayedBy: [worst] }) => worst && delayer(worst) }
    ]
  })
}

/** Lists waits, a line each. @param {import('../data').Wait[]} all */
function sites (all) {
  return all.map((wait) => h('span', { class: 'wait', title: wait.at }, foreign(waitText(wait))))
}

/** @param {import('../data').Delay} worst */
function delayer ({ name = 'code outside of any span', ms }) {
  return [foreign(name), h('small', {}, ` ${time(ms)}`)]
}

/** @param {ReturnType<typeof createWaterfall> | undefined} waterfall */
function open (waterfall) {
  return createTable({
    caption: 'Requests still open',
    rows: data.open,
    sorted: 1,
    columns: [opener(waterfall), figure('Open for', 'ms', time), started, { title: 'Where it was made', text: true, cell: (row) => folded(stackOf(row)) ?? 'not known' }]
  })
}

function page () {
  const waterfall = data.traces.length > 0 ? createWaterfall(data.traces, stacks) : undefined
  const parts = [
    section('durations', 'How long it took', distributions(runs.map((run) => run.routes), labels)),
    comparing && section('changes', 'What changed', h('p', { class: 'lead' }, 'From ', foreign(labels[0]), ' to ', foreign(labels[1]), '.'), changes()),
    section('figures', 'Figures per route', runs.map(routes)),
    runs.some((run) => run.routes.some((route) => route.split !== undefined)) && section('shares', 'Where the time went', legend(), runs.map(shares)),
    runs.some((run) => run.blockers.length > 0) && section('blockers', 'Who held up others', runs.map(blockers)),
    data.slowest.length > 0 && section('slowest', 'Slowest requests', heading(runs[0]), slowest(waterfall)),
    waterfall && section('request', 'One request, step by step', heading(runs[0]), waterfall.element),
    data.open.length > 0 && section('open', 'Still open', heading(runs[0]), open(waterfall))
  ].filter(Boolean)
  return [
    h('a', { class: 'skip', href: '#main' }, 'Skip to the report'),
    header(),
    h('nav', { 'aria-label': 'Sections' }, h('ul', {}, parts.map((part) => h('li', {}, h('a', { href: `#${part.id}` }, part.firstChild.textContent))))),
    h('main', { id: 'main', tabindex: -1 }, finding(), tiles(), parts),
    footer()
  ]
}

function footer () {
  const files = runs.flatMap((run) => run.files).map((file) => h('li', {}, foreign(file.name), ` · ${plural(file.spans ?? 0, 'record')}`))
  return h('footer', {},
    files.length > 1 && h('details', {}, h('summary', {}, plural(files.length, 'file')), h('ul', {}, files)),
    h('p', {}, 'Made by longstack, drawn with D3 (© Mike Bostock, ISC licence). Everything is in this file; it asks for nothing else.'))
}

document.getElementById('page')?.append(...page())
