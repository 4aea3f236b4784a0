'use strict'

// Renders routes as text. The short form has figures and the worst waits; the full form has figures under R's
// names, a curve, a box plot and all waits. A wait is printed as its site with callers, its end and its
// duration.

const { blockLine, columns, counted, digits, figure, grouped, percent, time, word } = require('./text-parts')
const { isUnread } = require('./format')
const { glued } = require('./wrap')
const { sum } = require('../aggregate/lists')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/sites').Site} Site
 * @typedef {import('../aggregate/digest').Split} Split
 * @typedef {import('../aggregate/summary').Density} Density
 * @typedef {import('../aggregate/summary').Box} Box
 * @typedef {import('./text-parts').Context} Context
 * @typedef {import('./text-parts').Colours} Colours
 * @typedef {keyof import('../aggregate/summary').Summary} FigureKey
 *
 * @typedef {object} Axis range of a box plot, in ms
 * @property {number} from
 * @property {number} to
 * @property {number} width in characters
 */

const FIGURES = /** @type {const} */ ([
  ['min', 'Min.'], ['q1', '1st Qu.'], ['median', 'Median'], ['mean', 'Mean'], ['q3', '3rd Qu.'],
  ['max', 'Max.'], ['p99', 'p99'], ['p999', 'p99.9']
])
/** Figures in the order of importance; narrow lines keep the first ones. @type {string[]} */
const BY_NEED = ['median', 'p99', 'max', 'mean', 'q3', 'q1', 'min', 'p999']
/** @type {[number, number]} */
const MAX_ROUTES = [8, 20]
const SMALL_SHARE = 0.01 // share of all time, below which a route is only named
const MAX_NAMES = 8 // number of routes that are only named
const MAX_SUBSYSTEMS = 6
const VISIBLE_COUNT = 0.05 // relative to a mean
const VISIBLE_MS = 0.0005 // shorter times are not printed
const [SHORT_SITES, FULL_SITES] = [2, 10]
const LARGE_SHARE = 0.2 // share of all time, below which the short form prints one site
const [SHORT_SHARE, FULL_SHARE] = [0.08, 0.001] // share of a route's time, below which a site is left out
const SHORT_CALLERS = 1
const SHARE_COLUMNS = 8

/** @param {Model} model @param {Context} context @returns {string[][]} */
function routeParts ({ routes }, context) {
  const { isFull } = context
  // Only the first kind: a client's time is part of a server's
  const outermost = routes.filter(({ kind }) => kind === routes[0].kind)
  const whole = sum(outermost, ({ totalMs }) => totalMs)
  const isPrinted = (/** @type {Route} */ route, /** @type {number} */ i) =>
    isFull || i === 0 || context.top !== undefined || (outermost.includes(route) && isNotable(route, whole))
  const printed = routes.filter(isPrinted).slice(0, context.max(MAX_ROUTES))
  const parts = printed.map((route) => {
    const isOutermost = outermost.includes(route)
    return [
      ...titleLines(route, isOutermost ? whole : 0, context),
      ...(isFull ? fullFigures(route, context) : shortFigures(route, context)),
      ...(isFull || isOutermost ? siteLines(route, route.totalMs / whole, context) : []),
      ...askedLines(route, context)
    ]
  })
  const others = routes.filter((route) => !printed.includes(route))
  return [...parts, otherLines(others, context)]
}

/**
 * Returns whether the short form prints more than the name of an outermost route.
 * @param {Route} route
 * @param {number} whole ms of all outermost routes
 */
function isNotable ({ totalMs, open, errors }, whole) {
  return open > 0 || errors > 0 || totalMs >= SMALL_SHARE * whole
}

/** @param {Route[]} routes only named @param {Context} context */
function otherLines (routes, { colours, paragraph }) {
  if (routes.length === 0) return []
  const names = routes.slice(0, MAX_NAMES).map((route) => glued(title(route)))
  const more = routes.length > MAX_NAMES ? ', …' : ''
  const text = `… ${counted(routes.length, 'more route')}: ${names.join(', ')}${more}`
  return paragraph(`${text} (${glued('--top N')} prints more)`, '', '  ').map((line) => colours.dim(line))
}

