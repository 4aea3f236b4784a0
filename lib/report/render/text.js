'use strict'

// Renders a report as text: figures under R's names, a curve and a box plot of each route, then blockers, the
// slowest requests and the open ones. Data in, string out.

const {
  boxLine, columns, counted, curve, figure, grouped, lines, moment, noColours, rate, scale, time, word
} = require('./text-parts')
const { shortFrame } = require('../../text')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('../aggregate/digest').Split} Split
 * @typedef {import('../aggregate/blockers').Blocker} Blocker
 * @typedef {import('./text-parts').Colours} Colours
 *
 * @typedef {object} TextOptions
 * @property {Colours} [colours]
 * @property {number} [width] of the terminal
 * @property {number} [top] max number of routes, blockers and requests; default 10, and 5 requests
 */

const FIGURES = /** @type {const} */ (['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999'])
const TITLES = ['Min.', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'Max.', 'p99', 'p99.9']
const MAX_WIDTH = 100
const MIN_WIDTH = 40
const DEFAULT_TOP = 10
const DEFAULT_SLOWEST = 5
const WITH_STACK = 3 // of the slowest requests
const STACK_LINES = 8
const MAX_WAITS = 3 // of a request
const MAX_DELAYERS = 3
const MAX_SUBSYSTEMS = 6
const MAX_FRAME_CHARS = 200
const VISIBLE_MS = 0.0005 // shorter times are not printed

/**
 * @param {Model} model
 * @param {TextOptions} [options]
 * @returns {string}
 */
function report (model, { colours = noColours, width = 80, top } = {}) {
  const bounded = Math.max(MIN_WIDTH, Math.min(width, MAX_WIDTH))
  return joined([
    head(model, colours),
    ...routes(model, colours, bounded, top ?? DEFAULT_TOP),
    ...worst(model, colours, top ?? DEFAULT_TOP, top ?? DEFAULT_SLOWEST),
    notes(model, colours)
  ])
}

/** @param {string[][]} parts */
function joined (parts) {
  return parts.filter((part) => part.length > 0).map((part) => part.join('\n')).join('\n\n') + '\n'
}

/**
 * Renders all but the routes.
 * @param {Model} model
 * @param {Colours} colours
 * @param {number} top
 * @param {number} topSlowest
 */
function worst (model, colours, top, topSlowest) {
  return [blockers(model, colours, top), slowest(model, colours, topSlowest), open(model, colours, top)]
}

/** @param {Model} model @param {Colours} colours */
function head ({ files, span }, colours) {
  const spans = files.reduce((sum, file) => sum + file.spans, 0)
  const title = colours.bold(`${counted(spans, 'span')} in ${counted(files.length, 'file')}`)
  if (span === undefined) return [title]
  const { fromUnixMs: start, toUnixMs: end } = span
  return [`${title}, ${moment(start)} to ${moment(end)} UTC (${time(end - start)})`]
}

/** @param {Model} model @param {Colours} colours @param {number} width @param {number} top */
function routes (model, colours, width, top) {
  const { length } = model.routes
  const parts = model.routes.slice(0, top).map((route) => routePart(route, colours, width))
  if (length <= top) return parts
  return [...parts, [`… ${counted(length - top, 'more route')}; use --top ${length} to print all`]]
}

/** @param {Route} route @param {Colours} colours @param {number} width */
function routePart (route, colours, width) {
  const { summary, split } = route
  const part = [`${colours.bold(title(route))}  ${amounts(route, colours)}`]
  if (summary !== undefined) part.push(...table([['', summary]], colours), ...plots(route, width))
  if (split !== undefined) part.push(`  means    ${parts(split)}`)
  return part
}

/** @param {{ kind: string, name: string }} route */
function title ({ kind, name }) {
  return kind === 'SERVER' ? word(name) : `${word(name)} (${kind.toLowerCase()})`
}

/** @param {Route} route @param {Colours} colours */
function amounts (route, colours) {
  const { count, weighted, errors, open } = route
  const lines = Math.round(weighted) === count ? '' : ` estimated from ${counted(count, 'line')}`
  return [
    `${counted(weighted, 'span')}${lines}${rate(route.rate)}`,
    errors > 0 ? colours.red(counted(errors, 'error')) : '',
    open > 0 ? colours.yellow(`${grouped(open)} open`) : ''
  ].filter(Boolean).join(', ')
}

/** @param {Array<[string, import('../aggregate/summary').Summary]>} rows @param {Colours} colours */
function table (rows, colours) {
  const cells = rows.map(([name, summary]) => [name, ...FIGURES.map((key) => figure(summary[key]))])
  const [titles, ...figures] = columns([['', ...TITLES], ...cells])
  return [colours.dim(`  ${titles}  ms`), ...figures.map((line) => `  ${line}`)]
}

/** @param {Route} route @param {number} width */
function plots ({ density, box, count, weighted }, width) {
  if (density === undefined || box === undefined) return []
  const axis = { from: density.x[0], to: density.x[density.x.length - 1], width: width - 11 }
  const noun = weighted === count ? 'span' : 'line'
  return [
    `  density  ${curve(density, axis)}`,
    `  box      ${boxLine(box, axis)}`,
    `           ${scale(axis)}`,
    ...(density.beyond > 0 ? [`           ${counted(density.beyond, noun)} beyond the right end`] : [])
  ]
}

