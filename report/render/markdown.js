'use strict'

// Renders a report as Markdown for a pull request: routes with their figures (before and after, for two
// runs), limits, and the waits and blockers that changed most. Data in, string out. Names from files are
// untrusted and never become markup.

const { notable } = require('./text')
const { framesOf, runsOf } = require('../aggregate/changes')
const { createRunFrameNames } = require('../aggregate/frames')
const { changeText, counted, grouped, percent, time, value, word } = require('./text-parts')
const { title } = require('./text-routes')
const { MARKS, checkText } = require('./text-sections')
const { unglued } = require('./wrap')
const { ratio } = require('../aggregate/limits')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/changes').Changes} Changes
 * @typedef {import('../aggregate/changes').Figures} Figures
 * @typedef {import('../aggregate/limits').Unit} Unit
 * @typedef {(frame: string) => string} FrameNames
 */

const [MAX_ROUTES, MAX_CHANGES, MAX_FINDINGS] = [20, 10, 5]
const MAX_SENTENCE = 1000
const NOTABLE = 0.05 // relative change to set in bold

/**
 * @param {Model} model
 * @param {{ top?: number }} [options]
 * @returns {string}
 */
function markdown (model, { top = MAX_ROUTES } = {}) {
  const runs = runsOf(model)
  const frameName = createRunFrameNames(runs.map(framesOf))
  const tables = model.changes === undefined
    ? [routeTable(model.routes, top), siteTable(model.routes, frameName)]
    : [changeTable(model.changes, top), ...changeTables(model.changes, frameName)]
  const sections = [
    summary(model),
    limitList(model),
    verdictList(runs[runs.length - 1]),
    ...tables
  ]
  return `${sections.filter((section) => section !== '').join('\n\n')}\n`
}

/**
 * Escapes everything that Markdown or HTML would interpret as markup, a link or a mention, also in table
 * cells.
 * @param {string} foreign
 * @param {number} [max] characters
 */