/** @param {{ kind: string, name: string }} route */
function title ({ kind, name }) {
  return kind === 'SERVER' ? word(name) : `${word(name)} (${kind.toLowerCase()})`
}

/** @param {Route} route @param {number} whole @param {Context} context */
function titleLines (route, whole, { colours, paragraph }) {
  const hasShare = whole > 0 && route.totalMs > 0
  const share = hasShare ? `, ${glued(`${percent(route.totalMs / whole)} of the time`)}` : ''
  const name = colours.bold(glued(`${title(route)} `))
  return paragraph(`${name} ${amounts(route, colours)}${share}`, '', '  ')
}

/** Counts spans, errors and open spans. @param {Route} route @param {Colours} colours */
function amounts (route, colours) {
  const { count, weighted, rate, errors, open } = route
  const perSecond = rate === undefined ? '' : `, ${digits(rate)}/s`
  const lines = Math.round(weighted) === count ? '' : ` estimated from ${glued(counted(count, 'line'))}`
  return [
    `${glued(counted(weighted, 'span'))}${lines}${perSecond}`,
    errors > 0 ? colours.red(glued(counted(errors, 'error'))) : '',
    open > 0 ? colours.yellow(glued(`${grouped(open)} open`)) : ''
  ].filter(Boolean).join(', ')
}

/** @param {Route} route @param {Context} context */
function shortFigures (route, { paragraph }) {
  const { summary, split, unreadMs } = route
  if (summary === undefined) return []
  const { median, p99, max } = summary
  const figures = [`median ${time(median)}`, `p99 ${time(p99)}`, `max ${time(max)}`].map(glued).join(', ')
  const sentence = `clients waited ${time(unreadMs)} longer: requests lay unread`
  const unread = isUnread(route) ? paragraph(sentence, '  ') : []
  const whole = split === undefined ? 0 : split.run + split.waited + split.delayed
  if (split === undefined || whole === 0) return [...paragraph(figures, '  '), ...unread]
  const parts = /** @type {const} */ (['run', 'waited', 'delayed']).map((name) =>
    glued(`${name} ${percent(split[name] / whole)}`))
  return [...paragraph(`${figures}; ${parts.join(', ')}`, '  '), ...unread]
}

/** @param {number} mean mean count */
const countText = (mean) => String(Number(mean.toFixed(1)))

/** @param {Route} route @param {Context} context */
function askedLines ({ asked }, { paragraph }) {
  if (asked === undefined) return []
  const { count, serial, ms } = asked
  const isAll = serial > count - VISIBLE_COUNT
  const order = serial < 1 + VISIBLE_COUNT
    ? ''
    : `, ${isAll ? '' : `${countText(serial)} of them `}one after another`
  const queries = count === 1 ? '1 query' : `${countText(count)} queries`
  return paragraph(`${glued(`${queries} per request`)}${order}, ${glued(`${time(ms)} in all`)}`, '  ')
}

/** @param {Route} route @param {Context} context */
function fullFigures (route, { colours, width, paragraph }) {
  const { summary, split } = route
  const means = split === undefined ? [] : paragraph(parts(split), '  means    ')
  if (summary === undefined) return means
  return [...table([['', (key) => figure(summary[key])]], colours, width), ...plots(route, width), ...means]
}

/**
 * Renders as many columns of figures as fit the width.
 * @param {Array<[name: string, cell: (key: FigureKey) => string]>} rows
 * @param {Colours} colours
 * @param {number} width
 * @returns {string[]} titles, then one line per row
 */