/** Formats the breakdown of a duration. @param {Split} split */
function parts ({ run, waited, delayed, wait }) {
  const waits = Object.entries(wait).filter(([, ms]) => ms > VISIBLE_MS).sort((a, b) => b[1] - a[1])
  const subsystems = waits.slice(0, MAX_SUBSYSTEMS).map(([name, ms]) => `${word(name)} ${time(ms)}`)
  const details = subsystems.length === 0 ? '' : ` (${subsystems.join(', ')})`
  return `run ${time(run)} · wait ${time(waited)}${details} · delayed ${time(delayed)}`
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function blockers (model, colours, top) {
  const { length } = model.blockers
  if (length === 0) return []
  const more = length > top ? [`  … ${grouped(length - top)} more`] : []
  const parts = model.blockers.slice(0, top).flatMap((blocker) => blockerPart(blocker, colours))
  return [colours.bold('Blockers'), ...parts, ...more]
}

/** @param {Blocker} blocker @param {Colours} colours */
function blockerPart (blocker, colours) {
  const { name, at: frame, count, totalMs, worstMs, delayedSpans, delayedMs } = blocker
  const site = frame === undefined ? '' : ` at ${colours.cyan(word(frame, MAX_FRAME_CHARS))}`
  const blocked = blocker.known === 'runs'
    ? `blocked the event loop ${counted(count, 'time')}: ${time(totalMs)} in total, ${time(worstMs)} at most`
    : `${count > 0 ? counted(count, 'span') : 'code'} delayed others, by ${time(worstMs)} at most`
  const delayed = delayedSpans > 0
    ? `; delayed ${counted(delayedSpans, 'span')} by ${time(delayedMs)} in total`
    : ''
  const spins = blocker.open ? colours.yellow('; one callback had not ended') : ''
  return [`  ${colours.bold(word(name))}${site}`, `    ${blocked}${delayed}${spins}`]
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function slowest (model, colours, top) {
  const requests = model.slowest.slice(0, top)
  if (model.slowest.length === 0) return []
  const isFirstWithStack = (/** @type {Digest} */ { stack }, /** @type {number} */ i) =>
    requests.findIndex((other) => other.stack === stack) === i
  const parts = requests.flatMap((request, i) =>
    requestPart(request, colours, i < WITH_STACK && isFirstWithStack(request, i)))
  return [colours.bold('Slowest'), ...parts]
}

/** @param {Digest} request @param {Colours} colours @param {boolean} hasStack print its stack */
function requestPart (request, colours, hasStack) {
  const { ms, split, waits, delayedBy, stack, startUnixMs, traceId } = request
  const name = colours.bold(nameOf(request)) + outcome(request, colours)
  const origin = colours.dim(`at ${moment(startUnixMs, true)}, trace ${traceId}`)
  const details = split === undefined ? [] : [parts(split)]
  details.push(...waits.filter((wait) => wait.ms > VISIBLE_MS).slice(0, MAX_WAITS).map(waitLine))
  const delayers = delayedBy.filter((delayer) => delayer.ms > VISIBLE_MS).slice(0, MAX_DELAYERS)
  if (delayers.length > 0) details.push(`delayed by ${delayers.map(delayerText).join(', ')}`)
  return [
    `  ${time(ms).padStart(8)}  ${name}  ${origin}`,
    ...details.map((line) => `            ${line}`),
    ...(hasStack && stack !== undefined ? lines(stack, STACK_LINES, '          ') : [])
  ]
}

/** Names a request by its route and, where that is not in it, its path. @param {Digest} request */
function nameOf ({ name, attributes }) {
  const path = attributes['url.path']
  return typeof path === 'string' && !name.endsWith(path) ? `${word(name)} (${word(path, 80)})` : word(name)
}

/** @param {Digest} request @param {Colours} colours */
function outcome ({ status, end, attributes }, colours) {
  const code = attributes['http.response.status_code'] ?? attributes['error.type']
  const detail = code === undefined ? '' : ` (${word(String(code), 60)})`
  const failure = status.code === 'ERROR' ? colours.red(`, failed${detail}`) : ''
  return failure + (end === undefined ? '' : colours.yellow(`, ${word(end)}`))
}

/**
 * Formats a wait: where it began, how long it was, what ended it.
 * @param {import('../aggregate/digest').Wait} wait
 */
function waitLine ({ ms, count, at: frame, until }) {
  const site = frame === undefined ? 'waited' : `waited at ${word(shortFrame(frame))}`
  const length = count === 1 ? time(ms) : `${time(ms)} in ${counted(count, 'wait')}`
  return [site, length, ...(until === undefined ? [] : [`until ${word(until)}`])].join(' · ')
}

/** @param {import('../aggregate/digest').Delayer} delayer */
function delayerText ({ name, ms, at: frame }) {
  const site = frame === undefined ? '' : ` at ${word(frame, MAX_FRAME_CHARS)}`
  return `${name === undefined ? 'code outside any span' : word(name)} ${time(ms)}${site}`
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function open (model, colours, top) {
  const spans = model.open.slice(0, top)
  if (spans.length === 0) return []
  const lines = spans.map((span) => `  ${span.blocked ? blockingCallback(span) : nameOf(span)}, open for ` +
    `${time(span.ms)} when written, since ${moment(span.startUnixMs, true)}, trace ${span.traceId}`)
  const more = model.openCount > spans.length ? [`  … ${grouped(model.openCount - spans.length)} more`] : []
  return [colours.bold('Still open'), ...lines, ...more]
}

/** @param {Digest} span */
function blockingCallback ({ blockedBy }) {
  return `a blocking callback${blockedBy === undefined ? '' : ` of ${word(blockedBy)}`}`
}

/** Lists problems of the files, and notes on the figures. @param {Model} model @param {Colours} colours */
function notes (model, colours) {
  const problems = model.files.flatMap(({ name, problems }) =>
    problems.map((problem) => `${word(name, 200)}: ${word(problem, 300)}`))
  return [...problems.map((line) => colours.yellow(line)), ...model.notes.map((line) => word(line, 400))]
}

module.exports = { MAX_WIDTH, MIN_WIDTH, report, joined, head, worst, notes, title, amounts, table }
