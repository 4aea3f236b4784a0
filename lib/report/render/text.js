'use strict'

// A report as text for a terminal: R's words for the figures, a curve and a box plot of each route, then who held
// others up, the slowest requests and the open ones. Data in, string out.

const { boxLine, columns, counted, curve, figure, grouped, lines, moment, plain, rate, scale, time, word } = require('./text-parts')
const { shortFrame } = require('../../text')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/routes').Route} Route
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('../aggregate/digest').Split} Split
 * @typedef {import('../aggregate/blockers').Blocker} Blocker
 * @typedef {import('./text-parts').Colours} Colours
 *
 * @typedef {object} Look
 * @property {Colours} [colours]
 * @property {number} [width] of the terminal
 * @property {number} [top] how many routes, blockers and requests at most; default 10, and 5 requests
 */

const FIGURES = /** @type {const} */ (['min', 'q1', 'median', 'mean', 'q3', 'max', 'p99', 'p999'])
const TITLES = ['Min.', '1st Qu.', 'Median', 'Mean', '3rd Qu.', 'Max.', 'p99', 'p99.9']
const WIDEST = 100
const NARROWEST = 40
const MOST = 10
const SLOWEST = 5
const DETAILED = 3 // of the slowest, whose stack is shown
const WAITS = 3 // of a request

/**
 * @param {Model} model
 * @param {Look} [look]
 * @returns {string}
 */
function report (model, { colours = plain, width = 80, top } = {}) {
  const room = Math.max(NARROWEST, Math.min(width, WIDEST))
  return joined([head(model, colours), ...routes(model, colours, room, top ?? MOST), ...worst(model, colours, top ?? MOST, top ?? SLOWEST), notes(model, colours)])
}

/** @param {string[][]} parts */
function joined (parts) {
  return parts.filter((part) => part.length > 0).map((part) => part.join('\n')).join('\n\n') + '\n'
}

/** All but the routes. @param {Model} model @param {Colours} colours @param {number} top @param {number} few of the slowest */
function worst (model, colours, top, few) {
  return [blockers(model, colours, top), slowest(model, colours, few), open(model, colours, top)]
}

/** @param {Model} model @param {Colours} colours */
function head ({ files, span }, colours) {
  const spans = files.reduce((sum, file) => sum + file.spans, 0)
  const title = colours.bold(`${counted(spans, 'span')} in ${counted(files.length, 'file')}`)
  if (span === undefined) return [title]
  return [`${title}, ${moment(span.fromUnixMs)} to ${moment(span.toUnixMs)} UTC (${time(span.toUnixMs - span.fromUnixMs)})`]
}

/** @param {Model} model @param {Colours} colours @param {number} room @param {number} top */
function routes ({ routes: all }, colours, room, top) {
  const parts = all.slice(0, top).map((route) => routePart(route, colours, room))
  return all.length > top ? [...parts, [`… ${counted(all.length - top, 'more route')}; --top ${all.length} shows all`]] : parts
}

/** @param {Route} route @param {Colours} colours @param {number} room */
function routePart (route, colours, room) {
  const { summary, split } = route
  const part = [`${colours.bold(title(route))}  ${amounts(route, colours)}`]
  if (summary !== undefined) part.push(...table([['', summary]], colours), ...pictures(route, room))
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
  const [titles, ...figures] = columns([['', ...TITLES], ...rows.map(([name, summary]) => [name, ...FIGURES.map((key) => figure(summary[key]))])])
  return [colours.dim(`  ${titles}  ms`), ...figures.map((line) => `  ${line}`)]
}

/** @param {Route} route @param {number} room */
function pictures ({ density, box, count, weighted }, room) {
  if (density === undefined || box === undefined) return []
  const axis = { from: density.x[0], to: density.x[density.x.length - 1], width: room - 11 }
  const beyond = density.beyond > 0 ? [`           ${counted(density.beyond, weighted === count ? 'span' : 'line')} beyond the right end`] : []
  return [`  density  ${curve(density, axis)}`, `  box      ${boxLine(box, axis)}`, `           ${scale(axis)}`, ...beyond]
}

