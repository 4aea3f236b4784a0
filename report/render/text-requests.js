'use strict'

// Single requests as text: the slowest, and those still open.

const { grouped, lines, moment, time, word } = require('./text-parts')
const { VISIBLE_MS, parts } = require('./text-routes')
const { placeText } = require('./text-sites')
const { glued } = require('./wrap')

/**
 * @typedef {import('../aggregate/model').Model} Model
 * @typedef {import('../aggregate/digest').Digest} Digest
 * @typedef {import('./text-context').Context} Context
 */

const [SHORT_SLOWEST, FULL_SLOWEST] = [3, 5]
const [SHORT_OPEN, FULL_OPEN] = [5, 20]
const WITH_STACK = 3 // of the slowest requests
const STACK_LINES = 8
const [SHORT_WAITS, FULL_WAITS] = [1, 3] // of a request
const [SHORT_DELAYERS, FULL_DELAYERS] = [1, 3]
const SHORT_SHARE = 0.2 // of a request, below which in short a wait or delay is left out
const MIN_QUEUED = 1 // ms
const INDENT = ' '.repeat(12)

/** @param {Model} model @param {Context} context */
function slowest (model, context) {
  const { colours, isFull, top = isFull ? FULL_SLOWEST : SHORT_SLOWEST } = context
  const requests = model.slowest.slice(0, top)
  if (requests.length === 0) return []
  const hasNewStack = (/** @type {Digest} */ { stack }, /** @type {number} */ i) =>
    isFull && i < WITH_STACK && requests.findIndex((other) => other.stack === stack) === i
  const printed = requests.flatMap((request, i) => requestLines(request, hasNewStack(request, i), context))
  return [colours.bold('Slowest'), ...printed]
}

/** @param {Digest} request @param {boolean} hasStack print its stack @param {Context} context */
function requestLines (request, hasStack, context) {
  const { ms, split, waits, delayedBy, delayedMax, queuedMs, stack, startUnixMs, traceId } = request
  const { colours, isFull, paragraph } = context
  const name = colours.bold(glued(nameOf(request))) + outcome(request, context)
  const origin = `at ${moment(startUnixMs, true)}, ${glued(`trace ${traceId}`)}`
  const details = split === undefined ? [] : [parts(isFull ? split : { ...split, wait: {} }, delayedMax)]
  const printed = waits.filter((wait) => wait.ms >= shortest(ms, context))
  details.push(...printed.slice(0, isFull ? FULL_WAITS : SHORT_WAITS).map((wait) => waitText(wait, context)))
  const delayers = delayedBy.filter((delayer) => delayer.ms >= shortest(ms, context))
  const texts = delayers.slice(0, isFull ? FULL_DELAYERS : SHORT_DELAYERS)
    .map((delayer) => delayerText(delayer, context))
  if (texts.length > 0) details.push(`delayed by ${texts.join(', ')}`)
  if (queuedMs !== undefined && queuedMs >= MIN_QUEUED) {
    const longer = glued(`${time(queuedMs)} longer`)
    details.push(`the client waited ${longer} than the span shows: the request lay there unread`)
  }
  return [
    ...paragraph(`${name}${glued(' ')} ${origin}`, `  ${time(ms).padStart(8)}  `),
    ...details.flatMap((text) => paragraph(text, INDENT, `${INDENT}  `)),
    ...(hasStack && stack !== undefined ? lines(stack, STACK_LINES, '          ') : [])
  ]
}

/**
 * Returns the shortest wait or delay that is printed.
 * @param {number} ms of the request
 * @param {Context} context
 */
function shortest (ms, { isFull }) {
  return isFull ? VISIBLE_MS : ms * SHORT_SHARE
}

/** Names a request by its route and, where that is not in it, its path. @param {Digest} request */
function nameOf ({ name, attributes }) {
  const path = attributes['url.path']
  return typeof path === 'string' && !name.endsWith(path) ? `${word(name)} (${word(path, 80)})` : word(name)
}

/** @param {Digest} request @param {Context} context */
function outcome ({ status, end, attributes }, { colours }) {
  const code = attributes['http.response.status_code'] ?? attributes['error.type']
  const detail = code === undefined ? '' : ` (${word(String(code), 60)})`
  const failure = status.code === 'ERROR' ? `, ${colours.red(glued(`failed${detail}`))}` : ''
  return failure + (end === undefined ? '' : `, ${colours.yellow(glued(word(end)))}`)
}

/**
 * Formats a wait: where it began, what ended it, how long it was.
 * @param {import('../aggregate/digest').Wait} wait
 * @param {Context} context
 */
function waitText (wait, context) {
  const { ms, count } = wait
  const length = count === 1 ? time(ms) : `${time(ms)} in ${grouped(count)} waits`
  return `waited ${glued(length)} ${placeText(context.isFull ? wait : { ...wait, callers: [] }, context)}`
}

/** @param {import('../aggregate/digest').Delayer} delayer @param {Context} context */
function delayerText ({ name, ms, max = ms, at: frame }, { frame: nameOf }) {
  const site = frame === undefined ? '' : ` ${glued('at ')}${nameOf(frame)}`
  const length = max > ms ? `${time(ms)} to ${time(max)}` : time(ms)
  return `${glued(`${name === undefined ? 'code outside any span' : word(name)} ${length}`)}${site}`
}

/** @param {Model} model @param {Context} context */
function open (model, { colours, isFull, paragraph, top = isFull ? FULL_OPEN : SHORT_OPEN }) {
  const spans = model.open.slice(0, top)
  if (spans.length === 0) return []
  const texts = spans.map((span) => {
    const name = glued(span.blocked ? blockingCallback(span) : nameOf(span))
    const since = `since ${moment(span.startUnixMs, true)}, ${glued(`trace ${span.traceId}`)}`
    return `${name}, open for ${glued(time(span.ms))} when written, ${since}`
  })
  const more = model.openCount > spans.length ? [`  … ${grouped(model.openCount - spans.length)} more`] : []
  return [colours.bold('Still open'), ...texts.flatMap((text) => paragraph(text, '  ', '    ')), ...more]
}

/** @param {Digest} span */
function blockingCallback ({ blockedBy }) {
  return `a blocking callback${blockedBy === undefined ? '' : ` of ${word(blockedBy)}`}`
}

module.exports = { open, slowest }