function escaped (foreign, max) {
  return word(foreign, max).replace(/[&<>]/g, (char) => ({ '&': '&amp;', '<': '&lt;' })[char] ?? '&gt;')
    .replace(/[\\`*_{}[\]#|~@]|:(?=\/\/)|(?<=www)\./gi, (char) => `&#${char.charCodeAt(0)};`)
}

/** @param {Model} model */
function summary ({ files, compare, limits = [] }) {
  const [before, after] = [files, compare?.files].map((list) =>
    list && counted(list.reduce((sum, { spans }) => sum + spans, 0), 'span'))
  const countOf = (/** @type {string} */ name) => limits.filter(({ state }) => state === name).length
  const [exceeded, unchecked] = [countOf('exceeded'), countOf('unchecked')]
  const outcome = [
    exceeded > 0 ? `**${counted(exceeded, 'limit')} exceeded**` : '',
    exceeded === 0 && limits.length > 0 ? 'no limit exceeded' : '',
    unchecked > 0 ? `${grouped(unchecked)} not checked` : ''
  ].filter(Boolean).join(', ')
  const spans = after === undefined ? before : `${before} before, ${after} after`
  return `### longstack report${outcome === '' ? '' : `: ${outcome}`}\n\n${spans}`
}

/** @param {Model} model */
function limitList ({ limits = [] }) {
  return limits.filter(({ state }) => state !== 'held').map((check) => {
    const text = unglued(checkText(check))
    return `- ${MARKS[check.state]} **${escaped(check.expression)}** ${escaped(text)}`
  }).join('\n')
}

/** @param {Model} model */
function verdictList ({ verdict }) {
  return verdict.slice(0, MAX_FINDINGS).map(({ sentence, advice, whatIf }, i) => {
    const text = [sentence, whatIf?.sentence].join(' ').trim()
    return `${i + 1}. ${escaped(text, MAX_SENTENCE)} _${escaped(advice, MAX_SENTENCE)}_`
  }).join('\n')
}

/** @param {Route[]} routes @param {number} top */
function routeTable (routes, top) {
  const rows = routes.slice(0, top).map((route) => {
    const { weighted, summary, rate, errors } = route
    const figures = [summary?.median, summary?.p99].map((ms) => ms === undefined ? '' : time(ms))
    return [
      ...[escaped(title(route)), grouped(weighted), ...figures],
      rate === undefined ? '' : value(rate, 'rate'),
      weighted > 0 ? value(errors / weighted, 'share') : ''
    ]
  })
  return table(['Route', 'Spans', 'p50', 'p99', 'Rate', 'Errors'], rows) + rest(routes.length - top)
}

/** Lists the worst waits of all routes. @param {Route[]} routes @param {FrameNames} frameName */
function siteTable (routes, frameName) {
  const outermost = routes.filter(({ kind }) => kind === routes[0].kind)
  const sites = outermost.flatMap((route) => route.sites.map((site) => ({ route, site })))
  const worst = sites.sort((a, b) => b.site.ms - a.site.ms).slice(0, MAX_CHANGES)
  const rows = worst.map(({ route, site: { at: frame = '', until = '', share, ms } }) => [
    ...[escaped(route.name), escaped(frameName(frame)), escaped(until)],
    ...[percent(share), time(ms / route.weighted)]
  ])
  return titled('Worst waits', ['Route', 'Site', 'Until', 'Share', 'Time'], rows)
}

/** @param {Changes} changes @param {number} top */
function changeTable ({ routes }, top) {
  const rows = routes.slice(0, top).map(({ name, kind, before, after }) => [
    escaped(title({ name, kind })),
    ...[arrow(before, after, 'p50', 'ms'), arrow(before, after, 'p99', 'ms')],
    ...[arrow(before, after, 'rate', 'rate'), arrow(before, after, 'errors', 'share')]
  ])
  return table(['Route', 'p50', 'p99', 'Rate', 'Errors'], rows) + rest(routes.length - top)
}

/**
 * Formats a figure before and after: `12 ms → 15 ms **+25 %**`.
 * @param {Figures | undefined} before
 * @param {Figures | undefined} after
 * @param {'p50' | 'p99' | 'rate' | 'errors'} key
 * @param {Unit} unit
 */
function arrow (before, after, key, unit) {
  const [a, b] = [before?.[key], after?.[key]]
  const [first, second] = [a, b].map((figure) => figure === undefined ? '–' : value(figure, unit))
  if (a === undefined || b === undefined) return `${first} → ${second}`
  const change = changeText(a, b)
  if (change === '=') return second
  return `${first} → ${second} ${Math.abs(ratio(a, b)) >= NOTABLE ? `**${change}**` : `(${change})`}`
}

/** @param {Changes} changes @param {FrameNames} frameName @returns {string[]} */
function changeTables ({ sites, blockers }, frameName) {
  const place = (/** @type {string} */ frame = '') => escaped(frameName(frame))
  const siteRows = notable(sites, ({ changeMs }) => changeMs).slice(0, MAX_CHANGES)
    .map(({ route, at: frame, until = '', ...change }) =>
      [escaped(route), place(frame), escaped(until), ...figuresOf(change)])
  const blockerRows = notable(blockers, ({ change }) => change).slice(0, MAX_CHANGES)
    .map(({ name, at: frame, ...change }) => [escaped(name), place(frame), ...figuresOf(change)])
  return [
    titled('Waits that changed most', ['Route', 'Site', 'Until', 'Change', 'Before → after'], siteRows),
    titled('Blockers that changed most', ['Request', 'Function', 'Change', 'Before → after'], blockerRows)
  ]
}

/** @param {string} title @param {string[]} columns @param {string[][]} rows */
function titled (title, columns, rows) {
  return rows.length === 0 ? '' : `**${title}**, per request\n\n${table(columns, rows)}`
}

/** @param {{ beforeMs: number, afterMs: number, change: number }} change */
function figuresOf ({ beforeMs, afterMs, change }) {
  return [
    `${change < 0 ? '−' : '+'}${time(Math.abs(change))}`,
    `${time(beforeMs)} → ${time(afterMs)} (${changeText(beforeMs, afterMs)})`
  ]
}

/** @param {string[]} titles @param {string[][]} rows escaped text */
function table (titles, rows) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.join(' | ')} |`
  const alignment = titles.map((text) => /^(?:Route|Request|Site|Function|Until)$/.test(text) ? ':--' : '--:')
  return [line(titles), line(alignment), ...rows.map(line)].join('\n')
}

/** @param {number} count omitted rows */
function rest (count) {
  return count > 0 ? `\n\n… ${counted(count, 'more route')}` : ''
}

module.exports = { markdown }