/** Formats where the time went. @param {Split} split */
function parts ({ run, waited, delayed, wait }) {
  const waits = Object.entries(wait).filter(([, ms]) => ms > 0.0005).sort((a, b) => b[1] - a[1]).slice(0, 6)
  const inside = waits.length === 0 ? '' : ` (${waits.map(([name, ms]) => `${word(name)} ${time(ms)}`).join(', ')})`
  return `run ${time(run)} · wait ${time(waited)}${inside} · delayed ${time(delayed)}`
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function blockers ({ blockers: all }, colours, top) {
  if (all.length === 0) return []
  const more = all.length > top ? [`  … ${grouped(all.length - top)} more`] : []
  return [colours.bold('Who held others up'), ...all.slice(0, top).flatMap((one) => blocker(one, colours)), ...more]
}

/** @param {Blocker} one @param {Colours} colours */
function blocker (one, colours) {
  const { count, totalMs, worstMs, known, delayedSpans, delayedMs } = one
  const ran = known === 'runs'
    ? `blocked the loop ${count === 1 ? 'once' : `${grouped(count)} times`}, ${time(totalMs)} in all, ${time(worstMs)} at worst`
    : `${count > 0 ? `${counted(count, 'span')} of it` : 'it'} held others up, one of them for ${time(worstMs)}`
  const held = delayedSpans > 0 ? `; ${counted(delayedSpans, 'span')} waited for it, ${time(delayedMs)} in all` : ''
  const spins = one.open ? colours.yellow('; one run had not ended') : ''
  return [`  ${colours.bold(word(one.name))}${one.at === undefined ? '' : ` at ${colours.cyan(word(one.at, 200))}`}`, `    ${ran}${held}${spins}`]
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function slowest ({ slowest: all }, colours, top) {
  if (all.length === 0) return []
  return [colours.bold('Slowest'), ...all.slice(0, top).flatMap((one, i) => request(one, colours, i < DETAILED && all.findIndex(({ stack }) => stack === one.stack) === i))]
}

/** @param {Digest} one @param {Colours} colours @param {boolean} detailed its stack is shown, which it shares with none before */
function request (one, colours, detailed) {
  const part = [`  ${time(one.ms).padStart(8)}  ${colours.bold(nameOf(one))}${outcome(one, colours)}  ${colours.dim(`at ${moment(one.startUnixMs, true)}, trace ${one.traceId}`)}`]
  if (one.split !== undefined) part.push(`            ${parts(one.split)}`)
  const waits = one.waits.filter(({ ms }) => ms > 0.0005).slice(0, WAITS)
  part.push(...waits.map((wait) => `            ${waitLine(wait)}`))
  const delayers = one.delayedBy.filter(({ ms }) => ms > 0.0005).map(delayer)
  if (delayers.length > 0) part.push(`            delayed by ${delayers.slice(0, 3).join(', ')}`)
  if (detailed && one.stack !== undefined) part.push(...lines(one.stack, 8, '          '))
  return part
}

/** Method and path tell one request from others of its route. @param {Digest} one */
function nameOf ({ name, attributes }) {
  const path = attributes['url.path']
  const said = typeof path === 'string' && !name.endsWith(path) ? `${word(name)} (${word(path, 80)})` : word(name)
  return said
}

/** @param {Digest} one @param {Colours} colours */
function outcome ({ status, end, attributes }, colours) {
  const code = attributes['http.response.status_code'] ?? attributes['error.type']
  const failed = status.code === 'ERROR' ? colours.red(`, failed${code === undefined ? '' : ` (${word(String(code), 60)})`}`) : ''
  return failed + (end === undefined ? '' : colours.yellow(`, ${word(end)}`))
}

/**
 * Formats a wait: where it began, how long it was, what ended it.
 * @param {import('../aggregate/digest').Wait} wait
 */
function waitLine ({ ms, count, at, until }) {
  const site = at === undefined ? 'waited' : `waited at ${word(shortFrame(at))}`
  const length = count === 1 ? time(ms) : `${time(ms)} in ${counted(count, 'wait')}`
  return [site, length, ...(until === undefined ? [] : [`until ${word(until)}`])].join(' · ')
}

/** @param {import('../aggregate/digest').Delayer} one */
function delayer ({ name, ms, at }) {
  return `${name === undefined ? 'code outside of any span' : word(name)} ${time(ms)}${at === undefined ? '' : ` at ${word(at, 200)}`}`
}

/** @param {Model} model @param {Colours} colours @param {number} top */
function open ({ open: all, openCount }, colours, top) {
  if (all.length === 0) return []
  const shown = all.slice(0, top).map((one) =>
    `  ${one.blocked ? blockedRun(one) : nameOf(one)}, ${time(one.ms)} old when it was written, since ${moment(one.startUnixMs, true)}, trace ${one.traceId}`)
  const more = openCount > shown.length ? [`  … ${grouped(openCount - shown.length)} more`] : []
  return [colours.bold('Still open'), ...shown, ...more]
}

/** @param {Digest} one */
function blockedRun ({ blockedBy }) {
  return `a blocked run of the loop${blockedBy === undefined ? '' : ` by ${word(blockedBy)}`}`
}

/** What is to be known of the figures. @param {Model} model @param {Colours} colours */
function notes ({ files, notes: all }, colours) {
  const problems = files.flatMap((file) => file.problems.map((problem) => `${word(file.name, 200)}: ${word(problem, 300)}`))
  return [...problems.map((line) => colours.yellow(line)), ...all.map((line) => word(line, 400))]
}

module.exports = { report, joined, head, worst, notes, title, amounts, table, blockers }