function table (rows, colours, width) {
  for (let count = FIGURES.length; ; count--) {
    const kept = FIGURES.filter(([key]) => BY_NEED.indexOf(key) < count)
    const cells = rows.map(([name, cell]) => [name, ...kept.map(([key]) => cell(key))])
    const [titles, ...figures] = columns([['', ...kept.map(([, text]) => text)], ...cells])
    if (titles.length + 6 > width && count > 3) continue
    return [colours.dim(`  ${titles}  ms`), ...figures.map((line) => `  ${line}`)]
  }
}

/** @param {Route} route @param {number} width */
function plots ({ density, box, count, weighted }, width) {
  if (density === undefined || box === undefined) return []
  const axis = { from: density.x[0], to: density.x[density.x.length - 1], width: width - 11 }
  const noun = weighted === count ? 'span' : 'line'
  return [
    `  density  ${blockLine(heights(density.y, axis.width)).trimEnd()}`,
    `  box      ${boxLine(box, axis)}`,
    `           ${scale(axis)}`,
    ...(density.beyond > 0 ? [`           ${counted(density.beyond, noun)} beyond the right end`] : [])
  ]
}

/**
 * Returns the highest point of a curve for each character of a line.
 * @param {Density['y']} y
 * @param {number} width
 */
function heights (y, width) {
  const step = (y.length - 1) / width
  const at = (/** @type {number} */ index) => {
    const low = Math.floor(index)
    return low + 1 < y.length ? y[low] + (y[low + 1] - y[low]) * (index - low) : 0
  }
  return Array.from({ length: width }, (_, i) => {
    const [first, last] = [i * step, (i + 1) * step]
    return Math.max(at(first), at(last), ...y.slice(Math.ceil(first), Math.floor(last) + 1))
  })
}

/**
 * Draws a box plot as a line; an arrow represents all values beyond its end.
 * @param {Box} box @param {Axis} axis
 */
function boxLine (box, { from: origin, to: end, width }) {
  const line = Array(width).fill(' ')
  const scale = (width - 1) / (end - origin || 1)
  const column = (/** @type {number} */ value) => Math.round((value - origin) * scale)
  const put = (/** @type {number} */ index, /** @type {string} */ mark) => {
    line[Math.max(0, Math.min(index, width - 1))] = mark
  }
  for (const outlier of box.outliers) put(column(outlier), column(outlier) >= width ? '›' : '·')
  for (let i = column(box.low); i <= column(box.high); i++) put(i, '─')
  put(column(box.low), '├')
  put(column(box.high), column(box.high) >= width ? '›' : '┤')
  for (let i = column(box.q1); i <= column(box.q3); i++) put(i, '▒')
  put(column(box.median), '┃')
  return line.join('').trimEnd()
}

/** @param {Axis} axis */
function scale ({ from: origin, to: end, width }) {
  const [low, high] = [time(origin), time(end)]
  return low + high.padStart(width - low.length)
}

/**
 * Formats the breakdown of a duration.
 * @param {Split} split
 * @param {number} [delayedMax] ms, if the delay is not known exactly
 */
function parts ({ run, waited, delayed, wait }, delayedMax = delayed) {
  const waits = Object.entries(wait).filter(([, ms]) => ms > VISIBLE_MS).sort((a, b) => b[1] - a[1])
  const subsystems = waits.slice(0, MAX_SUBSYSTEMS).map(([name, ms]) => glued(`${word(name)} ${time(ms)}`))
  const details = subsystems.length === 0 ? '' : ` (${subsystems.join(', ')})`
  const waitText = `${glued(`wait ${time(waited)}`)}${details}`
  const delay = delayedMax > delayed ? `${time(delayed)} to ${time(delayedMax)}` : time(delayed)
  return `${glued(`run ${time(run)}`)} · ${waitText} · ${glued(`delayed ${delay}`)}`
}

/**
 * Lists the sites where a route's requests waited, worst first.
 * @param {Route} route
 * @param {number} routeShare share of all time
 * @param {Context} context
 * @returns {string[]}
 */
function siteLines ({ sites, otherSites, totalMs, weighted }, routeShare, context) {
  const { isFull, paragraph, top } = context
  const max = isFull ? Math.max(top ?? 0, FULL_SITES) : routeShare < LARGE_SHARE ? 1 : SHORT_SITES
  const minShare = isFull ? FULL_SHARE : SHORT_SHARE
  const printed = sites.filter(({ ms, delayed }) => (ms + delayed) >= minShare * totalMs).slice(0, max)
  const lines = printed.flatMap((site) => siteLine(site, totalMs, context, callersNeeded(site, printed)))
  if (!isFull) return lines
  const ms = sites.reduce((sum, site) => sum + (printed.includes(site) ? 0 : site.ms), otherSites?.ms ?? 0)
  if (ms < FULL_SHARE * totalMs) return lines
  const count = sites.length - printed.length + (otherSites?.count ?? 0)
  const name = count > 0 ? counted(count, 'other site') : 'other sites'
  const text = `${name}, ${glued(`${time(ms / weighted)} per request`)}`
  return [...lines, ...paragraph(text, indentOf(ms / totalMs))]
}

/**
 * Returns how many callers the short form prints, so that each site reads differently from the others.
 * @param {Site} site
 * @param {Site[]} sites of a route
 */
function callersNeeded (site, sites) {
  const { at: frame, callers, until, label } = site
  const alike = sites.filter((other) => other !== site && other.at === frame && other.until === until &&
    other.label === label)
  let count = SHORT_CALLERS
  const isAlike = (/** @type {Site} */ other) =>
    callers.slice(0, count).every((caller, i) => caller === other.callers[i])
  while (count < callers.length && alike.some(isAlike)) count++
  return count
}

/**
 * @param {Site} site
 * @param {number} totalMs of the route
 * @param {Context} context
 * @param {number} callers number of them in the short form
 */
function siteLine (site, totalMs, context, callers) {
  const { ms, count, spans, delayed, summary } = site
  const { colours, isFull, paragraph } = context
  const figures = [glued(`${time(ms)} in ${counted(count, 'wait')}`)]
  if (summary !== undefined) {
    const { q1, median, q3 } = summary
    figures.push(`${glued(`${time(median)} per request`)} ${glued(`(${time(q1)} to ${time(q3)})`)}`)
  }
  if (delayed >= (isFull ? FULL_SHARE : SHORT_SHARE) * totalMs) {
    const length = spans > 0 ? `${time(delayed / spans)} per request` : time(delayed)
    figures.push(glued(`delayed ${length}`))
  }
  const place = placeText(site, context, callers)
  return [
    ...paragraph(place, indentOf(ms / totalMs), ' '.repeat(SHARE_COLUMNS + 4)),
    ...paragraph(figures.join(', '), ' '.repeat(SHARE_COLUMNS + 2)).map((line) => colours.dim(line))
  ]
}

/** @param {number} share */
const indentOf = (share) => `${percent(share).padStart(SHARE_COLUMNS)}  `

/**
 * Formats a site: `at pool.query (pool.js:34) ← report (app.js:24) until TCP 127.0.0.1:5432`.
 * @param {{ at?: string, callers?: string[], until?: string, label?: string }} place
 * @param {Context} context
 * @param {number} [max] number of callers in the short form
 */
function placeText (place, { colours, frame: nameOf, isFull }, max = SHORT_CALLERS) {
  const { at: frame, callers = [], until, label } = place
  const printed = isFull ? callers : callers.slice(0, max)
  const site = frame === undefined ? glued('at an unknown site') : glued('at ') + colours.cyan(nameOf(frame))
  const chain = printed.map((caller) => `${glued('← ')}${nameOf(caller)}`)
  const end = until === undefined ? label && glued(`(${word(label)})`) : glued(`until ${word(until)}`)
  return [site, ...chain, end].filter(Boolean).join(' ')
}

module.exports = { VISIBLE_MS, amounts, parts, placeText, routeParts, table, title }
